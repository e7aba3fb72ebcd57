"""The words of instructions: who asks, how they put it, and the sentences that metrics quote.

``{tool}`` is the project's name, ``{dir}`` its folder, ``{cases}`` the number of reported cases in words. Every list
has alternatives of equal meaning; the seed picks.
"""

from skill2env.axes import Expertise, Persona, Tone

PERSONAS: dict[str, tuple[str, ...]] = {
    Persona.SHIFT_LEAD: (
        "I run the shift that works with {tool} and hand over this evening.",
        "My team takes its numbers from {tool}, and the next shift starts soon.",
    ),
    Persona.FOUNDER: (
        "We are a small company and {tool} sits behind what we show to customers.",
        "I keep {tool} going between everything else that a small company needs.",
    ),
    Persona.NEW_HIRE: (
        "I joined this month and took over {tool} from a colleague who has left.",
        "I am new here; {tool} came to me with the desk, and I do not know its history.",
    ),
    Persona.AUDITOR: (
        "I have to sign off on results that come out of {tool}.",
        "My review depends on {tool}, and every figure in it has to stand up.",
    ),
    Persona.RESEARCHER: (
        "We use {tool} in a study, and the results have to be reproducible.",
        "A manuscript of ours rests on output of {tool}.",
    ),
    Persona.MAINTAINER: (
        "I look after {tool}, and other people build on it.",
        "{tool} is one of the code bases in my care.",
    ),
    Persona.ANALYST: (
        "I answer questions with the output of {tool}, and people act on the answers.",
        "My figures come out of {tool}.",
    ),
    Persona.SUPPORT_AGENT: (
        "A customer who uses {tool} wrote to us and sent what they ran.",
        "I am passing on a customer's complaint about {tool}, with the material they sent.",
    ),
    Persona.CONSULTANT: (
        "My client runs {tool}, and a correct version is part of what I deliver.",
        "The contract with my client includes {tool} in working order.",
    ),
    Persona.TEACHER: (
        "My course uses {tool}, and students check every line of its output.",
        "I teach with {tool} and cannot show my class wrong results.",
    ),
    Persona.PROJECT_MANAGER: (
        "{tool} is a deliverable of our project, and two teams wait for it.",
        "Two work packages of my project depend on {tool}.",
    ),
    Persona.OPERATOR: (
        "{tool} runs here as a scheduled job.",
        "I operate the machine that {tool} runs on.",
    ),
    Persona.VOLUNTEER: (
        "I help out at a small association that relies on {tool}.",
        "Our club uses {tool}, and I am the one who knows a little about computers.",
    ),
    Persona.COMPLIANCE_OFFICER: (
        "I must be able to show that {tool} follows its written rules to the letter.",
        "Results of {tool} go into our records, where each must match the documented rule.",
    ),
}
"""Who asks: one sentence each."""

OTHER_PERSONA = ("I depend on {tool} in my daily work.",)

PROBLEMS: dict[str, tuple[str, ...]] = {
    Expertise.OUTSIDER: (
        "Some of what it gives out is wrong since the last change; the rest looks fine.",
        "Since it was last changed, part of what comes out is not right any more.",
    ),
    Expertise.PRACTITIONER: (
        "A recent change broke some of its results without any error message.",
        "Since a recent edit some results are wrong, and nothing crashes.",
    ),
    Expertise.SPECIALIST: (
        "A recent edit altered behaviour that README.md and the code's own comments describe; there is no error, only wrong values.",
        "A regression went in unnoticed: the values disagree with the documented rules while everything still runs.",
    ),
    Expertise.ADJACENT: (
        "The instrument still runs, but after the last adjustment some of its readings are off.",
        "It behaves like a gauge that somebody knocked: it runs, and part of the readings are wrong.",
    ),
}
"""What is wrong: one sentence each."""

PLACES = (
    "It lies in `{dir}`; README.md there says what it is meant to do.",
    "Everything is in `{dir}`, and README.md in that folder describes what it should do.",
)

REPORTS = (
    "`{dir}/reports` holds {cases}: `python3 reports/case-01/run.py` (and so on) prints what we get today, "
    "`expected.txt` beside it is what should be printed.",
    "You find {cases} in `{dir}/reports`. Each has a `run.py` that prints today's result and an `expected.txt` "
    "with the right one.",
)

REPORTED: dict[str, tuple[str, ...]] = {
    Expertise.OUTSIDER: (
        "In the end every reported case must come out exactly as its expected.txt says.",
        "All the reported cases have to give what their expected.txt shows.",
    ),
    "": (
        "Every run.py under reports must print exactly its expected.txt.",
        "For each reported case the output must equal its expected.txt.",
    ),
}
"""Metric `reported_cases`."""

HIDDEN: dict[str, tuple[str, ...]] = {
    Expertise.OUTSIDER: (
        "The reported cases are only examples: the same mistake must also be gone for other data that I have not shown you.",
        "What I sent are examples, and the tool must be right for everything else that was hit by the same mistake too.",
    ),
    "": (
        "The cause has to be mended, so that inputs nobody reported but the same fault affects come out right as well.",
        "Other inputs that suffer from the same cause, none of them in reports, must give the right results too.",
    ),
}
"""Metric `unreported_cases`."""

KEPT: dict[str, tuple[str, ...]] = {
    Expertise.OUTSIDER: (
        "And with the mistake really gone, everything that comes out right today must still come out exactly the same.",
        "Once a mistake is truly gone, nothing that is right today may look any different.",
    ),
    "": (
        "With a fault really gone, everything that is right today must stay exactly as it is, under the same function names and options.",
        "A mended fault counts only if all results that are right today stay identical and functions and options keep their names.",
    ),
}
"""Metric `kept_behaviour`. It says that the metric counts once a fault is mended, because that is how it is graded."""

RULES = (
    "Mend the code itself; Python here has its standard library only, and there is no network.",
    "Please change the code, not the reports; there is no network, and Python has only its standard library.",
)

REASONS: dict[str, str] = {
    Tone.URGENT: "This cannot wait: people are using the wrong results as I write.",
    Tone.SCEPTICAL: "The last person who looked at it made the examples work and nothing else; I will not take that again.",
    Tone.FRIENDLY: "Thank you very much, that would be a great help!",
}

COUNT_WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def of(table: dict[str, tuple[str, ...]], key: str, other: tuple[str, ...]) -> tuple[str, ...]:
    """Alternatives for an axis value; values outside the catalog use `other`."""
    return table.get(key) or table.get("") or other
