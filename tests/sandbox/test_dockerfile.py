"""Dockerfile text -> instructions -> recipe; no sandbox and no files."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.sandbox.dockerfile import parse
from skill2env.sandbox.expand import ExpansionError, expand, expand_body
from skill2env.sandbox.instructions import BuildFailed, Copy, Run
from skill2env.sandbox.recipe import CopyStep, Recipe, RunStep, WorkdirStep
from skill2env.sandbox.resolving import resolve

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def recipe(text: str) -> Recipe:
    return resolve(parse(text), architecture="amd64")


def runs(text: str) -> list[tuple[str, ...]]:
    return [step.argv for step in recipe(text).steps if isinstance(step, RunStep)]


def test_shell_and_exec_form() -> None:
    text = 'FROM base\nRUN echo "a  b" \\\n  # a remark\n  && true\nRUN ["printf", "%s", "$x"]\n'
    assert runs(text) == [("/bin/sh", "-c", 'echo "a  b"   && true'), ("printf", "%s", "$x")]


def test_shell_is_used_by_later_commands_only() -> None:
    text = 'FROM base\nRUN one\nSHELL ["/bin/bash", "-euo", "pipefail", "-c"]\nRUN two\n'
    assert runs(text) == [("/bin/sh", "-c", "one"), ("/bin/bash", "-euo", "pipefail", "-c", "two")]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("RUN <<EOF\necho $HOME\nEOF\n", "echo $HOME\n"),
        ("RUN <<-EOF\n\tif true; then\n\t\techo x\n\tfi\n\tEOF\n", "if true; then\necho x\nfi\n"),
        ("RUN cat <<A <<B > /x\none\nA\ntwo\nB\n", "cat <<A <<B > /x\none\nA\ntwo\nB\n"),
        ("RUN python3 - <<'PY'\nprint('$x')\nPY\n", "python3 - <<'PY'\nprint('$x')\nPY\n"),
    ],
)
def test_heredocs_reach_the_shell_as_written(text: str, script: str) -> None:
    assert runs("FROM base\n" + text) == [("/bin/sh", "-c", script)]


def test_heredoc_with_its_own_interpreter_is_run_as_a_file() -> None:
    (argv,) = runs("FROM base\nRUN <<EOF\n#!/usr/bin/env python3\nprint(1)\nEOF\n")
    assert argv[-1] == "#!/usr/bin/env python3\nprint(1)\n"
    assert argv[:2] == ("/bin/sh", "-c")


def test_heredoc_lines_are_not_instructions() -> None:
    steps = recipe("FROM base\nRUN <<EOF\nCOPY ../secret /x\nUSER nobody\nEOF\n").steps
    assert len(steps) == 1
    assert isinstance(steps[0], RunStep)


def test_copied_heredocs_expand_unless_quoted() -> None:
    text = (
        "FROM base\nENV WHO=me\nCOPY <<plain <<'raw' /etc/app/\nhi $WHO \\$WHO \"q\"\nplain\nhi $WHO\nraw\n"
    )
    (step,) = recipe(text).steps
    assert isinstance(step, CopyStep)
    assert step.files == (("plain", 'hi me $WHO "q"\n'), ("raw", "hi $WHO\n"))
    assert step.target == "/etc/app/"


def test_env_arg_and_from_follow_dockers_scopes() -> None:
    text = """
ARG TAG=12
ARG NAME=debian:$TAG
FROM ${NAME}
ARG TAG
ARG WHERE=/srv/$TAG-$TARGETARCH
ENV A=1 B="x $TAG" C=a\\ b
ENV A=2 D=$A
ENV TAG=env
ENV LONG the rest of the line
WORKDIR $WHERE
RUN true
"""
    made = recipe(text)
    assert made.base == "debian:12"
    assert made.config.workdir == "/srv/12-"  # platform arguments must be declared again to be seen
    assert dict(made.config.env) == {
        "PATH": PATH, "A": "2", "B": "x 12", "C": "a b", "D": "1", "TAG": "env", "LONG": "the rest of the line",
    }  # fmt: skip
    run = made.steps[-1]
    assert isinstance(run, RunStep)
    assert run.env["WHERE"] == "/srv/12-"
    assert run.env["TAG"] == "env", "ENV wins over ARG of the same name"


def test_platform_argument_when_declared() -> None:
    assert recipe("FROM base\nARG TARGETARCH\nWORKDIR /$TARGETARCH\n").config.workdir == "/amd64"


def test_workdir_is_relative_to_the_last_and_user_sticks() -> None:
    text = "FROM base\nWORKDIR /app\nWORKDIR src/../lib\nUSER agent:staff\nRUN id\nCOPY a b/\nUSER 0\nCMD run me\n"
    made = recipe(text)
    first, second, run, copy = made.steps
    assert isinstance(first, WorkdirStep)
    assert isinstance(second, WorkdirStep)
    assert second.path == "/app/lib"
    assert isinstance(run, RunStep)
    assert (run.user, run.workdir) == ("agent:staff", "/app/lib")
    assert isinstance(copy, CopyStep)
    assert copy.target == "/app/lib/b/"
    assert made.config.user == ""
    assert made.config.command == ("/bin/sh", "-c", "run me")


def test_copy_flags() -> None:
    (step,) = recipe('FROM base\nCOPY --chown=agent:agent --chmod=0750 --link ["a b", "c", "/d/"]\n').steps
    assert isinstance(step, CopyStep)
    assert (step.sources, step.target, step.owner, step.mode) == (("a b", "c"), "/d/", "agent:agent", 0o750)


def test_what_is_only_recorded() -> None:
    text = (
        'FROM base\nEXPOSE 80 443\nVOLUME /data\nSTOPSIGNAL SIGTERM\nLABEL a=b c="d e"\n'
        'HEALTHCHECK --interval=3s CMD true\nENTRYPOINT ["run"]\n'
    )
    config = recipe(text).config
    assert dict(config.labels) == {"a": "b", "c": "d e"}
    assert config.entrypoint == ("run",)
    assert [name for name, _ in config.recorded] == ["EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no instructions"),
        ("RUN true\n", "no FROM"),
        ("RUN true\nFROM a\n", "only ARG may stand before FROM"),
        ("FROM a AS x\nCOPY --from=x /a /b\n", "--from=x names no earlier stage"),
        ("FROM a\nCOPY --from=0 /a /b\n", "--from=0 names no earlier stage"),
        ("FROM a\nRUN --mount=type=cache true\n", "--mount needs a target"),
        ("FROM a\nRUN --network=host true\n", "cannot leave the sandbox"),
        ("FROM a\nRUN --security=insecure true\n", "cannot leave the sandbox"),
        ("FROM a\nADD https://example.org/x /x\n", "needs docker: ADD of a URL at line 2"),
        ("FROM a\nONBUILD RUN true\n", "needs docker: ONBUILD at line 2"),
        ("FROM a\nFETCH x\n", "needs docker: FETCH at line 2"),
        ("FROM a\nCOPY a\n", "at least one source and a target"),
        ("FROM a\nCOPY a b c\n", "must be a folder and end in /"),
        ("FROM a\nCOPY --chmod=rwx a b\n", "no octal mode"),
        ("FROM a\nCOPY --parents a b\n", "needs docker: COPY --parents at line 2"),
        ("FROM a\nRUN <<EOF\nnever closed\n", "unterminated heredoc"),
        ("FROM a\nSHELL bash -c\n", "exec form"),
        ('FROM a\nENV A="${B:?must be set}"\n', "B: must be set"),
        ("FROM a\nENV A=${B%.txt}\n", "unsupported modifier"),
        ("FROM a\nWORKDIR 'x\n", "never closed"),
        ("FROM a\nARG 1x=2\n", "no variable name"),
        ("FROM $NOPE\n", "names nothing"),
        ("# escape=`\nFROM a\nRUN a `\n b\n", "needs docker: the escape directive at line 1"),
        ("FROM a\nRUN --mount=type=secret,id=x true\n", "needs docker: RUN --mount=type=secret at line 2"),
        ("FROM a\nRUN --mount=target=/x true\n", "needs docker: RUN --mount=type=bind at line 2"),
        ("FROM a\nADD --checksum=sha256:0 a b\n", "needs docker: ADD --checksum at line 2"),
        ("FROM scratch\n", "needs docker: FROM scratch at line 1"),
        ("FROM a\nUSER :staff\n", "USER names nobody"),
        ("FROM a b\n", "one image reference"),
        ("FROM a\n" + "#" * (1 << 20), "larger than"),
    ],
)
def test_what_cannot_be_built_says_why(text: str, message: str) -> None:
    with pytest.raises(BuildFailed, match="build failed at") as caught:
        recipe(text)
    assert message in str(caught.value)


def test_failure_names_the_line() -> None:
    with pytest.raises(BuildFailed) as caught:
        recipe("FROM a\n\n# remark\nRUN true\nCOPY --parents a b\n")
    assert caught.value.step == "line 5: COPY --parents a b"


def test_stages_go_on_from_each_other() -> None:
    made = recipe(
        "ARG V=12\nFROM base:$V AS Build\nENV A=1\nWORKDIR /src\nUSER agent\nARG V\nRUN echo $V\n"
        "FROM build AS more\nARG V\nRUN id\n"
        "FROM other\nCOPY --from=BUILD /src/out /out\nCOPY --from=1 /x /y/\nCOPY --from=image:1 /z /z\n"
    )
    build, more, last = made.stages
    assert (build.base, more.base, last.base) == ("base:12", 0, "other")
    assert made.base == "other"
    assert dict(more.config.env)["A"] == "1"
    assert (more.config.workdir, more.config.user) == ("/src", "agent")
    assert (last.config.workdir, last.config.user, "A" in last.config.env) == ("/", "", False)
    assert [step.origin for step in last.steps if isinstance(step, CopyStep)] == [0, 1, "image:1"]
    (run,) = [step for step in build.steps if isinstance(step, RunStep)]
    assert run.env["V"] == "12"


def test_the_image_stands_on_the_first_base_of_its_chain() -> None:
    made = recipe("FROM base AS one\nFROM one AS two\nFROM two\nRUN true\n")
    assert (made.base, made.place.line) == ("base", 1)


def test_mounts_and_networks_of_a_run() -> None:
    made = recipe(
        "FROM base\nWORKDIR /w\nENV C=/cache\n"
        "RUN --mount=type=cache,id=x,target=$C/pip --mount=type=tmpfs,dst=t --network=none make\nRUN make\n"
    )
    _, first, second = made.steps
    assert isinstance(first, RunStep)
    assert isinstance(second, RunStep)
    assert (first.mounts, first.offline) == (("/cache/pip", "/w/t"), True)
    assert (second.mounts, second.offline) == ((), False)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("$A", "1"), ("${A}x", "1x"), ("$AB", ""), ("a$", "a$"), ("$-", "$-"), ("'$A'", "$A"), ('"$A b"', "1 b"),
        ("\\$A", "$A"), ('"\\$A\\n"', "$A\\n"), ("${X:-d$A}", "d1"), ("${E:-d}", "d"), ("${E-d}", ""),
        ("${A:+y}", "y"), ("${X+y}", ""), ("${X:-${A}}", "1"), ("a\\ b", "a b"), ("${A:?no}", "1"),
    ],
)  # fmt: skip
def test_expansion(word: str, value: str) -> None:
    assert expand(word, {"A": "1", "E": ""}) == value


words = st.text(st.sampled_from("aA1$_{}:-+?'\"\\ \n/#%é"), max_size=30)


@given(words)
def test_expansion_ends_with_a_text_or_an_error(word: str) -> None:
    for function in (expand, expand_body):
        with suppress(ExpansionError):
            assert isinstance(function(word, {"A": "1", "a": "'$A'"}), str)


@given(st.text(st.characters(exclude_characters="$\\'\"", exclude_categories=["Cs"]), max_size=40))
def test_plain_words_are_left_alone(word: str) -> None:
    assert expand(word, {"A": "1"}) == word
    assert expand_body(word, {"A": "1"}) == word


lines = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "FROM a",
                "RUN <<E",
                "E",
                "COPY . /x",
                "ENV A=$B",
                "WORKDIR /w",
                "RUN echo \\",
                "#x",
                "",
                "USER u",
                "ARG A=1",
            ]
        ),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    ),
    max_size=8,
)


@given(lines)
def test_any_text_is_read_or_refused(parts: list[str]) -> None:
    text = "\n".join(parts)
    with suppress(BuildFailed):
        made = resolve(parse(text), architecture="amd64")
        assert made.base
        assert all(step.place.line >= 1 for step in made.steps)


@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="<\\"), min_size=1, max_size=30
    )
)
def test_heredoc_bodies_are_never_changed(line: str) -> None:
    if line == "END":
        return
    (first, *_) = parse(f"FROM a\nRUN cat <<'END' >/x\n{line}\nEND\nCOPY <<'END' /y\n{line}\nEND\n")[1:]
    assert isinstance(first, Run)
    assert first.script == f"cat <<'END' >/x\n{line}\nEND\n"
    copy = parse(f"FROM a\nCOPY <<'END' /y\n{line}\nEND\n")[1]
    assert isinstance(copy, Copy)
    assert copy.files[0].body == f"{line}\n"
