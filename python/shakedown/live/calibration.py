"""`capacity --calibrate`: the cost of a connection at a running server. Clients perform handshakes in a
closed loop, in several rounds. If the server's processes run on this machine, the cost is their CPU time.
Otherwise the cost is the number of workers divided by the rate of connections; one more round with twice as
many clients checks that these do not increase the rate.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from shakedown.errors import InputError, ShakedownError
from shakedown.files.limits import MAX_WORKERS
from shakedown.live.server_processes import allowed, busy_s, listening, name_of, new_children, usage
from shakedown.prediction.cpu_contention import MAX_STEAL, Meter, Watch, shared
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.schema.arguments import checked
from shakedown.schema.live import LoadRun
from shakedown.schema.options import LoadOptions
from shakedown.schema.predictions import Calibration, MeasuredTime

ROUNDS, SECONDS = 6, 1.0
MAX_ROUNDS = 2
"""If too few rounds are at the processor's full speed: the limit of rounds, as a multiple of `rounds`."""
BEGINNING_S = 0.02
"""Duration of a short load before each round. It is subtracted from the round, and with it the clients' work
before they are counted.
"""
CLIENTS = 16
SPREAD = 1.1
"""The usual variation of a machine over time, as a factor; it is also that of a device's own figures."""
MAX_GROWTH = 1.1
"""If twice as many clients increase the rate by more than this factor, the server was not fully loaded."""
MAX_CLIENT_LOAD = 0.8
"""Share of a processor. If the clients, which use one processor, need more, they limit the rate."""
MAX_SLEEPS = 0.5
"""Number of sleeps per connection. A server that sleeps more often is woken for its messages, which increases
its CPU time.
"""
PAUSE_S, MAX_OTHERS = 0.3, 0.05
"""A pause before the rounds, and the share of the pause in which the server may work for other clients."""
MAX_ENDED, TICKS_S = 1.1, 0.05
"""Limit of the processes' CPU time, relative to that of their present threads: above it, threads have ended.
The kernel counts in ticks of 10 ms, so `TICKS_S` per round is allowed in addition.
"""
MAX_BUSY = 0.1
"""Share of the processors that other programs may use; with more, they slow a server that shares caches."""
BUSY_SPREAD = 1.75
"""The factor by which a short handshake is slower while the core's other thread works; long handshakes are
slowed less.
"""


@checked
def calibrate(
    target: str,
    suite: str,
    *,
    server_workers: int = 1,
    authorized_target: str | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Measures a running server's cost of a connection of a suite, including TCP and the close.

    On this machine, loops that show the processors' speed run concurrently with the server. Rounds count by
    the rule of `prediction.processor_speed`.

    Args:
        target: `HOST:PORT` of the server.
        suite: the suite that clients offer.
        server_workers: workers of a server on another machine.
        authorized_target: the host, if it is not this machine; its rate is not limited.
        rounds: number of rounds at the processor's full speed, after one that does not count. If twice as
            many rounds do not contain this number at full speed, the fastest are used.
        seconds: duration of each round.
        progress: called with the number of completed steps, and the number of all steps. Each round that
            counts is a step; the evaluation is the last one.

    Raises:
        InputError: for an invalid target or suite, and for a host that may not be loaded.
        ShakedownError: if handshakes fail, or if the measurement does not show the server's work.
        CoreError: from the core, if the server cannot be reached, or if the first handshake fails.
    """
    if not 1 <= server_workers <= MAX_WORKERS:
        raise InputError(f"server_workers is {server_workers}; accepted: 1 or more, up to {MAX_WORKERS:,}")
    if rounds < 2 or not 0.05 <= seconds <= 60.0:
        raise InputError(f"{rounds} rounds of {seconds:g} s; accepted: at least 2, of 0.05 to 60 s")
    tell = progress or (lambda done, total: None)

    def loaded(clients: int, duration_s: float) -> LoadRun:
        return _load(target, suite, clients, duration_s, authorized_target)

    tell(0, rounds + 1)
    host, _, port = target.removeprefix("tls://").rpartition(":")
    processes = listening(host, port)
    speed, warnings = Speed(), []
    with _loops(processes) as meter:
        with _sampled(meter, speed):
            loaded(CLIENTS, seconds)
        begun = usage(processes)
        time.sleep(PAUSE_S if processes else 0.0)
        first = usage(processes)
        if processes and first.since(begun).ran_s > MAX_OTHERS * PAUSE_S:
            warnings.append(
                "the server also works for other clients; this work is counted for these connections"
            )
        timed: list[Timed[float]] = []
        handshakes = sleeps = 0
        clients_s, begun_s, busy_before_s = 0.0, time.monotonic(), busy_s()
        loops_s = meter.ran_s if meter else 0.0
        watch = Watch(speed)

        def measure() -> float:
            """Runs a round; returns the cost of a connection."""
            nonlocal handshakes, sleeps, clients_s
            snapshots, completed = [usage(processes)], []
            for duration_s in (BEGINNING_S, seconds):
                run = loaded(CLIENTS, duration_s)
                clients_s += run.generator_cpu_s
                snapshots.append(usage(processes))
                completed.append(run.completed)
            short, long = (after.since(before) for before, after in pairwise(snapshots))
            more = completed[1] - completed[0]
            if more <= 0 or (processes and long.ran_s <= short.ran_s):
                raise ShakedownError(
                    f"{suite}: {target} completed {completed[1]} connections in {seconds:g} s; accepted: "
                    "longer rounds"
                )
            handshakes += more
            sleeps += long.sleeps - short.sleeps
            if processes:
                return (long.ran_s - short.ran_s) / more
            return server_workers * run.elapsed_s / run.completed

        with _sampled(meter, speed), new_children(processes) as new:
            while len(timed) < rounds * (MAX_ROUNDS if meter else 1):
                timed.append(meter.timed(measure, speed) if meter else Timed(measure(), math.inf))
                counting = sum(map(speed.is_full, timed)) if meter else len(timed)
                tell(min(counting, rounds), rounds + 1)
                if meter and counting >= rounds:
                    break
        all_of_it = usage(processes).since(first)
        loops_s = meter.ran_s - loops_s if meter else 0.0
    if new:
        raise ShakedownError(
            f"{target}: the server started {len(new)} or more processes during the calibration, "
            "and their work may not be counted; accepted: a server that keeps its processes"
        )
    processors_s = (time.monotonic() - begun_s) * (os.cpu_count() or 1)
    others = (busy_s() - busy_before_s - clients_s - loops_s - all_of_it.ran_s) / processors_s
    beside = bool(processes) and (others > MAX_BUSY or watch.steal > MAX_STEAL)
    if others > MAX_BUSY:
        warnings.append(
            f"other programs used {others:.0%} of this machine's processors; on an idle machine a connection "
            "costs less"
        )
    if all_of_it.whole_s > MAX_ENDED * all_of_it.ran_s + TICKS_S * len(timed):
        raise ShakedownError(
            f"{target}: threads or processes of the server end with their connections, so their CPU time is "
            "unknown; accepted: a server that keeps its threads"
        )
    if processes and sleeps > MAX_SLEEPS * handshakes:
        warnings.append(
            f"the server was idle {sleeps / handshakes:.1f} times per connection; "
            "under full load a connection costs less"
        )
    times_s = at_full_speed(timed, speed, rounds)
    if not processes:
        _check_saturated(loaded(2 * CLIENTS, seconds), statistics.median(times_s) / server_workers)
    tell(rounds + 1, rounds + 1)
    return Calibration(
        target=target,
        suite=suite,
        method="process" if processes else "rate",
        processes=tuple(sorted({name_of(one) for one in processes})),
        server_s=_measured(times_s, max(SPREAD, speed.spread), BUSY_SPREAD if beside else 1.0),
        rounds=len(times_s),
        handshakes=handshakes,
        full_speed=speed.share if speed.loops_s else None,
        warnings=(*warnings, *watch.warnings()),
    )


def _loops(processes: frozenset[int]) -> contextlib.AbstractContextManager[Meter | None]:
    """Runs loops on each processor that the server may use, which measure the processors' speed. None if
    these processors are unknown, as for a server on another machine.
    """
    there = allowed(processes)
    return shared(there) if there else contextlib.nullcontext()


def _sampled(meter: Meter | None, speed: Speed) -> contextlib.AbstractContextManager[None]:
    """Samples the speed while clients load the server: at other times the processors may be faster."""
    return meter.sampled(speed) if meter else contextlib.nullcontext()


def at_full_speed(timed: Sequence[Timed[float]], speed: Speed, wanted: int) -> list[float]:
    """The costs of the rounds that count; those of all rounds if the processor's speed is not known."""
    known = [one for one in timed if math.isfinite(one.loop_s)]
    return speed.at_full(known, wanted) if known else [one.found for one in timed]


def _measured(times_s: Sequence[float], spread: float, beside: float) -> MeasuredTime:
    """The median of the rounds; its range contains all rounds and the usual variation of a machine over time.

    If other programs run in every round, an idle machine may be faster by the factor `beside`, which the
    loops cannot show.
    """
    middle_s = statistics.median(times_s)
    return MeasuredTime(
        estimate=middle_s,
        lower=min(*times_s, middle_s / max(spread, beside)),
        upper=max(*times_s, middle_s * spread),
    )


def _load(target: str, suite: str, clients: int, seconds: float, authorized_target: str | None) -> LoadRun:
    from shakedown.live.load_test import load

    options = LoadOptions(
        arrivals="closed",
        clients=clients,
        duration_s=seconds,
        check=False,
        authorized_target=authorized_target,
        rate_cap=authorized_target is None,
    )
    run = load(target, suite, options)
    if run.interrupted:
        raise KeyboardInterrupt
    if run.failed or not run.completed:
        causes = ", ".join(run.failed) or "none ended in time"
        raise ShakedownError(
            f"{suite}: {run.failed_count} of {run.started} handshakes with {target} failed: {causes}"
        )
    resumption = suite.endswith(("/resumed", "/ticket"))
    if resumption and run.resumed.confirmed < run.completed:
        raise ShakedownError(
            f"{suite}: {target} resumed {run.resumed.confirmed} of {run.completed} sessions; accepted: a "
            "server that resumes all"
        )
    return run


def _check_saturated(more: LoadRun, each_s: float) -> None:
    growth = each_s * more.completed / more.elapsed_s
    clients_load = more.generator_cpu_s / more.elapsed_s
    if growth > MAX_GROWTH or clients_load > MAX_CLIENT_LOAD:
        why = (
            f"its clients use {clients_load:.0%} of a processor here"
            if clients_load > MAX_CLIENT_LOAD
            else f"with twice as many clients the rate is {growth:.2f} times as high"
        )
        raise ShakedownError(
            f"{more.target} is not fully loaded ({why}); accepted: a calibration on the server's "
            "machine, which measures its CPU time, or from a faster client closer to it"
        )
