"""Small datasets written by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOML = """schema_version = "1.4"
[task]
name = "{name}"
keywords = ["{skill}"]
[metadata.skill2env]
domain = "{domain}"
variant = 0
[metadata.skill2env.skill]
name = "{skill}"
licence = "{licence}"
[metadata.skill2env.workflow]
name = "{workflow}"
[metadata.skill2env.axes]
{axes}
"""

type MakeTask = Callable[..., Path]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Write one task below ``data/``; every text can be given."""

    def make(name: str, *, dataset: str = "data", **given: Any) -> Path:
        folder = tmp_path / dataset / name
        axes = "\n".join(f'{axis} = "{value}"' for axis, value in given.get("axes", {}).items())
        texts = {
            "task.toml": TOML.format(
                name=f"org/{name}",
                skill=given.get("skill", "ledger"),
                domain=given.get("domain", "data engineering"),
                licence=given.get("licence", "MIT"),
                workflow=given.get("workflow", "add-up"),
                axes=axes,
            ),
            "instruction.md": given.get(
                "instruction", f"Add up the accounts of {name} and write the total.\n"
            ),
            "tests/rubric.md": given.get("rubric", "## Must-do\n- Count every line once.\n"),
            "tests/test.sh": given.get("tests", "#!/bin/bash\npython3 /tests/grade.py\n"),
            "solution/solve.sh": given.get(
                "solution", "#!/bin/bash\nsort accounts.csv | uniq -c > total.txt\n"
            ),
            "environment/Dockerfile": "FROM debian\nCOPY data.csv /app/\n",
            "environment/data.csv": given.get("world", "a,1\nb,2\n"),
        }
        for path, text in texts.items():
            if text is None:
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return folder

    return make
