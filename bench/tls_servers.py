"""Third-party servers on the first core, with one worker thread: nginx, HAProxy, Go's crypto/tls.

nginx and HAProxy run with the system's OpenSSL, or with a newer one from the wheel of psycopg, whose
libraries replace the system's.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import supplied
from bench.harness import UnavailableError, need, output
from shakedown.native.processors import processors

NGINX = """
worker_processes 1;
master_process off;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 4000; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_ecdh_curve {groups};
  {settings}
  {places}
}}
"""
NGINX_PLACE = """
  server {{ {listen} ssl_certificate {files}/chain.pem; ssl_certificate_key {files}/key.pem; {ids}
    location / {{ return 200; }} }}
"""
NGINX_IDS = "ssl_session_tickets off; ssl_session_cache shared:SSL:10m;"
HAPROXY = """
global
  nbthread 1
  ssl-default-bind-curves {groups}
defaults
  mode http
  timeout client 10s
  timeout connect 10s
  timeout server 10s
{places}
"""
HAPROXY_PLACE = """
frontend {name}
  bind {addresses} ssl crt {files}/both.pem {ids}
  http-request return status 200
"""


@dataclass(frozen=True)
class Place:
    """Where a server serves a kind of key, whether it resumes by session ID there, and its certificate."""

    key: str
    ids: bool
    port: int
    files: Path

    def addresses(self, hosts: Sequence[str]) -> list[str]:
        return [f"{host}:{self.port}" for host in hosts]


@dataclass(frozen=True)
class Server:
    """A running server: its software's profile, its process, and its places by key and kind of resumption."""

    software: str
    pid: int
    places: dict[tuple[str, bool], Place]

    def slept(self) -> int:
        """The number of voluntary context switches of its first thread."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)
        return int(line)


Command = Callable[..., list[str]]
GROUPS, NEWER_GROUPS = "X25519", "X25519MLKEM768:X25519"


def _nginx(
    folder: Path, places: Sequence[Place], hosts: Sequence[str], settings: str = "", groups: str = GROUPS
) -> list[str]:
    text = "".join(
        NGINX_PLACE.format(
            listen=" ".join(f"listen {address} ssl backlog=4096;" for address in one.addresses(hosts)),
            files=one.files,
            ids=NGINX_IDS if one.ids else "",
        )
        for one in places
    )
    path = folder / "nginx.conf"
    path.write_text(
        NGINX.format(folder=folder, places=text, settings=settings, groups=groups), encoding="utf-8"
    )
    return ["nginx", "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")]


def _haproxy(folder: Path, places: Sequence[Place], hosts: Sequence[str], groups: str = GROUPS) -> list[str]:
    text = ""
    for number, one in enumerate(places):
        both = (one.files / "chain.pem").read_text() + (one.files / "key.pem").read_text()
        (one.files / "both.pem").write_text(both)
        text += HAPROXY_PLACE.format(
            name=f"place{number}",
            addresses=",".join(one.addresses(hosts)),
            files=one.files,
            ids="no-tls-tickets" if one.ids else "",
        )
    path = folder / "haproxy.cfg"
    path.write_text(HAPROXY.format(places=text, groups=groups), encoding="utf-8")
    return ["haproxy", "-db", "-q", "-f", str(path)]


def _go(folder: Path, places: Sequence[Place], hosts: Sequence[str]) -> list[str]:
    source = Path(__file__).with_suffix("").with_name("tls_server.go")
    built = folder / "server"
    output("go", "build", "-o", built, source)
    return [str(built), *(f"{address}={one.files}" for one in places for address in one.addresses(hosts))]


SERVERS: dict[str, Command] = {"nginx": _nginx, "haproxy": _haproxy, "go": _go}
"""Commands by the name of the software's profile, which is also the program's name."""


@contextlib.contextmanager
def serving(
    software: str,
    kinds: Sequence[tuple[str, bool]],
    hosts: Sequence[str] = ("127.0.0.1",),
    *,
    newer: bool = False,
    **settings: str,
) -> Iterator[Server]:
    """A server of kinds of keys, each resumed by ticket or by session ID, on addresses of loopback.

    `newer`: with the newer OpenSSL; `settings` are further lines of nginx's configuration. Raises
    `UnavailableError` if it is not installed or does not start.
    """
    for tool in (software, "openssl"):  # for `openssl speed`
        need(tool)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as held:
        folder = Path(name)
        places = []
        for key, ids in kinds:
            files = folder / f"{key}-{ids}"
            supplied.chain(files, key, profile="lab")
            # Sockets stay open until all places have a port, so that no port is used twice.
            place = held.enter_context(socket.create_server((hosts[0], 0)))
            places.append(Place(key, ids, place.getsockname()[1], files))
        held.close()
        environment = dict(os.environ)
        if newer:
            environment["LD_LIBRARY_PATH"] = str(_newer_openssl(folder / "libraries"))
            settings["groups"] = NEWER_GROUPS
        command = SERVERS[software](folder, places, hosts, **settings)
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(
                command,
                stderr=said,
                stdout=said,
                preexec_fn=lambda: os.sched_setaffinity(0, core(0)),
                env=environment,
            )
        try:
            _reachable(process, [(hosts[0], one.port) for one in places], folder / "said")
            yield Server(software, process.pid, {(one.key, one.ids): one for one in places})
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def _newer_openssl(folder: Path) -> Path:
    """A folder with the wheel's libraries under their usual names and their own."""
    try:
        files = distribution("psycopg-binary").files or ()
    except PackageNotFoundError as error:
        raise UnavailableError("no newer OpenSSL; pip install psycopg-binary brings one") from error
    folder.mkdir()
    for one in files:
        if match := re.match(r"(libssl|libcrypto)-\w+\.so\.3$", one.name):
            for name in (one.name, f"{match[1]}.so.3"):
                (folder / name).symlink_to(Path(one.locate()).resolve())
    return folder


def core(number: int) -> list[int]:
    """One of the cores that this process may use."""
    allowed = processors()
    return [allowed[number % len(allowed)]]


def _reachable(process: subprocess.Popen[bytes], places: Sequence[tuple[str, int]], log: Path) -> None:
    for place in places:
        for _ in range(200):
            if process.poll() is not None:
                raise UnavailableError(f"the server ended: {log.read_text(errors='replace').strip()[:200]}")
            with contextlib.suppress(OSError), socket.create_connection(place, 1):
                break
            time.sleep(0.05)
        else:
            raise UnavailableError("the server does not answer")
