"""Licences and notices of the source skills, kept beside the tasks that derive from them."""

import re
from pathlib import Path

from skill2env.records import Skill, canonical_json
from skill2env.store.files import write_bytes, write_text

FOLDER_NAME = "LICENSES"

_NOTICE_FILE = re.compile(r"(?i)^(licen[cs]e|copying|notice|copyright|authors)([.\-_].*)?$")
_LIMIT = 256 * 1024
"""Largest notice file that is copied, in bytes; real licence texts have under 40 kB."""


def notice_folder(skill: Skill) -> str:
    """Name of the skill's folder below LICENSES/: slug and the start of the digest, so that versions do not mix."""
    return f"{skill.slug}-{skill.digest.removeprefix('sha256:')[:12]}"


def write_notices(skill: Skill, skill_dir: Path, target: Path) -> None:
    """Write what is known about a skill's terms, and copy its own licence and notice files, into `target`.

    Only regular files of the inventory are copied, and the file the licence statement was found in when that lies
    just above the skill; anything larger than 256 KiB is left out and named.

    Raises:
        InfraError: boundary ``storage``.
    """
    target.mkdir(parents=True, exist_ok=True)
    kept: list[str] = []
    wanted = {f.path for f in skill.files if _NOTICE_FILE.match(Path(f.path).name)}
    if skill.licence.where and skill.licence.where != skill.entry:
        wanted.add(skill.licence.where)
    for name in sorted(wanted):
        source = skill_dir / name
        if source.is_symlink() or not source.is_file() or source.stat().st_size > _LIMIT:
            continue
        flat = name.replace("../", "").replace("/", "__")
        write_bytes(target / flat, source.read_bytes())
        kept.append(flat)
    facts = {
        "skill": skill.name,
        "digest": skill.digest,
        "source": skill.origin,
        "licence": skill.licence.spdx,
        "evidence": skill.licence.evidence.value,
        "statement": skill.licence.statement,
        "files": kept,
    }
    write_text(target / "NOTICE.json", canonical_json(facts) + "\n")
