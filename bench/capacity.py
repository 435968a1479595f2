"""CPU time of a connection to servers that are not ours: predicted from a profile of this machine; measured.

nginx, HAProxy and Go's crypto/tls run on one core, with one thread of work each; our load generator, on the
others, shakes hands in a closed loop and closes each connection at once. The profile is of the system's
OpenSSL, and is measured meanwhile, without these servers and of suites that are not predicted.

How a case is measured; this was written before any figure of it was taken:

1. A figure is the CPU time that the kernel books to a server's threads, by connection: what a short load
   takes is left out of a long one. Processes that do nothing take two thirds of the server's core, so that
   clients are always fast enough: a server that is woken for each message takes half as long again.
2. Rounds in which a server's first thread slept more often than once in five connections do not count. Of the
   others the faster half does, and of these the median: a machine that others share is slower at times.
3. A prediction is that of `predict` for the server's software: handshake, tickets and connection. The
   profile is measured in both halves of the rounds, and the faster prediction counts. Where the processor's
   own speed changed by more than `MAX_CHANGE` meanwhile, there is no verdict.
4. The prediction's rules were made with nginx. HAProxy and Go are reported apart; Go has its own
   cryptography, of which the profile knows nothing.
5. The benchmark's figure is the case of nginx that is furthest off, as a factor.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Benchmark, Pair, UnavailableError, cpu_s
from bench.tls_servers import SERVERS, Server, pin, serving
from shakedown.prediction.cpu_contention import MAX_CHANGE, loop_s

if TYPE_CHECKING:
    from shakedown.models.ranges import Range
    from shakedown.prediction.other_openssl import OtherOpenssl
    from shakedown.profiles.device import Device

ROUNDS = 4
SECONDS, LONG_SECONDS = 1.5, 4.0
"""Of a load, and of one with RSA keys that take milliseconds."""
BEGINNING_S = 0.02
CLIENTS = 16
MAX_SLEEPS = 0.2
"""A server that sleeps more often than so, by connection, has to be woken, which costs half of one more."""
EACH = 5
"""Handshakes of each suite in a round of the profile: of many short rounds some are undisturbed."""
TOLERANCE = 1.15
KEYS = ("p256", "p384", "rsa2048", "rsa3072", "rsa4096", "ed25519")
NEWER = ", OpenSSL 3.5"
RUNS = (*SERVERS, f"nginx{NEWER}", f"haproxy{NEWER}")
"""Servers, two of them again with the newer OpenSSL."""


@dataclass(frozen=True)
class Case:
    """What clients ask for; `ids`: of a server that resumes by session ID."""

    suite: str
    key: str
    ids: bool = False
    client_stack: str = "openssl"
    """The one whose client takes less."""

    @property
    def newer(self) -> bool:
        """Whether it takes an OpenSSL that has ML-KEM and ML-DSA."""
        return "mlkem" in self.suite or "mldsa" in self.suite

    def goes_with(self, run: str) -> bool:
        """Whether a server makes it; the newer OpenSSL is for what the system's lacks, and one more."""
        if run == "go":
            return not self.ids and "mldsa" not in self.suite  # it resumes by ticket alone
        return self.newer or self.suite == CASES[0].suite if NEWER in run else not self.newer

    @property
    def seconds(self) -> float:
        """For how long it is loaded."""
        return LONG_SECONDS if self.key in ("rsa3072", "rsa4096") else SECONDS

    @property
    def resumed(self) -> bool:
        """Whether a session is."""
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
HOSTS = tuple(f"127.0.0.{number}" for number in range(2, 2 + ROUNDS))
"""One for each round: to a single one a client would run short of ports."""


Text = Callable[[dict[str, float], "OtherOpenssl | None"], str]
"""A profile's text, from the cost of a connection and the other OpenSSL, if it is that one's."""


class Profile:
    """Profiles of this machine with the system's OpenSSL and with ours, of suites that are not predicted."""

    def __init__(self) -> None:
        """Nothing is measured yet."""
        from shakedown.prediction.connection_cost import PLANS, Served

        self._served: list[list[Served]] = [[] for _ in PLANS]
        self._measured: list[tuple[Text, OtherOpenssl]] = []

    def serve(self) -> None:
        """A round of connections to a server of ours, in turn with those to the others."""
        from shakedown.prediction.connection_cost import PLANS, SECONDS, served

        for found, plan in zip(self._served, PLANS, strict=True):
            found.append(served(plan, SECONDS))

    def handshakes(self, seconds: float = 0.1, rounds: int = 4) -> None:
        """Primitives and handshakes in memory, ours and the other OpenSSL's."""
        from shakedown import native
        from shakedown.prediction.cpu_contention import Watch, busy_neighbours
        from shakedown.prediction.other_openssl import measure_other
        from shakedown.prediction.this_machine import measure_suites, profile_of, suites

        predicted = {native.canonical(case.suite) for case in CASES}
        names = [one for one in suites() if one.startswith(("tls1.2/", "tls1.3/")) and one not in predicted]
        names = [one for one in names if "dh_anon" not in one and "mldsa87" not in one]
        watch = Watch()
        with busy_neighbours():  # the clients keep the other core busy, too
            measured = measure_suites(names, rounds=rounds, repeat=EACH)
            timed = native.primitives(seconds=seconds)
            other = measure_other("openssl")
        change = watch.change

        def text(cost: dict[str, float], other: OtherOpenssl | None) -> str:
            return profile_of("this-machine", timed, measured, cost, other=other, change=change)

        self._measured.append((text, other))
        for line in watch.warnings():
            sys.stdout.write(f"{line}\n")

    def devices(self, *, newer: bool) -> list[Device]:
        """All of it, with the system's OpenSSL or the `newer` one of our own: one for each measurement."""
        from shakedown.prediction.connection_cost import fitted, per_kib_us
        from shakedown.profiles import load_device

        cost, found = fitted(self._served, per_kib_us()), []
        with tempfile.TemporaryDirectory() as folder:
            for number, (text, other) in enumerate(self._measured):
                path = Path(folder) / f"this-machine-{number}.toml"
                path.write_text(text(cost, None if newer else other), encoding="utf-8")
                found.append(load_device(str(path)))
        return found


def predict(case: Case, software: str, devices: Sequence[Device]) -> Range:
    """A server's time for a handshake and its connection: the least of the profiles'."""
    from shakedown.prediction.library import open_library
    from shakedown.prediction.prices import price

    found = []
    for device in devices:
        priced = price(open_library(server_software=software)[case.suite], "server", device)
        if priced.without_cost or priced.connection is None:
            raise UnavailableError(f"{case.suite}: {priced.without_cost}")
        found.append(priced.with_connection)
    return min(found, key=lambda one: one.mean)


@dataclass(frozen=True)
class Booked:
    """A server's CPU time and sleeps, by connection."""

    each_s: float
    sleeps: float


def booked(server: Server, case: Case, host: str) -> Booked:
    """Load a server from the other core, while processes that do nothing take most of its own.

    Clients that resume have their sessions of a full handshake each, which is not among those that are
    counted.
    """
    from shakedown import native
    from shakedown.native import load_generator
    from shakedown.prediction.cpu_contention import shared

    place = server.places[case.key, case.ids]
    suite = native.canonical(case.suite)
    files = {name: place.files / f"{name}.pem" for name in ("chain", "key", "ca")}
    options = {"client_stack": case.client_stack, "now": int(time.time()), **files}

    def load(duration_s: float) -> tuple[int, float, int]:
        """Connections, the server's CPU time for them, and how often it slept."""
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
        except native.extension().CoreError as error:
            raise UnavailableError(f"{case.suite}: {error}") from error
        resumed = outcome.completed if case.resumed else 0
        if outcome.failed or not outcome.completed or outcome.resumed.confirmed != resumed:
            raise UnavailableError(f"{case.suite}: {outcome.failed}, resumed: {outcome.resumed}")
        return outcome.completed, cpu_s(server.pid) - before_s, server.slept() - before

    allowed = os.sched_getaffinity(0)
    pin(1)
    try:
        with shared(min(allowed)):
            first, whole = load(BEGINNING_S), load(BEGINNING_S + case.seconds)
    finally:
        os.sched_setaffinity(0, allowed)
    completed, ran_s, slept = (more - less for more, less in zip(whole, first, strict=True))
    if completed <= 0:
        raise UnavailableError(f"{case.suite}: {completed:g} connections in {case.seconds} s")
    return Booked(ran_s / completed, max(slept, 0) / completed)


def usual_s(rounds: Iterable[Booked]) -> list[float]:
    """The times that count: of rounds in which the server hardly slept the faster half, fastest first."""
    awake = sorted(one.each_s for one in rounds if one.sleeps <= MAX_SLEEPS)
    return awake[: (len(awake) + 1) // 2]


@dataclass(frozen=True)
class Compared:
    """A case of a server: predicted and measured seconds."""

    case: Case
    predicted: Range
    measured_s: list[float]

    @property
    def off(self) -> float:
        """The prediction over what was measured."""
        return self.predicted.mean / statistics.median(self.measured_s)

    @property
    def inside(self) -> bool:
        """Whether what was measured is in the prediction's range."""
        return self.predicted.low <= statistics.median(self.measured_s) <= self.predicted.high


def compare() -> tuple[dict[str, list[Compared]], float]:
    """Every case of every server that is installed, and how much the processor's speed changed: a factor.

    Says which servers are not installed.
    """
    profile, speeds_s = Profile(), [loop_s()]
    found: dict[str, dict[Case, list[Booked]]] = {}
    refused: dict[tuple[str, Case], str] = {}
    for number, host in enumerate(HOSTS):
        if number % (ROUNDS // 2) == 0:
            profile.handshakes()
        profile.serve()
        for run in RUNS:
            cases = [case for case in CASES if case.goes_with(run)]
            kinds = sorted({(case.key, case.ids) for case in cases})
            try:
                with serving(run.removesuffix(NEWER), kinds, HOSTS, newer=NEWER in run) as server:
                    rounds = found.setdefault(run, {})
                    for case in cases:
                        try:
                            rounds.setdefault(case, []).append(booked(server, case, host))
                            speeds_s.append(loop_s())
                        except UnavailableError as error:
                            refused[run, case] = str(error)
            except UnavailableError as error:
                sys.stdout.write(f"{run}: {error}\n" if not number else "")
    for (run, _), why in refused.items():
        sys.stdout.write(f"{run}: {why}\n")
    slower = statistics.quantiles(speeds_s, n=10)  # the same work's times: nine times in ten and once in ten
    devices = {newer: profile.devices(newer=newer) for newer in (False, True)}
    compared = {
        run: [
            Compared(case, predict(case, run.removesuffix(NEWER), devices[NEWER in run]), times_s)
            for case in CASES
            if (times_s := usual_s(rounds.get(case, ())))
        ]
        for run, rounds in found.items()
    }
    return compared, slower[-1] / slower[0]


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
        name = f"{one.case.suite}{' (ID)' if one.case.ids else ''}"
        figures = (
            f"{mean:,.0f} µs | {low:,.0f} – {high:,.0f}{mark} | {measured:,.0f} µs | {one.off - 1.0:+.0%}"
        )
        lines.append(f"| {name} | {figures} |")
    inside = sum(one.inside for one in rows)
    near = sum(max(one.off, 1.0 / one.off) <= TOLERANCE for one in rows)
    lines.append(f"\n{software}: {near} of {len(rows)} within 15 %, {inside} in the 90 % ranges\n\n")
    return "\n".join(lines)


def pairs() -> Sequence[Pair]:
    """Of nginx' case that is furthest off, the greater of each two times and the lesser; prints all cases."""
    found, change = compare()
    for software, rows in found.items():
        sys.stdout.write(table(software, rows))
    if not found.get("nginx"):
        raise UnavailableError("nginx is not installed")
    if change > MAX_CHANGE:
        raise UnavailableError(
            f"the processor's speed changed by a factor of {change:.2f} meanwhile, so there is no verdict; "
            f"accepted: a machine on which it changes by at most {MAX_CHANGE}"
        )
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
