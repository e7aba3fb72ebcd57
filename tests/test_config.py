import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill2env.config import RunConfig, SolutionMode, load_config
from skill2env.errors import UserError

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("**/*.toml"))
CONFIGS = [path for path in CONFIGS if path.name != "hub.toml"]  # that one is loaded in tests/hub


def test_shipped_configs_exist() -> None:
    assert CONFIGS, "configs/ ships no example"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_shipped_config_loads(path: Path) -> None:
    config = load_config(path)
    if config.author.recordings is not None:
        assert config.author.recordings.is_dir(), "relative to the configuration file"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_flags_win_over_the_file_and_none_means_not_given(tmp_path: Path) -> None:
    path = write(tmp_path, 'seed = 3\n[plan]\nworkflows = 5\nvariants = 4\n[create]\nsolution = "blind"\n')
    config = load_config(path, {"plan.workflows": 2, "seed": None, "plan.variants": None, "budget.usd": 1.5})
    assert (config.seed, config.plan.workflows, config.plan.variants) == (3, 2, 4)
    assert config.create.solution is SolutionMode.BLIND
    assert config.budget.usd == 1.5


def test_recordings_are_relative_to_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, '[author]\nrecordings = "tapes"\n')
    assert load_config(path).author.recordings == tmp_path / "tapes"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mine/drills.py:make", "{}/mine/drills.py:make"),
        ("/opt/drills.py:make", "/opt/drills.py:make"),
        ("drills:make", "drills:make"),
        ("harbor:codex", "harbor:codex"),
        ("code", "code"),
    ],
)
def test_an_author_in_a_file_is_relative_to_the_configuration(tmp_path: Path, name: str, meant: str) -> None:
    path = write(tmp_path, f'[author]\nname = "{name}"\n')
    assert load_config(path).author.name == meant.format(tmp_path)
    assert load_config(path, {"author.name": "x.py:make"}).author.name == "x.py:make", (
        "flags: to the working folder"
    )


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("sed = 1", "unknown key 'sed'", "did you mean 'seed'?"),
        ("[plan]\nworkflow = 1", "unknown key 'plan.workflow'", "did you mean 'plan.workflows'?"),
        ("workflows = 1", "unknown key 'workflows'", "did you mean 'plan.workflows'?"),
        ("[plan]\nworkflows = 0", "plan.workflows: Input should be greater than or equal to 1", "docs/"),
        ("plan = 3", "plan: Input should be a valid dictionary", "docs/"),
        ('[create]\nsolution = "peek"', "'informed' or 'blind'", "docs/"),
        ("zzz = 1", "unknown key 'zzz'", "docs/"),
        ("seed = ", "is not valid TOML", ""),
    ],
)
def test_mistakes_are_named_with_a_way_out(tmp_path: Path, text: str, said: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        load_config(write(tmp_path, text))
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_missing_and_binary_files_are_user_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        load_config(tmp_path / "bad.toml")


def test_what_is_no_config_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(UserError, match="no regular file"):
            load_config(path)
    with (tmp_path / "big.toml").open("wb") as file:
        file.truncate(2**21)
    with pytest.raises(UserError, match="more than"):
        load_config(tmp_path / "big.toml")


def test_a_flag_below_a_scalar_is_reported_not_crashed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="plan: Input should be a valid dictionary"):
        load_config(write(tmp_path, "plan = 3"), {"plan.workflows": 2})


DETERMINING: list[dict[str, Any]] = [
    {"seed": 1},
    {"plan.workflows": 4},
    {"plan.variants": 2},
    {"create.solution": "blind"},
    {"create.max_repairs": 3},
    {"create.organisation": "acme"},
    {"verify.oracle_repeats": 3},
    {"verify.level": "strict"},
]
NEUTRAL: list[dict[str, Any]] = [
    {"workers": 9},
    {"author.recordings": "/elsewhere"},
    {"sandbox.kind": "docker"},
    {"sandbox.allow_unlimited": True},
    {"sandbox.allow_degraded": True},
    {"author.accept_stale": True},
    {"budget.usd": 3.0},
    {"verify.infra_retries": 5},
    {"publish.name": "a/b"},
]


@pytest.mark.parametrize("flags", DETERMINING, ids=str)
def test_digest_changes_with_what_determines_results(flags: dict[str, Any]) -> None:
    assert load_config(None, flags).digest() != RunConfig().digest()


@pytest.mark.parametrize("flags", NEUTRAL, ids=str)
def test_digest_ignores_what_only_decides_when(flags: dict[str, Any]) -> None:
    assert load_config(None, flags).digest() == RunConfig().digest()


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda kids: st.dictionaries(st.text(), kids), max_leaves=8
    )
)
def test_any_flag_value_loads_or_is_a_user_error(value: Any) -> None:
    try:
        load_config(None, {"plan": value})
    except UserError:
        return
    assert value is None or isinstance(value, dict)
