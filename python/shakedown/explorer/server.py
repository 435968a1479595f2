"""The page's server: read-only, on loopback, with a secret in the address.

The standard library's server is sufficient for one user on one machine. Every request must contain the
secret, so other users of the machine have no access. Its Host header must name this host, which prevents
access by other sites' pages through DNS rebinding.
"""

from __future__ import annotations

import functools
import hmac
import json
import re
import secrets
import select
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from shakedown.errors import ShakedownError, os_reason, with_options
from shakedown.explorer import answers
from shakedown.explorer.question import Question, parse_question
from shakedown.reporting.charts.engine import vega
from shakedown.reporting.charts.theme import stylesheet_variables

TIMEOUT_S = 30.0
"""Timeout of a connection without requests."""

MAX_AT_ONCE = 4
"""Limit of concurrent computations; further requests wait."""

PAGE = {"/": ("index.html", "text/html"), "/explorer.css": ("explorer.css", "text/css")}
SCRIPTS = "text/javascript"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
REPORT_POLICY = "sandbox allow-scripts allow-downloads"
"""A results folder is untrusted, so its report has a separate origin."""


class Explorer(ThreadingHTTPServer):
    """The server; `url` is the page's address with its secret."""

    daemon_threads = True

    def __init__(self, port: int = 0, report: Path | None = None, query: str = "") -> None:
        """Starts to listen. ``query`` is the first view, ``report`` a report that the page links to.

        Raises:
            OSError: if the port is in use.
        """
        super().__init__(("127.0.0.1", port), _Handler)
        self.secret = secrets.token_urlsafe(24)
        self.report = report
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.free = threading.BoundedSemaphore(MAX_AT_ONCE)
        self.url = f"http://127.0.0.1:{self.server_port}/?token={self.secret}{query and '&' + query}"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base class's
        """Ignores errors due to closed connections."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    timeout = TIMEOUT_S
    server_version, sys_version = "shakedown", ""

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing, because the terminal is for the command's output."""

    def do_GET(self) -> None:
        path, _, given_query = self.path.partition("?")
        query = parse_qs(given_query, keep_blank_values=True)
        given = self.headers.get("X-Token") or query.pop("token", [""])[-1]
        query.pop("token", None)
        if self.headers.get("Host") not in self.server.hosts:
            self._send(
                HTTPStatus.FORBIDDEN, b"this server answers to its loopback address only", "text/plain"
            )
        elif path in ("/explorer.js", "/vega.js", "/explorer.css"):
            # These files contain no data, and a script tag cannot send the secret in a header.
            self._part(path)
        elif not hmac.compare_digest(given.encode(), self.server.secret.encode()):
            text = b"the address lacks its token; use the one that `shakedown explore` printed"
            self._send(HTTPStatus.FORBIDDEN, text, "text/plain")
        elif path == "/":
            self._part("/")
        elif path == "/report" and self.server.report:
            self._report(self.server.report)
        else:
            self._answer(path, query)

    def _report(self, path: Path) -> None:
        try:
            page = path.read_bytes()
        except OSError as error:
            self._send(HTTPStatus.NOT_FOUND, f"{path}: {os_reason(error)}".encode(), "text/plain")
        else:
            self._send(HTTPStatus.OK, page, "text/html", policy=REPORT_POLICY)

    def _part(self, path: str) -> None:
        if path == "/vega.js":
            self._send(HTTPStatus.OK, _vega(), SCRIPTS)
            return
        name, kind = PAGE.get(path, ("explorer.js", SCRIPTS))
        body = files(__package__).joinpath("page", name).read_bytes()
        if name == "explorer.css":
            # Adds the colours of the report.
            body = stylesheet_variables().encode() + body
        self._send(HTTPStatus.OK, body, kind)

    def _answer(self, path: str, query: dict[str, list[str]]) -> None:
        replications = query.pop("replications", ["1"])[-1]
        coarse = query.pop("coarse", ["false"])[-1] == "true"
        known: dict[str, Callable[[], object]] = {
            "/choices": lambda: answers.choices(report=self.server.report is not None),
            "/predict": lambda: answers.predicted(parse_question(query), coarse=coarse),
            "/simulate": lambda: _simulated(parse_question(query), replications),
        }
        if path not in known:
            self._send(HTTPStatus.NOT_FOUND, b"there is no such page", "text/plain")
            return
        try:
            with self.server.free:
                if self._is_alone():
                    return
                found = known[path]()
        except ShakedownError as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": with_options(str(error), ())})
        else:
            self._json(HTTPStatus.OK, found)

    def _is_alone(self) -> bool:
        """Whether the browser has closed the connection, so that no answer is needed."""
        waiting = select.poll()
        waiting.register(self.connection, select.POLLIN)
        return bool(waiting.poll(0)) and not self.connection.recv(1, socket.MSG_PEEK)

    def _json(self, status: HTTPStatus, found: object) -> None:
        self._send(status, json.dumps(found).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str = POLICY) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(body)


def _simulated(question: Question, replications: str) -> object:
    """A simulation with a limited number of replications."""
    wanted = int(replications) if re.fullmatch("[0-9]{1,9}", replications) else 1
    return answers.simulated(question, max(1, min(wanted, question.replications)))


@functools.cache
def _vega() -> bytes:
    """Vega-Lite and its runtime, from the package that renders the report's figures."""
    return bytes(vega().javascript_bundle("window.vegaEmbed = vegaEmbed;"), "utf-8")
