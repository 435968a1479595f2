"""The rate at which one nginx worker saturates: predicted with a profile of this machine, and measured.

nginx runs one process on one core; some `openssl s_time` on another make handshakes and close each connection
at once, so that what nginx does is handshakes and connections alone. Its saturation rate is the number of
connections by the time that the kernel says nginx ran. The profile is of the OpenSSL that nginx is linked
with, and is measured in between, of suites other than those predicted and without nginx: primitives,
handshakes in memory, connections to a server of ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Benchmark, Pair, UnavailableError

if TYPE_CHECKING:
    from shakedown.profiles.device import Device

ROUNDS = 5
SECONDS = 4
CLIENTS = 4
"""s_time processes: with one alone nginx would sleep between any two flights."""
EACH = 5
"""Handshakes of each suite in a round of the profile: of many short rounds some are undisturbed."""
TOLERANCE = 1.15


@dataclass(frozen=True)
class Case:
    """What s_time asks for, and the suite and tickets that nginx then serves."""

    name: str
    suite: str
    tickets: int
    key: str
    arguments: tuple[str, ...]


CASES = (
    Case("P-256, full", "tls1.3/x25519/p256/server", 2, "p256", ("-new", "-tls1_3")),
    Case("RSA-2048, full", "tls1.3/x25519/rsa2048/server", 2, "rsa2048", ("-new", "-tls1_3")),
    Case(
        "P-256, resumed",
        "tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket/aes256-gcm",
        0,
        "p256",
        ("-reuse", "-tls1_2"),
    ),
    Case(
        "RSA-2048, resumed",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server/ticket/aes256-gcm",
        0,
        "rsa2048",
        ("-reuse", "-tls1_2"),
    ),
)


def profile(seconds: float = 0.1, rounds: int = 4) -> Device:
    """A profile of this machine with the system's OpenSSL, of suites that are not predicted."""
    from shakedown import core
    from shakedown.pricing.connection_cost import connection_cost
    from shakedown.pricing.neighbours import busy_neighbours
    from shakedown.pricing.other_openssl import measure_other
    from shakedown.pricing.this_machine import measure_suites, profile_of, suites
    from shakedown.profiles import load_device

    predicted = {core.canonical(case.suite) for case in CASES}
    names = [one for one in suites() if one.startswith(("tls1.2/", "tls1.3/")) and one not in predicted]
    names = [one for one in names if "mldsa" not in one and "dh_anon" not in one]
    connection = connection_cost()
    # s_time keeps the other core busy, too.
    with busy_neighbours(), tempfile.TemporaryDirectory() as folder:
        measured = measure_suites(names, rounds=rounds, repeat=EACH)
        timed = core.primitives(seconds=seconds)
        path = Path(folder) / "this-machine.toml"
        path.write_text(profile_of("this-machine", timed, measured, connection), encoding="utf-8")
        other = measure_other("openssl", load_device(str(path)))
        text = profile_of("this-machine", timed, measured, connection, other=other)
        path.write_text(text, encoding="utf-8")
        return load_device(str(path))


@dataclass(frozen=True)
class Predicted:
    """What one worker takes for a handshake and for its connection, in seconds."""

    handshake_s: float
    connection_s: float

    @property
    def per_s(self) -> float:
        """The rate at which it saturates."""
        return 1.0 / (self.handshake_s + self.connection_s)


def predict(case: Case, device: Device) -> Predicted:
    """The worker's time for a handshake, as recorded here, and its connection."""
    from shakedown import core
    from shakedown.pricing.prices import price
    from shakedown.pricing.trace import parse_trace
    from shakedown.scenario import HandshakeId, Options
    from shakedown.schema import builtins

    options = Options(repeat=3, tickets=case.tickets) if case.tickets else Options(repeat=3)
    recorded = core.measure(HandshakeId(suite=core.canonical(case.suite)), options)
    priced = price(parse_trace(builtins(recorded), case.suite), "server", device)
    if priced.unpriced or priced.connection is None:
        raise UnavailableError(f"{case.name}: {priced.unpriced}")
    return Predicted(priced.total.mean, priced.connection.mean)


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
  {servers}
}}
"""
SERVER = """
server {{
  listen 127.0.0.1:{port} ssl;
  ssl_certificate {folder}/{key}.pem;
  ssl_certificate_key {folder}/{key}.key;
  location / {{ return 200; }} }}
"""


@contextlib.contextmanager
def nginx() -> Iterator[tuple[int, dict[str, int]]]:
    """One nginx process on the first core: its number, and the port for each kind of key."""
    for tool in ("nginx", "openssl"):
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ports = {}
        servers = ""
        for key, how in (("p256", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]), ("rsa2048", ["rsa:2048"])):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", *how, "-nodes", "-days", "2", "-subj", "/CN=localhost",
                 "-keyout", folder / f"{key}.key", "-out", folder / f"{key}.pem"],
                check=True, capture_output=True,
            )  # fmt: skip
            with socket.create_server(("127.0.0.1", 0)) as free:
                ports[key] = free.getsockname()[1]
            servers += SERVER.format(port=ports[key], folder=folder, key=key)
        path = folder / "nginx.conf"
        path.write_text(CONFIGURATION.format(folder=folder, servers=servers), encoding="utf-8")
        process = subprocess.Popen(
            ["nginx", "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")],
            preexec_fn=lambda: _pin(0),
        )
        try:
            _reachable(process, ports.values(), folder / "error.log")
            yield process.pid, ports
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def _pin(core: int) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)]})


def _reachable(process: subprocess.Popen[bytes], ports: object, log: Path) -> None:
    for port in list(ports):  # type: ignore[call-overload]
        for _ in range(100):
            if process.poll() is not None:
                raise UnavailableError(f"nginx ended: {log.read_text(errors='replace').strip()[:200]}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        else:
            raise UnavailableError("nginx does not answer")


def measured_per_s(case: Case, pid: int, port: int) -> float:
    """Handshakes by nginx' own CPU time while some s_time made them."""
    command = ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", *case.arguments, "-time", str(SECONDS)]
    before = _ran_s(pid)
    clients = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=lambda: _pin(1)
        )
        for _ in range(CLIENTS)
    ]
    printed = [client.communicate()[0] for client in clients]
    ran_s = _ran_s(pid) - before
    completed = 0
    for text in printed:
        counts = re.findall(r"(\d+) connections in \d+ real seconds", text)
        if not counts:
            raise UnavailableError(f"s_time: {text.strip()[-200:]}")
        completed += int(counts[-1])
    return completed / ran_s


def _ran_s(pid: int) -> float:
    """CPU time of a process as the scheduler counts it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9


def rates(rounds: int = ROUNDS) -> list[tuple[Case, Predicted, float]]:
    """Every case in every round: what is predicted, and the rate that is measured."""
    found = []
    with nginx() as (pid, ports):
        device = profile()
        predicted = {case: predict(case, device) for case in CASES}
        for _ in range(rounds):
            found += [(case, predicted[case], measured_per_s(case, pid, ports[case.key])) for case in CASES]
    return found


def pairs() -> Sequence[Pair]:
    """The greater of each two rates, and the lesser: their ratio is how far the prediction is off."""
    return [(max(ours.per_s, theirs), min(ours.per_s, theirs)) for _, ours, theirs in rates()]


BENCHMARKS = [
    Benchmark(
        name="capacity-nginx",
        what="saturation rate of one nginx worker, predicted and measured: the greater over the lesser",
        peer_name="nginx, openssl s_time",
        better="lower",
        target=TOLERANCE,
        pairs=pairs,
    )
]


if __name__ == "__main__":
    for case, ours, theirs in rates(2):
        parts = f"{ours.handshake_s * 1e6:.0f} + {ours.connection_s * 1e6:.0f} us"
        sys.stdout.write(
            f"{case.name}: predicted {ours.per_s:,.0f}/s ({parts}), measured {theirs:,.0f}/s "
            f"({1e6 / theirs:.0f} us), {ours.per_s / theirs - 1.0:+.1%}\n"
        )
