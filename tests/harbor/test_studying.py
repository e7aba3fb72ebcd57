"""What a study brings home of a run, what it leaves behind, and what it makes of archives that nobody should trust."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skill2env.harbor import studying
from skill2env.harbor.outcome import TrialOutcome
from skill2env.harbor.studying import STUDY_AGENT, read_collected, read_studied
from skill2env.sandbox.identity import current_identity

DOCKERFILE = """\
FROM debian-bookworm
RUN useradd --create-home --shell /bin/bash agent
COPY numbers.txt /app/numbers.txt
RUN mkdir -p /app/out /opt/kit && chown -R agent:agent /app && echo fixed > /opt/kit/fixed && \\
    echo old > /app/old && echo gone > /app/gone && chown agent /app/old /app/gone && chmod 640 /app/old
WORKDIR /app
"""
SCRIPT = """\
#!/bin/bash
set -eu
printf 'made\\n' > 'out/a b.txt'
chmod 750 'out/a b.txt'
printf 'new\\n' > old
rm gone
head -c 1500000 /dev/zero > out/large
exit ${CODE:-0}
"""
NOTES: dict[str, Any] = {
    "problem": "", "uid": 1000, "path": [], "home": "", "workdir": "/", "removed": [], "writable": [],
    "before": [["f", "644", 3, "/app/a"]], "after": [["f", "600", 9, "/app/b"]],
}  # fmt: skip

Make = Callable[..., Path]
Trial = Callable[..., TrialOutcome]


@pytest.fixture
def studied(task: Make, trial: Trial, tmp_path: Path) -> Callable[..., TrialOutcome]:
    """A study of `SCRIPT`, with other options or another image."""

    def run(
        *, dockerfile: str = DOCKERFILE, test: str = "", mode: str = "separate", **options: Any
    ) -> TrialOutcome:
        script = tmp_path / "solve.sh"
        script.write_text(SCRIPT, encoding="utf-8")
        changes = {"environment/Dockerfile": dockerfile} | ({"tests/test.sh": test} if test else {})
        kwargs = {"source": str(script), "target": "/s2e-script", **options}
        return trial(task(changes=changes), STUDY_AGENT, agent_kwargs=kwargs, mode=mode)

    return run


@pytest.mark.sandbox
@pytest.mark.skipif(
    not current_identity().several_users, reason="an agent user needs several user ids (uidmap)"
)
def test_files_before_after_and_gone(studied: Callable[..., TrialOutcome]) -> None:
    outcome = studied()
    assert outcome.failure is None
    found = read_studied(outcome.folder)
    assert {path: file.data for path, file in found.before.items() if path.startswith(("/app", "/opt"))} == {
        "/app/gone": b"gone\n",
        "/app/numbers.txt": b"17\n4\n98\n23\n51\n",
        "/app/old": b"old\n",
        "/opt/kit/fixed": b"fixed\n",
    }
    after = {path: file for path, file in found.after.items() if path.startswith("/app")}
    assert {path: file.data for path, file in after.items()} == {
        "/app/old": b"new\n",
        "/app/out/a b.txt": b"made\n",
        "/app/out/large": None,
    }
    assert (after["/app/old"].mode, after["/app/out/a b.txt"].mode) == (0o640, 0o750)
    assert after["/app/out/large"].size == 1_500_000
    assert found.removed == ("/app/gone",)
    assert {"/app/gone", "/app/numbers.txt", "/app/old"} <= found.writable_files
    assert not any(path.startswith("/opt") for path in found.writable_files)
    assert {"/app", "/app/out", "/home/agent", "/tmp"} <= set(found.writable_folders)
    assert "/opt/kit" not in found.writable_folders
    assert (found.uid, found.home, found.workdir) == (1000, "/home/agent", "/app")
    assert "/usr/bin" in found.search_path


@pytest.mark.sandbox
def test_nothing_of_it_stays(studied: Callable[..., TrialOutcome]) -> None:
    look = (
        "#!/bin/bash\nls -A /tmp /var/tmp / > /logs/verifier/seen.txt\necho 0 > /logs/verifier/reward.txt\n"
    )
    outcome = studied(test=look, mode="shared")
    seen = (outcome.folder / "verifier/seen.txt").read_text(encoding="utf-8").split()
    assert "s2e-script" not in seen
    assert not [name for name in seen if name.startswith("tmp.")]


@pytest.mark.sandbox
def test_without_an_inventory_what_was_asked_for(studied: Callable[..., TrialOutcome]) -> None:
    wanted = ["/app/old", "/app/absent", "/app/out", "/app/out/a b.txt"]
    outcome = studied(inventory=False, collect=wanted)
    assert read_collected(outcome.folder) == {"/app/old": b"new\n", "/app/out/a b.txt": b"made\n"}
    with pytest.raises(ValueError, match="could not be listed"):
        read_studied(outcome.folder)


@pytest.mark.sandbox
def test_a_script_that_fails_is_studied_as_well(studied: Callable[..., TrialOutcome]) -> None:
    outcome = studied(env={"CODE": "3"})
    assert outcome.solve_exit_code == 3
    assert read_studied(outcome.folder).after["/app/old"].data == b"new\n"


@pytest.mark.sandbox
def test_an_image_without_find_is_said(studied: Callable[..., TrialOutcome]) -> None:
    outcome = studied(dockerfile=DOCKERFILE + "RUN rm /usr/bin/find\n")
    with pytest.raises(ValueError, match="no GNU find"):
        read_studied(outcome.folder)


def test_small_files_are_taken_first_within_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*sizes: int) -> list[str]:
        return studying._affordable([("f", "644", size, f"/{n}") for n, size in enumerate(sizes)])

    assert taken(30, 10, 20) == ["/1", "/2", "/0"]
    assert taken(studying.FILE_BYTES, studying.FILE_BYTES + 1) == ["/0"]
    monkeypatch.setattr(studying, "TOTAL_BYTES", 45)
    assert taken(30, 10, 20) == ["/1", "/2"]
    monkeypatch.setattr(studying, "FILES", 1)
    assert taken(30, 10, 20) == ["/1"]


def _brought(folder: Path, archive: bytes, notes: dict[str, Any] | None = NOTES) -> Path:
    (folder / "agent").mkdir(parents=True)
    for name in ("study-before.tar", "study-after.tar"):
        (folder / "agent" / name).write_bytes(archive)
    if notes is not None:
        (folder / "agent/study.json").write_text(json.dumps(notes), encoding="utf-8")
    return folder


def _archive(*members: tuple[str, bytes, bytes]) -> bytes:
    """A tar of (name, type, data)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/shadow"
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def test_only_regular_files_of_an_archive_are_read(tmp_path: Path) -> None:
    archive = _archive(
        ("app/a", tarfile.REGTYPE, b"abc"),
        ("app/b", tarfile.SYMTYPE, b""),
        ("app/c", tarfile.LNKTYPE, b""),
        ("app/d", tarfile.CHRTYPE, b""),
        ("../../up", tarfile.REGTYPE, b"kept under its name, never written"),
    )
    found = read_studied(_brought(tmp_path, archive))
    assert (found.before["/app/a"].data, found.after["/app/b"].data) == (b"abc", None)
    assert set(read_collected(tmp_path)) == {"/app/a", "/../../up"}
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "study-after.tar", "study-before.tar", "study.json",
    ]  # fmt: skip


@pytest.mark.parametrize("archive", [b"", b"no archive", _archive(("app/a", tarfile.REGTYPE, b"abc"))[:700]])
def test_a_broken_archive_costs_the_contents_only(archive: bytes, tmp_path: Path) -> None:
    found = read_studied(_brought(tmp_path, archive))
    assert (found.before["/app/a"].size, found.after["/app/b"].mode) == (3, 0o600)
    assert found.after["/app/b"].data is None


def test_an_archive_beyond_the_limits_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studying, "TOTAL_BYTES", 4)
    monkeypatch.setattr(studying, "FILE_BYTES", 4)
    members = [(f"app/{n}", tarfile.REGTYPE, b"x" * 4) for n in range(5)]
    assert sorted(read_collected(_brought(tmp_path, _archive(*members)))) == ["/app/0", "/app/1"]


def test_what_was_not_brought_home_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="could not be listed"):
        read_studied(_brought(tmp_path / "none", b"", notes=None))
    with pytest.raises(ValueError, match="no GNU find"):
        read_studied(
            _brought(tmp_path / "problem", b"", notes=NOTES | {"problem": "the image has no GNU find"})
        )
