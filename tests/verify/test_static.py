"""The gates that read files: what each notices, and what each leaves alone."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.records import Severity
from skill2env.verify import config, dockerfile, files, metrics, rubric, shell
from skill2env.verify.gate import GateContext, Report, Stage, Subject, to_result
from skill2env.verify.rules import RULES, Profile, rule_of

Make = Callable[..., Path]
PIN = "registry.example/skill2env/debian-bookworm@sha256:" + "a" * 64


def codes(report: Report) -> list[str]:
    return [hit.code for hit in report.hits]


def check(gate: object, task: Path, context: GateContext, **settings: object) -> Report:
    return gate.check(Subject(task, Profile.OURS, **settings), context)  # type: ignore[attr-defined]


@pytest.mark.parametrize("gate", [files, config, shell, rubric, metrics, dockerfile])
def test_sound_task_has_no_findings(gate: object, make_task: Make, context: GateContext) -> None:
    assert check(gate, make_task(), context).hits == []


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("environment/.git/HEAD", "name-forbidden"),
        ("tests/__pycache__/grade.pyc", "name-forbidden"),
        ("environment/id_rsa", "name-forbidden"),
        ("contract.json", "name-forbidden"),
        ("environment/a b.txt", "name-not-portable"),
        ("environment/NUL.txt", "name-not-portable"),
        ("environment/NUMBERS.txt", "name-not-portable"),
        ("environment/a\\b", "name-unsafe"),
        ("environment/a\x07b", "name-unsafe"),
        ("environment/" + "x" * 200, "name-unsafe"),
        ("tests/data/deep.csv", "tests-not-flat"),
    ],
)
def test_names(path: str, code: str, make_task: Make, context: GateContext) -> None:
    assert code in codes(check(files, make_task(changes={path: "x"}), context))


def test_name_that_is_no_text(make_task: Make, context: GateContext) -> None:
    task = make_task()
    Path(os.fsdecode(os.fsencode(task / "environment") + b"/caf\xe9")).write_text("x")
    report = check(files, task, context)
    assert codes(report) == ["name-unsafe"]
    report.hits[0].where.encode()


def test_links_and_special_files(make_task: Make, context: GateContext) -> None:
    task = make_task()
    (task / "environment" / "inside").symlink_to("numbers.txt")
    (task / "environment" / "outside").symlink_to("/etc/passwd")
    (task / "environment" / "gone").symlink_to("nowhere")
    (task / "environment" / "loop").symlink_to("loop")
    os.mkfifo(task / "environment" / "pipe")
    found = {hit.where: hit.code for hit in check(files, task, context).hits}
    assert found == {
        "environment/inside": "link",
        "environment/outside": "link-escapes",
        "environment/gone": "link-escapes",
        "environment/loop": "link-escapes",
        "environment/pipe": "special-file",
    }


def test_required_file_that_is_a_pipe_does_not_block(make_task: Make, context: GateContext) -> None:
    task = make_task(changes={"instruction.md": None, "tests/test.sh": None})
    os.mkfifo(task / "instruction.md")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(task)  # socket paths are short
        try:
            listener.bind("tests/test.sh")
        finally:
            os.chdir(here)
    assert {"file-unreadable", "special-file"} == set(codes(check(files, task, context)))


def test_before_the_seal_no_solution_is_needed(make_task: Make, context: GateContext) -> None:
    task = make_task(changes={"solution/solve.sh": None, "contract.json": "{}"})
    assert check(files, task, context, stage=Stage.CONTRACT).hits == []
    assert codes(check(files, task, context)) == ["file-missing", "name-forbidden"]


def test_sizes(make_task: Make, context: GateContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FILE_LIMIT", 1000)
    monkeypatch.setattr(files, "TASK_LIMIT", 2000)
    monkeypatch.setattr(files, "COUNT_LIMIT", 3)
    report = check(files, make_task(changes={"environment/big": "x" * 1001}), context)
    assert {"file-too-large", "task-too-large", "too-many-files"} <= set(codes(report))


def test_a_task_that_fills_a_machine_is_rejected_for_everybody(make_task: Make, context: GateContext) -> None:
    task = make_task()
    with (task / "environment/big").open("wb") as file:
        file.truncate(50 * 2**30)
    report = check(files, task, context)
    assert "task-huge" in codes(report)
    assert rule_of("task-huge").severity(Profile.FOREIGN) is Severity.ERROR


@pytest.mark.parametrize(
    "text", ["a\u200bb", "a\u202eb", "\U000e0041", "a\x1bb", "a\u200db", "x\u00ady", "a\ufeffb"]
)
def test_hidden_characters(text: str, make_task: Make, context: GateContext) -> None:
    report = check(files, make_task(changes={"instruction.md": f"First line.\n{text}\n"}), context)
    assert codes(report) == ["text-hidden"]
    assert report.hits[0].where == "instruction.md:2"


@pytest.mark.parametrize(
    "text",
    [
        "Grüße, 数量",
        "👩\u200d🔬 and 👨\u200d👩\u200d👧",
        "می\u200cخواهم",
        "🏴\U000e0067\U000e0062\U000e007f",
        "a\tb",
        "\ufeffStart",
    ],
)
def test_visible_text_of_any_language(text: str, make_task: Make, context: GateContext) -> None:
    assert check(files, make_task(changes={"instruction.md": text}), context).hits == []


# ------------------------------------------------------------------------------------------------ config


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('name = "skill2env/count-crates"', 'name = "Skill2Env/Count"', "config-name"),
        ('schema_version = "1.4"', 'schema_version = "1.3"', "config-schema"),
        ('[environment]\nnetwork_mode = "no-network"', "[environment]", "network-open"),
        ('environment_mode = "separate"\n', "", "verifier-shared"),
        ('user = "agent"', 'user = "root"', "agent-root"),
        ('user = "agent"', "user = 0", "agent-root"),
        ('user = "agent"\n', "", "agent-root"),
        ('artifacts = ["/app/out"]\n', "", "artifacts-missing"),
        ('["/app/out"]', '["app/out"]', "artifact-path"),
        ('["/app/out"]', '["/"]', "artifact-path"),
        ('["/app/out"]', '["/logs/verifier"]', "artifact-path"),
        ('["/app/out"]', '["/tests/grade.py"]', "artifact-path"),
        ('os = "linux"', 'os = "windows"', "config-os"),
        ('os = "linux"', 'os = "linux"\ngpus = 1', "config-service"),
        ('os = "linux"', 'os = "linux"\ndocker_image = "x"', "config-service"),
        ('schema_version = "1.4"', "[[steps]", "config-invalid"),
    ],
)
def test_settings(old: str, new: str, code: str, make_task: Make, context: GateContext) -> None:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    assert codes(check(config, make_task(config=change), context)) == [code]


def test_host_variables(make_task: Make, context: GateContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_HERE", "1")
    extra = (
        '\n[solution.env]\nA = "${NO_DEFAULT}"\nB = "${SET_HERE:-x}"\nC = "${UNSET_HERE:-x}"\nD = "plain"\n'
    )
    report = check(config, make_task(config=lambda text: text + extra), context)
    assert codes(report) == ["host-variable", "host-variable", "host-variable-default"]


# ------------------------------------------------------------------------------------------------ shell


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"#!/bin/bash\r\ntrue\r\n", "shell-crlf"),
        (b"\xef\xbb\xbf#!/bin/bash\n", "shell-bom"),
        (b"#!/bin/bash\n# caf\xe9\n", "shell-not-utf8"),
        (b"echo hi\n", "shell-no-interpreter"),
        (b"#!/bin/bash\nif true\n", "shell-syntax"),
        (b"#!/usr/bin/env -S bash -e\n(\n", "shell-syntax"),
        (b"#!/bin/sh\necho 'open\n", "shell-syntax"),
        (b"#!/bin/sh\n" + b"a|" * 20_000 + b"a\n", "shell-tangled"),
    ],
)
def test_scripts(content: bytes, code: str, make_task: Make, context: GateContext) -> None:
    assert code in codes(check(shell, make_task(changes={"tests/helper.sh": content}), context))


@pytest.mark.parametrize(
    "content",
    [
        "#!/bin/bash\nshopt -s extglob\nls !(a|b)\n",
        "#!/usr/bin/env python3\nprint('not ( shell')\n",
        "#!/bin/bash\ncat <<'EOF'\nif (\nEOF\n",
        '#!/bin/bash\n[[ a =~ ^(a|b)$ ]] && echo "$(printf %s x)"\n',
    ],
)
def test_scripts_that_are_right(content: str, make_task: Make, context: GateContext) -> None:
    assert check(shell, make_task(changes={"solution/solve.sh": content}), context).hits == []


def test_parsing_executes_nothing(make_task: Make, context: GateContext, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = (
        f"#!/bin/bash\ntouch {mark}\nx=$(touch {mark})\n: ${{y:=$(touch {mark})}}\ntrap 'touch {mark}' EXIT\n"
    )
    assert check(shell, make_task(changes={"tests/test.sh": script}), context).hits == []
    assert not mark.exists()


# ------------------------------------------------------------------------------------------------ rubric, metrics


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["rubric-missing"]),
        ("# Rubric\n", ["rubric-section"]),
        ("## Must-do\n- crates\n## Best-practice\n- crates\n## Must-avoid\n- crates\n", ["rubric-section"]),
        ("## Must-do\n- crates\n## Must-avoid\n## Best-practice\n- crates\n", ["rubric-bullets"]),
        (
            "## Must-do\n- crates\n- b\n- c\n- d\n## Must-avoid\n- crates\n## Best-practice\n- crates\n",
            ["rubric-bullets"],
        ),
        ("## Must-do\n- \n## Must-avoid\n- crates\n## Best-practice\n- crates\n", ["rubric-bullets"]),
        (
            "## Must-do\n* crates\n  - nested\n## Must-avoid ##\n1. crates\n## Best-practice\n+ crates\n\nMore.\n",
            [],
        ),
    ],
)
def test_rubrics(text: str, found: list[str], make_task: Make, context: GateContext) -> None:
    assert codes(check(rubric, make_task(changes={"tests/rubric.md": text}), context)) == found


def test_quote_may_be_wrapped_but_not_reworded(
    builder: ModuleType, make_task: Make, context: GateContext
) -> None:
    wrapped = builder.INSTRUCTION.replace("sum of all counts", "sum\n   of all counts")
    assert check(metrics, make_task(changes={"instruction.md": wrapped}), context).hits == []
    reworded = builder.INSTRUCTION.replace("sum of all counts", "sum of the counts")
    report = check(metrics, make_task(changes={"instruction.md": reworded}), context)
    assert codes(report) == ["metric-unsourced"]
    assert "metric sum" in report.hits[0].message


def test_metric_map_rules(make_task: Make, context: GateContext) -> None:
    def sources(text: str) -> Callable[[str], str]:
        return lambda old: old[: old.index("sum = ")] + text

    assert codes(check(metrics, make_task(config=sources('a = "Write"\n')), context)) == [
        "metric-count",
        "metric-unsourced",
    ]
    assert "metric-count" in codes(
        check(metrics, make_task(config=sources('reward = "The warehouse counted"\n')), context)
    )


# ------------------------------------------------------------------------------------------------ dockerfile

USER = "RUN useradd -m agent\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"FROM {PIN}\nRUN useradd -m agent && true\n", []),
        (
            f"ARG WHERE={PIN}\nFROM $WHERE\nRUN adduser --disabled-password \\\n  agent\n",
            ["dockerfile-variable-base"],
        ),
        ("FROM debian:12\n" + USER, ["dockerfile-unpinned"]),
        (f"FROM {PIN}\n", ["dockerfile-agent-user"]),
        (f"FROM {PIN}\nRUN useradd agents\n", ["dockerfile-agent-user"]),
        (f"FROM {PIN}\n{USER}USER agent\n", ["dockerfile-agent-user"]),
        (f"FROM {PIN}\n{USER}COPY ../tests /x\n", ["dockerfile-copies-private"]),
        (f"FROM {PIN}\n{USER}COPY a/../../solution/solve.sh /x\n", ["dockerfile-copies-private"]),
        (f"FROM {PIN}\nARG T=..\n{USER}COPY $T/tests/ /x\n", ["dockerfile-copies-private"]),
        (f"FROM {PIN}\n{USER}COPY ../shared /x\n", ["dockerfile-leaves-context"]),
        (f'FROM {PIN}\n{USER}COPY ["rubric.md", "/x"]\n', ["dockerfile-copies-private"]),
        (f"FROM {PIN}\n{USER}COPY x /tests/x\n", ["dockerfile-copies-private"]),
        (f"FROM {PIN}\nWORKDIR /solution\n{USER}COPY x ./\n", ["dockerfile-copies-private"]),
        (f"FROM {PIN}\n{USER}ADD https://example.org/x /x\n", ["dockerfile-download"]),
        (f"FROM {PIN}\n{USER}ADD x.tar /x\n", ["dockerfile-instruction"]),
        (f"FROM {PIN}\n{USER}ENTRYPOINT ['x']\n", ["dockerfile-instruction"]),
        (f"FROM {PIN}\n{USER}EXPOSE 80\n", ["dockerfile-instruction"]),
        (f"FROM {PIN} AS a\nFROM {PIN}\n", ["dockerfile-stages"]),
        (f"FROM {PIN}\nCOPY --from=other /x /x\n", ["dockerfile-stages"]),
        (f"FROM {PIN}\nRUN --mount=type=cache,target=/x true\n", ["dockerfile-instruction"]),
        (f"FROM {PIN}\nNONSENSE\n", ["dockerfile-instruction"]),
        ("RUN true\n", ["dockerfile-syntax"]),
        (f"FROM {PIN}\n{USER}RUN <<EOF\nCOPY ../tests /x\nEOF\n", []),
    ],
)
def test_dockerfiles(text: str, found: list[str], make_task: Make, context: GateContext) -> None:
    assert codes(check(dockerfile, make_task(changes={"environment/Dockerfile": text}), context)) == found


@given(st.text(max_size=300))
def test_any_dockerfile_gives_findings_or_none(text: str) -> None:
    assert isinstance(dockerfile.base_reference(text), str)


# ------------------------------------------------------------------------------------------------ rules


def test_rules_are_unique_and_say_how_to_mend() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert all(rule.mend.endswith(".") for rule in RULES)


def test_foreign_is_never_stricter() -> None:
    order = [Severity.INFO, Severity.WARN, Severity.ERROR]
    assert all(order.index(rule.foreign) <= order.index(rule.ours) for rule in RULES)


def test_lint_rules_fall_back_to_their_prefix() -> None:
    assert rule_of("harbor-lint:shared-verifier").code == "harbor-lint"
    with pytest.raises(KeyError):
        rule_of("no-such-rule")


@pytest.mark.parametrize("gate", [files, config, shell, rubric, metrics, dockerfile])
def test_empty_folder_is_survived(gate: object, tmp_path: Path, context: GateContext) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = to_result("x", check(gate, empty, context), Profile.FOREIGN)
    assert result.gate == "x"
