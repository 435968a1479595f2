"""The rate at which one nginx worker saturates: predicted with a profile of this machine, and measured.

nginx runs one process on one core; load generators, on the others, make handshakes in a closed loop and
close each connection at once, so that what nginx does is handshakes and connections alone. The profile is of
the OpenSSL that nginx is linked with, and is measured in between, of suites other than those predicted and
without nginx: primitives, handshakes in memory, connections to a server of ours.

How a case is measured; this was written before any figure of it was taken:

1. nginx has its core to itself. Two generators load it by turns, in every round, from all other cores: ours
   (`load --arrivals closed`, sixteen connections under way) and `openssl s_time` (eight processes).
2. Connections are those that nginx counts, over a window of a second of wall clock that begins when the load
   has settled; its utilisation is the CPU time that the kernel books to it over the same window.
3. A window in which the utilisation is at least 97 % is saturated: its figure is connections by second of
   wall clock. Other windows count for nothing.
4. Of the saturated windows of a case, both generators' together, the faster half counts, and of these the
   median: a machine that others share is slower at times, and the profile is of its usual speed, too.
5. A case with fewer than `LEAST_WINDOWS` saturated windows is one whose clients cannot saturate nginx: they
   take as long as it does. It is listed as such, and its figure is connections by second of CPU time that the
   kernel books to nginx, while processes that do nothing take two thirds of its core, so that any client is
   fast enough; rounds in which nginx slept more often than once in five connections do not count, and of the
   rest again the faster half does. This figure is printed for every case, and compared for these alone.
6. `wrk` and `ab` ask for a page on each connection, which is more than a handshake: in two rounds they load
   nginx in the full cases, and their rates are printed, but not compared.
7. Of the four cases the one that is furthest off is the benchmark's figure.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Benchmark, Pair, UnavailableError
from bench.nginx import Server, pin, serving
from bench.nginx_clients import Job, Window, ab, load_config, load_options, ours, s_time, window, wrk

if TYPE_CHECKING:
    from shakedown.profiles.device import Device

ROUNDS = 16
"""Half of them before handshakes in memory are measured, and half after them, each in turn with connections
to a server of ours.
"""
WINDOWS_EACH = 2
"""In one of so many rounds nginx has its core to itself for a window of each generator."""
OTHERS_IN = (0, ROUNDS - WINDOWS_EACH)
"""Rounds in which `wrk` and `ab` load it, too."""
SATURATED = 0.97
LEAST_WINDOWS = 4
SECONDS = 0.6
BEGINNING_S = 0.02
MAX_SLEEPS = 0.2
"""A worker that sleeps more often than so, by connection, is not saturated: being woken costs it half of a
connection more.
"""
EACH = 5
"""Handshakes of each suite in a round of the profile: of many short rounds some are undisturbed."""
TOLERANCE = 1.15
GENERATORS = {"load": ours, "s_time": s_time}
OTHERS = {"wrk": wrk, "ab": ab}


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
        from shakedown.prediction.connection_cost import PLANS, Served

        self._served: list[list[Served]] = [[] for _ in PLANS]
        self._text: Callable[[dict[str, float]], str] | None = None

    def serve(self) -> None:
        """A round of connections to a server of ours, between two of connections to nginx."""
        from shakedown.prediction.connection_cost import PLANS, SECONDS, served

        for found, plan in zip(self._served, PLANS, strict=True):
            found.append(served(plan, SECONDS))

    def handshakes(self, seconds: float = 0.1, rounds: int = 4) -> None:
        """Primitives and handshakes in memory, ours and the other OpenSSL's."""
        from shakedown import native
        from shakedown.prediction.cpu_contention import busy_neighbours
        from shakedown.prediction.other_openssl import measure_other
        from shakedown.prediction.this_machine import measure_suites, profile_of, suites

        predicted = {native.canonical(case.suite) for case in CASES}
        names = [one for one in suites() if one.startswith(("tls1.2/", "tls1.3/")) and one not in predicted]
        names = [one for one in names if "mldsa" not in one and "dh_anon" not in one]
        # The clients keep the other core busy, too.
        with busy_neighbours():
            measured = measure_suites(names, rounds=rounds, repeat=EACH)
            timed = native.primitives(seconds=seconds)
            other = measure_other("openssl", _device(profile_of("this-machine", timed, measured, None)))
        self._text = lambda cost: profile_of("this-machine", timed, measured, cost, other=other)

    def device(self) -> Device:
        """All of it."""
        from shakedown.prediction.connection_cost import fitted, per_kib_us

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
    from shakedown import native
    from shakedown.native.scenario import HandshakeId, Options
    from shakedown.prediction.prices import price
    from shakedown.prediction.trace import parse_trace
    from shakedown.schema import builtins

    options = Options(repeat=3, tickets=case.tickets) if case.tickets else Options(repeat=3)
    recorded = native.measure(HandshakeId(suite=native.canonical(case.suite)), options)
    priced = price(parse_trace(builtins(recorded), case.suite), "server", device)
    if priced.unpriced or priced.connection is None:
        raise UnavailableError(f"{case.name}: {priced.unpriced}")
    return Predicted(priced.total.mean, priced.connection.mean)


@dataclass(frozen=True)
class Booked:
    """What nginx did in a share of its core: CPU time and sleeps, by connection."""

    each_s: float
    sleeps: float


@dataclass
class Measured:
    """All rounds of a case: windows of wall clock by generator, and CPU time."""

    windows: dict[str, list[Window]] = field(default_factory=dict)
    booked: list[Booked] = field(default_factory=list)

    def saturated(self) -> list[float]:
        """Connections by second of wall clock, of windows in which nginx was never idle, fastest first."""
        found = (one for name in GENERATORS for one in self.windows.get(name, ()))
        return sorted((one.per_s for one in found if one.utilisation >= SATURATED), reverse=True)

    def by_cpu_time(self) -> list[float]:
        """Connections by second of CPU time, of the rounds in which nginx hardly slept, fastest first."""
        return sorted((1.0 / one.each_s for one in self.booked if one.sleeps <= MAX_SLEEPS), reverse=True)

    @property
    def on_wall_clock(self) -> bool:
        """Whether clients could saturate nginx with its core to itself."""
        return len(self.saturated()) >= LEAST_WINDOWS

    def rates(self) -> list[float]:
        """Those that count: the faster half."""
        found = self.saturated() if self.on_wall_clock else self.by_cpu_time()
        return faster_half(found)


def faster_half(rates: Sequence[float]) -> list[float]:
    """Of rates, fastest first."""
    return list(rates[: (len(rates) + 1) // 2])


def job(case: Case, server: Server, address: str) -> Job:
    """What a generator is to do for a case."""
    return Job(case.suite, case.client_stack, "/ticket" in case.suite, server.endpoints[case.key], address)


def booked(server: Server, one: Job) -> Booked:
    """Load nginx from the other core, while processes that do nothing take most of nginx' core.

    It then never sleeps for want of work. Clients that resume have their sessions of a full handshake each,
    which is not among those that are counted: what a short load takes is left out of a long one.
    """
    from shakedown import native
    from shakedown.prediction.cpu_contention import shared

    suite, options = native.canonical(one.suite), load_options(one)

    def load(duration_s: float) -> tuple[int, float, int]:
        """Connections, nginx' CPU time for them, and how often it slept."""
        before_s, before = server.ran_s(), server.slept()
        outcome = native.load(load_config(one, duration_s), suite, options)
        resumed = outcome.completed if one.resumed else 0
        if outcome.failed or not outcome.completed or outcome.resumed.confirmed != resumed:
            raise UnavailableError(f"{one.suite}: {outcome.failed}, resumed: {outcome.resumed}")
        return outcome.completed, server.ran_s() - before_s, server.slept() - before

    allowed = os.sched_getaffinity(0)
    pin(1)
    try:
        with shared(min(allowed)):
            first, whole = load(BEGINNING_S), load(BEGINNING_S + SECONDS)
    finally:
        os.sched_setaffinity(0, allowed)
    completed, ran_s, slept = (more - less for more, less in zip(whole, first, strict=True))
    if completed <= 0:
        raise UnavailableError(f"{one.suite}: {completed:g} connections in {SECONDS} s")
    return Booked(ran_s / completed, max(slept, 0) / completed)


def addresses() -> Iterator[str]:
    """One for each load: to a single one a client would run short of ports, and look for a free one longer
    than its handshakes take.
    """
    return (f"127.0.0.{number}" for number in range(2, 2 + LOADS))


LOADS = ROUNDS + ROUNDS // WINDOWS_EACH * len(GENERATORS) + len(OTHERS_IN) * len(OTHERS)


def rates() -> tuple[dict[Case, Predicted], dict[Case, Measured]]:
    """Every case: what is predicted, and what was measured in all rounds."""
    profile = Profile()
    found = {case: Measured() for case in CASES}
    fresh = addresses()
    with serving(sorted({case.key for case in CASES}), list(addresses())) as server:

        def some(numbers: range) -> None:
            for number in numbers:
                profile.serve()
                address = next(fresh)
                for case, measured in found.items():
                    measured.booked.append(booked(server, job(case, server, address)))
                alone = [] if number % WINDOWS_EACH else list(GENERATORS.items())
                alone += OTHERS.items() if number in OTHERS_IN else []
                for name, generator in alone:
                    address = next(fresh)
                    for case, measured in found.items():
                        one = job(case, server, address)
                        if name in OTHERS and (one.resumed or shutil.which(name) is None):
                            continue
                        measured.windows.setdefault(name, []).append(window(server, generator, one))

        some(range(ROUNDS // 2))
        profile.handshakes()
        some(range(ROUNDS // 2, ROUNDS))
    device = profile.device()
    return {case: predict(case, device) for case in CASES}, found


def pairs() -> Sequence[Pair]:
    """Of the case that is furthest off, the greater of each two rates and the lesser; prints all cases."""
    predicted, found = rates()
    for case in CASES:
        sys.stdout.write(described(case, predicted[case], found[case]))
    compared = []
    for case in CASES:
        both = [(predicted[case].per_s, rate) for rate in found[case].rates()]
        if not both:
            raise UnavailableError(f"{case.name}: nginx was never saturated")
        compared.append([(max(one), min(one)) for one in both])
    return max(compared, key=lambda case: statistics.median(high / low for high, low in case))


def described(case: Case, predicted: Predicted, measured: Measured) -> str:
    """A case in lines: what is predicted, and every way in which it was measured."""
    parts = f"{predicted.handshake_s * 1e6:.0f} + {predicted.connection_s * 1e6:.0f} us"
    lines = [f"{case.name}: predicted {predicted.per_s:,.0f}/s ({parts})"]
    ways = {"wall clock": measured.saturated(), "CPU time": measured.by_cpu_time()}
    compared = "wall clock" if measured.on_wall_clock else "CPU time"
    for way, all_rates in ways.items():
        kept = faster_half(all_rates)
        mark = ", compared" if way == compared else ""
        if way == "wall clock" and not measured.on_wall_clock:
            mark = ", the clients cannot saturate nginx"
        if kept:
            rate = statistics.median(kept)
            off = f"{rate:,.0f}/s ({1e6 / rate:.0f} us), {predicted.per_s / rate - 1.0:+.1%}"
            lines.append(f"  {way}: {off}, {len(all_rates)} rounds saturated{mark}")
        else:
            lines.append(f"  {way}: no round saturated{mark}")
    for name, windows in measured.windows.items():
        rate = statistics.median(one.per_s for one in windows)
        busy = statistics.median(one.utilisation for one in windows)
        each_s = statistics.median(one.each_s for one in windows)
        asked = ", with a request each" if name in OTHERS else ""
        lines.append(f"  {name}: {rate:,.0f}/s at {busy:.0%} busy, {each_s * 1e6:.0f} us of CPU{asked}")
    return "\n".join(lines) + "\n"


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
    pairs()
