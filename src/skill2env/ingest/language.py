"""A guess at the language of prose, from its script and its commonest words. Good enough to say "not English"."""

import re
import string
from collections import Counter
from functools import lru_cache

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|<[^>\n]{1,200}>", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_ASCII_LETTERS = string.ascii_letters.encode()
_OTHERS = bytes(byte for byte in range(256) if byte not in _ASCII_LETTERS)
_LETTERS = bytes(byte if byte in _ASCII_LETTERS else 0x20 for byte in range(256))
_SAMPLE_CHARS = 12_000
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("el", re.compile("[\u0370-\u03ff]")),
)
# Words that are common in one language and rare in the others of the list.
_WORDS = {
    "en": "the and of is with this that from when are not for be use your it or if to as by each".split(),
    "pt": "não uma para com você são como mais seu sua ou também quando pelo deve".split(),
    "es": "el los las una para con por cuando también más usar esta este según debe del".split(),
    "fr": "le les des une est pour avec dans sur vous pas ou cette être du quand".split(),
    "de": "der die und das nicht mit für ist ein eine auf werden oder wenn den zu".split(),
    "it": "il che non della una per con sono gli più anche quando questo di nel".split(),
    "tr": "bir ve için ile bu olarak veya değil daha olan kullan gibi ise".split(),
    "pl": "nie jest się dla oraz lub przez tego które który jak przy".split(),
    "vi": "và của là không các được cho này với khi một để người".split(),
}
_SCRIPT_SHARE = 0.2
_MIN_WORDS = 25


@lru_cache(maxsize=8)
def guess_language(text: str) -> str:
    """ISO 639-1 code of the likely language; empty when there is too little prose to tell."""
    sample = _CODE.sub(" ", text[:_SAMPLE_CHARS])
    if not sample.isascii():
        strange = _strange(sample)  # all letters of these scripts are in it
        letters = sum(map(str.isalpha, strange)) + len(
            sample.encode("ascii", "ignore").translate(None, _OTHERS)
        )
        for code, pattern in _SCRIPTS:
            if letters and len(pattern.findall(strange)) > _SCRIPT_SHARE * letters:
                return code
    words = Counter(_words(sample.lower()))
    total = words.total()
    if total < _MIN_WORDS:
        return ""
    counts = {code: sum(words[word] for word in common) for code, common in _WORDS.items()}
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    # Lists of terms and tables use few common words at all; then there is no evidence against English.
    return best if counts[best] > 0.03 * total or best == "en" else ""


def _strange(text: str) -> str:
    """The signs that are not ASCII."""
    return "".join(_NOT_ASCII.findall(text))


def _words(lowered: str) -> list[str]:
    """Runs of letters."""
    if lowered.isascii() or not any(map(str.isalpha, _strange(lowered))):
        return lowered.encode("ascii", "replace").translate(_LETTERS).decode().split()
    return _WORD.findall(lowered)
