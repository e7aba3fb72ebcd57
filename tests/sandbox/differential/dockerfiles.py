"""Dockerfiles that every builder must agree on: what they make of files, modes, owners, environment and folders.

Each starts from our default base (``FROM debian-bookworm`` is put in front where a text names no base) and needs no
network. `files` are the build context: name -> text, with ``name!0755`` to set a mode and ``name@target`` for a link.
"""

from dataclasses import dataclass, field

BASE = "FROM debian-bookworm\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One Dockerfile and its context."""

    name: str
    text: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    newer: bool = False
    """True for what engines older than Docker 23 refuse."""

    @property
    def dockerfile(self) -> str:
        """The whole text."""
        has_base = any(line.upper().startswith("FROM ") for line in self.text.splitlines())
        return self.text if has_base else BASE + self.text


_TREE = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "sub/c.txt": "c\n",
    "sub/deep/d.sh!0755": "#!/bin/sh\n",
    ".hidden": "h\n",
}
_USERS = "RUN groupadd -g 1500 staff2 && useradd -u 1400 -g staff2 -m worker\n"

CASES = (
    Case("nothing", BASE),
    Case("copy a file to a name", "COPY a.txt /x\n", _TREE),
    Case("copy a file into a new folder", "COPY a.txt /new/folder/\n", _TREE),
    Case("copy a file into a folder that is there", "COPY a.txt /etc\n", _TREE),
    Case("copy files into a folder", "COPY a.txt b.txt /x/\n", _TREE),
    Case("copy a folder's content", "COPY sub /x\n", _TREE),
    Case("copy a folder over another", "RUN mkdir -m 0700 /x && echo old > /x/c.txt\nCOPY sub /x\n", _TREE),
    Case("copy a folder with a mode", "COPY d /x\nCOPY d /y/\nCOPY e /z/\n",
         {"d/!0700": "", "d/f": "", "e/i/!0711": "", "e/i/f": ""}),
    Case("copy everything", "COPY . /x/\n", _TREE),
    Case("copy by pattern", "COPY *.txt /x/\n", _TREE),
    Case("copy by question mark and class", "COPY [ab].tx? /x/\n", _TREE),
    Case("copy a hidden file by pattern", "COPY .h* /x/\n", _TREE),
    Case("copy in exec form with blanks", 'COPY ["a b.txt", "/x y/"]\n', {"a b.txt": "blank\n"}),
    Case("copy with modes", "COPY --chmod=0640 a.txt /x\nCOPY --chmod=700 sub /y\n", _TREE),
    Case("copy with owners", _USERS + "COPY --chown=worker:staff2 sub /x/\nCOPY --chown=1400 a.txt /y/\n", _TREE),
    Case("copy with numeric owners", "COPY --chown=12:34 a.txt /x\n", _TREE),
    Case("copy links as links", "COPY l /x\n", {"l/to@file": "", "l/file": "x\n", "l/away@/etc/nowhere": ""}),
    Case("copy through a link in the image", "RUN mkdir /real && ln -s real /link\nCOPY a.txt /link/\n", _TREE),
    Case("copy keeps executable bits", "COPY sub/deep/d.sh /usr/local/bin/d\n", _TREE),
    Case(
        "what dockerignore leaves out",
        "COPY . /x/\n",
        {**_TREE, ".dockerignore": "*.txt\n!b.txt\nsub/deep\n# remark\n"},
    ),
    Case("dockerignore with two stars", "COPY . /x/\n", {**_TREE, ".dockerignore": "**/c.txt\n**/*.sh\n"}),
    Case("copy from a heredoc", "COPY <<EOF /x/file\nhello $HOME\nEOF\n", newer=True),
    Case("copy from a quoted heredoc", "COPY --chmod=755 <<'EOF' /x/run\n#!/bin/sh\necho \"$HOME\"\nEOF\n", newer=True),
    Case("copy two heredocs", "COPY <<one <<two /x/\n1\none\n2\ntwo\n", newer=True),
    Case("add unpacks", "RUN true\nADD data.tar /x/\n", {"data.tar": "TAR"}),
    Case("add unpacks gzip with an owner", "ADD --chown=5:6 data.tar.gz /x\n", {"data.tar.gz": "TAR"}),
    Case("add copies what is no archive", "ADD a.txt /x/\n", _TREE),
    Case("run in shell form", "RUN echo one > /x && echo two >> /x\n"),
    Case("run in exec form", 'RUN ["/bin/sh", "-c", "echo $0 > /x"]\n'),
    Case("run with a heredoc", "RUN <<EOF\nset -e\nmkdir /x\necho $PATH > /x/path\nEOF\n", newer=True),
    Case("run python from a heredoc", "RUN <<'EOF'\n#!/usr/bin/env python3\nopen('/x', 'w').write('py')\nEOF\n",
         newer=True),
    Case("run a heredoc into a command", "RUN python3 - <<'EOF' > /x\nprint(6 * 7)\nEOF\n", newer=True),
    Case("continued lines", "RUN echo a \\\n  # remark\n  b > /x\n"),
    Case("shell", 'SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN [[ -n $BASH_VERSION ]] && echo bash > /x\n'),
    Case("env in commands and copies", "ENV D=/made/by E=\"two words\"\nRUN echo \"$E\" > /x\nCOPY a.txt $D/\n", _TREE),
    Case("env in the old form", "ENV NAME a value with  blanks\nRUN echo \"$NAME\" > /x\n"),
    Case("env from env", "ENV A=1\nENV B=${A}2 C=${X:-none} D=${A:+set}\nRUN env | grep '^[ABCD]=' > /x\n"),
    Case("arg with a default", "ARG V=7\nRUN echo $V > /x\n"),
    Case("arg before from", "ARG NAME=debian-bookworm\nFROM $NAME\nARG NAME\nRUN test -n \"$NAME\" && echo set > /x\n"),
    Case("env wins over arg", "ARG V=1\nENV V=2\nRUN echo $V > /x\n"),
    Case("workdir", "WORKDIR /a/b\nRUN pwd > where\nWORKDIR c\nRUN pwd > where\nWORKDIR /a/../z\nRUN pwd > where\n"),
    Case("workdir with a variable", "ENV R=/root2\nWORKDIR $R/x\nCOPY a.txt .\n", _TREE),
    Case("user", _USERS + "WORKDIR /w\nRUN chown worker /w\nUSER worker\nRUN id -un > who && touch mine\nUSER root\n"),
    Case("user with a group", _USERS + "USER worker:audio\nRUN id -g > /tmp/who && mv /tmp/who /home/worker/\n"),
    Case("workdir belongs to root whoever is user", _USERS + "USER worker\nWORKDIR /w/x\nUSER root\n"),
    Case("user by number", "RUN mkdir -m 777 /w\nUSER 4321:4322\nRUN touch /w/mine\nUSER 0\n"),
    Case("removed and replaced", "RUN mkdir -p /x/y && touch /x/y/z\nRUN rm -r /x/y && ln -s /etc /x/y\nRUN rm /x/y\n"),
    Case("a folder that becomes a file", "RUN mkdir /x\nRUN rmdir /x && echo now > /x\n"),
    Case("a folder that is emptied and made again",
         "RUN mkdir /x && touch /x/old\nRUN rm -r /x && mkdir /x && touch /x/new\n"),
    Case("odd modes",
         "RUN mkdir -m 2775 /x && mkdir -m 1777 /y && touch /z && chmod 4755 /z && touch /n && chmod 0 /n\n"),
    Case("hard links and pipes", "RUN echo x > /a && ln /a /b && mkfifo /p\nRUN echo y >> /b\n"),
    Case("odd names", "RUN touch '/a b' '/ü' \"/$(printf 'n\\\\nl')\" /-dash\n"),
    Case(
        "stages",
        "FROM debian-bookworm AS one\nRUN mkdir /out && echo x > /out/f && chown 7:8 /out/f && ln -s f /out/l\n"
        "FROM debian-bookworm\nCOPY --from=one /out /got\nCOPY --from=0 /out/f /one\n",
    ),
    Case(
        "a stage on a stage",
        "FROM debian-bookworm AS one\nENV A=1\nWORKDIR /w\nRUN echo x > f\n"
        "FROM one AS two\nRUN echo $A >> f\nFROM two\n",
    ),
    Case("stages copy with owners and modes",
         "FROM debian-bookworm AS one\nRUN mkdir -p /o/s && touch /o/s/f\nFROM debian-bookworm\n"
         "COPY --from=one --chown=3:4 --chmod=750 /o /p\n"),
    Case("an unused stage", "FROM debian-bookworm AS never\nRUN false\nFROM debian-bookworm\nRUN echo x > /x\n"),
    Case("labels and the like",
         'LABEL a=b\nEXPOSE 80\nVOLUME /data\nSTOPSIGNAL SIGTERM\nCMD ["x"]\nENTRYPOINT ["y"]\n'),
    Case("cache mounts", "RUN --mount=type=cache,target=/c echo x > /c/f && ls /c > /x\n"),
    Case("no network", "RUN --network=none tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' > /x\n", newer=True),
)  # fmt: skip
