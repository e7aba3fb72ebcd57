"""Tools of the built-in agent: everything goes through the environment's own `exec`, as the agent's user.

No terminal, no multiplexer: files arrive byte for byte, tabs included. Output is shortened to what a model can use.
"""

import asyncio
import base64
import hashlib
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

from skill2env.llm.compaction import shortened
from skill2env.llm.dialogue import ToolSpec
from skill2env.llm.loop import ToolResult

OUTPUT_CHARS = 16_000
"""Characters of a command's output or of a piece of a file that the model is shown."""
DEFAULT_LIMIT_SEC = 120
LONGEST_LIMIT_SEC = 1800
MAX_WRITE_BYTES = 4 * 2**20
MAX_EDIT_BYTES = 2**20
FETCH_BYTES = 2**20
_PIECE_CHARS = 64_000
"""Base64 characters in one command: the kernel refuses an argument of more than 128 KiB."""
_GRACE_SEC = 15

FETCH = "fetch"
TOOL_NAMES = ("bash", "read_file", "write_file", "edit_file", FETCH)

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_SPECS: dict[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        ToolSpec(
            "bash",
            "Run a command with bash and see what it prints and its exit code. Each call is a new shell in the working "
            "directory; files stay, variables and `cd` do not. Processes started with `&` and their output redirected "
            "go on running.",
            {
                "type": "object",
                "properties": {
                    "command": _STRING,
                    "timeout_sec": {
                        **_INTEGER,
                        "description": f"Seconds after which it is killed, {DEFAULT_LIMIT_SEC} if left out, at most "
                        f"{LONGEST_LIMIT_SEC}.",
                    },
                },
                "required": ["command"],
            },
        ),
        ToolSpec(
            "read_file",
            "Read a text file, whole or from a line on.",
            {
                "type": "object",
                "properties": {
                    "path": _STRING,
                    "from_line": {**_INTEGER, "description": "First line, from 1."},
                    "lines": {**_INTEGER, "description": "How many lines."},
                },
                "required": ["path"],
            },
        ),
        ToolSpec(
            "write_file",
            "Write a text file, byte for byte as given; folders are made, an older file is replaced.",
            {
                "type": "object",
                "properties": {
                    "path": _STRING,
                    "content": _STRING,
                    "append": {"type": "boolean", "description": "Add to the end instead of replacing."},
                },
                "required": ["path", "content"],
            },
        ),
        ToolSpec(
            "edit_file",
            "Replace one passage of a text file by another. The old text must occur exactly once.",
            {
                "type": "object",
                "properties": {"path": _STRING, "old": _STRING, "new": _STRING},
                "required": ["path", "old", "new"],
            },
        ),
        ToolSpec(
            FETCH,
            "Download a web address with GET into a file, or show its beginning when no path is given.",
            {"type": "object", "properties": {"url": _STRING, "path": _STRING}, "required": ["url"]},
        ),
    )
}


class EnvironmentTools:
    """A `Toolbox` over one environment."""

    def __init__(self, environment: BaseEnvironment, names: Sequence[str], *, cwd: str | None = None) -> None:
        self._environment = environment
        self._cwd = cwd
        self._names = tuple(names)
        self._run: dict[str, Callable[[Mapping[str, Any]], Awaitable[ToolResult]]] = {
            "bash": self._bash,
            "read_file": self._read,
            "write_file": self._write,
            "edit_file": self._edit,
            FETCH: self._fetch,
        }

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Of the chosen tools, in the order of `TOOL_NAMES`."""
        return self.describe(self._names)

    @staticmethod
    def describe(names: Sequence[str]) -> list[ToolSpec]:
        """What a model is told of the tools of these names."""
        return [_SPECS[name] for name in TOOL_NAMES if name in names]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """See `Toolbox.call`."""
        if name not in self._names or name not in self._run:
            return ToolResult(
                f"There is no tool {name!r}; there are: {', '.join(self._names)}, finish.", ok=False
            )
        problem = _problem(_SPECS[name], arguments)
        return ToolResult(problem, ok=False) if problem else await self._run[name](arguments)

    async def _bash(self, arguments: Mapping[str, Any]) -> ToolResult:
        limit = min(max(1, arguments.get("timeout_sec") or DEFAULT_LIMIT_SEC), LONGEST_LIMIT_SEC)
        inner = f"exec 2>&1; {arguments['command']}"
        command = f"timeout -k 5 {limit} bash -c {shlex.quote(inner)} </dev/null"
        done = await self._exec(command, limit + _GRACE_SEC)
        if isinstance(done, str):
            return ToolResult(done)
        text = shortened((done.stdout or "") + (done.stderr or ""), OUTPUT_CHARS)
        killed = f" (killed after {limit} s)" if done.return_code in {124, 137} else ""
        return ToolResult(f"{text.rstrip()}\n[exit code {done.return_code}{killed}]".lstrip("\n"))

    async def _read(self, arguments: Mapping[str, Any]) -> ToolResult:
        first = max(1, arguments.get("from_line") or 1)
        count = arguments.get("lines")
        last = "$" if count is None else str(first + max(1, count) - 1)
        path = _quoted(arguments["path"])
        # Two bounds: what is shown, and what one line may cost.
        done = await self._exec(
            f"sed -n '{first},{last}p' {path} | head -c {4 * OUTPUT_CHARS}", DEFAULT_LIMIT_SEC
        )
        if isinstance(done, str):
            return ToolResult(done)
        if done.stderr and not done.stdout:
            return ToolResult(done.stderr.strip()[:500])
        text = done.stdout or ""
        if not text:
            return ToolResult("(nothing: the file is empty or has fewer lines)")
        if len(text) > OUTPUT_CHARS:
            shown = text[:OUTPUT_CHARS]
            at = first + shown.count("\n")
            return ToolResult(f"{shown}\n[cut here; go on with from_line {at}]")
        return ToolResult(text)

    async def _write(self, arguments: Mapping[str, Any]) -> ToolResult:
        data = str(arguments["content"]).encode()
        problem = await self._put(arguments["path"], data, append=bool(arguments.get("append")))
        return ToolResult(problem or f"{len(data):,} bytes written to {arguments['path']}", ok=True)

    async def _edit(self, arguments: Mapping[str, Any]) -> ToolResult:
        path = _quoted(arguments["path"])
        done = await self._exec(f"head -c {MAX_EDIT_BYTES + 1} -- {path} | base64", DEFAULT_LIMIT_SEC)
        if isinstance(done, str):
            return ToolResult(done)
        if done.stderr:
            return ToolResult(done.stderr.strip()[:500])
        data = base64.b64decode(done.stdout or "")
        if len(data) > MAX_EDIT_BYTES:
            return ToolResult(f"The file is larger than {MAX_EDIT_BYTES:,} bytes; change it with a command.")
        old, new = (str(arguments[name]).encode() for name in ("old", "new"))
        count = data.count(old) if old else 0
        if count != 1:
            return ToolResult(
                f"The old text occurs {count} times; it must occur exactly once. Nothing was changed."
            )
        problem = await self._put(arguments["path"], data.replace(old, new), append=False)
        return ToolResult(problem or f"{arguments['path']} is changed")

    async def _put(self, path: str, data: bytes, *, append: bool) -> str:
        """Write bytes; empty when it worked, else what went wrong. A file is replaced whole or not at all."""
        if len(data) > MAX_WRITE_BYTES:
            return f"More than {MAX_WRITE_BYTES:,} bytes are not written at once; use append."
        target = _quoted(path)
        mark = hashlib.sha256(path.encode() + data).hexdigest()[:12]
        scratch = _quoted(f"{path}.{mark}.part")
        text = base64.b64encode(data).decode()
        pieces = [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)] or [""]
        commands = [f'mkdir -p -- "$(dirname -- {target})" && : > {scratch}']
        commands += [f"printf %s {piece} | base64 -d >> {scratch}" for piece in pieces]
        # `cat` into an existing file keeps its mode, its owner and what is linked to it.
        ending = f"cat {scratch} {'>>' if append else '>'} {target}; code=$?; rm -f -- {scratch}; exit $code"
        for command in (*commands, ending):
            done = await self._exec(command, DEFAULT_LIMIT_SEC)
            if isinstance(done, str):
                return done
            if done.return_code:
                await self._exec(f"rm -f -- {scratch}", DEFAULT_LIMIT_SEC)
                return f"Not written: {((done.stderr or '') + (done.stdout or '')).strip()[:500]}"
        return ""

    async def _fetch(self, arguments: Mapping[str, Any]) -> ToolResult:
        url, path = str(arguments["url"]), str(arguments.get("path") or "")
        if not url.startswith(("http://", "https://")):
            return ToolResult("Only http and https addresses can be fetched.", ok=False)
        # The environment's variables name the proxy, which both programs follow.
        python = (
            "import sys,urllib.request as r;d=r.urlopen(r.Request(sys.argv[1],headers={'User-Agent':'skill2env'}),"
            "timeout=60).read();sys.stdout.buffer.write(d)"
        )
        get = f"if command -v curl >/dev/null; then curl -fsSL --max-time 60 -- {shlex.quote(url)}; "
        get += f"else python3 -I -c {shlex.quote(python)} {shlex.quote(url)}; fi"
        if path:
            target = _quoted(path)
            command = f'mkdir -p -- "$(dirname -- {target})" && ({get}) > {target}.part && mv -- {target}.part {target}'
            command += f" && wc -c < {target}"
        else:
            command = f"({get}) | head -c {FETCH_BYTES}"
        done = await self._exec(f"set -o pipefail; {command}", DEFAULT_LIMIT_SEC, shell="bash")
        if isinstance(done, str):
            return ToolResult(done)
        if done.return_code and not (done.return_code == 23 and not path):
            return ToolResult(
                f"Not fetched: {(done.stderr or '').strip()[-500:]} [exit code {done.return_code}]"
            )
        out = (done.stdout or "").strip()
        return ToolResult(f"{out} bytes in {path}" if path else shortened(out, OUTPUT_CHARS))

    async def _exec(self, command: str, limit: int, shell: str = "") -> ExecResult | str:
        """Run a command; what went wrong as text when there is no result at all."""
        if shell:
            command = f"{shell} -c {shlex.quote(command)}"
        try:
            return await self._environment.exec(command, cwd=self._cwd, timeout_sec=limit)
        except asyncio.CancelledError:
            raise
        except (TimeoutError, RuntimeError) as error:
            # A time limit of the environment is one or the other; a sandbox that is gone fails the next call as well,
            # and the trial's own limits end the session then.
            return f"The command was given up: {' '.join(str(error).split())[:300] or type(error).__name__}"


def _quoted(path: object) -> str:
    text = str(path)
    # A relative path with a dash in front would be an option to programs that do not know `--`.
    return shlex.quote(text if text.startswith(("/", "./", "../")) else f"./{text}")


def _problem(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call; empty when nothing is."""
    known: dict[str, dict[str, str]] = spec.parameters["properties"]
    missing = [name for name in spec.parameters["required"] if name not in arguments]
    if missing:
        return f"{spec.name} needs {', '.join(missing)}."
    unknown = sorted(arguments.keys() - known.keys())
    if unknown:
        return f"{spec.name} does not know {', '.join(unknown)}."
    kinds = {"string": str, "integer": int, "boolean": bool}
    for name, value in arguments.items():
        kind = kinds[known[name]["type"]]
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            return f"{name} must be of type {known[name]['type']}."
        if value is None and name in spec.parameters["required"]:
            return f"{name} must not be null."
        if isinstance(value, str) and ("\0" in value or any("\ud800" <= char <= "\udfff" for char in value)):
            return f"{name} holds a character that cannot be passed on (NUL, or half of a surrogate pair)."
    return ""
