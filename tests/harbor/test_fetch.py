"""The tool `fetch` of the built-in agent in a session with a network: through the logged proxy, and nowhere else."""

import hashlib
import socket
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from skill2env.authors.agent import AgentAuthor
from skill2env.authors.agent_task import Room
from skill2env.authors.protocol import PlanReply, PlanRequest
from skill2env.harbor.builtin import BUILTIN_AGENT
from skill2env.harbor.sandboxes import SandboxChoice
from skill2env.llm.script import Scenario, Script, ScriptedCall, ScriptedReply
from skill2env.llm.scripted_server import scripted_server
from skill2env.records import Skill, digest_of
from skill2env.sandbox.images import BaseImage

pytestmark = pytest.mark.sandbox
DATA = b"a\tb\n\xff\x00 every byte\n"
OPEN, CLOSED = "files.example.org", "other.example.org"


class Handler(BaseHTTPRequestHandler):
    seen: list[str]

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.seen.append(f"{self.headers['host']}{self.path}")
        status, data = (200, DATA) if self.path == "/data.bin" else (404, b"no such file")
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """A web server on this machine that two names of the internet lead to, as seen by the proxy."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    Handler.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    real = socket.getaddrinfo

    def look(host: Any, *arguments: Any, **named: Any) -> Any:
        return real("127.0.0.1" if host in {OPEN, CLOSED} else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look)
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def call(name: str, **given: Any) -> ScriptedReply:
    return ScriptedReply(calls=(ScriptedCall(name=name, arguments=given),))


def session(
    base: BaseImage,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *urls: str,
    network: str = "allowlist",
) -> tuple[PlanReply, list[str]]:
    """A planning session that fetches: its reply, and what each tool said."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    replies = (
        *(call("fetch", url=url, path="/workspace/task/got.bin") for url in urls),
        call(
            "bash",
            command="cd /workspace; sha256sum task/got.bin; echo '[]' > task/plan.json; echo done > done",
        ),
        call("finish", summary="done"),
    )
    (tmp_path / "skill").mkdir()
    (tmp_path / "skill/SKILL.md").write_text("# demo\n")
    skill = Skill(name="demo", slug="demo", description="d", body="# demo\n", digest=digest_of("demo"))
    choice = SandboxChoice(
        "namespace", "skill2env.sandbox:NamespaceEnvironment", {"private_hosts": [f"{OPEN}:{port}"]}
    )
    script = Script(scenarios=(Scenario(when=("Plan the fetching",), replies=replies),))
    with scripted_server(script) as server:
        author = AgentAuthor(
            name="builtin",
            agent=BUILTIN_AGENT,
            model="scripted",
            sandbox=lambda: choice,
            base=lambda: base.reference,
            options={"api_base": server.base_url},
            room=Room(timeout_sec=120, network=network, hosts=(OPEN,) if network == "allowlist" else ()),
        )
        request = PlanRequest(skill, tmp_path / "skill", count=1, prompt="Plan the fetching.", seed=0)
        reply = author.plan(request)
    said = [item["content"] for item in server.requests[-1].body["messages"] if item["role"] == "tool"]
    return reply, said


def test_fetch_goes_through_the_proxy_to_allowed_hosts_only(
    base: BaseImage, port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reply, said = session(
        base, port, monkeypatch, tmp_path,
        f"http://{OPEN}:{port}/data.bin", f"http://{OPEN}:{port}/none", f"http://{CLOSED}:{port}/data.bin",
        f"http://127.0.0.1:{port}/data.bin", "file:///etc/passwd",
    )  # fmt: skip
    assert said[0] == f"{len(DATA)} bytes in /workspace/task/got.bin"
    assert all(text.startswith("Not fetched") for text in said[1:4]), said
    assert "403" in said[2], "the proxy refuses, and says so"
    assert said[4] == "Only http and https addresses can be fetched."
    assert hashlib.sha256(DATA).hexdigest() in said[5], (
        "byte for byte, and a failed download replaces nothing"
    )
    assert Handler.seen == [f"{OPEN}:{port}/data.bin", f"{OPEN}:{port}/none"]
    assert reply.skipped is None
    assert f"{OPEN}:{port} allowed" in reply.hosts
    assert f"{CLOSED}:{port} refused" in reply.hosts


def test_a_public_network_opens_no_private_address(
    base: BaseImage, port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, said = session(
        base, port, monkeypatch, tmp_path,
        f"http://{CLOSED}:{port}/data.bin", f"http://{OPEN}:{port}/data.bin", network="public",
    )  # fmt: skip
    assert said[0].startswith("Not fetched"), "a name that leads to this machine"
    assert said[1] == f"{len(DATA)} bytes in /workspace/task/got.bin"
    assert Handler.seen == [f"{OPEN}:{port}/data.bin"]
