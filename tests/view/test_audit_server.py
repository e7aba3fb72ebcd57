"""The labelling page as a browser sees it, and what it refuses."""

import http.client
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import urlencode

import pytest

from skill2env.cli.main import run
from skill2env.view.audit_server import Audit, serve
from skill2env.view.labels import LabelFile

ANSWERS = {"shortcut": "no", "faithful": "yes", "unambiguous": "unsure", "note": "<b>fine</b>"}


class Browser:
    """Sends requests to one server."""

    def __init__(self, audit: Audit, port: int) -> None:
        self.audit, self.port = audit, port

    def ask(
        self, method: str, path: str, fields: dict[str, str] | None = None, host: str = ""
    ) -> tuple[int, str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {
            "Host": host or f"127.0.0.1:{self.port}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request(method, path, urlencode(fields) if fields is not None else None, headers)
        response = connection.getresponse()
        answer = (response.status, response.read().decode(), response.headers.get("Location", ""))
        connection.close()
        return answer


@pytest.fixture
def browser(builder: ModuleType, tmp_path: Path) -> Iterator[Browser]:
    tasks = {name: builder.build_task(tmp_path / "set" / name, reference="x") for name in ("one", "two<i>")}
    audit = Audit(tasks, LabelFile(tmp_path / "labels.json", 0))
    server = serve(audit)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Browser(audit, server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


def test_labelling_the_sample(browser: Browser, tmp_path: Path) -> None:
    status, page, _ = browser.ask("GET", "/")
    assert (status, page.count("open</span>")) == (200, 2)
    assert "two&lt;i&gt;" in page
    status, page, _ = browser.ask("GET", "/task/0")
    (token,) = re.findall(r'name="token" value="([^"]+)"', page)
    assert "Can full reward be had without doing the work?" in page
    assert browser.ask("POST", "/task/0", {**ANSWERS, "token": token}) == (303, "", "/task/1")
    assert browser.ask("POST", "/task/1", {**ANSWERS, "token": token})[2] == "/"
    _, page, _ = browser.ask("GET", "/")
    assert "2 of 2 tasks are labelled" in page
    assert "&lt;b&gt;fine&lt;/b&gt;" in browser.ask("GET", "/task/0")[1]
    assert LabelFile(tmp_path / "labels.json", 0).current(browser.audit.tasks).keys() == {"one", "two<i>"}


def test_every_question_wants_an_answer(browser: Browser) -> None:
    fields = {**ANSWERS, "token": browser.audit.token, "faithful": "perhaps"}
    status, page, _ = browser.ask("POST", "/task/0", fields)
    assert status == 422
    assert "Answer every question" in page


@pytest.mark.parametrize(
    ("method", "path", "fields", "host", "status"),
    [
        ("GET", "/task/2", None, "", 404),
        ("GET", "/task/-1", None, "", 404),
        ("GET", "/../../etc/passwd", None, "", 404),
        ("GET", "/", None, "evil.example", 403),
        ("POST", "/task/0", {**ANSWERS, "token": "guessed"}, "", 403),
        ("POST", "/task/0", ANSWERS, "", 403),
        ("POST", "/task/0", None, "", 403),
        ("POST", "/task/0", {"note": "x" * 70_000}, "", 403),
        ("PUT", "/task/0", {}, "", 501),
    ],
)
def test_what_is_refused(
    browser: Browser, method: str, path: str, fields: dict[str, str] | None, host: str, status: int
) -> None:
    assert browser.ask(method, path, fields, host)[0] == status


def test_the_rates_on_the_command_line(
    builder: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder.build_task(tmp_path / "set" / "one", reference="x")
    call = ["audit", str(tmp_path / "set"), "--labels", str(tmp_path / "l.json"), "--report"]
    assert run(call) == 0
    assert "0 of 1 tasks are labelled" in capsys.readouterr().out
    assert run([*call, "--json"]) == 0
    assert '"labelled": 0' in capsys.readouterr().out
    assert run(["audit", str(tmp_path / "nowhere"), "--report"]) == 2
