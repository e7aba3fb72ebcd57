"""The words of family `checks`."""

from skill2env.authors.code.instruction import Words
from skill2env.authors.code.rubric import Craft
from skill2env.axes import Expertise

WORDS = Words(
    problems={
        Expertise.OUTSIDER: (
            "It works today, but we have been bitten by small mistakes in {functions}, and nothing would tell us about the next one.",
            "Every now and then somebody breaks a detail of {functions}, and we only hear of it from the people who use it.",
        ),
        Expertise.PRACTITIONER: (
            "There are no tests for {functions}, and every change there is a gamble.",
            "{functions} went without tests for too long.",
        ),
        Expertise.SPECIALIST: (
            "I need regression tests for {functions} that pin limits, roundings, orders and odd inputs exactly.",
            "Regressions in {functions} have reached users more than once, so the behaviour has to be pinned by tests.",
        ),
        Expertise.ADJACENT: (
            "I would like gauges on {functions} that move as soon as something is out of true.",
            "We have no alarm on {functions}; it can go wrong silently.",
        ),
    },
    evidence=(
        "Put tests for it into `{dir}/checks`, as files named `test_*.py` for Python's unittest. They are started in the project's folder with "
        "`python3 -m unittest discover -s checks -p 'test*.py'`, with every folder that holds a module on PYTHONPATH, and may take ten seconds. "
        "They will be run on compiled copies of the project, so they have to look at what the code does and not at its text.",
        "The tests belong into `{dir}/checks` (files `test_*.py`, unittest). `python3 -m unittest discover -s checks -p 'test*.py'` starts them in the "
        "project's folder, PYTHONPATH has each folder with a module, and ten seconds is the limit. Since they run on compiled copies, the text "
        "of the code is of no use to them; only its behaviour is.",
    ),
    musts={
        "sound_checks": {
            "": (
                "The tests must pass on the project as it is, and on any rewritten version that behaves the same, and they must not pass on everything.",
                "On the present code, and on other code with the same behaviour, no test may fail; on broken code some must.",
            ),
        },
        "known_mistakes": {
            Expertise.OUTSIDER: (
                "The mistakes that I describe must each make at least one test fail.",
                "If one of the mistakes told here came back, a test would have to fail.",
            ),
            "": (
                "Each of the mistakes described here must be caught by a failing test.",
                "A version with any of the described mistakes must fail.",
            ),
        },
        "hidden_mistakes": {
            "": (
                "There are {mistakes} in other places of that code which I do not describe; at least {needed} of them must be caught as well.",
                "I keep {mistakes} in the same code to myself, and the tests have to catch {needed} or more of them.",
            ),
        },
    },
    rules=(
        "Leave the project's own code as it is; Python has {libraries}, and there is no network.",
        "Only the checks folder counts, so do not touch the code; there is no network, and Python has {libraries}.",
    ),
    story=("I made a list of what went wrong in the past.",),
)

CRAFT = Craft(
    must=(
        "Works out right results from README.md, docstrings and the code's rules, and says in the tests why they are right.",
        "Tests both sides of limits, ties, empty and odd inputs, and not only the middle of the range.",
    ),
    avoid=(
        "Reads or hashes source files, or compares with a copy of the code instead of with stated results.",
        "Writes tests that depend on the order of sets, the clock, the folder or each other.",
    ),
    best=("Tries the tests on deliberately broken copies of the code before handing them in.",),
)
