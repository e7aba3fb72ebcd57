"""Does a sentence stand in the skill? Compared verbatim, except that runs of blanks and line breaks are one space."""

from collections.abc import Iterator
from pathlib import Path

from skill2env.authors.staging import read_inside
from skill2env.records import FileKind, Skill

MAX_FILE_BYTES = 1_000_000
"""Larger text files are data, not instructions, and are not searched."""
MAX_TOTAL_BYTES = 16_000_000
MIN_SENTENCE_CHARS = 12
"""A shorter quotation would be found anywhere and ground nothing."""


class SentenceIndex:
    """The text of one skill: description, body and text files."""

    def __init__(self, skill: Skill, skill_dir: Path) -> None:
        parts = [skill.description, skill.body, *_text_files(skill, skill_dir)]
        self._texts = [" ".join(part.split()) for part in parts]

    def __contains__(self, sentence: str) -> bool:
        """Whether the sentence stands somewhere, whole."""
        wanted = " ".join(sentence.split())
        return len(wanted) >= MIN_SENTENCE_CHARS and any(wanted in text for text in self._texts)


def _text_files(skill: Skill, skill_dir: Path) -> Iterator[str]:
    total = 0
    for item in skill.files:
        total += item.size
        if item.kind is FileKind.TEXT and item.size <= MAX_FILE_BYTES and total <= MAX_TOTAL_BYTES:
            try:
                yield read_inside(skill_dir, item.path).decode("utf-8", "replace")
            except OSError:
                continue  # gone since ingest: it grounds nothing
