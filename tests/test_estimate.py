"""What a compilation would cost."""

from pathlib import Path

import pytest

from skill2env.config import RunConfig, load_config
from skill2env.errors import UserError
from skill2env.estimate import ASSUMED, estimate
from skill2env.records import AuthorIdentity, Phase, Usage
from skill2env.store.ledger import Ledger
from skill2env.store.run_folder import RunFolder

SKILL = "---\nname: {name}\ndescription: Use this for the {name} of a ledger.\n---\n# {name}\nAdd up every account.\n"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    for name in ("one", "two", "twin"):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name="two" if name == "twin" else name))
    (tmp_path / "skills" / "empty").mkdir()
    (tmp_path / "skills" / "empty" / "SKILL.md").write_text("")
    (tmp_path / "prices.toml").write_text("[m]\ninput = 1\noutput = 10\n")
    return tmp_path / "skills"


def settings(skills: Path, **flags: object) -> RunConfig:
    given = {"author.model": "m", "author.prices": str(skills.parent / "prices.toml"), "plan.workflows": 2}
    return load_config(None, given | flags)


def test_assumptions(skills: Path, tmp_path: Path) -> None:
    found = estimate([skills], run=tmp_path / "run", config=settings(skills))
    assert (found.skills, found.left_out) == (2, 2)
    assert found.sessions == {"plan": 2.0, "contract": 6.0, "solution": 4.0, "repair": 2.0}
    assert set(found.measured.values()) == {0}
    assert found.tokens["plan"].output == 2 * ASSUMED[Phase.PLAN].output_tokens
    total = sum(used.input + 10 * used.output for used in found.tokens.values())
    assert found.micro_dollars == total
    fewer = estimate(
        [skills],
        run=tmp_path / "run",
        config=settings(skills, **{"create.max_repairs": 0, "create.max_mends": 0}),
    )
    assert fewer.sessions == {"plan": 2.0, "contract": 4.0, "solution": 4.0, "repair": 0.0}


def test_earlier_sessions_are_believed(skills: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    author = AuthorIdentity(name="builtin", model="m")
    with folder.locked(), Ledger.open(folder.ledger) as ledger:
        run = ledger.begin_run(config={}, config_digest="", author=author, dataset=tmp_path, version="1")
        for key, tokens in (("a", 100), ("b", 300)):
            usage = Usage(model="m", input_tokens=tokens, output_tokens=10, turns=4, micro_dollars=1)
            ledger.add_session(
                key, run=run, subject="t", phase="contract", round_=0, author=author, usage=usage
            )
    found = estimate([skills], run=folder.path, config=settings(skills))
    assert found.measured["contract"] == 2
    assert (found.tokens["contract"].input, found.tokens["contract"].output) == (2 * 3 * 200, 2 * 3 * 10)
    assert found.measured["plan"] == 0


def test_no_model_costs_nothing(skills: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only authors with a model"):
        estimate([skills], run=tmp_path / "run", config=settings(skills, **{"author.model": ""}))
    unknown = estimate([skills], run=tmp_path / "run", config=settings(skills, **{"author.model": "other"}))
    assert unknown.micro_dollars is None
