"""The words of family `migrate`."""

from skill2env.authors.code.instruction import Words
from skill2env.authors.code.rubric import Craft
from skill2env.axes import Expertise

WORDS = Words(
    problems={
        Expertise.OUTSIDER: (
            "It works, but the people who take over from it need {functions} to answer in another form.",
            "Nothing is broken; only {functions} should from now on talk to the outside in a new form.",
        ),
        Expertise.PRACTITIONER: (
            "We move to a new interface, and {functions} still {speak} the old one.",
            "The other side has changed its format, so {functions} must change with it.",
        ),
        Expertise.SPECIALIST: (
            "The public form of {functions} changes by the rule below, while everything that calls into that code from inside keeps its contract.",
            "{functions} {speak} the old form, which the new consumers cannot read; inside the project the old form stays the agreed one.",
        ),
        Expertise.ADJACENT: (
            "The plug has to be changed and the machine behind it left alone: it is about {functions}.",
            "We get new connectors for {functions}, on the outside only.",
        ),
    },
    evidence=(
        "`{dir}/examples` holds {cases} in the new form: `python3 examples/case-01/run.py` (and so on) prints what comes out today, "
        "`expected.txt` beside it is what should come out.",
        "You find {cases} of the new form in `{dir}/examples`, each with a `run.py` that prints today's result and an `expected.txt` with the right one.",
    ),
    musts={
        "new_form_examples": {
            "": (
                "Every run.py under examples must print exactly its expected.txt.",
                "For each example the output must equal its expected.txt.",
            ),
        },
        "new_form_elsewhere": {
            "": (
                "The rule holds for all inputs, also those for which there is no example.",
                "Inputs without an example have to come out by the same rule.",
            ),
        },
        "kept_behaviour": {
            Expertise.OUTSIDER: (
                "Once the new form is there, everything else must give exactly what it gives today, in particular the scripts.",
                "With the new form in place, all that I have not named must still give the same results, scripts included.",
            ),
            "": (
                "With the new form in place, every other function and every script must give exactly what it gives today.",
                "Once the form is changed, other functions and the scripts, even those that use this code, must behave as they do today.",
            ),
        },
        "interface": {
            "": (
                "Apart from what the rule says, public functions keep their names and parameters.",
                "Names and parameters of public functions stay, unless the rule says otherwise.",
            ),
        },
    },
    rules=(
        "Python here has {libraries}, and there is no network.",
        "There is no network, and Python has {libraries}; leave the examples as they are.",
    ),
    story=("The meeting took an hour, and this is what was agreed.",),
)

CRAFT = Craft(
    must=(
        "Finds every caller of the changed functions inside the project before changing them, and keeps what those callers get.",
        "Runs the examples and the project's scripts after the change.",
    ),
    avoid=(
        "Converts at the callers one by one, or changes what scripts print and write.",
        "Copies the old code in order to change the copy.",
    ),
    best=("Puts the new form in one place, so that the rule can be read there.",),
)
