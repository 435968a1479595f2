"""CPU time of a connection to servers that are not ours: predicted from a profile of this machine; measured.

nginx, HAProxy and Go's crypto/tls run on one core, with one thread of work each; our load generator, on the
others, shakes hands in a closed loop and closes each connection at once. The profile is of the system's
OpenSSL, and is measured meanwhile, without these servers and of suites that are not predicted.

How a case is measured; this was written before any figure of it was taken:

1. A figure is the CPU time that the kernel counts for a server's threads, by connection: that of a short load
   is subtracted from that of a longer one. Processes that do nothing use two thirds of the server's core, so
   that clients are always fast enough: a server that is woken for each message needs half as much time again.
   The other core is busy with handshakes of the lowest priority beside the clients, as during the profile.
2. A load counts if the processes that do nothing ran at the core's full speed meanwhile, by the rule of
   `shakedown.prediction.processor_speed`: a fixed loop took at most 1.1 times the lower decile of its times.
   The same rule chooses every part of the profile. It depends on the loop alone, not on the server. Loads in
   which a server's first thread slept more often than once in five connections do not count either.
3. A case is loaded until `MIN_LOADS` loads count, at most `MAX_LOADS` times, in each of two passes; the
   profile is measured between the passes. The figure is the median of the loads that count. Where there are
   not enough, those with the fastest loops count, and the table marks the case (*).
4. A prediction is that of `predict` for the server's software: handshake, tickets and connection. Its rules
   were made with nginx. HAProxy and Go, whose profiles have factors to nginx and OpenSSL, are reported apart.
   Go is predicted twice: by its profile, and by one with the multiples of `bench.library_calls` for this
   machine, which no server's time is in.
5. The benchmark's figure is the case of nginx that is furthest off, as a factor.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Benchmark, Pair, UnavailableError, cpu_s
from bench.library_calls import PROFILE, measured, of_this_machine
from bench.tls_servers import SERVERS, Server, core, serving
from shakedown.native.processors import placed, processors
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles import load_software

if TYPE_CHECKING:
    from shakedown.models.ranges import Range
    from shakedown.profiles.device import Device

PASSES = 2
MIN_LOADS, MAX_LOADS = 3, 8
"""Valid loads of a case that each pass needs, and the number of loads after which it ends without them."""
SECONDS, LONG_SECONDS = 0.6, 1.5
"""Duration of a load, and of one with RSA keys whose operations take milliseconds."""
BEGINNING_S = 0.02
CLIENTS = 16
MAX_SLEEPS = 0.2
"""Maximum of sleeps per connection: a server that is woken for each message needs 1.5 times the CPU time."""
PROFILE_ROUNDS, PROFILE_REPEAT = 5, 10
"""Rounds of the profile, and handshakes of each suite in one."""
TOLERANCE = 1.15
KEYS = ("p256", "p384", "rsa2048", "rsa3072", "rsa4096", "ed25519")
NEWER_OPENSSL = ", OpenSSL 3.5"
LIBRARY_MEASURED = ", its library measured here"
RUNS = (*SERVERS, f"nginx{NEWER_OPENSSL}", f"haproxy{NEWER_OPENSSL}")
"""The servers; two of them also run with the newer OpenSSL."""


@dataclass(frozen=True)
class Case:
    """A kind of handshake; `ids`: with a server that resumes by session ID."""

    suite: str
    key: str
    ids: bool = False
    client_stack: str = "openssl"
    """The stack whose client takes less time."""

    @property
    def name(self) -> str:
        """The name on pages."""
        return f"{self.suite}{' (ID)' if self.ids else ''}"

    @property
    def newer(self) -> bool:
        """Whether it needs an OpenSSL with ML-KEM and ML-DSA."""
        return "mlkem" in self.suite or "mldsa" in self.suite

    def goes_with(self, run: str) -> bool:
        """Whether a server runs it; the newer OpenSSL runs what the system's lacks, and one more case."""
        if run == "go":
            return not self.ids and "mldsa" not in self.suite  # Go resumes by ticket only
        return self.newer or self.suite == CASES[0].suite if NEWER_OPENSSL in run else not self.newer

    @property
    def seconds(self) -> float:
        """The duration of its load."""
        return LONG_SECONDS if self.key in ("rsa3072", "rsa4096") else SECONDS

    @property
    def resumed(self) -> bool:
        """Whether it resumes a session."""
        return self.suite.endswith(("/resumed", "/ticket"))


def _cases() -> Iterator[Case]:
    for key in KEYS:
        exchange = "ecdhe_rsa" if key.startswith("rsa") else "ecdhe_ecdsa"
        yield Case(f"tls1.3/x25519/{key}/server", key)
        yield Case(f"tls1.2/{exchange}+x25519/{key}/server", key)
    yield Case("tls1.3/x25519/p256/server/resumed", "p256")
    yield Case("tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket", "p256")
    yield Case("tls1.2/ecdhe_ecdsa+x25519/p256/server/resumed", "p256", ids=True)
    yield Case("tls1.3/x25519mlkem768/p256/server", "p256")
    yield Case("tls1.3/x25519mlkem768/p256/server/resumed", "p256")
    for key in ("mldsa44", "mldsa65"):
        yield Case(f"tls1.3/x25519/{key}/server", key)
        yield Case(f"tls1.3/x25519mlkem768/{key}/server", key)


CASES = tuple(_cases())
WITH_TICKET = "tls1.3/p256/p256/server/resumed"
"""A handshake with a ticket of TLS 1.3 that is not predicted. `devices measure` measures only one that is."""
HOSTS = tuple(f"127.0.0.{number}" for number in range(2, 2 + MAX_LOADS))
"""One address for each load of a pass: with a single one, a client would have too few ports."""


def profiles(beside: Speed) -> dict[bool, Device]:
    """Profiles of this machine with the system's OpenSSL, and (True) with ours, which is as new as the
    servers' newer one; measured from suites that are not predicted. `beside` has the times of the loop beside
    servers.
    """
    from shakedown import native
    from shakedown.prediction.connection_cost import Speeds, connection_cost
    from shakedown.prediction.cpu_contention import Watch, busy_neighbours
    from shakedown.prediction.other_openssl import measure_other
    from shakedown.prediction.this_machine import measure_primitives, measure_suites, profile_of
    from shakedown.profiles.device import parse_device

    predicted = {native.canonical(case.suite) for case in CASES}
    names = [
        one
        for one in native.profile_suites()
        if one.startswith(("tls1.2/", "tls1.3/")) and one not in predicted
    ]
    names = [one for one in names if "dh_anon" not in one and "mldsa87" not in one]
    names.append(native.canonical(WITH_TICKET))
    alone = Speed()
    watch = Watch(alone, beside)
    cost = connection_cost(speeds=Speeds(alone, beside))
    with busy_neighbours():
        timed = measure_primitives(0.1, speed=alone)
        measured = measure_suites(names, rounds=PROFILE_ROUNDS, repeat=PROFILE_REPEAT, speed=alone)
        other = measure_other("openssl", rare=False, alone=alone, beside=beside)
    for line in watch.warnings():
        sys.stdout.write(f"{line}\n")
    texts = {
        newer: profile_of("this-machine", timed, measured, cost, other=library, spread=watch.spread)
        for newer, library in ((False, other), (True, None))
    }
    return {newer: parse_device(tomllib.loads(text), "this machine") for newer, text in texts.items()}


def predict(case: Case, software: str, device: Device) -> Range:
    """The predicted time of a server for a handshake and its connection."""
    from shakedown.prediction.library import open_library
    from shakedown.prediction.side_cost import side_cost

    cost = side_cost(open_library(server_software=software)[case.suite], "server", device)
    if cost.without_cost or cost.connection is None:
        raise UnavailableError(f"{case.suite}: {cost.without_cost}")
    return cost.with_connection


@dataclass(frozen=True)
class ServerUse:
    """A server's CPU time and sleeps per connection."""

    each_s: float
    sleeps: float


def server_use(server: Server, case: Case, host: str, speed: Speed) -> Timed[ServerUse]:
    """Load a server from the other core, while busy-looping processes take most of the server's core.

    Clients that resume have sessions from a full handshake each, which is not counted.
    """
    from shakedown import native
    from shakedown.native import load_generator
    from shakedown.native.core import extension
    from shakedown.prediction.cpu_contention import IDLERS, beside_clients, shared

    place = server.places[case.key, case.ids]
    suite = native.canonical(case.suite)
    files = {name: str(place.files / f"{name}.pem") for name in ("chain", "key", "ca")}
    options = {"client_stack": case.client_stack, "now": int(time.time()), **files}

    def load(duration_s: float) -> tuple[int, float, int]:
        """Connections, the server's CPU time for them, and the number of its sleeps."""
        before_s, before = cpu_s(server.pid), server.slept()
        config = {
            "target": f"{host}:{place.port}",
            "arrivals": "closed",
            "clients": CLIENTS,
            "duration_s": duration_s,
            "check": False,
        }
        try:
            outcome = load_generator.load(config, suite, options)
        except extension().CoreError as error:
            raise UnavailableError(f"{case.suite}: {error}") from error
        resumed = outcome.completed if case.resumed else 0
        if outcome.failed or not outcome.completed or outcome.resumed.confirmed != resumed:
            raise UnavailableError(f"{case.suite}: {outcome.failed}, resumed: {outcome.resumed}")
        return outcome.completed, cpu_s(server.pid) - before_s, server.slept() - before

    allowed = processors()
    with placed(core(1)), shared(allowed[:1], IDLERS) as meter, beside_clients(allowed[1:]):
        first = load(BEGINNING_S)
        timed = meter.timed(lambda: load(BEGINNING_S + case.seconds), speed)
    completed, ran_s, slept = (more - less for more, less in zip(timed.found, first, strict=True))
    if completed <= 0:
        raise UnavailableError(f"{case.suite}: {completed:g} connections in {case.seconds} s")
    return Timed(ServerUse(ran_s / completed, max(slept, 0) / completed), timed.loop_s)


Loads = list[Timed[ServerUse]]


def rarely_sleeping(loads: Loads) -> Loads:
    """The loads in which the server hardly slept."""
    return [one for one in loads if one.found.sleeps <= MAX_SLEEPS]


@dataclass(frozen=True)
class Compared:
    """A case of a server: predicted and measured seconds."""

    case: Case
    predicted: Range
    measured_s: list[float]
    enough: bool
    """Whether enough loads were at the core's full speed."""

    @property
    def off(self) -> float:
        """The ratio of the prediction to the measurement."""
        return self.predicted.mean / statistics.median(self.measured_s)

    @property
    def inside(self) -> bool:
        """Whether the measurement is in the prediction's range."""
        return self.predicted.low <= statistics.median(self.measured_s) <= self.predicted.high


def compare() -> dict[str, list[Compared]]:
    """Every case of every installed server; names the servers that are not installed."""
    found: dict[str, dict[Case, Loads]] = {run: {} for run in RUNS}
    missing: dict[str, str] = {}
    speed = Speed()
    devices: dict[bool, Device] = {}
    library = ""
    for number in range(PASSES):
        for run, cases in found.items():
            load_all(run, cases, speed, missing)
        if not number:
            devices = profiles(speed)
            if found["go"]:
                library = of_this_machine(PROFILE.read_text(encoding="utf-8"), measured(load_software("go")))
    for name, why in missing.items():
        sys.stdout.write(f"{name}: {why}\n")
    sys.stdout.write(
        f"the server's core had its full speed in {speed.share:.0%} of {len(speed.loops_s)} loads\n"
    )
    compared = {
        run: [
            compared_case(case, run.removesuffix(NEWER_OPENSSL), devices[NEWER_OPENSSL in run], loads, speed)
            for case, loads in cases.items()
        ]
        for run, cases in found.items()
        if cases
    }
    if library:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "go.toml"
            path.write_text(library, encoding="utf-8")
            sys.stdout.write(library[library.index("[library]") :])
            compared[f"go{LIBRARY_MEASURED}"] = [
                compared_case(case, str(path), devices[False], loads, speed)
                for case, loads in found["go"].items()
            ]
    return compared


def compared_case(case: Case, software: str, device: Device, loads: Loads, speed: Speed) -> Compared:
    """A case with its prediction for a server's software, and its measurement."""
    times_s = [Timed(one.found.each_s, one.loop_s) for one in loads]
    each_s = speed.at_full(times_s, MIN_LOADS)
    return Compared(case, predict(case, software, device), each_s, speed.has(MIN_LOADS, loads))


def load_all(run: str, found: dict[Case, Loads], speed: Speed, missing: dict[str, str]) -> None:
    """A pass over a server's cases."""
    cases = [case for case in CASES if case.goes_with(run)]
    kinds = sorted({(case.key, case.ids) for case in cases})
    try:
        with serving(run.removesuffix(NEWER_OPENSSL), kinds, HOSTS, newer=NEWER_OPENSSL in run) as server:
            for case in cases:
                loads: Loads = []
                try:
                    for host in HOSTS:
                        loads += rarely_sleeping([server_use(server, case, host, speed)])
                        if speed.has(MIN_LOADS, loads):
                            break
                except UnavailableError as error:
                    missing[run] = str(error)
                if loads:
                    found.setdefault(case, []).extend(loads)
    except UnavailableError as error:
        missing[run] = str(error)


def table(software: str, rows: Sequence[Compared]) -> str:
    """The cases of a server, as a table of a page."""
    lines = [
        f"| {software} | predicted | 90 % range | measured | off |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in rows:
        low, mean, high = (1e6 * end for end in (one.predicted.low, one.predicted.mean, one.predicted.high))
        measured = 1e6 * statistics.median(one.measured_s)
        mark = "" if one.inside else ", outside"
        name = one.case.name + ("" if one.enough else " *")
        figures = (
            f"{mean:,.0f} µs | {low:,.0f} – {high:,.0f}{mark} | {measured:,.0f} µs | {one.off - 1.0:+.0%}"
        )
        lines.append(f"| {name} | {figures} |")
    inside = sum(one.inside for one in rows)
    near = sum(max(one.off, 1.0 / one.off) <= TOLERANCE for one in rows)
    lines.append(f"\n{software}: {near} of {len(rows)} within 15 %, {inside} in the 90 % ranges\n\n")
    return "\n".join(lines)


def pairs() -> Sequence[Pair]:
    """The larger and the smaller of prediction and measurements for nginx's worst case; prints all cases."""
    found = compare()
    for software, rows in found.items():
        sys.stdout.write(table(software, rows))
    if not found.get("nginx"):
        raise UnavailableError("nginx is not installed")
    worst = max(found["nginx"], key=lambda one: max(one.off, 1.0 / one.off))
    mean_s = worst.predicted.mean
    return [(max(mean_s, one_s) * 1e6, min(mean_s, one_s) * 1e6) for one_s in worst.measured_s]


BENCHMARKS = [
    Benchmark(
        "capacity",
        "CPU time of a connection (us) to nginx, predicted without it and measured: the case furthest off",
        "nginx",
        "lower",
        TOLERANCE,
        pairs,
    )
]
