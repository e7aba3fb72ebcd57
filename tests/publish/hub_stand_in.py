"""A Hugging Face hub of our own for tests: one process, one thread a request, repositories in memory.

Speaks the few calls that pushing and pulling a dataset repository need, and can be told to fail.
"""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StandIn(ThreadingHTTPServer):
    """``repos``: name -> path -> bytes. ``fail``: status to answer every request with."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, dict[str, bytes]] = {}
        self.fail = 0
        self.commits = 0
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> "StandIn":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        self.server.seen.append(format % args)

    def answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str) -> None:
        self.answer({"error": code}, status, {"X-Error-Code": code, "X-Error-Message": code})

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_POST(self) -> None:
        body = self.body()
        if self.server.fail:
            return self.refuse(self.server.fail, "Told")
        parts = self.path.strip("/").split("/")
        if parts[:3] == ["api", "repos", "create"]:
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.server.repos.setdefault(name, {})
            return self.answer({"url": f"{self.server.url}/datasets/{name}"})
        if parts[1] == "validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        repo = self.server.repos["/".join(parts[2:4])]
        if parts[4] == "preupload":
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                for f in json.loads(body)["files"]
            ]
            return self.answer({"files": files})
        for line in body.splitlines():
            step = json.loads(line)
            if step["key"] == "file":
                repo[step["value"]["path"]] = base64.b64decode(step["value"]["content"])
            elif step["key"] == "deletedFile":
                del repo[step["value"]["path"]]
        self.server.commits += 1
        commit = f"{self.server.commits:040x}"
        return self.answer(
            {
                "commitUrl": f"{self.server.url}/datasets/{'/'.join(parts[2:4])}/commit/{commit}",
                "commitOid": commit,
                "success": True,
            }
        )

    def do_GET(self) -> None:
        if self.server.fail:
            return self.refuse(self.server.fail, "Told")
        path, _, _ = self.path.partition("?")
        parts = path.strip("/").split("/")
        api = parts[0] == "api"
        name = "/".join(parts[2:4] if api else parts[1:3])
        if name not in self.server.repos:
            return self.refuse(404, "RepoNotFound")
        repo = self.server.repos[name]
        commit = f"{self.server.commits:040x}"
        if api and parts[4:5] == ["tree"]:
            return self.answer(
                [{"type": "file", "path": p, "size": len(d), "oid": oid(d)} for p, d in repo.items()]
            )
        if api:
            if "absent" in parts:
                return self.refuse(404, "RevisionNotFound")
            siblings = [{"rfilename": p, "size": len(d), "blobId": oid(d)} for p, d in repo.items()]
            return self.answer(
                {"id": name, "sha": commit, "siblings": siblings, "private": False, "tags": []}
            )
        data = repo["/".join(parts[5:])]
        return self.answer(data, headers={"ETag": f'"{oid(data)}"', "X-Repo-Commit": commit})

    do_HEAD = do_GET  # noqa: N815
