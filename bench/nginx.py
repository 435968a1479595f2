"""One nginx process on the first core, and what the kernel and nginx itself say that it did."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import UnavailableError

CONFIGURATION = """
worker_processes 1;
master_process off;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_ecdh_curve X25519;
  ssl_session_tickets on;
  server {{ listen 127.0.0.1:{status}; location / {{ stub_status; }} }}
  {servers}
}}
"""
SERVER = """
server {{
  {listen}
  ssl_certificate {folder}/{key}/chain.pem;
  ssl_certificate_key {folder}/{key}/key.pem;
  location / {{ return 200; }} }}
"""


@dataclass(frozen=True)
class Endpoint:
    """Where nginx serves a kind of key, and the folder with its certificate and the root."""

    port: int
    folder: Path


@dataclass(frozen=True)
class Reading:
    """What nginx has done so far: at a wall-clock time, its CPU time, its connections."""

    at_s: float
    ran_s: float
    handled: int


@dataclass(frozen=True)
class Server:
    """A running nginx: its process, where it tells of its connections, and where it serves each key."""

    pid: int
    status_port: int
    endpoints: dict[str, Endpoint]

    def ran_s(self) -> float:
        """Its CPU time as the scheduler counts it."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) * 1e-9

    def slept(self) -> int:
        """How often it has waited of its own accord."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)
        return int(line)

    def reading(self) -> Reading:
        """What it has done so far; asking it is a connection, too, and the only one in the clear."""
        connection = http.client.HTTPConnection("127.0.0.1", self.status_port, timeout=10)
        before_s = time.monotonic()
        try:
            connection.request("GET", "/")
            text = connection.getresponse().read().decode()
        except OSError as error:
            raise UnavailableError(f"nginx does not tell of its connections: {error}") from error
        finally:
            connection.close()
        at_s = (before_s + time.monotonic()) / 2.0
        found = re.search(r"^\s*\d+ (\d+) \d+\s*$", text, re.M)
        if found is None:
            raise UnavailableError(f"nginx does not tell of its connections: {text[:80]!r}")
        return Reading(at_s, self.ran_s(), int(found[1]))


@contextlib.contextmanager
def serving(keys: Sequence[str], addresses: Sequence[str]) -> Iterator[Server]:
    """One nginx process on the first core that serves kinds of keys on addresses.

    Raises `UnavailableError` where a tool is missing or nginx does not start.
    """
    for tool in ("nginx", "openssl"):  # whose speed is asked for
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        endpoints = {}
        servers = ""
        for key in keys:
            _certificate(folder / key, key)
            endpoints[key] = Endpoint(_free_port(addresses[0]), folder / key)
            listen = " ".join(f"listen {address}:{endpoints[key].port} ssl;" for address in addresses)
            servers += SERVER.format(listen=listen, folder=folder, key=key)
        status = _free_port("127.0.0.1")
        path = folder / "nginx.conf"
        path.write_text(CONFIGURATION.format(folder=folder, servers=servers, status=status), encoding="utf-8")
        process = subprocess.Popen(
            ["nginx", "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")],
            preexec_fn=lambda: pin(0),
        )
        try:
            places = [(addresses[0], one.port) for one in endpoints.values()]
            _reachable(process, [*places, ("127.0.0.1", status)], folder / "error.log")
            yield Server(process.pid, status, endpoints)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def pin(core: int) -> None:
    """This process on one of its cores."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)]})


def _free_port(address: str) -> int:
    with socket.create_server((address, 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _certificate(folder: Path, key: str) -> None:
    """One that a root of its own kind has issued, as the suites have it; the root is not sent."""
    from shakedown import native

    folder.mkdir()
    native.certs(
        {
            "do": "make",
            "now": int(time.time()),
            "keys": key,
            "out": folder,
            "side": "server",
            "profile": "lab",
        }
    )


def _reachable(process: subprocess.Popen[bytes], places: Sequence[tuple[str, int]], log: Path) -> None:
    for place in places:
        for _ in range(100):
            if process.poll() is not None:
                raise UnavailableError(f"nginx ended: {log.read_text(errors='replace').strip()[:200]}")
            with contextlib.suppress(OSError), socket.create_connection(place, 1):
                break
            time.sleep(0.05)
        else:
            raise UnavailableError("nginx does not answer")
