"""Keys of authors in tasks: bad examples with labels, each with a sound neighbour."""

import base64
import codecs
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from skill2env import authoring
from skill2env.authors.agents import credentials_in
from skill2env.authors.protocol import keys_of
from skill2env.authors.record import RecordingAuthor
from skill2env.authors.registry import AuthorSettings, make_author
from skill2env.authors.scripted import ScriptedAuthor
from skill2env.create.stage import CONTRACT_FAULTS, NOT_MENDED
from skill2env.credentials import credential_found
from skill2env.records import Reason

KEY = "sk-Zq83/kd+0v_Lw7Tn"
OTHER = "sk-Aa11/bb+2c_Dd3Ee"


def tarred(data: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo("note.txt")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def zipped(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("note.txt", data)
    return stream.getvalue()


LABELS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda key: f"curl -H 'Authorization: Bearer {key}'".encode(),
    "over two lines": lambda key: f"{key[:7]}\n  {key[7:]}".encode(),
    "backwards": lambda key: f"# {key[::-1]}".encode(),
    "base64": lambda key: b"x = '" + base64.b64encode(key.encode()) + b"'",
    "base64 one in": lambda key: base64.b64encode(f"a{key}".encode()),
    "base64 two in": lambda key: base64.b64encode(f"ab{key}tail".encode()),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(f"id={key}&x=1".encode()),
    "base64 wrapped": lambda key: base64.encodebytes(f"{'words ' * 12}{key}{' more' * 20}".encode()),
    "base64 backwards": lambda key: base64.b64encode(key[::-1].encode()),
    "hex": lambda key: key.encode().hex().encode(),
    "hex in capitals": lambda key: key.encode().hex().upper().encode(),
    "hex in pairs": lambda key: key.encode().hex(" ").encode(),
    "hex escapes": lambda key: "".join(f"\\x{byte:02x}" for byte in key.encode()).encode(),
    "hex numbers": lambda key: ", ".join(f"0x{byte:02x}" for byte in key.encode()).encode(),
    "percent": lambda key: f"https://example.org/?q={quote(key, safe='')}".encode(),
    "percent all": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()).encode(),
    "rot13": lambda key: codecs.encode(key, "rot13").encode(),
    "utf-16": lambda key: key.encode("utf-16"),
    "gzip": lambda key: gzip.compress(key.encode()),
    "tar": lambda key: tarred(base64.b64encode(key.encode())),
    "zip": lambda key: zipped(key.encode()),
    "zip in tar": lambda key: tarred(zipped(key.encode())),
}


@pytest.mark.parametrize("kind", LABELS)
def test_a_key_is_found_and_another_is_none_of_our_business(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "environment" / "app" / "notes.dat"
    file.parent.mkdir(parents=True)
    file.write_bytes(LABELS[kind](KEY))
    bad = credential_found(tmp_path, {}, {"OPENAI_API_KEY": KEY})
    assert bad is not None
    assert bad.reason is Reason.AUTHOR_CREDENTIAL
    assert "environment/app/notes.dat" in bad.message
    assert "OPENAI_API_KEY" in bad.message
    assert KEY not in bad.model_dump_json()
    assert bad.gates[0].findings[0].mend
    file.write_bytes(LABELS[kind](OTHER))
    assert credential_found(tmp_path, {}, {"OPENAI_API_KEY": KEY}) is None


def test_names_of_files_and_texts_that_join_the_task(tmp_path: Path) -> None:
    keys = {"K": "abcdefgh-1234"}
    (tmp_path / "tests").mkdir()
    assert credential_found(tmp_path, {"contract.json": "abcdefgh-123"}, keys) is None
    found = credential_found(tmp_path, {"contract.json": '{"title": "abcdefgh-1234"}'}, keys)
    assert found is not None
    assert "contract.json" in found.message
    (tmp_path / "tests" / "abcdefgh-1234").write_text("")
    assert credential_found(tmp_path, {}, keys) is not None


def test_no_key_and_short_keys_are_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("none of this: short")
    assert credential_found(tmp_path, {}, {"A": "none", "B": "short", "C": ""}) is None


def test_who_holds_which_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    settings = AuthorSettings(model="m", api_base="http://127.0.0.1:9/v1", key_variable="MY_KEY")
    builtin = make_author("builtin", settings)
    assert keys_of(builtin) == {"MY_KEY": KEY}
    assert keys_of(RecordingAuthor(builtin, tmp_path)) == {"MY_KEY": KEY}
    assert keys_of(ScriptedAuthor()) == {}
    agent = make_author("harbor:terminus-2", AuthorSettings(model="openai/m", options={"api_key": OTHER}))
    assert keys_of(agent)["MY_KEY"] == KEY
    assert keys_of(agent)["api_key"] == OTHER
    found = credentials_in(
        {
            "GITHUB_TOKEN": "t" * 20,
            "KEYBOARD": "k" * 20,
            "SSH_AUTH_SOCK": "/run/agent.sock",
            "X_TOKEN": "short",
        },
        {"env": {"DB_PASSWORD": "p" * 9}, "max_turns": 3},
    )
    assert found == {"GITHUB_TOKEN": "t" * 20, "DB_PASSWORD": "p" * 9}


def test_it_is_no_slip_that_is_mended() -> None:
    assert Reason.AUTHOR_CREDENTIAL in NOT_MENDED
    assert Reason.AUTHOR_CREDENTIAL in CONTRACT_FAULTS


@pytest.mark.parametrize("check", ["check-contract", "check-solution"])
def test_no_check_runs_on_a_task_that_holds_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    """Before the seal and before acceptance: the wrapped checks and the last verdict look first."""
    rejection = credential_found(tmp_path, {"x": KEY}, {"K": KEY})
    monkeypatch.setattr(authoring, "_leaked", lambda *_: rejection)

    def never(*_: Any) -> Any:
        raise AssertionError("the check ran")

    remembered: Any = authoring._Remembered(None, None, check, never)  # pyright: ignore
    assert remembered(tmp_path, None) is rejection


def test_a_damaged_member_ends_no_search(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.txt", "words " * 100)
        archive.writestr("second.txt", f"note {KEY} " * 3)
    data = bytearray(stream.getvalue())
    data[60] ^= 0xFF  # within the first member
    (tmp_path / "pack.zip").write_bytes(data)
    found = credential_found(tmp_path, {}, {"OPENAI_API_KEY": KEY})
    assert found is not None
    assert found.gates[0].findings[0].where == "pack.zip!second.txt"
    assert credential_found(tmp_path, {}, {"OPENAI_API_KEY": OTHER}) is None


def test_no_message_holds_a_key_that_is_a_name(tmp_path: Path) -> None:
    name = base64.urlsafe_b64encode(OTHER.encode()).decode()
    (tmp_path / name).write_text(f"and {OTHER} inside")
    found = credential_found(tmp_path, {}, {"K": OTHER})
    assert found is not None
    assert len(found.gates[0].findings) == 2
    assert name not in found.model_dump_json()
    assert OTHER not in found.model_dump_json()
