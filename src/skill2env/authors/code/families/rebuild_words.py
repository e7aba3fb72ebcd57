"""The words of family `rebuild`."""

from skill2env.authors.code.instruction import Words
from skill2env.authors.code.rubric import Craft
from skill2env.axes import Expertise

WORDS = Words(
    problems={
        Expertise.OUTSIDER: (
            "A piece of it got lost: {functions} {have} nothing inside any more, and whatever needs it stops.",
            "Something went missing from it; {functions} only {have} an empty shell left.",
        ),
        Expertise.PRACTITIONER: (
            "The code of {functions} is gone; only signature and docstring are left.",
            "After a bad merge {functions} {have} no body any more, only the signature and the docstring.",
        ),
        Expertise.SPECIALIST: (
            "The implementation of {functions} was lost; the contract is known, and recorded results exist to check against.",
            "{functions} {have} to be implemented again to the letter of the old behaviour, limits and odd inputs included.",
        ),
        Expertise.ADJACENT: (
            "The housing is intact, but the mechanism of {functions} was taken out.",
            "A component is missing: {functions} {have} the connections and nothing behind them.",
        ),
    },
    evidence=(
        "`{dir}/CONTRACT.md` collects what is known about the lost code. `{dir}/examples` holds {cases}: `python3 examples/case-01/run.py` "
        "(and so on) prints what comes out today, `expected.txt` beside it is what came out before.",
        "What is known stands in `{dir}/CONTRACT.md`, and `{dir}/examples` has {cases}, each with a `run.py` that prints today's result and "
        "an `expected.txt` with the result of the old code.",
    ),
    musts={
        "recorded_examples": {
            Expertise.OUTSIDER: (
                "All the examples must come out as their expected.txt says.",
                "In the end each example has to give what its expected.txt shows.",
            ),
            "": (
                "Every run.py under examples must print exactly its expected.txt.",
                "For each recorded example the output must equal its expected.txt.",
            ),
        },
        "held_out_inputs": {
            Expertise.OUTSIDER: (
                "The examples are only a part: whatever else it is given, the new code must answer as the old one did.",
                "I kept other old results back, and those must come out right as well.",
            ),
            "": (
                "On inputs that are not among the examples the new code must give what the documented old code gave.",
                "The old behaviour has to be met on other inputs too, which will be compared one by one.",
            ),
        },
        "kept_behaviour": {
            "": (
                "Once the lost part works again, everything that works today must still give exactly the same.",
                "With the lost code back, nothing that is right today may have changed.",
            ),
        },
        "interface": {
            "": (
                "The functions of the file keep their names and parameters.",
                "Names and parameters of the public functions in that code stay as they are.",
            ),
        },
    },
    rules=(
        "Python here has {libraries}, and there is no network.",
        "There is no network, and Python has {libraries}; leave the examples as they are.",
    ),
    story=("I looked for a copy everywhere and found none, only old results.",),
)

CRAFT = Craft(
    must=(
        "Reads CONTRACT.md, the docstring and callers before writing, and uses the helpers and constants that the code already has.",
        "Runs all examples after the change, and tries inputs at the limits that contract and examples suggest.",
    ),
    avoid=(
        "Looks up the recorded examples in a table instead of computing the result, or edits an expected.txt.",
        "Rewrites code around the lost functions that already works.",
    ),
    best=(
        "Writes the function in the style of the code around it, plainly enough to be compared with the contract line by line.",
    ),
)
