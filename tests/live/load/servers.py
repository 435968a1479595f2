"""Servers of other projects, on free ports of the loopback."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

START_TIMEOUT_S = 300.0
LOAD_TIMEOUT_S = 300.0


def free_port() -> int:
    """A port without a listener; another caller may get the same one, so use it at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(openssl: str, folder: Path) -> tuple[Path, Path]:
    """A self-signed P-256 certificate of `localhost`, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    request = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(key), "-out", str(certificate), "-days", "30", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*request, *files, *names], check=True, capture_output=True)
    return certificate, key


@dataclass
class Server:
    """A process that listens, and the log that it writes."""

    command: list[str]
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise AssertionError(f"{self.command[0]} does not listen: {self.log.read_text()}")

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def stop(self) -> None:
        if self.process is not None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


def requests(folder: Path) -> int:
    """The number of requests that a web server has answered, by its log."""
    log = folder / "access.log"
    return len(log.read_bytes().splitlines()) if log.exists() else 0


def wait_for_requests(folder: Path, count: int = 50) -> None:
    """Waits until a web server has answered `count` requests, by its log."""
    deadline = time.monotonic() + LOAD_TIMEOUT_S
    while time.monotonic() < deadline:
        if requests(folder) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"no requests come in: {folder}")


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def s_server(openssl: str, folder: Path, pair: tuple[Path, Path], *options: str) -> Server:
    """OpenSSL's test server, which answers `GET /…` with a page of its state."""
    port = free_port()
    command = [openssl, "s_server", "-accept", f"127.0.0.1:{port}", "-www", "-quiet", *options]
    return Server(
        [*command, "-cert", str(pair[0]), "-key", str(pair[1])], port, folder / f"s_server-{port}.log"
    )


@dataclass
class Counts:
    """What OpenSSL's test server counted."""

    finished: int
    hits: int


def counts(openssl: str, port: int) -> Counts:
    """Asks the test server for its statistics, over a connection of our own that counts as one."""
    asked = subprocess.run(
        [openssl, "s_client", "-connect", f"127.0.0.1:{port}", "-quiet"],
        input=b"GET / HTTP/1.0\r\n\r\n",
        capture_output=True,
        timeout=300,
    )
    page = asked.stdout.decode(errors="replace")

    def number(words: str) -> int:
        found = re.search(rf"(\d+) {words}", page)
        assert found is not None, page
        return int(found[1])

    return Counts(finished=number(r"server accepts that finished"), hits=number("session cache hits"))


NGINX = """
daemon off;
worker_processes 1;
error_log {folder}/error.log;
pid {folder}/nginx.pid;
events {{ worker_connections 2000; }}
http {{
  log_format tls '$ssl_session_reused $ssl_protocol';
  access_log {folder}/access.log tls;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port} ssl backlog=4096;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.2 TLSv1.3;
    {settings}
    location / {{ return 200 "hello"; }}
  }}
}}
"""


def nginx(program: str, folder: Path, pair: tuple[Path, Path], settings: str) -> Server:
    """A web server of one worker; `access.log` has a line a request: `r` where the session was resumed."""
    port = free_port()
    folder.mkdir(exist_ok=True)
    config = folder / "nginx.conf"
    config.write_text(
        NGINX.format(folder=folder, port=port, certificate=pair[0], key=pair[1], settings=settings)
    )
    return Server(
        [program, "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")], port, folder / "log"
    )
