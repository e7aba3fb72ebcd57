"""Which libraries are imported before cases run: what the code imports, and nothing that it could mean itself."""

from pathlib import Path

from skill2env.authors.code.preload import preload
from skill2env.authors.code.understand import understand
from skill2env.ingest import load_skill

FILES = {
    "SKILL.md": "---\nname: imports\ndescription: Show imports.\nlicense: MIT\n---\n\n# Imports\n\nText.\n",
    "tool.py": "import json, xml.dom.minidom\nimport helper\nfrom pack import inner\n"
    "try:\n    import csv\nexcept ImportError:\n    csv = None\n\n\ndef lazy():\n    import sqlite3\n",
    "helper.py": "import this\nimport tkinter\nimport numpy\nimport no_such_library\n",
    "pack/__init__.py": "",
    "pack/inner.py": "import decimal\n",
    "other.py": "import tomllib\n",
    "statistics.py": "import fractions\n",
    "uses.py": "import statistics\n",
}


def test_imports_of_what_is_run(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / "imports" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "imports" / name).write_text(text)
    folder = tmp_path / "imports"
    project = understand(load_skill(folder), folder)
    assert preload(project, ["tool.py"]) == ["csv", "decimal", "json", "numpy", "xml.dom.minidom"]
    assert preload(project, ["other.py", "gone.py"]) == ["tomllib"]
    assert preload(project, ["uses.py"]) == ["fractions"]
    assert preload(project, []) == []
