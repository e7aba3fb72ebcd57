"""The whole loop in real sandboxes, killed and continued, and runs that go astray."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")
pytest.importorskip("transformers", reason="transformers is not installed (extra `train`)")

from skill2env.cli import main as cli  # noqa: E402
from skill2env.errors import Boundary, InfraError, UserError  # noqa: E402
from skill2env.harbor.sandboxes import namespace_sandbox  # noqa: E402
from skill2env.rollout.run import subjects  # noqa: E402
from skill2env.train.local import checkpoint  # noqa: E402
from skill2env.train.local.books import METRICS, read_metrics, read_times  # noqa: E402
from skill2env.train.local.config import TrainConfig, read_config  # noqa: E402
from skill2env.train.local.policy import Policy  # noqa: E402
from skill2env.train.local.trainer import RUN_FILE, Trained, train  # noqa: E402

pytestmark = pytest.mark.sandbox
SETTINGS: dict[str, Any] = {
    "groups": 1,
    "group_size": 6,
    "most_drawn": 2,
    "checkpoint_every": 2,
    "sampling": {"max_new_tokens": 5, "context_tokens": 128},
    "optimiser": {"learning_rate": 0.01},
}


def go(tasks: list[Path], model: Path, out: Path, **changes: Any) -> Trained:
    return train(
        subjects(tasks),
        model,
        out,
        TrainConfig.model_validate(SETTINGS | changes),
        sandbox=namespace_sandbox(),
    )


def test_eight_steps(tasks: list[Path], tiny: Path, tmp_path: Path) -> None:
    """Invariants, not rewards: every update begins on policy, and what is counted adds up."""
    out = tmp_path / "run"
    done = go(tasks, tiny, out, steps=8)
    lines = read_metrics(out)
    assert (done.steps, done.stopped) == (8, "")
    assert [line["step"] for line in lines] == list(range(8))
    assert sum(line["kept"] for line in lines) > 0
    for line in lines:
        assert line["statuses"] == {"valid": line["rollouts"]}
        assert line["rollouts"] == 6 * line["drawn"]
        assert line["kept"] + sum(line["dropped"].values()) == line["drawn"]
        assert 0 <= line["passed"] <= line["r_v"] <= 1
        if line["kept"]:
            assert line["log_ratio"] < 1e-4
            assert (line["masked"], line["capped"]) == (0, 0)
            assert line["entropy"] > 0
            assert line["norm"] > 0
        else:
            assert line["loss"] is None
    assert {path.name for path in (out / checkpoint.FOLDER).iterdir()} == {"step-000006", "step-000008"}
    first, last = Policy.load(tiny), Policy.load(done.policy)
    assert not all(
        torch.equal(old, new)
        for old, new in zip(first.model.parameters(), last.model.parameters(), strict=True)
    )
    assert all(line["saving"] >= 0 and line["total"] >= line["learning"] for line in read_times(out))


def test_a_killed_run_goes_on_the_same(tasks: list[Path], tiny: Path, tmp_path: Path) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    go(tasks, tiny, straight, steps=5)
    go(tasks, tiny, broken, steps=3)
    # As a kill in step 3 leaves it: no checkpoint since step 2, lines and rollouts of later ones, a cut line.
    shutil.rmtree(broken / checkpoint.FOLDER / "step-000003")
    with (broken / METRICS).open("a") as file:
        file.write('{"step": 3, "r_v"')
    go(tasks, tiny, broken, steps=5)
    assert (broken / METRICS).read_bytes() == (straight / METRICS).read_bytes()
    for name in ("model.safetensors", "config.json"):
        one, other = (run / checkpoint.FOLDER / "step-000005" / "policy" / name for run in (straight, broken))
        assert one.read_bytes() == other.read_bytes()


def test_other_settings_do_not_go_on(tasks: list[Path], tiny: Path, tmp_path: Path) -> None:
    go(tasks, tiny, tmp_path / "run", steps=2)
    before = (tmp_path / "run" / RUN_FILE).read_bytes()
    with pytest.raises(UserError, match="other settings"):
        go(tasks, tiny, tmp_path / "run", steps=4, seed=7)
    assert (tmp_path / "run" / RUN_FILE).read_bytes() == before


def test_a_full_disk_keeps_the_checkpoint_before(
    tasks: list[Path], tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    go(tasks, tiny, out, steps=2)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(InfraError, match="step 4") as caught:
            go(tasks, tiny, out, steps=4)
    assert caught.value.boundary is Boundary.STORAGE
    assert "make room" in caught.value.hint
    assert [path.name for path in (out / checkpoint.FOLDER).iterdir()] == ["step-000002"]
    assert go(tasks, tiny, out, steps=4).steps == 4


def test_a_run_that_goes_astray_is_ended(tasks: list[Path], tiny: Path, tmp_path: Path) -> None:
    """A rate at which the first update makes the weights useless."""
    done = go(
        tasks, tiny, tmp_path / "run", steps=12, checkpoint_every=1, keep=12, optimiser={"learning_rate": 1.0},
        stop={"entropy": 1.0, "patience": 2},
    )  # fmt: skip
    assert "entropy" in done.stopped
    odd = [line["step"] for line in read_metrics(tmp_path / "run") if line["odd"]]
    assert len(odd) >= 2
    assert done.steps <= odd[0]  # the policy that is given out was saved before anything was wrong


def test_from_the_command_line(
    tasks: list[Path], tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(tmp_path / f"run-{seed}") for seed in (1, 2)]
    config = tmp_path / "train.toml"
    config.write_text(
        "steps = 4\ngroups = 1\ngroup_size = 4\nmost_drawn = 2\n[sampling]\nmax_new_tokens = 5\n"
        "[optimiser]\nlearning_rate = 0.01\n"
    )
    for seed, run in enumerate(runs, 1):
        args = ["train", "run", *map(str, tasks), "--model", str(tiny), "--out", run]
        assert cli.run([*args, "--config", str(config), "--seed", str(seed), "--threads", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["steps"] == 4
    assert cli.run(["train", "gain", *runs, "--block", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], len(found["first_by_run"]), found["tasks"]) == (2, 2, 2)
    assert found["low"] <= found["last"] - found["first"] + 1e-9 or found["high"] >= found["low"]
    assert cli.run(["train", "plot", *runs, "--to", str(tmp_path / "curves.png")]) == 0
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert cli.run(["train", "gain", *runs, "--block", "3"]) == 2
    assert "--block" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps = 0", "steps"),
        ("steps = ", "TOML"),
        ("speed = 1", "speed"),
        ("groups = 4\nmost_drawn = 2", "most_drawn"),
        ("groups = 1\n[optimiser]\nupdates = 2", "updates"),
        ("[sampling]\nmax_new_tokens = 2000", "max_new_tokens"),
        ("[loss]\ndelta_low = -1", "delta_low"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "train.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=told):
        read_config(file)


def test_folders_that_are_no_models(tasks: list[Path], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(UserError, match="no model folder"):
        go(tasks, tmp_path / "model", tmp_path / "run")
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"none")
    with pytest.raises(UserError, match="no model that can be loaded"):
        go(tasks, tmp_path / "model", tmp_path / "run")
