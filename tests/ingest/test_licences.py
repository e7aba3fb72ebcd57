# ruff: noqa: E501  # tables: one line a case
from pathlib import Path

import pytest

from skill2env.ingest import load_skill
from skill2env.ingest.spdx import PROPRIETARY, is_restrictive, normalise, recognise
from skill2env.records import Licence, LicenceEvidence

GPL3 = (
    "                    GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007\n"
    + "words\n" * 300
    + "13. Use with the GNU Affero General Public License.\n"
)
MIT = (
    "The MIT License (MIT)\n\nCopyright (c) 2026 A\n\nPermission is hereby granted, free of charge, to any person\n"
    "obtaining a copy of this software and associated documentation files, subject to the following conditions: ...\n"
)
BSD3 = "Redistribution and use in source and binary forms, with or without modification\n* Neither the name of X\nAll rights reserved."
ANTHROPIC = (
    "© 2025 Somebody, PBC. All rights reserved.\nUsers may not:\n- Extract these materials from the Services"
)


@pytest.mark.parametrize(
    ("statement", "spdx"),
    [
        ("MIT", "MIT"),
        ("MIT License", "MIT"),
        ("the MIT licence.", "MIT"),
        ("Apache 2.0", "Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache-2.0 license", "Apache-2.0"),
        ("https://www.apache.org/licenses/LICENSE-2.0", "Apache-2.0"),
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("MIT/Apache-2.0", "MIT OR Apache-2.0"),
        ("Apache-2.0 AND CC-BY-4.0", "Apache-2.0 AND CC-BY-4.0"),
        ("MIT (see LICENSE for details)", "MIT"),
        ("CC BY 4.0", "CC-BY-4.0"),
        ("GPL-3.0", "GPL-3.0-only"),
        ("BSD", "BSD-3-Clause"),
        ("Proprietary. LICENSE.txt has complete terms", PROPRIETARY),
        ("UNLICENSED", PROPRIETARY),
        ("Unknown", ""),
        ("ask my lawyer", ""),
        ("Complete terms in LICENSE.txt", ""),
        ("x" * 500, ""),
        ("((((", ""),
    ],
)
def test_statements(statement: str, spdx: str) -> None:
    assert normalise(statement) == spdx


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        (MIT, "MIT"),
        (GPL3, "GPL-3.0-only"),
        (BSD3, "BSD-3-Clause"),
        (ANTHROPIC, PROPRIETARY),
        ("                Apache License\n        Version 2.0, January 2004\n", "Apache-2.0"),
        ("# Creative Commons Attribution-ShareAlike 4.0 International\n" + "x " * 500, "CC-BY-SA-4.0"),
        ("SPDX-License-Identifier: ISC\n", "ISC"),
        ("Lorem ipsum " * 100, ""),
    ],
)
def test_texts(text: str, spdx: str) -> None:
    assert recognise(text) == spdx


def test_restrictive_terms() -> None:
    assert all(map(is_restrictive, ("GPL-3.0-only", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "AGPL-3.0-only")))
    assert not any(map(is_restrictive, ("MIT", "Apache-2.0", "CC-BY-4.0", "BSD-3-Clause")))


def licence(folder: Path, field: str = "", **files: str) -> Licence:
    folder.mkdir(parents=True, exist_ok=True)
    line = f"license: {field}\n" if field else ""
    (folder / "SKILL.md").write_text(f"---\nname: x\ndescription: d\n{line}---\nbody\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    return load_skill(folder).licence


def test_strength_of_evidence(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    (repository / ".git").mkdir(parents=True)
    skill = repository / "skills/x"
    assert licence(skill).evidence is LicenceEvidence.NONE
    (repository / "LICENSE").write_text(MIT)
    assert licence(skill) == Licence(
        spdx="MIT",
        evidence=LicenceEvidence.REPOSITORY,
        statement="The MIT License (MIT)",
        where="../../LICENSE",
    )
    assert licence(skill, "Apache-2.0").evidence is LicenceEvidence.FRONT_MATTER
    assert licence(skill, "see LICENSE.txt", **{"LICENSE.txt": GPL3}).spdx == "GPL-3.0-only"


def test_a_refusal_is_never_outweighed(tmp_path: Path) -> None:
    assert licence(tmp_path / "a", "MIT", **{"LICENSE.txt": ANTHROPIC}).spdx == PROPRIETARY
    assert licence(tmp_path / "b", "Proprietary", LICENSE=MIT).spdx == PROPRIETARY


def test_words_that_nobody_understands_are_not_overruled_by_the_repository(tmp_path: Path) -> None:
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/LICENSE").write_text(MIT)
    assert licence(tmp_path / "repo/x", "ask my lawyer").spdx == ""
    assert licence(tmp_path / "repo/y", "Complete terms in LICENSE.txt").spdx == "MIT"


@pytest.mark.parametrize("sign", ["sidecar", "owner@repository", "name"])
def test_a_collection_grants_nothing_for_the_author(tmp_path: Path, sign: str) -> None:
    repository = tmp_path / ("awesome-skills" if sign == "name" else "repo")
    skill = repository / ("skills/ann@tools/x" if sign == "owner@repository" else "skills/x")
    (repository / ".git").mkdir(parents=True)
    (repository / "LICENSE").write_text(MIT)
    files = {"_meta.json": "{}"} if sign == "sidecar" else {}
    assert licence(skill, **files).evidence is LicenceEvidence.AGGREGATOR


def test_nothing_above_the_owner_or_in_a_folder_open_to_all_counts(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text(MIT)
    (tmp_path / "repo/.git").mkdir(parents=True)
    assert licence(tmp_path / "repo/x").evidence is LicenceEvidence.NONE
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "LICENSE").write_text(MIT)
    assert licence(shared / "x").evidence is LicenceEvidence.NONE


def test_a_licence_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text(MIT)
    folder = tmp_path / "repo/x"
    folder.mkdir(parents=True)
    (tmp_path / "repo/.git").mkdir()
    (folder / "LICENSE").symlink_to("../../outside.txt")
    assert licence(folder).evidence is LicenceEvidence.NONE
