"""The words that instructions of all families share: who asks, where things lie, how the tone shows.

``{tool}`` is the project's name, ``{dir}`` its folder. Every list has alternatives of equal meaning; the seed picks.
"""

from collections.abc import Mapping, Sequence

from skill2env.axes import Persona, Tone

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

PLACES = (
    "It lies in `{dir}`; README.md there says what it is meant to do.",
    "Everything is in `{dir}`, and README.md in that folder describes what it should do.",
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


def of(table: Mapping[str, Sequence[str]], key: str, other: Sequence[str]) -> Sequence[str]:
    """Alternatives for an axis value; values outside the catalog use `other`."""
    return table.get(key) or table.get("") or other


def counted(count: int, noun: str) -> str:
    """``three reported cases`` and the like; digits above twelve."""
    word = COUNT_WORDS[count] if count < len(COUNT_WORDS) else str(count)
    return f"{word} {noun}{'' if count == 1 else 's'}"
