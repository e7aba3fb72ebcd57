"""When a skill applies, in its own words: from the description, from front matter keys, from a section of the text."""

import re
from collections.abc import Iterator
from typing import Any

MAX_TRIGGERS = 24
MAX_CHARS = 400
_KEYS = ("when_to_use", "when-to-use", "whenToUse", "triggers", "trigger", "use_when", "keywords-trigger")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+(?=[A-Z0-9\"'(\[`*<]|[^\x00-\x7f])|(?<=[。！？])|\n+")
_CUE = re.compile(
    r"\b(?:use|used|invoke|invoked|activate[sd]?|apply|applies|trigger(?:s|ed)?|call|run|load|consult|read) "
    r"(?:[\w']+ ){0,5}?(?:when|whenever|if|for|before|after|on|while|as soon as)\b"
    r"|\bwhen(?:ever)? (?:the |a |an )?(?:user|users|someone|you|asked|working|building|creating|writing)\b"
    r"|\btriggers?(?: phrases| words| on)?\s*:|\b(?:do not|don't|not) (?:use|be used)\b|\bnot for\b|\bideal for\b"
    r"|\bshould be used\b|当|时使用|使用时机|場合に|ときに|사용|cuando|quando|lorsque|wenn ",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(#{1,5})\s+(.*?)\s*#*\s*")
_SECTION = re.compile(
    r"\b(?:when (?:not )?to (?:use|apply|activate|invoke|trigger|run)|when should|use (?:this )?when|use cases?"
    r"|triggers?|trigger (?:phrases|conditions|words)|activation|applicability|when not to use)\b"
    r"|何时使用|使用场景|使用时机|触发|いつ使|使用する|トリガー|사용 시점|cu[aá]ndo us|quando us|quand util|wann ",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ x]\]\s+)?(.+)")


def find_triggers(description: str, values: dict[str, Any], body: str) -> tuple[str, ...]:
    """Sentences that say when the skill applies, word for word, in the order of their sources, at most 24."""
    found = [
        *_from_sentences(description),
        *(text for key in _KEYS for text in _flat(values.get(key))),
        *_from_section(body),
    ]
    unique = dict.fromkeys(sentence for text in found if len(sentence := " ".join(text.split())) > 3)
    return tuple(sentence for sentence in unique if len(sentence) <= MAX_CHARS * 3)[:MAX_TRIGGERS]


def _from_sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        if sentence and _CUE.search(sentence):
            yield sentence.strip()


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (line.strip(" -\t") for line in value.split("\n"))
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _flat(item)


def _from_section(body: str) -> Iterator[str]:
    """List items and paragraphs below a heading such as "When to use", up to the next heading of its rank."""
    rank, fenced = 0, False
    for line in body.split("\n"):
        if ("```" in line or "~~~" in line) and line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        heading = _HEADING.fullmatch(line) if not fenced and line.startswith("#") else None
        if heading:
            if rank and len(heading[1]) > rank:
                continue
            rank = len(heading[1]) if len(heading[2]) < 120 and _SECTION.search(heading[2]) else 0
        elif rank and not fenced and line.strip():
            item = _ITEM.fullmatch(line)
            text = (item[1] if item else line).strip()
            if (
                not text.startswith(("|", "---", "<"))
                and len(text) <= MAX_CHARS
                and (item or not text.endswith(":"))
            ):
                yield text
