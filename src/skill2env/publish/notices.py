"""Licences and notices of the source skills, kept beside the tasks that derive from them."""

import re
from collections.abc import Sequence
from pathlib import Path

from skill2env.records import Skill, StagedAsset, canonical_json
from skill2env.store.files import write_bytes, write_text

FOLDER_NAME = "LICENSES"

_NOTICE_FILE = re.compile(r"(?i)^(licen[cs]e|copying|notice|copyright|authors)([.\-_].*)?$")
_LIMIT = 256 * 1024
"""Largest notice file that is copied, in bytes; real licence texts have under 40 kB."""


def notice_folder(skill: Skill) -> str:
    """Name of the skill's folder below LICENSES/: slug and the start of the digest, so that versions do not mix."""
    return f"{skill.slug}-{skill.digest.removeprefix('sha256:')[:12]}"


def write_notices(
    skill: Skill, skill_dir: Path, target: Path, around: Sequence[tuple[str, Path]] = ()
) -> None:
    """Write what is known about a skill's terms, and copy the licence and notice files that belong to it, to `target`.

    Only regular files up to 256 KiB are copied: those of the skill's inventory, and those handed in.

    Args:
        skill: the source.
        skill_dir: its folder.
        target: the folder to fill.
        around: notice files of the package or repository around it, with the names to keep them under.

    Raises:
        InfraError: boundary ``storage``.
    """
    target.mkdir(parents=True, exist_ok=True)
    own = sorted(f.path for f in skill.files if _NOTICE_FILE.match(Path(f.path).name))
    kept: list[str] = []
    for name, source in [*((path.replace("/", "__"), skill_dir / path) for path in own), *around]:
        if name in kept or source.is_symlink() or not source.is_file() or source.stat().st_size > _LIMIT:
            continue
        write_bytes(target / name, source.read_bytes())
        kept.append(name)
    facts = {
        "skill": skill.name,
        "digest": skill.digest,
        "source": skill.origin,
        "licence": skill.licence.spdx,
        "evidence": skill.licence.evidence.value,
        "statement": skill.licence.statement,
        "files": sorted(kept),
    }
    write_text(target / "NOTICE.json", canonical_json(facts) + "\n")


def asset_folder(sha256: str) -> str:
    """Name of a public file's folder below LICENSES/."""
    return f"asset-{sha256.removeprefix('sha256:')[:12]}"


def write_asset_notice(asset: StagedAsset, text: Path | None, target: Path) -> None:
    """Write what is known about a public file in a task, and its licence text where one was kept, to `target`.

    Raises:
        InfraError: boundary ``storage``.
    """
    kept: list[str] = []
    if text is not None and text.is_file() and not text.is_symlink():
        write_bytes(target / "LICENSE.txt", text.read_bytes())
        kept.append("LICENSE.txt")
    told = asset.asset
    facts = {
        "asset": told.what,
        "digest": asset.sha256,
        "source": told.url,
        "revision": told.revision,
        "licence": asset.licence,
        "attribution": told.attribution,
        "files": kept,
    }
    write_text(target / "NOTICE.json", canonical_json(facts) + "\n")
