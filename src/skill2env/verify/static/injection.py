"""Gate `injection`: no text that the agent reads gives orders to its reader beyond the task.

Looks behind invisible characters, letters of other alphabets, reversed lines, base64 and rot13. One strange phrase is
no order: a finding needs an order to drop one's instructions, or somebody spoken to as a model or a reviewer together
with a reward, a secret or a command. A task whose subject are such texts says so in its instruction; then it is a note.
"""

# ruff: noqa: E501  # tables of patterns

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath

from skill2env.verify.gate import GateContext, Hit, Report, Subject
from skill2env.verify.static.world import world_of

TEXT_LIMIT = 2 * 1024 * 1024
"""Characters of one file that are read."""
_NEAR = 240
"""How far apart two halves of one order stand at most; characters."""
_HITS_A_FILE = 3
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff]"
)
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_BASE64 = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/]{32,}={0,2}(?![\w+/=])")
_LOOKALIKES = str.maketrans("аеорсухіѕԁһѵӏοαερАВЕКМНОРСТХІЈЅ", "aeopcyxisdhvloaepABEKMHOPCTXIJS")
_GUIDES = frozenset(
    {"agents.md", "claude.md", "gemini.md", ".cursorrules", "copilot-instructions.md", "skill.md"}
)
"""Files that speak to coding agents by their nature."""

_OVERRIDE = re.compile(
    r"(?i)\b(?:ignore|disregard|forget|do not follow|don't follow|stop following)\b"
    r"(?:\W+(?:all|any|every|everything|of|in|the|these|those|my|and)){0,3}?"
    r"\W+(?:previous|prior|above|earlier|preceding|former|foregoing|system|your|original|initial)"
    r"(?:\W+[\w-]+){0,3}?\W+(?:instructions?|prompts?|directives|directions)\b(?!\W+(?:if|when|unless|for|in case|on)\b)"
    r"|\boverride\W+(?:(?:the|your|all|any)\W+){0,2}(?:system prompts?|(?:previous|prior|system) instructions)\b"
    r"|\b(?:ignore|disregard|forget|abandon)\W+(?:your|the)\W+(?:original|previous|current|assigned|real|actual)\W+tasks?\b"
    r"|\b(?:ignore|disregard|forget)\b(?:\W+\w+){0,3}?\W+(?:instructions?|prompts?)\W+(?:above|before|given|you (?:were|have been) given|so far)\b(?!\W+(?:if|when|unless)\b)"
    r"|\bignor(?:iere|ieren sie)\b.{0,30}\banweisung|\bignorez\b.{0,30}\binstructions\b.{0,20}\bprécédentes"
    r"|\bignora\b.{0,30}\b(?:instrucciones anteriores|istruzioni precedenti)\b|忽略.{0,8}(?:之前|以上|先前|所有).{0,6}(?:指令|指示|说明|提示)|以前の指示を無視"
)
_ROLE = re.compile(
    r"(?i)(?:^|[\n\"'>:#*.;!?(\[-])\s*(?:system|developer|assistant|admin(?:istrator)?)(?:\s+(?:prompt|message|note|notice|override|instruction|update))?\s*:"
    r"|<\|im_start\|>|<\|system\|>|\[/?INST\]|</?(?:system|system[-_ ]prompt|instructions)>|\bnew (?:system )?instructions?\s*:"
    r"|\byou are now (?:in|a|an|the|operating|acting|free)\b"
)
_READER = re.compile(
    r"(?i)\b(?:(?:dear|attention|note (?:to|for)|notice (?:to|for)|message (?:to|for)|instructions? (?:to|for)|hey|hello|important for)\s+"
    r"(?:all\s+|any\s+|the\s+)?(?:ai|a\.i\.|llms?|language models?|(?:ai |coding |automated )?(?:agents?|assistants?|models?|bots?)|chatbots?|reviewers?|graders?|evaluators?|judges?|claude|chatgpt|gpt|gemini|copilot))"
    r"|\b(?:if|when|since|as) you(?:'re| are) (?:an? |the )?(?:ai|llm|language model|automated|artificial|(?:ai |coding )?(?:agent|assistant|model))\b"
    r"|\b(?:ai|llm|language model|coding|automated) (?:agents?|assistants?|models?|reviewers?|systems?)\b.{0,60}\b(?:must|should|shall|have to|need to|are (?:required|instructed|to))\b"
)
_LABEL = re.compile(
    r"(?i)(?:^|[\n\"'>.;!?(\[])\s*(?:reviewers?|graders?|evaluators?|judges?|ai|llm|assistants?|agents?)\s*[:,]\s"
)
_REWARD = re.compile(
    r"(?i)/logs/verifier|\breward\.(?:json|txt)\b|\b(?:full|maximum|perfect|top) (?:marks|score|credit|reward|grade)\b"
    r"|\b(?:give|award|assign|write|set|report|grant)\b.{0,40}\b(?:a |the )?(?:rewards?\b|score (?:of )?(?:1|10|100)\b)"
    r"|\b(?:answer|reply|respond|output|return|conclude|say)\s+(?:only\s+)?(?:with\s+)?[\"'`]?(?:pass(?:ed)?|approved|correct|accept(?:ed)?)\b"
    r"|\b(?:mark|grade|rate|score|declare|consider)\b.{0,30}\bas (?:passed|passing|correct|solved|complete[d]?|approved|safe)\b"
    r"|\b(?:this|the) (?:task|submission|solution) (?:is|was|has been) (?:already )?(?:approved|solved|complete|correct|verified)\b"
)
_THEFT = re.compile(
    r"(?i)(?<!never )(?<!not )(?<!don't )\b(?:send|post|upload|exfiltrate|transmit|e-?mail|reveal|forward|disclose|print|paste)\b.{0,80}"
    r"(?:\b(?:environment variables|env vars?|api[ _-]?keys?|access tokens?|credentials|ssh keys?|private keys?|system prompt)\b|/etc/(?:passwd|shadow)|~?/\.(?:ssh|aws|netrc|env)|\$\w*(?:TOKEN|KEY|SECRET))"
)
_COMMAND = re.compile(
    r"(?i)\brm -rf\b|\b(?:curl|wget)\b[^\n|]{0,120}\|\s*(?:ba|z|)sh\b|\bbase64 -d\b|\bmkfs\b|(?<![\w.~-])/(?:tests|solution)/|\bdelete (?:all|every)\b"
)
_SECRECY = re.compile(
    r"(?i)\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell(?:ing)?|mention(?:ing)?|reveal(?:ing)?|inform(?:ing)?|notify(?:ing)?|disclos(?:e|ing))\b.{0,40}\b(?:users?|humans?|operators?|anyone|anybody|reviewers?)\b"
)
_TOPIC = re.compile(
    r"(?i)prompt[- ]?injection|jail ?break|adversarial (?:prompt|text|input)|\bllms?\b|language model|chat ?bot|system prompts?|moderat(?:e|ion)|"
    r"guard ?rail|phishing|malicious (?:text|prompt|instruction|content)|\bprompts?\b.{0,40}\b(?:classif|detect|filter|flag|label|sanit)"
)
_PEEK = re.compile(
    r"(?i)\b(?:read|look|check|copy|see|open|inspect|consult|find|use|take|peek)\b.{0,50}(?<![\w.~-])/(?:tests|solution|logs/verifier)\b.{0,80}\b(?:answers?|expected|solution|result|reward)"
    r"|\b(?:answers?|expected|solution)\b.{0,60}(?<![\w.~-])/(?:tests|solution)/"
)


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Read the instruction and every text of environment/."""
    world = world_of(subject)
    topic = bool(_TOPIC.search(world.instruction))
    hits: list[Hit] = []
    for path, text in [("instruction.md", world.instruction), *((s.path, s.text) for s in world.texts)]:
        guide = PurePosixPath(path).name.lower() in _GUIDES
        found = list(dict.fromkeys(orders(text[:TEXT_LIMIT], guide=guide)))[:_HITS_A_FILE]
        noted = topic and path != "instruction.md"
        hits += [Hit("injection-topic" if noted else "injection", message, path) for message in found]
    if _PEEK.search(_plain(world.instruction)):
        hits.append(
            Hit("injection", "sends the reader to the verifier's or the solution's files", "instruction.md")
        )
    return Report(hits, {"texts": 1 + len(world.texts), "opaque": len(world.opaque)})


def orders(text: str, *, guide: bool = False) -> Iterator[str]:
    """Orders to the reader in a text, each as a sentence that quotes it.

    Args:
        text: of any kind.
        guide: the file speaks to coding agents by its nature, so that being spoken to is no sign.
    """
    for form, how in _forms(text):
        for match in _OVERRIDE.finditer(form):
            yield f"orders its reader to drop instructions{how}: {_quote(form, match)}"
        for match in _ROLE.finditer(form):
            if _beside(form, match, _REWARD, _THEFT, _SECRECY):
                yield f"speaks with the voice of a system prompt{how}: {_quote(form, match)}"
        for match in () if guide else _READER.finditer(form):
            if _beside(form, match, _REWARD, _THEFT, _SECRECY, _COMMAND):
                yield f"gives orders to agents or reviewers{how}: {_quote(form, match)}"
        for match in _LABEL.finditer(form):
            if _beside(form, match, _REWARD):
                yield f"gives orders to agents or reviewers{how}: {_quote(form, match)}"


def _beside(text: str, match: re.Match[str], *others: re.Pattern[str]) -> bool:
    around = text[max(0, match.start() - 80) : match.end() + _NEAR]
    return any(other.search(around) for other in others)


def _forms(text: str) -> Iterator[tuple[str, str]]:
    """The text as people read it, and what else may be meant by it, with a word for how it is hidden."""
    plain = _plain(text)
    yield plain, ""
    tags = "".join(chr(ord(letter) - 0xE0000) for run in _TAGS.findall(text) for letter in run)
    if tags:
        yield tags, " in tag characters"
    if re.search("[\u202d\u202e]", text):
        yield "\n".join(line[::-1] for line in plain.split("\n")), " in reversed text"
    for blob in _BASE64.findall(plain)[:50]:
        try:
            inner = base64.b64decode(blob + "=" * (-len(blob) % 4), validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            continue
        yield inner, " in base64"
    yield codecs.encode(plain, "rot13"), " in rot13"


def _plain(text: str) -> str:
    shown = _TAGS.sub("", _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)))
    if not shown.isascii():
        # Letters that look Latin are folded only inside words that mix alphabets: other scripts stay as they are.
        shown = re.sub(
            r"\w+",
            lambda word: word[0].translate(_LOOKALIKES) if re.search("[A-Za-z]", word[0]) else word[0],
            shown,
        )
    # An order may be wrapped, also in comments.
    return re.sub(r"[ \t]*\n[ \t]*(?:(?:#|//|--|\*|>|;)+[ \t]+)?(?=[a-z\d])", " ", shown)


def _quote(text: str, match: re.Match[str]) -> str:
    around = " ".join(text[max(0, match.start() - 10) : match.end() + 90].split())
    return repr(around[:140])
