"""Servers for tests: the real command in a separate process, and its clients."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shakedown.schema.base import decode
from shakedown.schema.serving import Serving

SUITE = "tls1.3/x25519/p256/server"
TIMEOUT_S = 120.0
"""Timeout of an answer; a busy machine may need long."""
LISTENING = re.compile(r"listening on (?P<host>[^ ]+):(?P<port>\d+) \((?P<about>[^)]*)\)(?P<rest>.*)")


class Running:
    """A server's process."""

    def __init__(self, process: subprocess.Popen[str], line: str) -> None:
        found = LISTENING.fullmatch(line.strip())
        assert found, line
        self.process = process
        self.line = line.strip()
        self.host, self.port = found["host"], int(found["port"])
        self.rest = found["rest"]
        self.summary: dict[str, Any] = {}

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def target(self) -> str:
        return f"{self.host}:{self.port}"

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def stop(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """Stops the server and returns its counts."""
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, errors
        assert "Traceback" not in errors, errors
        assert "panicked" not in errors, errors
        decode(output, list[Serving])
        (self.summary,) = json.loads(output)
        return self.summary


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "shakedown", "serve", *map(str, arguments)]


@contextmanager
def serving(*arguments: object, prefix: tuple[str, ...] = (), **options: Any) -> Iterator[Running]:
    """`serve ARGUMENTS --listen 127.0.0.1:0 --json`; stopped at the end of the block, if it still runs."""
    with subprocess.Popen(
        [*prefix, *command(*arguments, "--listen", "127.0.0.1:0", "--json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
        **options,
    ) as process:
        try:
            line = process.stderr.readline()
            if not line.startswith("listening on"):
                raise AssertionError(line + process.communicate(timeout=300)[1])
            running = Running(process, line)
            yield running
            if process.poll() is None:
                running.stop()
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """Lets this process open `count` files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"{count} descriptors are more than this system allows")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def client_context(**options: Any) -> ssl.SSLContext:
    """A new client context of Python's `ssl`, without old sessions, that accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in options.items():
        setattr(context, name, value)
    return context


ANY = client_context()


def connect(
    server: Running, context: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None
) -> ssl.SSLSocket:
    plain = socket.create_connection(server.address, timeout=TIMEOUT_S)
    # Else a request waits for the acknowledgement of the handshake's last flight.
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return (context or ANY).wrap_socket(plain, session=session)


def ask(server: Running, context: ssl.SSLContext | None = None) -> bytes:
    """Sends one HTTP/1.0 request and returns the whole answer."""
    with connect(server, context) as stream:
        stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return read_all(stream)


def read_all(stream: ssl.SSLSocket) -> bytes:
    parts = []
    while part := stream.recv(65536):
        parts.append(part)
    return b"".join(parts)
