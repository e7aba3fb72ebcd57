"""Reading a skill's code without running it."""

from pathlib import Path
from textwrap import dedent

import pytest

from skill2env.authors.code.behaviour import documented
from skill2env.authors.code.invent import invent
from skill2env.authors.code.rubric import REPAIR, grounding, sentences, write_rubric
from skill2env.authors.code.understand import Project, understand
from skill2env.ingest import load_skill
from skill2env.records import Skill
from skill2env.verify.rubric import read_sections


def make(folder: Path, files: dict[str, str]) -> Project:
    files = {"SKILL.md": "---\nname: toy\ndescription: A toy.\n---\n# Toy\n", **files}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return understand(load_skill(folder), folder)


def test_what_belongs_to_the_project(parcel_project: Project) -> None:
    assert sorted(parcel_project.files) == ["README.md", "parcel_rates.py", "parcels.csv"]
    assert parcel_project.tests == ("tests/test_parcel_rates.py",)
    module = parcel_project.modules["parcel_rates.py"]
    assert module.is_script
    assert [info.name for info in module.functions][:3] == ["weight_class", "zone_name", "price"]
    assert 20 in module.numbers
    assert parcel_project.missing_imports("parcel_rates.py") == ()


def test_readme_leaves_out_what_only_an_agent_needs(parcel_project: Project) -> None:
    text = parcel_project.files["README.md"]
    assert text.startswith("# Parcel rates\n")
    assert "up to and including 5 kg" in text
    assert "Whenever somebody says" not in text
    assert "You are" not in text
    assert "license: MIT" not in text


def test_examples_become_commands(parcel_project: Project) -> None:
    found = documented(parcel_project)
    assert [case.file for case in found] == ["parcel_rates.py"] * 2
    given = found[0].args[1]
    assert given["name"] == "parcels.csv"
    assert given["text"] == parcel_project.files["parcels.csv"]
    assert found[1].args[1:] == ("--output", {"$": "fresh", "name": "out", "as": "str"})


def test_imports_that_the_base_lacks(tmp_path: Path) -> None:
    project = make(
        tmp_path,
        {
            "lib/a.py": "import nobody_has_this\nimport numpy\nimport json\nimport helper\nfrom . import b\n"
            "try:\n    import yaml\nexcept ImportError:\n    yaml = None\n",
            "lib/helper.py": "import distutils\n",
        },
    )
    assert project.missing_imports("lib/a.py") == ("nobody_has_this",)
    assert project.foreign == {"nobody_has_this", "numpy"}
    assert project.libraries.name == "data"
    assert project.missing_imports("lib/helper.py") == ()


def test_files_that_do_not_parse_are_named(tmp_path: Path) -> None:
    project = make(tmp_path, {"old.py": "print 'python 2'\n", "new.py": "x = 1\n", "nul.py": "x = '\\0'\n"})
    assert list(project.unreadable) == ["old.py"]
    assert sorted(project.modules) == ["new.py", "nul.py"]


@pytest.mark.parametrize(
    "name", ["tests/x.py", "test_x.py", "x_test.py", "conftest.py", ".hidden/x.py", "evals/run.py"]
)
def test_tests_and_hidden_files_stay_out(tmp_path: Path, name: str) -> None:
    project = make(tmp_path, {name: "x = 1\n"})
    assert list(project.files) == ["README.md"]


def test_invented_calls_fit_annotations_and_keys(tmp_path: Path) -> None:
    project = make(
        tmp_path,
        {
            "m.py": """
            from pathlib import Path
            def whole(count: int, names: list[str]) -> str: return names[count]
            def record(row: dict) -> str: return row["title"] + row.get("owner", "")
            def load(path: Path) -> str: return path.read_text()
            def odd(thing: object) -> None: ...
            def _private(x: int) -> int: return x
            """,
            "notes.md": "Use `alpha` or `beta`.\n",
        },
    )
    found = invent(project, frozenset({"m.py:whole"}))
    by_name = {
        name: [case for case in found if case.name == name]
        for name in ("whole", "record", "load", "odd", "_private")
    }
    assert not by_name["whole"]
    assert not by_name["odd"]
    assert not by_name["_private"]
    assert {pair[0] for case in by_name["record"] for pair in case.args[0]["v"]} == {"title", "owner"}
    assert all(case.args[0]["$"] == "file" for case in by_name["load"])
    assert [case.id for case in found] == [case.id for case in invent(project, frozenset({"m.py:whole"}))]


def test_grounding_is_verbatim_and_about_the_code(parcel_skill: Skill, parcel_project: Project) -> None:
    functions = [f for f in parcel_project.modules["parcel_rates.py"].functions if f.name == "weight_class"]
    found = grounding(parcel_skill, functions)
    assert found[0].startswith("Parcels up to and including 5 kg are light")
    body = " ".join(parcel_skill.body.split())
    assert all(line in body for line in [*found, *sentences(parcel_skill)])


def test_sentences_are_whole(tmp_path: Path) -> None:
    text = (
        """---
name: toy
description: A toy.
---
# Toy

1. **First** step is to read the
   whole table before anything else.
2. Then add all of the numbers up.

Never round
early, always at the end.

| a | table is not prose at all |

```
code is not prose at all either
```

- """
        + "A sentence that goes on for a while. " * 10
        + """
- Things to do are these:
"""
    )
    (tmp_path / "SKILL.md").write_text(text)
    found = sentences(load_skill(tmp_path))
    assert found[:2] == [
        "**First** step is to read the whole table before anything else.",
        "Then add all of the numbers up.",
    ]
    assert found[2] == "Never round early, always at the end."
    assert found[3].endswith("for a while.")
    assert len(found) == 4


def test_rubric_quotes_with_attribution(parcel_skill: Skill, parcel_project: Project) -> None:
    text = write_rubric(parcel_skill, parcel_project.modules["parcel_rates.py"].functions, REPAIR)
    sections = read_sections(text)
    assert [name for name, _ in sections] == ["Must-do", "Must-avoid", "Best-practice"]
    assert all(1 <= len(bullets) <= 3 for _, bullets in sections)
    assert "Never price a parcel without a zone." in text
    assert "(parcel-rates, MIT)" in text
