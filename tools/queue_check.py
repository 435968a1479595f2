"""Compare a server's queue with Pollaczek and Khinchine's formula, both from the same run.

    python -m tools.queue_check [--handshakes N] [--utilisation RHO …] [--batches N] [--json FILE] [SUITE …]

A server with one worker processes handshakes that arrive as a Poisson process. The kernel's time stamps give
the wait of each message until the server reads it; the server's own clock gives its work for each message,
and its other work (accepting, waking up, closing) until the next.

Waits are means over the run, with 95 % intervals from batches of it. A message that finds an empty queue
still waits for the server to wake up; the resulting part of the mean wait follows from these messages' own
waits, and is subtracted. A batch in which other programs used the processors is repeated, up to as many times
as there are batches.

Other columns: the waits in a server that never sleeps, replayed from the same arrivals and work; in a
simulated server, where a handshake's second message follows its first; and in one whose clients share a
processor, like a generator's.

A second message is not a Poisson arrival, so the formula is right for messages only if both wait equally.
First messages are Poisson arrivals, and their wait follows a more general law (`queue_waits.first_wait_s`).
The exit status depends on these.

30,000 handshakes (the default) of both suites at four utilisations take about twenty minutes of a quiet
machine with two cores. The exit status is 1 if a first message's wait differs from that law by more than the
bounds, and its interval does not contain it either.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import stdev

import numpy as np
from scipy.stats import t as student_t

from shakedown import native
from shakedown.models.arrays import Floats
from shakedown.native import load_generator, serving
from shakedown.native.processors import placed, processors
from shakedown.native.serving import QueueTraces
from shakedown.schema.options import ServerOptions
from tools import pages
from tools.queue_waits import (
    Customers,
    Pairs,
    close_behind,
    first_wait_s,
    later,
    pairs,
    replayed_s,
    simulated_wait_s,
)
from tools.queue_waits import handshakes as handshakes_of
from tools.queue_waits import messages as messages_of

SUITES = ("tls1.3/x25519/rsa3072/server", "wtls/rsa/rsa3072/server")
UTILISATIONS = (0.3, 0.5, 0.7, 0.8)
HANDSHAKES = 30_000
BATCHES = 20
QUIET_HANDSHAKES = 200
QUIET_UTILISATION = 0.02
WARM_UP = 100
MESSAGES = 2
"""Messages of a handshake that the server receives."""
SIMULATED_HANDSHAKES = 60_000
"""Handshakes of a simulated server."""
MAX_BETWEEN = 4.0
"""Longest time of a client between two messages, as a multiple of the median."""
MAX_CONTENDED_SHARE = 0.003
"""Share of a batch's time in which other programs may use the server's processor; else it is repeated."""
MAX_LATE_S = 0.01
"""The longest lateness of a start."""
BOUNDS = ((0.7, 0.15), (1.0, 0.25))
"""The allowed relative difference of a wait from its formula, up to each utilisation."""


@dataclass(frozen=True)
class Compared:
    """A live mean wait (s), half of its 95 % interval, the formula's wait, the relative difference, and
    whether the bound is met.
    """

    live_s: float
    margin_s: float
    formula_s: float
    off: float
    met: bool


@dataclass(frozen=True)
class ByMessage:
    """Mean waits (s) of the first and of the second messages of handshakes."""

    first_s: float
    second_s: float


@dataclass(frozen=True)
class Result:
    """One suite at one utilisation.

    Attributes:
        message, handshake: live waits in the queue, compared with the formula.
        first: waits of first messages, compared with `first_wait_s`.
        replayed: waits in a server that never sleeps, from the same arrivals and work.
        imitated: the same in a simulated server, where a handshake's second message follows its first.
        imitated_one_client: the same if the clients share one processor, like the generator's.
        close, poisson_close: share of first messages that arrive directly after a second one, within the
            work of a handshake on the clients' processor; and that share for a Poisson process.
        set_up_s: the part of the mean wait due to waking up, which is subtracted from the live waits.
        discarded: batches in which other programs used the processors.
        contended: such batches that were kept, because there were too few others.
    """

    suite: str
    asked: float
    utilisation: float
    rate_per_s: float
    handshakes: int
    failed: int
    message_service_s: float
    between_s: float
    set_up_s: float
    most_late_s: float
    discarded: int
    contended: int
    message: Compared
    handshake: Compared
    first: Compared
    replayed: ByMessage
    imitated: ByMessage
    imitated_one_client: ByMessage
    close: float
    poisson_close: float


def compare(live: Sequence[float], counts: Sequence[int], formula_s: float, utilisation: float) -> Compared:
    """Means of batches, weighted by their counts, compared with a formula."""
    mean_s = sum(one * many for one, many in zip(live, counts, strict=True)) / sum(counts)
    margin_s = math.inf
    if len(live) > 1:
        margin_s = float(student_t.ppf(0.975, len(live) - 1)) * stdev(live) / math.sqrt(len(live))
    off = mean_s / formula_s - 1.0 if formula_s > 0.0 else math.nan
    bound = next((bound for limit, bound in BOUNDS if utilisation <= limit + 0.025), BOUNDS[-1][1])
    met = abs(off) <= bound or abs(mean_s - formula_s) <= margin_s
    return Compared(mean_s, margin_s, formula_s, off, met)


@dataclass(frozen=True)
class Run:
    """A load, as recorded by the server's queue.

    Attributes:
        traces: of all messages except those with which the generator checks that the server responds.
        contended_share: share of the time in which the server's thread was ready but not running, or the
            machine was not running.
        most_late_s: the longest lateness of the generator's starts.
        client_work_s: the work of a handshake on the generator's processor.
    """

    traces: QueueTraces
    contended_share: float
    failed: int
    most_late_s: float
    client_work_s: float

    @property
    def is_calm(self) -> bool:
        """Whether other programs disturbed neither side; a late generator sends a burst."""
        return self.contended_share <= MAX_CONTENDED_SHARE and self.most_late_s <= MAX_LATE_S


def _not_running_s() -> float:
    """The time in which this process's threads waited for a processor, and the machine for its host's."""
    waited_ns = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            waited_ns += int((task / "schedstat").read_text().split()[1])
    steal = int(Path("/proc/stat").read_text().splitlines()[0].split()[8])
    return waited_ns * 1e-9 + steal / os.sysconf("SC_CLK_TCK")


def load(suite: str, server: serving.Server, rate_per_s: float, starts: int, seed: int) -> Run:
    """The server's queue under a load; the generator uses other cores than the server, if there are any."""
    server.take_queue_traces()
    config = {
        "target": f"{'wtls' if suite.startswith('wtls/') else 'tls'}://{server.address}",
        "arrivals": "poisson",
        "rate_per_s": rate_per_s,
        "duration_s": 1.5 * starts / rate_per_s + 5.0,
        "max_starts": starts,
        "seed": seed,
        "timeout_s": 30.0,
    }
    began_s, before_s = time.monotonic(), _not_running_s()
    with placed(processors()[1:]):
        outcome = load_generator.load(config, suite, {})
    contended_share = (_not_running_s() - before_s) / (time.monotonic() - began_s)
    return Run(
        later(server.take_queue_traces(), MESSAGES),
        contended_share,
        outcome.failed_count,
        float(outcome.start_lateness_s.max or 0.0),
        float(outcome.generator_cpu_s or 0.0) / max(1, outcome.completed),
    )


def check(
    suite: str, utilisations: Sequence[float], handshakes: int, batches: int, quiet: int = QUIET_HANDSHAKES
) -> Iterator[Result]:
    """One suite at each utilisation; each batch is a separate run on the same server."""
    cores = processors()
    starts = max(2, handshakes // batches)
    with placed(cores[:1] if len(cores) > 1 else ()):
        server = serving.start(
            [suite],
            "127.0.0.1:0",
            settings=ServerOptions(
                queue_times=True, max_handshakes=65_536, max_queue_traces=16 * max(starts, quiet)
            ),
        )
    with server:
        run = partial(load, suite, server)
        busy_s = _busy_s(run(50.0, min(WARM_UP, quiet), 1))
        between_s = pairs(run(QUIET_UTILISATION / busy_s, quiet, 2).traces).between_s
        # Much longer times are due to other programs.
        between_s = between_s[between_s <= MAX_BETWEEN * np.median(between_s)]
        for asked in utilisations:
            runs: list[Run] = []
            while len(runs) < 2 * batches and sum(one.is_calm for one in runs) < batches:
                number = len(runs) + 1
                runs.append(run(asked / busy_s, starts, 1000 * number + round(100 * asked)))
            calmest = sorted(runs, key=lambda one: (not one.is_calm, one.contended_share))[:batches]
            busy_s = _busy_s(calmest[0])
            yield result(suite, asked, calmest, len(runs) - batches, between_s)


def _busy_s(run: Run) -> float:
    """The worker's total time for a handshake."""
    return float(handshakes_of(run.traces).service_s.mean())


def result(suite: str, asked: float, runs: Sequence[Run], discarded: int, between_s: Floats) -> Result:
    """The runs' waits compared with the formula for their own service times."""
    by_message = [messages_of(run.traces) for run in runs]
    by_handshake = [handshakes_of(run.traces) for run in runs]
    weights = [len(one.wait_s) for one in by_message]

    def mean(values: Sequence[float]) -> float:
        return float(np.average(values, weights=weights))

    def compared(customers: Sequence[Customers]) -> Compared:
        counts = [len(one.wait_s) for one in customers]
        formula_s = float(np.average([one.formula_s for one in customers], weights=counts))
        return compare([one.queued_s for one in customers], counts, formula_s, utilisation)

    utilisation = mean([one.utilisation for one in by_message])
    rate_per_s = mean([one.rate_per_s for one in by_handshake])
    client_work_s = mean([run.client_work_s for run in runs])
    found = [pairs(run.traces) for run in runs]
    ideal = Pairs(
        np.concatenate([one.first_s for one in found]),
        np.concatenate([one.second_s for one in found]),
        np.resize(between_s, sum(len(one.first_s) for one in found)),
    )
    simulate = partial(simulated_wait_s, ideal, rate_per_s, SIMULATED_HANDSHAKES, round(100 * asked))
    simulated = [ByMessage(*simulate(client_work_s=work_s)) for work_s in (0.0, client_work_s)]
    close_shares = [close_behind(run.traces, client_work_s) for run in runs]
    first_s, replayed = [], []
    for run, one in zip(runs, by_message, strict=True):
        first = run.traces.is_first
        replayed.append(replayed_s(run.traces.arrived_s, one.service_s))
        parts_s = one.service_s[first], one.service_s[~first], float(replayed[-1][~first].mean())
        first_s.append(first_wait_s(one.rate_per_s / MESSAGES, *parts_s))
    again_s = np.concatenate(replayed)
    is_first = np.concatenate([run.traces.is_first for run in runs])
    counts = [len(one.wait_s) for one in by_handshake]
    live_s = [one.queued_s for one in by_handshake]
    return Result(
        suite=suite,
        asked=asked,
        utilisation=utilisation,
        rate_per_s=rate_per_s,
        handshakes=sum(counts),
        failed=sum(run.failed for run in runs),
        message_service_s=mean([float(one.service_s.mean()) for one in by_message]),
        between_s=float(np.median(between_s)),
        set_up_s=mean([one.set_up_s for one in by_message]),
        most_late_s=max(run.most_late_s for run in runs),
        discarded=discarded,
        contended=sum(not run.is_calm for run in runs),
        message=compared(by_message),
        handshake=compared(by_handshake),
        first=compare(live_s, counts, float(np.average(first_s, weights=counts)), utilisation),
        replayed=ByMessage(float(again_s[is_first].mean()), float(again_s[~is_first].mean())),
        imitated=simulated[0],
        imitated_one_client=simulated[1],
        close=mean([share for share, _ in close_shares]),
        poisson_close=mean([share for _, share in close_shares]),
    )


def line(one: Result) -> str:
    def cells(found: Compared) -> str:
        mark = "" if found.met else "  !"
        return (
            f"{found.live_s * 1e6:8.0f} ± {found.margin_s * 1e6:<6.0f}{found.formula_s * 1e6:8.0f}"
            f"{100 * found.off:+7.1f} %{mark:3}"
        )

    where = f"{one.suite:32} {one.utilisation:5.2f} {one.handshakes:8,}"
    more = "".join(
        f"{1e6 * waits.first_s:7.0f} {1e6 * waits.second_s:6.0f}"
        for waits in (one.replayed, one.imitated, one.imitated_one_client)
    )
    more += f"{100 * one.close:6.1f} {100 * one.poisson_close:5.1f}"
    more += f"{1e6 * one.set_up_s:9.0f}"
    batches = f"{one.discarded:5} {one.contended:5}"
    law = f"{1e6 * one.first.formula_s:9.0f}{100 * one.first.off:+7.1f} %{'' if one.first.met else '  !':3}"
    return f"{where} {cells(one.message)} {cells(one.handshake)}{law}{more}{batches}"


def main() -> int:
    """Run the tool; return the exit status."""
    parser = pages.options("queue_check", __doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--handshakes", type=int, default=HANDSHAKES)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--utilisation", type=float, nargs="+", default=list(UTILISATIONS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(
        f"{'':46}  wait of a message (us)              wait of a handshake (us)            "
        "by the law      first and second messages (us)     live Poisson            batches"
    )
    print(
        f"{'suite':32} {'load':>5} {'n':>8}     live            formula    off        live            "
        "formula    off         first    off      replayed      two-step      one CPU      close %"
        "     wake-up  left  kept"
    )
    results: list[Result] = []
    for suite in given.suites:
        for one in check(native.canonical(suite), given.utilisation, given.handshakes, given.batches):
            results.append(one)
            print(line(one), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=1) + "\n")
    if any(one.contended for one in results):
        print(
            "warning: other programs took the processors in most batches; the calmest were kept",
            file=sys.stderr,
        )
    missed = (one for one in results if not one.first.met)
    return pages.status(f"missed: {one.suite} at {one.utilisation:.2f}" for one in missed)


if __name__ == "__main__":
    sys.exit(main())
