import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skill2env.errors import UserError
from skill2env.ingest import blocking, find_skills, load_skill
from skill2env.records import LicenceEvidence, Skill

TEXT = "---\nname: sums\ndescription: Adds numbers. Use when a column has to be summed. It is quick.\n---\n"
MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software\n"


def make(folder: Path, text: str = TEXT, **more: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text)
    for name, content in more.items():
        (folder / name).write_text(content)
    return folder


# ------------------------------------------------------------------------------------------------ what is no skill


@pytest.mark.parametrize(
    ("prepare", "message", "hint"),
    [
        (lambda p: None, "does not exist", "give the folder"),
        (lambda p: p.mkdir(), "holds no SKILL.md", "the folder is empty"),
        (lambda p: (p.mkdir(), (p / "AGENTS.md").touch()), "holds no SKILL.md", "found AGENTS.md; a skill needs"),
        (lambda p: (p.mkdir(), (p / "a.txt").touch()), "holds no SKILL.md", "found a.txt"),
        (lambda p: p.touch(), "is no skill", "give the folder"),
        (lambda p: (p / "SKILL.md").mkdir(parents=True), "holds no SKILL.md", "no regular file"),
        (lambda p: (p.mkdir(), (p / "SKILL.md").symlink_to("/etc/passwd")), "holds no SKILL.md", "leads out"),
        (lambda p: (p.mkdir(), (p / "SKILL.md").symlink_to("gone")), "holds no SKILL.md", "nowhere"),
        (lambda p: make(p / "sums"), "holds no SKILL.md", "one level below: sums"),
    ],
)  # fmt: skip
def test_what_is_no_skill_is_said(prepare: object, message: str, hint: str, tmp_path: Path) -> None:
    prepare(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises(UserError) as caught:
        load_skill(tmp_path / "x")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_folder_entry_file_and_link_give_the_same_skill(tmp_path: Path) -> None:
    folder = make(tmp_path / "sums")
    (tmp_path / "linked").symlink_to("sums")
    assert load_skill(folder) == load_skill(folder / "SKILL.md") == load_skill(tmp_path / "linked")


def test_an_entry_linked_inside_the_folder_is_read(tmp_path: Path) -> None:
    folder = make(tmp_path / "sums")
    (folder / "SKILL.md").rename(folder / "text.md")
    (folder / "SKILL.md").symlink_to("text.md")
    assert load_skill(folder).name == "sums"


def test_nothing_usable_blocks(tmp_path: Path) -> None:
    assert [item.code for item in blocking(load_skill(make(tmp_path / "a", "\n")))] == ["empty-file"]
    assert blocking(load_skill(make(tmp_path / "sums"))) == ()


# ------------------------------------------------------------------------------------------------ what is understood


def test_triggers_are_taken_word_for_word(tmp_path: Path) -> None:
    text = TEXT.replace("---\n", "---\nwhen_to_use: A sum is needed\n", 1)
    text += "# Sums\n\n## When to use\n\n- Totals of **invoices**\n- [ ] Checking a ledger\n\n## Method\n\n- not this\n"
    assert load_skill(make(tmp_path / "sums", text)).triggers == (
        "Use when a column has to be summed.",
        "A sum is needed",
        "Totals of **invoices**",
        "Checking a ledger",
    )


def test_missing_references_are_listed_and_placeholders_are_not(tmp_path: Path) -> None:
    text = TEXT + (
        "[a](references/a.md#part) `scripts/run.py --x` [web](https://x.example/y.md) [top](#top)\n"
        "`scripts/<name>.py` `scripts/*.sh` [x](path/to/file.md) `src/app.py` [here](here.txt) <!-- -->\n"
        "```\npython scripts/there.py\nbash scripts/gone.sh\n```\n"
    )
    folder = make(tmp_path / "sums", text, **{"here.txt": ""})
    (folder / "scripts").mkdir()
    (folder / "scripts/there.py").touch()
    assert load_skill(folder).missing_references == ("references/a.md", "scripts/gone.sh", "scripts/run.py")


def test_origin_is_given_or_read_from_the_package_around(tmp_path: Path) -> None:
    folder = make(tmp_path / "pkg/skills/sums")
    (tmp_path / "pkg/package.json").write_text(
        json.dumps({"name": "@a/b", "version": "1.2", "license": "ISC"})
    )
    skill = load_skill(folder)
    assert (skill.origin, skill.licence.spdx, skill.licence.where) == (
        "npm:@a/b@1.2",
        "ISC",
        "../../package.json",
    )
    assert load_skill(folder, origin="me").origin == "me"


def test_a_wheel_around_counts_only_when_it_lists_the_skill(tmp_path: Path) -> None:
    folder = make(tmp_path / "site-packages/pkg/skills/sums")
    info = tmp_path / "site-packages/pkg-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: pkg\nVersion: 1\nLicense-Expression: Apache-2.0\n\nText")
    (info / "RECORD").write_text("other.py,,\n")
    assert load_skill(folder).licence.evidence is LicenceEvidence.NONE
    (info / "RECORD").write_text("pkg/skills/sums/SKILL.md,sha256=x,1\n")
    skill = load_skill(folder)
    assert (skill.origin, skill.licence.spdx, skill.licence.evidence) == (
        "pypi:pkg==1",
        "Apache-2.0",
        LicenceEvidence.REPOSITORY,
    )


def test_metadata_behind_a_link_is_another_packages(tmp_path: Path) -> None:
    folder = make(tmp_path / "src/pkg/skills/sums")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "METADATA").write_text("Name: other\nVersion: 1\nLicense-Expression: MIT\n\n")
    (elsewhere / "RECORD").write_text("pkg/skills/sums/SKILL.md,,\n")
    (tmp_path / "src/pkg-1.dist-info").symlink_to(elsewhere)
    skill = load_skill(folder)
    assert (skill.origin, skill.licence.evidence) == ("", LicenceEvidence.NONE)


# ------------------------------------------------------------------------------------------------ discovery


def test_search_is_sorted_and_finds_nested_and_hidden_folders(tmp_path: Path) -> None:
    for place in ("b", "a", "a/inner", ".claude/skills/c", "node_modules/d", ".git/e"):
        make(tmp_path / place)
    make(tmp_path)
    (tmp_path / "a/loop").symlink_to("..")
    found = find_skills(tmp_path)
    expected = [tmp_path / name for name in (".", ".claude/skills/c", "a", "a/inner", "b")]
    assert list(found.folders) == expected
    assert all(load_skill(path).name == "sums" for path in found.folders)


def test_two_thousand_skills_are_found_in_a_moment(tmp_path: Path) -> None:
    import time

    for number in range(2000):
        make(tmp_path / f"group{number % 20}/s{number}")
    begun = time.process_time()
    assert len(find_skills(tmp_path).folders) == 2000
    assert time.process_time() - begun < 2


def test_no_skill_below_is_said(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    with pytest.raises(UserError, match=r"no SKILL\.md at or below"):
        find_skills(tmp_path)


# ------------------------------------------------------------------------------------------------ any bytes


ANY_BYTES = (
    st.binary(max_size=400)
    | st.binary(max_size=200).map(lambda data: b"---\nname: x\ndescription: " + data + b"\n---\n" + data)
    | st.text(max_size=200).map(
        lambda text: f"---\nname: {text}\nlicense: {text}\n---\n[{text}]({text})".encode("utf-8", "replace")
    )
)


@given(data=ANY_BYTES)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_fail(data: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "sums"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_bytes(data)
    skill = load_skill(folder, upstream=True)
    assert Skill.model_validate_json(skill.model_dump_json()) == skill
    assert skill.slug
