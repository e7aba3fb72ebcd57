"""Gate `fetches`: solving and grading download nothing and install nothing.

Such a task works while a server answers, and is graded by what the server says that day. What reaches this machine
itself (a service of the task on localhost, a local package folder) is no fetch. What cannot be known from the text
(the address is computed) is left to the trials, which run without a network.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from skill2env.verify.config import facts_of
from skill2env.verify.gate import GateContext, Hit, Report, Stage, Subject
from skill2env.verify.static import python
from skill2env.verify.static.programs import Program, Role, invocations, programs

_ADDRESS = re.compile(
    r"(?i)\b(?:https?|ftps?|git|ssh|wss?|s3|gs)://(?P<host>\[[^\]]*\]|[^/\s:\"'\\?#]*)|\bgit@[\w.-]+:"
)
_LOCAL = re.compile(
    r"(?i)(?:.*@)?(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]|::1|[\w.-]+\.(?:local|localhost|internal|test|invalid)|"
    r"10(?:\.\d+){3}|192\.168(?:\.\d+){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2})"
)
_BARE_HOST = re.compile(
    r"(?i)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|edu|gov|ai|sh|co|de|uk|eu|me|app)\b"
)
_DEVICE = re.compile(r"/dev/(?:tcp|udp)/([^/\s]+)/")
_DOWNLOADERS = frozenset("curl wget wget2 aria2c axel lynx http https fetch lftp ftp".split())
_REMOTE_SHELLS = frozenset("ssh scp sftp rsync".split())
_SOCKETS = frozenset("nc ncat netcat telnet socat".split())

_INSTALLS: Mapping[str, frozenset[str]] = {
    "apt": frozenset({"install", "update", "upgrade", "dist-upgrade", "full-upgrade"}),
    "apt-get": frozenset({"install", "update", "upgrade", "dist-upgrade", "download", "source"}),
    "aptitude": frozenset({"install", "update"}),
    "apk": frozenset({"add", "update", "upgrade", "fetch"}),
    "dnf": frozenset({"install", "update", "download"}),
    "yum": frozenset({"install", "update"}),
    "microdnf": frozenset({"install", "update"}),
    "zypper": frozenset({"install", "in", "refresh"}),
    "brew": frozenset({"install", "update"}),
    "conda": frozenset({"install", "create", "update"}),
    "mamba": frozenset({"install", "create", "update"}),
    "micromamba": frozenset({"install", "create", "update"}),
    "pip": frozenset({"install", "download", "wheel"}),
    "pip3": frozenset({"install", "download", "wheel"}),
    "pipx": frozenset({"install", "run", "inject"}),
    "poetry": frozenset({"install", "add", "update"}),
    "pdm": frozenset({"install", "add", "sync"}),
    "npm": frozenset({"install", "i", "ci", "add"}),
    "pnpm": frozenset({"install", "i", "add", "dlx"}),
    "yarn": frozenset({"install", "add", "dlx"}),
    "bun": frozenset({"install", "add"}),
    "gem": frozenset({"install"}),
    "bundle": frozenset({"install"}),
    "cargo": frozenset({"install", "fetch"}),
    "go": frozenset({"get"}),
    "composer": frozenset({"install", "require"}),
    "docker": frozenset({"pull"}),
    "podman": frozenset({"pull"}),
    "rustup": frozenset({"install", "update", "toolchain"}),
}
_OFFLINE = re.compile(
    r"--(?:no-index|offline|prefer-offline|find-links\b.*|frozen-offline)|-f=?|--cache-only|--no-download|-mod=vendor"
)
_PYTHON_FETCHES = re.compile(
    r"urllib\.request\.(?:urlopen|urlretrieve)|(?:requests|httpx)\.(?:get|post|put|head|delete|request|stream)|"
    r"(?:http\.client\.)?HTTPS?Connection|http\.client\.HTTPS?Connection|socket\.create_connection|ftplib\.FTP(?:_TLS)?|"
    r"wget\.download|pandas\.read_(?:csv|json|html|excel|parquet)|torch\.hub\.load_state_dict_from_url"
)
_PYTHON_DOWNLOADS = frozenset(
    "huggingface_hub.snapshot_download huggingface_hub.hf_hub_download datasets.load_dataset nltk.download "
    "torch.hub.load torch.hub.load_state_dict_from_url openai.OpenAI openai.AsyncOpenAI anthropic.Anthropic "
    "anthropic.AsyncAnthropic litellm.completion".split()
)


def check(subject: Subject, context: GateContext) -> Report:  # noqa: ARG001
    """Look at every program that solves or grades."""
    hits: list[Hit] = []
    count = 0
    roles = [Role.VERIFIER] if subject.stage is Stage.CONTRACT else list(Role)
    for role in roles:
        for program in programs(subject.task_dir, role):
            count += 1
            hits += _unique(_program(program, subject))
    return Report(hits, {"programs": count})


def _unique(hits: Iterator[Hit]) -> list[Hit]:
    return list(dict.fromkeys(hits))


def _program(program: Program, subject: Subject) -> Iterator[Hit]:
    for invocation in invocations(program):
        what = fetched(invocation.call, program.text)
        if what:
            code = _code(program.role, subject, guarded=invocation.guarded)
            yield Hit(code, f"{what[0]}: {_shown(invocation.call)}", program.where(invocation.line))
    if program.language == "python":
        for line, what in _python(program.text):
            yield Hit(_code(program.role, subject), what, program.where(line))
    else:
        yield from _devices(program, subject)


def _devices(program: Program, subject: Subject) -> Iterator[Hit]:
    for number, line in enumerate(program.text.split("\n"), 1):
        match = _DEVICE.search(line)
        if match and not line.lstrip().startswith("#") and not _is_local(match[1]):
            message = f"opens a connection to {match[1]}"
            yield Hit(_code(program.role, subject), message, program.where(number))


def _code(role: Role, subject: Subject, *, guarded: bool = False) -> str:
    if guarded:
        return "fetch-guarded"
    if role is Role.VERIFIER:
        return "fetch-grading"
    facts = facts_of(subject)
    allowed = not isinstance(facts, Hit) and facts.networks["agent"] != "no-network"
    return "fetch-solving-online" if allowed else "fetch-solving"


def fetched(call: Sequence[str], around: str = "") -> tuple[str, str] | None:
    """What a command would get from elsewhere: a word for it and the thing; None when it stays on this machine.

    Args:
        call: a program without its folder, and its arguments.
        around: text of the script, which may name a local package index.
    """
    if not call:
        return None
    name, rest = call[0], list(call[1:])
    if re.fullmatch(r"python[\d.]*", name) and rest[:1] == ["-m"] and len(rest) > 1:
        name, rest = rest[1], rest[2:]
    if name == "uv" and rest[:1] == ["pip"]:
        name, rest = "pip", rest[1:]
    if name in _DOWNLOADERS or name in _REMOTE_SHELLS or name in _SOCKETS or name == "git":
        return _download(name, rest)
    return _install(name, rest, around)


def _download(name: str, rest: Sequence[str]) -> tuple[str, str] | None:
    if name == "git" and not {"clone", "fetch", "pull", "submodule", "ls-remote", "remote"} & set(rest[:3]):
        return None
    if "--unix-socket" in rest or any(_LOCAL.fullmatch(word) for word in rest):
        return None
    for word in rest:
        match = _ADDRESS.search(word)
        if match and not (match["host"] is not None and _is_local(match["host"])):
            return "downloads", word
        if match:
            return None
    if name == "git":
        return None
    if name in _REMOTE_SHELLS:
        remote = next((word for word in rest if re.match(r"(?:[\w.-]+@)?[\w-]+\.[\w.-]+:", word)), "")
        return ("connects", remote) if remote and not _is_local(remote.partition(":")[0]) else None
    bare = next((word for word in rest if _BARE_HOST.match(word) and not word.startswith("-")), "")
    return ("downloads", bare) if bare else None


def _install(name: str, rest: Sequence[str], around: str) -> tuple[str, str] | None:
    if name in ("npx", "uvx", "bunx"):
        kept = any(word in ("--no-install", "--offline", "--no") for word in rest)
        return None if kept or not rest else ("installs", rest[0])
    if name == "uv" and rest[:1] in (["run"], ["tool"], ["sync"], ["add"]):
        offline = "--offline" in rest or "UV_OFFLINE" in around
        wants = rest[0] in ("sync", "add", "tool") or "--with" in rest or "-w" in rest
        return ("installs", rest[0]) if wants and not offline else None
    verbs = _INSTALLS.get(name)
    words = [word for word in rest if not word.startswith("-")]
    if verbs is None or not words or words[0] not in verbs:
        return None
    if any(_OFFLINE.match(word) for word in rest) or re.search(
        r"PIP_NO_INDEX|(?:PIP_INDEX_URL|--index-url|-i)[= ]\S*(?:localhost|127\.0\.0\.1|file:)|npm_config_offline",
        around,
    ):
        return None
    wanted = words[1:]
    if wanted and all(
        re.match(r"\.{0,2}/|\.$|\$|.*\.(?:whl|deb|rpm|apk|gem|tgz|tar\.gz)$", word) for word in wanted
    ):
        return None  # from a folder of the task
    return "installs", " ".join(wanted[:3]) or words[0]


def _python(text: str) -> Iterator[tuple[int, str]]:
    source = python.read(text)
    if source is None:
        return
    for call in source.calls():
        if call.name in _PYTHON_DOWNLOADS:
            yield call.line, f"calls {call.name}, which needs a server"
        elif _PYTHON_FETCHES.fullmatch(call.name):
            address = _address(source, call)
            if address and not _is_local(address):
                yield call.line, f"{call.name} reaches {address}"


def _address(source: python.Source, call: python.Call) -> str:
    first = next(iter(call.node.args), None)
    for keyword in call.node.keywords:
        if keyword.arg in ("url", "host"):
            first = keyword.value
    if call.name.endswith("create_connection") and first is not None:
        elements = getattr(first, "elts", None)
        first = elements[0] if elements else None
    if call.name.endswith((".request", ".stream")) and len(call.node.args) > 1:
        first = call.node.args[1]
    text = source.text(first)
    if not text:
        return ""
    match = _ADDRESS.search(text)
    if match:
        return match["host"] or ""
    hosts = ("create_connection", "HTTPConnection", "HTTPSConnection", "FTP", "FTP_TLS")
    return text.partition(":")[0] if call.name.endswith(hosts) else ""


def _is_local(host: str) -> bool:
    return (
        not host or host.startswith("$") or bool(_LOCAL.fullmatch(host.partition("/")[0].rpartition("@")[2]))
    )


def _shown(call: Sequence[str]) -> str:
    text = " ".join(call)
    return text if len(text) <= 120 else text[:117] + "..."
