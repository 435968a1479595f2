"""The rate at which one nginx worker saturates: predicted with a profile of this machine, and measured.

nginx runs one process on one core; our load generator, on another, makes handshakes in a closed loop and
closes each connection at once, so that what nginx does is handshakes and connections alone. Its saturation
rate is the number of connections by the time that the kernel says nginx ran. The profile is of the OpenSSL
that nginx is linked with, and is measured in between, of suites other than those predicted and without nginx:
primitives, handshakes in memory, connections to a server of ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Benchmark, Pair, UnavailableError

if TYPE_CHECKING:
    from shakedown.profiles.device import Device

ROUNDS = 16
"""Half of them before handshakes in memory are measured, and half after them, each in turn with connections
to a server of ours. Of each case the faster half counts: a machine that others share is slower at times, and
the profile is of its usual speed, too.
"""
SECONDS = 0.6
BEGINNING_S = 0.02
CLIENTS = 16
"""Connections under way: with few nginx would sleep between any two flights."""
MAX_SLEEPS = 0.2
"""A worker that sleeps more often than so, by connection, is not saturated: being woken costs it half of a
connection more.
"""
EACH = 5
"""Handshakes of each suite in a round of the profile: of many short rounds some are undisturbed."""
TOLERANCE = 1.15


@dataclass(frozen=True)
class Case:
    """What the clients ask for, and the tickets that nginx then issues."""

    name: str
    suite: str
    tickets: int
    key: str
    client_stack: str
    """Of those that there are, the one whose client takes less, which keeps nginx busy."""


CASES = (
    Case("P-256, full", "tls1.3/x25519/p256/server/aes256-gcm", 2, "p256", "rustls"),
    Case("RSA-2048, full", "tls1.3/x25519/rsa2048/server/aes256-gcm", 2, "rsa2048", "rustls"),
    Case("P-256, resumed", "tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket/aes256-gcm", 0, "p256", "rustls"),
    Case(
        "RSA-2048, resumed",
        "tls1.2/ecdhe_rsa+x25519/rsa2048/server/ticket/aes256-gcm",
        0,
        "rsa2048",
        "openssl",
    ),
)


class Profile:
    """A profile of this machine with the system's OpenSSL, of suites that are not predicted."""

    def __init__(self) -> None:
        """Nothing is measured yet."""
        from shakedown.pricing.connection_cost import PLANS, Served

        self._served: list[list[Served]] = [[] for _ in PLANS]
        self._text: Callable[[dict[str, float]], str] | None = None

    def serve(self) -> None:
        """A round of connections to a server of ours, between two of connections to nginx."""
        from shakedown.pricing.connection_cost import PLANS, SECONDS, served

        for found, plan in zip(self._served, PLANS, strict=True):
            found.append(served(plan, SECONDS))

    def handshakes(self, seconds: float = 0.1, rounds: int = 4) -> None:
        """Primitives and handshakes in memory, ours and the other OpenSSL's."""
        from shakedown import core
        from shakedown.pricing.neighbours import busy_neighbours
        from shakedown.pricing.other_openssl import measure_other
        from shakedown.pricing.this_machine import measure_suites, profile_of, suites

        predicted = {core.canonical(case.suite) for case in CASES}
        names = [one for one in suites() if one.startswith(("tls1.2/", "tls1.3/")) and one not in predicted]
        names = [one for one in names if "mldsa" not in one and "dh_anon" not in one]
        # The clients keep the other core busy, too.
        with busy_neighbours():
            measured = measure_suites(names, rounds=rounds, repeat=EACH)
            timed = core.primitives(seconds=seconds)
            other = measure_other("openssl", _device(profile_of("this-machine", timed, measured, None)))
        self._text = lambda cost: profile_of("this-machine", timed, measured, cost, other=other)

    def device(self) -> Device:
        """All of it."""
        from shakedown.pricing.connection_cost import fitted, per_kib_us

        if self._text is None:
            raise UnavailableError("no handshakes were measured")
        return _device(self._text(fitted(self._served, per_kib_us())))


def _device(text: str) -> Device:
    from shakedown.profiles import load_device

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "this-machine.toml"
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
ADDRESSES = tuple(f"127.0.0.{2 + number}" for number in range(ROUNDS))
"""One for each round: to a single one a client would run short of ports, and look for a free one longer than
its handshakes take.
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


@contextlib.contextmanager
def nginx() -> Iterator[tuple[int, dict[str, Endpoint]]]:
    """One nginx process on the first core: its number, and where it serves each kind of key."""
    for tool in ("nginx", "openssl"):  # whose speed is asked for
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        endpoints = {}
        servers = ""
        for key in sorted({case.key for case in CASES}):
            _certificate(folder / key, key)
            with socket.create_server((ADDRESSES[0], 0)) as free:
                endpoints[key] = Endpoint(free.getsockname()[1], folder / key)
            port = endpoints[key].port
            listen = " ".join(f"listen {address}:{port} ssl;" for address in ADDRESSES)
            servers += SERVER.format(listen=listen, folder=folder, key=key)
        path = folder / "nginx.conf"
        path.write_text(CONFIGURATION.format(folder=folder, servers=servers), encoding="utf-8")
        process = subprocess.Popen(
            ["nginx", "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")],
            preexec_fn=lambda: _pin(0),
        )
        try:
            _reachable(process, [one.port for one in endpoints.values()], folder / "error.log")
            yield process.pid, endpoints
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def _certificate(folder: Path, key: str) -> None:
    """One that a root of its own kind has issued, as the suites have it; the root is not sent."""
    from shakedown import core

    folder.mkdir()
    core.certs(
        {
            "do": "make",
            "now": int(time.time()),
            "keys": key,
            "out": folder,
            "side": "server",
            "profile": "lab",
        }
    )


def _pin(core: int) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[core % len(allowed)]})


def _reachable(process: subprocess.Popen[bytes], ports: Sequence[int], log: Path) -> None:
    for port in ports:
        for _ in range(100):
            if process.poll() is not None:
                raise UnavailableError(f"nginx ended: {log.read_text(errors='replace').strip()[:200]}")
            with contextlib.suppress(OSError), socket.create_connection((ADDRESSES[0], port), 1):
                break
            time.sleep(0.05)
        else:
            raise UnavailableError("nginx does not answer")


@dataclass(frozen=True)
class Measured:
    """What nginx did under load: its CPU time for a connection, and how often it slept by connection."""

    each_s: float
    sleeps: float

    @property
    def per_s(self) -> float:
        """The rate at which it saturates."""
        return 1.0 / self.each_s


def measure(case: Case, pid: int, endpoint: Endpoint, address: str = ADDRESSES[0]) -> Measured:
    """Load nginx from the other core.

    Processes that do nothing take most of nginx' core, so that clients which are as fast as nginx are fast
    enough: it never sleeps for want of work. Clients that resume have their sessions of a full handshake
    each, which is not among those that are counted: what a short load takes is left out of a long one.
    """
    from shakedown import core
    from shakedown.pricing.neighbours import shared

    options = {
        "client_stack": case.client_stack,
        "now": int(time.time()),
        "chain": endpoint.folder / "chain.pem",
        "key": endpoint.folder / "key.pem",
        "ca": endpoint.folder / "ca.pem",
    }

    def load(duration_s: float) -> tuple[int, float, int]:
        """Connections, nginx' CPU time for them, and how often it slept."""
        config = {
            "target": f"{address}:{endpoint.port}",
            "arrivals": "closed",
            "clients": CLIENTS,
            "duration_s": duration_s,
            "check": False,
        }
        before_s, before = _ran_s(pid), _slept(pid)
        outcome = core.load(config, core.canonical(case.suite), options)
        resumed = outcome.completed if "/ticket" in case.suite else 0
        if outcome.failed or not outcome.completed or outcome.resumed.confirmed != resumed:
            raise UnavailableError(f"{case.name}: {outcome.failed}, resumed: {outcome.resumed}")
        return outcome.completed, _ran_s(pid) - before_s, _slept(pid) - before

    allowed = os.sched_getaffinity(0)
    _pin(1)
    try:
        with shared(min(allowed)):
            first, whole = load(BEGINNING_S), load(BEGINNING_S + SECONDS)
    finally:
        os.sched_setaffinity(0, allowed)
    completed, ran_s, slept = (more - less for more, less in zip(whole, first, strict=True))
    if completed <= 0:
        raise UnavailableError(f"{case.name}: {completed:g} connections in {SECONDS} s")
    return Measured(ran_s / completed, max(slept, 0) / completed)


def _slept(pid: int) -> int:
    """How often a process has waited of its own accord."""
    (line,) = re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(line)


def _ran_s(pid: int) -> float:
    """CPU time of a process as the scheduler counts it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9


def rates() -> list[tuple[Case, Predicted, Measured]]:
    """Every case in every round: what is predicted, and what is measured."""
    profile = Profile()
    found: list[tuple[Case, Measured]] = []
    with nginx() as (pid, endpoints):

        def some(addresses: Sequence[str]) -> None:
            for address in addresses:
                profile.serve()
                found.extend((case, measure(case, pid, endpoints[case.key], address)) for case in CASES)

        some(ADDRESSES[: ROUNDS // 2])
        profile.handshakes()
        some(ADDRESSES[ROUNDS // 2 :])
    device = profile.device()
    predicted = {case: predict(case, device) for case in CASES}
    return [(case, predicted[case], measured) for case, measured in found]


def undisturbed(found: Sequence[tuple[Case, Predicted, Measured]], case: Case) -> list[tuple[float, float]]:
    """The predicted rate of a case, with each measured one of the faster half of the saturated rounds.

    Raises `UnavailableError` where nginx was never saturated.
    """
    both = sorted(
        (
            (ours.per_s, theirs.per_s)
            for one, ours, theirs in found
            if one == case and theirs.sleeps <= MAX_SLEEPS
        ),
        reverse=True,
    )
    if not both:
        raise UnavailableError(f"{case.name}: the clients were too slow to saturate nginx")
    return both[: (len(both) + 1) // 2]


def pairs() -> Sequence[Pair]:
    """Of the case that is furthest off, the greater of each two rates and the lesser."""
    found = rates()
    cases = [[(max(both), min(both)) for both in undisturbed(found, case)] for case in CASES]
    return max(cases, key=lambda case: statistics.median(high / low for high, low in case))


BENCHMARKS = [
    Benchmark(
        name="capacity-nginx",
        what="saturation rate of one nginx worker, predicted and measured: the greater over the lesser, in "
        "the case that is furthest off",
        peer_name="nginx",
        better="lower",
        target=TOLERANCE,
        pairs=pairs,
    )
]


if __name__ == "__main__":
    everything = rates()
    for case in CASES:
        ours = next(one for other, one, _ in everything if other == case)
        theirs_s = 1.0 / statistics.median(theirs for _, theirs in undisturbed(everything, case))
        kept = sum(other == case and one.sleeps <= MAX_SLEEPS for other, _, one in everything)
        parts = f"{ours.handshake_s * 1e6:.0f} + {ours.connection_s * 1e6:.0f} us"
        sys.stdout.write(
            f"{case.name}: predicted {ours.per_s:,.0f}/s ({parts}), measured {1.0 / theirs_s:,.0f}/s "
            f"({theirs_s * 1e6:.0f} us, saturated in {kept} rounds), {ours.per_s * theirs_s - 1.0:+.1%}\n"
        )
