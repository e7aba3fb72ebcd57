import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill2env.create.freeze import Changes, Seal, compare, freeze_digest, scan, seal
from skill2env.errors import InfraError

TOML = "[agent]\nuser = 'agent'\n"
NAMES = [
    "instruction.md",
    "environment/Dockerfile",
    "environment/data/x.csv",
    "tests/test.sh",
    "solution/solve.sh",
]
TREES = st.dictionaries(
    st.sampled_from([*NAMES, "tests/rubric.md", "solution/lib/a.py"]),
    st.tuples(st.binary(max_size=20), st.booleans()),
)


def write(folder: Path, tree: dict[str, tuple[bytes, bool]]) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(TOML)
    for path, (data, executable) in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        (folder / path).chmod(0o755 if executable else 0o644)


def sealed_part(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        path: ((folder / path).read_bytes(), taken.executable)
        for path, taken in scan(folder).items()
        if not path.startswith("solution/")
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(before=TREES, after=TREES, tamper=st.booleans())
def test_whatever_a_session_did_restore_brings_the_contract_back(
    tmp_path: Path, before: dict[str, tuple[bytes, bool]], after: dict[str, tuple[bytes, bool]], tamper: bool
) -> None:
    task, store = tmp_path / "task", tmp_path / "store"
    shutil.rmtree(store, ignore_errors=True)
    write(task, before)
    frozen = seal(task, store)
    original = sealed_part(task)
    write(task, after)
    if tamper:
        (task / "task.toml").write_text(TOML + "[verifier]\nx = 1\n")
        (task / "tests").mkdir(exist_ok=True)
        (task / "tests/link").symlink_to("/etc/passwd")
    own = {path: pair for path, pair in after.items() if path.startswith("solution/")}
    changes = compare(frozen.files, scan(task))
    expected_change = sealed_part(task) != original
    assert bool(changes.lines()) == expected_change
    frozen.restore(task)
    assert sealed_part(task) == original
    assert not (task / "tests/link").is_symlink()
    assert {p: (task / p).read_bytes() for p in own} == {p: data for p, (data, _) in own.items()}
    assert freeze_digest(task) == frozen.digest


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(one=TREES, two=TREES)
def test_equal_digest_means_equal_contract(
    tmp_path: Path, one: dict[str, tuple[bytes, bool]], two: dict[str, tuple[bytes, bool]]
) -> None:
    task = tmp_path / "task"
    write(task, one)
    first, kept = freeze_digest(task), sealed_part(task)
    write(task, two)
    assert (freeze_digest(task) == first) == (sealed_part(task) == kept)


@pytest.fixture
def frozen(tmp_path: Path) -> tuple[Path, Seal]:
    task = tmp_path / "task"
    write(task, dict.fromkeys(NAMES, (b"x", False)))
    return task, seal(task, tmp_path / "store")


def test_solution_is_not_sealed(frozen: tuple[Path, Seal]) -> None:
    task, sealed = frozen
    (task / "solution/solve.sh").write_text("other")
    (task / "solution/new.py").write_text("new")
    assert compare(sealed.files, scan(task)) == Changes()
    assert freeze_digest(task) == sealed.digest
    assert not any(path.startswith("solution/") for path in sealed.ledger_lines())


def test_metadata_of_task_toml_is_not_sealed_and_the_rest_is(frozen: tuple[Path, Seal]) -> None:
    task, sealed = frozen
    (task / "task.toml").write_text(TOML + "\n[metadata.skill2env]\nseed = 1\n")
    assert freeze_digest(task) == sealed.digest
    (task / "task.toml").write_text(TOML.replace("agent'", "root'"))
    assert freeze_digest(task) != sealed.digest


def test_executable_bit_is_sealed(frozen: tuple[Path, Seal]) -> None:
    task, sealed = frozen
    (task / "tests/test.sh").chmod(0o755)
    assert compare(sealed.files, scan(task)).changed == ("tests/test.sh",)
    sealed.restore(task)
    assert not (task / "tests/test.sh").stat().st_mode & 0o111


def test_restore_replaces_a_folder_by_the_file_and_back(frozen: tuple[Path, Seal]) -> None:
    task, sealed = frozen
    (task / "instruction.md").unlink()
    (task / "instruction.md").mkdir()
    shutil.rmtree(task / "tests")
    (task / "tests").write_text("a file now")
    (task / "environment/data").rename(task / "environment/elsewhere")
    sealed.restore(task)
    assert compare(sealed.files, scan(task)) == Changes()
    assert not (task / "environment/elsewhere").exists()


def test_a_file_called_solution_is_outside_of_solution(frozen: tuple[Path, Seal]) -> None:
    task, sealed = frozen
    shutil.rmtree(task / "solution")
    (task / "solution").write_text("x")
    assert compare(sealed.files, scan(task)).added == ("solution",)


def test_damaged_host_copy_is_an_infra_failure(frozen: tuple[Path, Seal]) -> None:
    task, sealed = frozen
    (sealed.store / "tests/test.sh").write_text("exit 0")
    with pytest.raises(InfraError, match="sealed copy") as caught:
        sealed.restore(task)
    assert not caught.value.transient


def test_compare_names_each_file() -> None:
    assert Changes(("a",), ("b",), ("c",)).lines() == ("changed a", "deleted b", "added c")
