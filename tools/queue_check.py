"""Hold a server's queue against Pollaczek and Khinchine's formula, both from the same run.

    python -m tools.queue_check [--handshakes N] [--utilisation RHO …] [--batches N] [--json FILE] [SUITE …]

A server with one worker takes handshakes that arrive by a Poisson process. The kernel's time stamps say how
long each message waited to be taken up; the server's own clock says how long it worked for each. What it does
beside (accepting, waking up, closing) is known from all the time in which it had something to do, and spread
evenly over messages.

Waits are means over the run, with 95 % intervals from batches of it. A message that finds the server asleep
also waits for it to wake up, of which no formula knows: how long that takes is measured at a rate without a
queue, and the share of messages that find the server idle, 1 - ρ, has it.

30,000 handshakes (the default) of both suites at four utilisations take about a quarter of an hour of a quiet
machine with two cores. The exit status is 1 where a wait is further from its formula than the bounds say and
its interval does not hold the formula either.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from shakedown import core, serving
from shakedown.models.queueing import mg1_wait_s
from shakedown.schema.serving import Queue, Serving

SUITES = ("tls1.3/x25519/rsa3072/server", "wtls/rsa/rsa2048/server")
UTILISATIONS = (0.3, 0.5, 0.7, 0.8)
HANDSHAKES = 30_000
BATCHES = 20
QUIET_HANDSHAKES = 200
QUIET_UTILISATION = 0.02
WARM_UP = 100
BOUNDS = ((0.7, 0.15), (1.0, 0.25))
"""Up to which utilisation a wait may be off its formula by how much."""

# Student's t, 97.5 %, by degrees of freedom; beyond, the normal distribution's.
_T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05}


@dataclass(frozen=True)
class Moments:
    """How many, their mean (s) and second moment (s²)."""

    count: int
    mean_s: float
    second_s2: float

    def since(self, earlier: Moments) -> Moments:
        """Of what was counted after an earlier reading."""
        count = self.count - earlier.count
        if not count:
            return Moments(0, math.nan, math.nan)
        mean_s = (self.count * self.mean_s - earlier.count * earlier.mean_s) / count
        second_s2 = (self.count * self.second_s2 - earlier.count * earlier.second_s2) / count
        return Moments(count, mean_s, second_s2)

    def plus(self, constant_s: float) -> Moments:
        """Of the same with something added to each."""
        second_s2 = self.second_s2 + 2.0 * constant_s * self.mean_s + constant_s**2
        return Moments(self.count, self.mean_s + constant_s, second_s2)


@dataclass(frozen=True)
class Reading:
    """A server's counts at some time."""

    elapsed_s: float
    worked_s: float
    message_wait: Moments
    message_service: Moments
    first_wait: Moments
    handshake_service: Moments

    @classmethod
    def of(cls, server: Serving) -> Reading:
        """Of a server that times its queue."""
        queue = server.queue
        assert queue is not None, "the server does not time its queue"

        def moments(name: str) -> Moments:
            times = getattr(queue, name)
            return Moments(times.count, float(times.mean or 0.0), float(times.second_moment_s2 or 0.0))

        assert isinstance(queue, Queue)
        return cls(
            float(server.elapsed_s),
            float(queue.worked_s),
            moments("message_wait_s"),
            moments("message_service_s"),
            moments("first_wait_s"),
            moments("handshake_service_s"),
        )

    def since(self, earlier: Reading) -> Reading:
        """What happened after an earlier reading."""
        return Reading(
            self.elapsed_s - earlier.elapsed_s,
            self.worked_s - earlier.worked_s,
            self.message_wait.since(earlier.message_wait),
            self.message_service.since(earlier.message_service),
            self.first_wait.since(earlier.first_wait),
            self.handshake_service.since(earlier.handshake_service),
        )

    @property
    def utilisation(self) -> float:
        """Share of time in which the worker had something to do."""
        return self.worked_s / self.elapsed_s

    @property
    def beside_s(self) -> float:
        """What the worker does for a message beside working on it: accepting, waking up, closing."""
        messages = self.message_service
        return max(0.0, self.worked_s / messages.count - messages.mean_s)


@dataclass(frozen=True)
class Compared:
    """A live mean wait (s), its 95 % interval's half-width, the formula's, and whether that is near
    enough.
    """

    live_s: float
    margin_s: float
    formula_s: float
    off: float
    met: bool


@dataclass(frozen=True)
class Result:
    """One suite at one utilisation."""

    suite: str
    asked: float
    utilisation: float
    rate_per_s: float
    handshakes: int
    failed: int
    message_service_s: float
    beside_s: float
    wake_up_s: float
    lateness_p99_s: float
    message: Compared
    handshake: Compared


def compare(live: Sequence[float], counts: Sequence[int], formula_s: float, utilisation: float) -> Compared:
    """Batches' means, weighed by their counts, against a formula."""
    mean_s = sum(one * many for one, many in zip(live, counts, strict=True)) / sum(counts)
    margin_s = math.inf
    if len(live) > 1:
        margin_s = _t(len(live) - 1) * stdev(live) / math.sqrt(len(live))
    off = mean_s / formula_s - 1.0 if formula_s > 0.0 else math.nan
    bound = next((bound for limit, bound in BOUNDS if utilisation <= limit + 0.025), BOUNDS[-1][1])
    met = abs(off) <= bound or abs(mean_s - formula_s) <= margin_s
    return Compared(mean_s, margin_s, formula_s, off, met)


def _t(freedom: int) -> float:
    return _T[max(known for known in _T if known <= freedom)] if freedom < 60 else 1.96


@contextmanager
def _on(cores: set[int]) -> Iterator[None]:
    """This thread, and those that it starts meanwhile, on these cores; anywhere, where there is one."""
    before = os.sched_getaffinity(0)
    if len(before) > 1:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Bench:
    """A server with one worker, and a generator on another core."""

    def __init__(self, suite: str, server: serving.Server, generator: set[int]) -> None:
        """Of a server that runs."""
        self.suite, self.server, self.generator = suite, server, generator
        protocol = "wtls" if suite.startswith("wtls/") else "tls"
        self.target = f"{protocol}://{server.address}"
        self.failed = 0
        self.lateness_p99_s = 0.0

    def load(self, rate_per_s: float, starts: int, seed: int) -> Reading:
        """What the server counted meanwhile."""
        before = Reading.of(self.server.summary())
        config = {
            "target": self.target,
            "arrivals": "poisson",
            "rate_per_s": rate_per_s,
            "duration_s": 1.5 * starts / rate_per_s + 5.0,
            "max_starts": starts,
            "seed": seed,
            "timeout_s": 30.0,
        }
        with _on(self.generator):
            outcome = core.load(config, self.suite, {})
        self.failed += outcome.failed_count
        self.lateness_p99_s = max(self.lateness_p99_s, float(outcome.start_lateness_s.p99 or 0.0))
        return Reading.of(self.server.summary()).since(before)


def check(
    suite: str, utilisations: Sequence[float], handshakes: int, batches: int, quiet: int = QUIET_HANDSHAKES
) -> Iterator[Result]:
    """One suite at each utilisation; each batch is a run of its own on the same server."""
    cores = sorted(os.sched_getaffinity(0))
    with _on({cores[0]}):
        server = serving.start([suite], "127.0.0.1:0", workers=1, queue_times=True, max_handshakes=65_536)
    with server:
        bench = Bench(suite, server, set(cores[1:]) or set(cores))
        warm = bench.load(50.0, min(WARM_UP, quiet), 1)
        busy_s = _busy_s(warm)
        unloaded = bench.load(QUIET_UTILISATION / busy_s, quiet, 2)
        for asked in utilisations:
            bench.failed, bench.lateness_p99_s = 0, 0.0
            rate_per_s = asked / busy_s
            runs = [
                bench.load(rate_per_s, max(1, handshakes // batches), 1000 * number + round(100 * asked))
                for number in range(1, batches + 1)
            ]
            busy_s = _busy_s(runs[-1])
            yield result(suite, asked, runs, unloaded, bench)


def _busy_s(run: Reading) -> float:
    """What a handshake costs the worker, all in all."""
    return run.worked_s / run.handshake_service.count


def result(suite: str, asked: float, runs: Sequence[Reading], unloaded: Reading, bench: Bench) -> Result:
    """The runs' waits against the formula's, from their own services."""
    elapsed_s = sum(run.elapsed_s for run in runs)
    utilisation = sum(run.worked_s for run in runs) / elapsed_s
    handshakes = sum(run.handshake_service.count for run in runs)
    messages = sum(run.message_service.count for run in runs)

    def formula_s(name: str, each: float) -> float:
        """By customers: their number, and their services with what is done beside."""
        waits, counts = [], []
        for run in runs:
            service = getattr(run, name).plus(run.beside_s * each)
            waits.append(float(mg1_wait_s(service.count / run.elapsed_s, service.mean_s, service.second_s2)))
            counts.append(service.count)
        return float(sum(one * many for one, many in zip(waits, counts, strict=True)) / sum(counts))

    def live_s(name: str) -> list[float]:
        wake_up_s = getattr(unloaded, name).mean_s
        return [getattr(run, name).mean_s - wake_up_s * (1.0 - run.utilisation) for run in runs]

    def counts(name: str) -> list[int]:
        return [getattr(run, name).count for run in runs]

    return Result(
        suite=suite,
        asked=asked,
        utilisation=utilisation,
        rate_per_s=handshakes / elapsed_s,
        handshakes=handshakes,
        failed=bench.failed,
        message_service_s=fmean(run.message_service.mean_s for run in runs),
        beside_s=fmean(run.beside_s for run in runs),
        wake_up_s=unloaded.message_wait.mean_s,
        lateness_p99_s=bench.lateness_p99_s,
        message=compare(
            live_s("message_wait"), counts("message_wait"), formula_s("message_service", 1.0), utilisation
        ),
        handshake=compare(
            live_s("first_wait"),
            counts("first_wait"),
            formula_s("handshake_service", messages / handshakes),
            utilisation,
        ),
    )


def line(one: Result) -> str:
    """A result in a line of a table."""

    def cells(found: Compared) -> str:
        mark = "" if found.met else "  !"
        return (
            f"{found.live_s * 1e6:8.0f} ± {found.margin_s * 1e6:<6.0f}{found.formula_s * 1e6:8.0f}"
            f"{100 * found.off:+7.1f} %{mark:3}"
        )

    where = f"{one.suite:32} {one.utilisation:5.2f} {one.handshakes:8,}"
    return f"{where} {cells(one.message)} {cells(one.handshake)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; the exit status."""
    parser = argparse.ArgumentParser(
        prog="tools.queue_check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--handshakes", type=int, default=HANDSHAKES)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--utilisation", type=float, nargs="+", default=list(UTILISATIONS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    print(f"{'':32} {'':5} {'':8}    wait of a message (us)              wait of a handshake (us)")
    print(
        f"{'suite':32} {'load':>5} {'n':>8}     live            formula    off        live            "
        f"formula    off"
    )
    results: list[Result] = []
    for suite in given.suites:
        for one in check(core.canonical(suite), given.utilisation, given.handshakes, given.batches):
            results.append(one)
            print(line(one), flush=True)
    if given.json is not None:
        rows: list[dict[str, Any]] = [asdict(one) for one in results]
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    missed = [one for one in results for found in (one.message, one.handshake) if not found.met]
    for one in missed:
        print(f"missed: {one.suite} at {one.utilisation:.2f}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
