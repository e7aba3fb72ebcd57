"""Packages from a registry that stands on this machine: the machine's own clients download, nothing is run."""

import base64
import hashlib
import io
import json
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.hub.conftest import BODY

from skill2env.errors import UserError
from skill2env.hub.explain import explain
from skill2env.hub.folder import Hub, register
from skill2env.hub.recipes import names, read_recipe
from skill2env.hub.records import SourceSpec
from skill2env.hub.sources import packages, spec_of
from skill2env.hub.sources.simple_index import Link, choose, links
from skill2env.sandbox import mirrors

SKILL = f"---\nname: sums\ndescription: Sums. Use when tables have to be added up.\n---\n{BODY}"
METADATA = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nLicense: MIT\n\nLong words\n"


def wheel() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in (
            ("demo/skills/sums/SKILL.md", SKILL),
            ("demo-1.0.dist-info/METADATA", METADATA),
            (
                "demo-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            ),
            ("demo-1.0.dist-info/LICENSE", "MIT License"),
            ("demo-1.0.dist-info/RECORD", "demo/skills/sums/SKILL.md,,\n"),
        ):
            archive.writestr(zipfile.ZipInfo(name), text)
    return out.getvalue()


def tarball(top: str, trap: Path, **files: str) -> bytes:
    out = io.BytesIO()
    contents = {
        "skills/sums/SKILL.md": SKILL,
        "setup.py": f"open({str(trap)!r}, 'w')\n",
        **{name.replace("__", "/").replace("_json", ".json"): text for name, text in files.items()},
    }
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in contents.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Registry:
    """Serves files by path, counts what is asked for, and can die in the middle of an answer."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, bytes]] = {}
        self.asked: list[str] = []
        self.dying = False
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                kind, data = registry.files.get(self.path, ("", b""))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if registry.dying else data)
                if registry.dying:
                    self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Registry]:
    served = Registry()
    trap = tmp_path / "trapped"
    for name, data in (
        ("demo-1.0-py3-none-any.whl", wheel()),
        ("source-1.0.tar.gz", tarball("source-1.0", trap)),
    ):
        project = name.partition("-")[0]
        digest = hashlib.sha256(data).hexdigest()
        served.files[f"/files/{name}"] = ("application/octet-stream", data)
        page = f'<html><body><a href="/files/{name}#sha256={digest}">{name}</a></body></html>'
        served.files[f"/simple/{project}/"] = ("text/html", page.encode())
    touch = f"touch {trap}"
    about = {"name": "@own/pack", "version": "1.2.3", "license": "ISC"}
    scripts = json.dumps({**about, "scripts": {"prepack": touch, "postinstall": touch}})
    data = tarball("package", trap, package_json=scripts)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    served.files["/pack.tgz"] = ("application/octet-stream", data)
    about = {
        "name": "@own/pack",
        "version": "1.2.3",
        "dist": {"tarball": f"{served.url}/pack.tgz", "integrity": integrity},
    }
    document = {"name": "@own/pack", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": about}}
    served.files["/@own%2fpack"] = ("application/json", json.dumps(document).encode())
    for name, value in {
        "PIP_INDEX_URL": f"{served.url}/simple", "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0", "PIP_TIMEOUT": "5", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
        "npm_config_registry": f"{served.url}/", "npm_config_cache": str(tmp_path / "npm-cache"),
        "npm_config_fetch_retries": "0", "npm_config_userconfig": str(tmp_path / "npmrc"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    mirrors.python_index.cache_clear()
    yield served
    mirrors.python_index.cache_clear()
    served.close()
    assert not trap.exists(), "something of a package was run"


@pytest.fixture(params=["pip", "no pip"])
def with_pip(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    here = bool(packages.python_with_pip())
    if request.param == "no pip":
        monkeypatch.setattr(packages, "python_with_pip", lambda: "")
    elif not here:
        pytest.skip("no pip on this machine")
    return request.param == "pip"


def test_a_wheel_is_data(registry: Registry, with_pip: bool, hub: Hub, synced) -> None:
    register(hub, [spec_of(hub, "pypi:demo==1.0")])
    done = synced()
    assert done.sources[0].error == ""
    (known,) = explain(hub, "sums")
    place = known["places"][0]
    assert (place["origin"], place["revision"]) == ("pypi:demo==1.0", "demo==1.0")
    assert (known["licence"]["spdx"], known["licence"]["evidence"]) == ("MIT", "repository")
    assert place["notices"] == ["demo-1.0.dist-info__LICENSE"]
    asked = len(registry.asked)
    assert synced().sources[0].unchanged
    assert not synced(again=True, offline=True).failed
    assert len(registry.asked) == asked


def test_a_source_archive_is_never_built(registry: Registry, with_pip: bool, hub: Hub, synced) -> None:
    register(hub, [spec_of(hub, "pypi:source==1.0")])
    assert synced().sources[0].skills == 1
    assert explain(hub, "sums")[0]["places"][0]["place"] == "source:source-1.0/skills/sums"


def test_pins_are_held_to(registry: Registry, with_pip: bool, hub: Hub, synced) -> None:
    right = hashlib.sha256(registry.files["/files/demo-1.0-py3-none-any.whl"][1]).hexdigest()
    register(hub, [
        spec_of(hub, "pypi:demo==1.0", name="right", sha256=right),
        spec_of(hub, "pypi:demo==1.0", name="wrong", sha256="0" * 64),
        spec_of(hub, "pypi:demo==2.0", name="absent"),
        spec_of(hub, "pypi:nothing==1.0", name="unknown"),
    ])  # fmt: skip
    done = synced()
    assert [s.status.value for s in done.sources] == ["fresh", "failed", "failed", "failed"]
    assert all(f"source {s.id}" in s.error for s in done.sources[1:])


def test_a_damaged_download_is_fetched_again(registry: Registry, with_pip: bool, hub: Hub, synced) -> None:
    register(hub, [spec_of(hub, "pypi:demo==1.0")])
    synced()
    (held,) = (hub.downloads / "pypi/demo-1.0").glob("*.whl")
    held.write_bytes(held.read_bytes()[:-1])
    assert "--offline forbids" in synced(again=True, offline=True).sources[0].error
    assert not synced(again=True).failed


def test_a_dying_network_is_told_and_the_others_go_on(
    registry: Registry, with_pip: bool, tmp_path: Path, hub: Hub, synced: Callable[..., object]
) -> None:
    from tests.hub.conftest import make_skill

    make_skill(tmp_path / "local/a", "local")
    register(
        hub,
        [
            spec_of(hub, "pypi:demo==1.0"),
            spec_of(hub, "npm:@own/pack@1.2.3"),
            spec_of(hub, str(tmp_path / "local")),
        ],
    )
    registry.dying = True
    done = synced()  # type: ignore[call-arg]
    states = [s.status.value for s in done.sources]  # type: ignore[attr-defined]
    assert states == ["failed", "failed", "fresh"]
    assert "source demo: downloading" in done.sources[0].error  # type: ignore[attr-defined]
    registry.dying = False
    assert not synced(only=["demo"]).failed  # type: ignore[attr-defined]


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
def test_an_npm_package_is_data(registry: Registry, hub: Hub, synced) -> None:
    register(hub, [spec_of(hub, "npm:@own/pack@1.2.3"), spec_of(hub, "npm:@own/pack@9.9.9", name="absent")])
    done = synced()
    assert [s.status.value for s in done.sources] == ["fresh", "failed"]
    (known,) = explain(hub, "sums")
    assert known["places"][0]["origin"] == "npm:@own/pack@1.2.3"
    assert known["licence"]["spdx"] == "ISC"
    assert not synced(again=True, offline=True, only=[done.sources[0].id]).failed


@pytest.mark.parametrize(
    "text", ["pypi:demo==1.0 --pre", "npm:../x@1", "npm:git+ssh://x@1", "pypi:demo==../1", "npm:demo@latest!"]
)
def test_names_that_are_none_are_refused(text: str, hub: Hub, synced) -> None:
    try:
        spec = spec_of(hub, text, name="x")
    except UserError:
        return
    register(hub, [spec])
    assert synced().failed


def test_versions_must_be_pinned(hub: Hub, synced) -> None:
    register(hub, [SourceSpec.model_validate({"id": "x", "kind": "npm", "location": "demo"})])
    assert "no pinned version" in synced().sources[0].error


def test_index_pages_of_both_forms() -> None:
    html = b'<a href="../../f/demo-1.0.tar.gz#sha256=' + b"a" * 64 + b'">x</a><a href="x%20y.whl">'
    assert links(html, "http://h/simple/demo/") == [
        Link("demo-1.0.tar.gz", "http://h/f/demo-1.0.tar.gz", "a" * 64),
        Link("x y.whl", "http://h/simple/demo/x%20y.whl", ""),
    ]
    told = {"files": [{"filename": "demo-1.0.zip", "url": "/f/demo-1.0.zip", "hashes": {"sha256": "b" * 64}}]}
    assert links(json.dumps(told).encode(), "http://h/s/demo/") == [
        Link("demo-1.0.zip", "http://h/f/demo-1.0.zip", "b" * 64)
    ]
    assert links(b'{"files": 3}', "http://h/") == []


def test_the_file_of_a_release_is_chosen_by_name() -> None:
    spec = SourceSpec.model_validate({"id": "x", "kind": "pypi", "location": "My.Demo", "revision": "1.0"})
    files = [
        "my_demo-1.0-cp312-cp312-linux_x86_64.whl", "my_demo-1.0.tar.gz", "my-demo-1.0-py3-none-any.whl",
        "my_demo-1.0.1-py3-none-any.whl", "my_demo_more-1.0-py3-none-any.whl", "my_demo-1.0.exe",
    ]  # fmt: skip
    found = [Link(name, "u", "") for name in files]
    assert choose(found, spec).name == "my-demo-1.0-py3-none-any.whl"
    assert choose(found[:2], spec).name == "my_demo-1.0.tar.gz"
    with pytest.raises(UserError, match="no file"):
        choose(found[3:], spec)


def test_the_shipped_recipe_is_pinned_throughout(hub: Hub) -> None:
    assert "packages" in names()
    specs = read_recipe("packages")
    assert len(specs) > 20
    assert all(spec.revision and spec.sha256 for spec in specs)
    register(hub, specs)
    assert hub.config().source == tuple(specs)
    avoided = {"skillforge-agent", "ai-labs-claude-skills", "oh-my-customcode"}
    assert not avoided & {spec.location for spec in specs}


def test_recipes_that_are_none_are_messages(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no recipe"):
        read_recipe("nope")
    (tmp_path / "r.toml").write_text("[[source]]\nid = 3")
    with pytest.raises(UserError, match=r"r\.toml"):
        read_recipe(str(tmp_path / "r.toml"))
