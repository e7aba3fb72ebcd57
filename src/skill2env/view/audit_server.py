"""The page on which a person labels a sample: one server for one person, on this machine only.

Nothing but this machine can reach it, and no page of somebody else can post to it: the host name must be ours, and each
form carries a token of this run. Task content is shown as `verify.report` shows it.
"""

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, cast
from urllib.parse import parse_qs

from skill2env.errors import InfraError
from skill2env.records import meaning
from skill2env.verify.cache import content_of
from skill2env.verify.report.page import environment
from skill2env.verify.report.panes import panes_of
from skill2env.view.labels import Answer, Label, LabelFile, Question, rates

HOST = "127.0.0.1"
_BODY_LIMIT = 64 * 1024
_NOTE_LIMIT = 4000


class Audit:
    """What the page shows and keeps."""

    def __init__(
        self, tasks: Mapping[str, Path], labels: LabelFile, skills: Mapping[str, str] | None = None
    ) -> None:
        """Remember what is asked.

        Args:
            tasks: the sample, name to folder, in the order of asking.
            labels: where answers go.
            skills: digest of a skill -> its text.
        """
        self.tasks = dict(tasks)
        self.token = secrets.token_urlsafe(24)
        self._names = list(tasks)
        self._labels = labels
        self._skills = dict(skills or {})
        self._lock = Lock()

    def index(self) -> str:
        """The list of the sample with the rates so far."""
        with self._lock:
            done = self._labels.current(self.tasks)
        return self._render("audit_index", names=self._names, done=done, rates=rates(done))

    def page(self, number: int, problem: str = "") -> str:
        """The page of one task.

        Raises:
            IndexError: there is no such task.
        """
        name = self._names[number]
        task = self.tasks[name]
        with self._lock:
            label = self._labels.of(name, task)
        return self._render(
            "audit_task",
            number=number,
            name=name,
            label=label,
            problem=problem,
            panes=panes_of(task, self._skills),
        )

    def answer(self, number: int, fields: Mapping[str, str]) -> str:
        """Take the answers of a form; returns what is wrong with them, empty when they were kept.

        Raises:
            IndexError: there is no such task.
            InfraError: boundary ``storage``.
        """
        name = self._names[number]
        given = {question: fields.get(question.value, "") for question in Question}
        if any(value not in Answer for value in given.values()):
            return "Answer every question; unsure is an answer."
        answers = {question: Answer(value) for question, value in given.items()}
        label = Label(
            content=content_of(self.tasks[name]), answers=answers, note=fields.get("note", "")[:_NOTE_LIMIT]
        )
        with self._lock:
            self._labels.add(name, label)
        return ""

    def following(self, number: int) -> int | None:
        """The next task without a label, from `number` on and around; None when all have one."""
        with self._lock:
            done = self._labels.current(self.tasks)
        order = [*range(number, len(self._names)), *range(number)]
        return next((at for at in order if self._names[at] not in done), None)

    def _render(self, template: str, **variables: Any) -> str:
        questions = {question: meaning(question) for question in Question}
        return (
            environment("skill2env.view")
            .get_template(f"{template}.html.j2")
            .render(
                token=self.token,
                questions=questions,
                answers=list(Answer),
                total=len(self._names),
                **variables,
            )
        )


def serve(audit: Audit, port: int = 0) -> ThreadingHTTPServer:
    """A server for the audit, bound and not yet running; `server_port` says where.

    Args:
        audit: what it shows.
        port: 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """

    class Handler(_Handler):
        pass

    Handler.audit = audit
    server = ThreadingHTTPServer((HOST, port), Handler)
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    """Three kinds of requests: the list, a task, an answer."""

    audit: Audit
    server_version = "skill2env"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Show the list or a task."""
        if not self._is_ours():
            return
        number = self._number()
        if self.path == "/":
            self._send(self.audit.index())
        elif number is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._send(self.audit.page(number))

    def do_POST(self) -> None:
        """Take an answer and go on to the next task."""
        if not self._is_ours():
            return
        number, fields = self._number(), self._fields()
        if fields is None or not secrets.compare_digest(
            fields.get("token", "").encode(), self.audit.token.encode()
        ):
            self._refuse(HTTPStatus.FORBIDDEN)
        elif number is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._answer(number, fields)

    def _answer(self, number: int, fields: Mapping[str, str]) -> None:
        try:
            problem = self.audit.answer(number, fields)
        except InfraError as error:
            problem = f"The answer could not be kept: {error.message}"
        if problem:
            self._send(self.audit.page(number, problem), HTTPStatus.UNPROCESSABLE_ENTITY)
            return
        following = self.audit.following(number + 1)
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", "/" if following is None else f"/task/{following}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _is_ours(self) -> bool:
        """A name that was made to point here (DNS rebinding) is not the name of this server."""
        port = cast("ThreadingHTTPServer", self.server).server_port
        if self.headers.get("Host") in (f"{HOST}:{port}", f"localhost:{port}"):
            return True
        self._refuse(HTTPStatus.FORBIDDEN)
        return False

    def _number(self) -> int | None:
        text = self.path.removeprefix("/task/")
        fits = text != self.path and text.isascii() and text.isdigit() and len(text) < 9
        return int(text) if fits and int(text) < len(self.audit.tasks) else None

    def _fields(self) -> dict[str, str] | None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > _BODY_LIMIT:
            return None
        body = self.rfile.read(int(length)).decode("utf-8", errors="replace")
        return {name: values[-1] for name, values in parse_qs(body, max_num_fields=20).items()}

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(status.phrase, status, kind="text/plain")

    def _send(self, text: str, status: HTTPStatus = HTTPStatus.OK, kind: str = "text/html") -> None:
        data = text.encode(errors="backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing for each request."""
