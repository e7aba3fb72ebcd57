"""All 2,794 public skill texts: nothing fails, nearly everything is understood, and it takes seconds."""

import json
import tarfile
import time
from collections import Counter
from pathlib import Path

import pytest

from skill2env.ingest import blocking, find_skills, load_skill

pytestmark = pytest.mark.slow

CEILINGS = {
    "not-english": 60,
    "malware-lure": 5,
    "injection-like": 30,
    "secret-like": 5,
    "invalid-yaml": 0,
    "stub": 20,
}
"""These texts were chosen to be sound; more findings than this are false alarms."""
FLOORS = {
    "external-need": 1200,
    "multi-line-description": 500,
    "unknown-key": 800,
    "no-code": 400,
    "outside-reference": 150,
}


def test_corpus(shared: Path, tmp_path: Path) -> None:
    with tarfile.open(shared / "corpus/skills-md.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    index = {
        item["path"]: item
        for item in map(json.loads, (shared / "corpus/index.jsonl").read_text().splitlines())
    }
    begun = time.process_time()
    found = find_skills(tmp_path)
    skills = {
        (path / "SKILL.md").relative_to(tmp_path).as_posix(): load_skill(path) for path in found.folders
    }
    spent = time.process_time() - begun
    codes = Counter(code for skill in skills.values() for code in {item.code for item in skill.diagnostics})
    declared = [
        skill
        for skill in skills.values()
        if not {"missing-name", "missing-description"} & {item.code for item in skill.diagnostics}
    ]
    assert set(skills) == set(index)
    assert len(declared) >= 0.99 * len(skills)
    assert not [
        skill.name
        for skill in skills.values()
        if blocking(skill) and "malware-lure" not in str(blocking(skill))
    ]
    assert sum(bool(skill.triggers) for skill in skills.values()) >= 0.7 * len(skills)
    assert not {code: codes[code] for code, most in CEILINGS.items() if codes[code] > most}
    assert not {code: codes[code] for code, least in FLOORS.items() if codes[code] < least}
    assert len({skill.digest for skill in skills.values()}) == len(skills)
    assert spent < 40, f"{spent:.1f} s of processor time"
    # The licence that people read off these texts, where the text itself states one.
    stated = {
        path: item["license"] for path, item in index.items() if item["license_evidence"] == "frontmatter"
    }
    agreeing = sum(stated[path].split("-")[0] in skills[path].licence.spdx for path in stated)
    assert agreeing >= 0.95 * len(stated)
