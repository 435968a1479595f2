"""The cost of a connection beyond the handshake in memory, from rounds at the processor's full speed.

The core serves a suite and measures both sides' CPU time (`crates/live/src/connection_cost.rs`). This module
keeps the server's processor awake with other processes: a server that is woken for every message needs 1.5
times the CPU time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shakedown import native
from shakedown.errors import ShakedownError
from shakedown.native import load_generator
from shakedown.native.processors import placed, processors
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.prediction.cpu_contention import IDLERS, beside_clients, busy_neighbours, shared
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.schema.base import SIDES, Side


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite to serve, its number of tickets, and the stack of its clients."""

    suite: str
    tickets: int = 0
    client_stack: str | None = None


SECONDS = 0.3
MIN_ROUNDS, MAX_ROUNDS = 15, 30
"""Valid rounds that each suite needs, and the number of rounds after which measuring ends without them. On a
shared host, work that needs memory takes longer for minutes (64 or 73 us for a resumed session, at the same
speed of the loop), so few rounds would show one of these states.
"""
REPEAT = 40
ATTEMPTS = 3
"""Attempts at a load, because other programs may use all processors during one."""


@dataclass(frozen=True, slots=True)
class Served:
    """Measured CPU times of a suite, in microseconds, by side.

    Attributes:
        kib: size of a handshake.
        took_us: a connection with its handshake, and the loop's time on the side's processor.
        alone_us: the handshake in memory, with the loop's time.
    """

    kib: float
    took_us: dict[Side, Timed[float]]
    alone_us: dict[Side, Timed[float]]


@dataclass(slots=True)
class Speeds:
    """Speeds of the server's processor, alone and beside the server, and of the client's processor."""

    alone: Speed = field(default_factory=Speed)
    server: Speed = field(default_factory=Speed)
    client: Speed = field(default_factory=Speed)

    def of(self, side: Side) -> Speed:
        """The speed of a side's processor during a load."""
        return self.server if side == "server" else self.client

    def are_enough(self, rounds: Sequence[Served]) -> bool:
        """Whether enough rounds are valid."""
        return all(
            speed.has(MIN_ROUNDS, some)
            for speed, some in (
                (self.alone, [one.alone_us["server"] for one in rounds]),
                *((self.of(side), [one.took_us[side] for one in rounds]) for side in SIDES),
            )
        )


def connection_cost(
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    plans: Sequence[Plan] | None = None,
    speeds: Speeds | None = None,
) -> dict[str, float]:
    """Measure the table ``[connection]`` of a profile: microseconds per connection, by side.

    Args:
        seconds: duration for each suite in each round.
        progress: called with the number of completed steps, and of all steps.
        plans: the suites to serve; None for the core's.
        speeds: collects the loops' times.
    """
    plans = [Plan(*one) for one in load_generator.connection_plans()] if plans is None else plans
    found: list[list[Served]] = [[] for _ in plans]
    speeds = speeds or Speeds()
    progress(0, 1 + MAX_ROUNDS)
    copying_us = load_generator.connection_per_kib_us(processors())
    for number in range(MAX_ROUNDS):
        progress(1 + number, 1 + MAX_ROUNDS)
        left = [at for at in range(len(plans)) if not speeds.are_enough(found[at])]
        if not left:
            break
        for at in left:
            found[at].append(served(plans[at], seconds, speeds))
    return fitted(found, copying_us, speeds)


def fitted(found: Sequence[Sequence[Served]], copying_us: float, speeds: Speeds) -> dict[str, float]:
    """The table ``[connection]`` from the measured times, by suite and round, and from the cost of a KiB."""
    cost = {"per_kib_us": copying_us}
    left_us: list[float] = []
    for side in SIDES:
        points, servings = [], []
        for rounds in found:
            alone_us = statistics.median(
                speeds.alone.at_full([one.alone_us[side] for one in rounds], MIN_ROUNDS)
            )
            took_us = speeds.of(side).at_full([one.took_us[side] for one in rounds], MIN_ROUNDS)
            kib = statistics.median(one.kib for one in rounds)
            points.append((alone_us, statistics.median(took_us) - alone_us - copying_us * kib))
            servings.append((alone_us, took_us, kib))
        fixed_us, cold = load_generator.connection_line(points)
        cost |= {f"{side}_us": fixed_us, f"{side}_cold": cold}
        if side == "server":
            left_us = [
                one_us - (1.0 + cold) * alone_us - copying_us * kib
                for alone_us, took_us, kib in servings
                for one_us in took_us
            ]
    return {**cost, "sd_us": statistics.pstdev(left_us)}


def served(plan: Plan, seconds: float, speeds: Speeds) -> Served:
    """Serve a suite and measure the CPU time of each side, over loopback and in memory."""
    handshake = HandshakeId(suite=native.canonical(plan.suite), client_stack=plan.client_stack)
    options, there = MeasureOptions(repeat=REPEAT, tickets=plan.tickets), processors()
    # The other processor is busy while the handshake runs in memory, as it is with the client over loopback.
    with busy_neighbours():
        timed = speeds.alone.flanked(lambda: native.measure(handshake, options))
    alone = timed.found
    with shared(there[:1], IDLERS) as meter, beside_clients(there[1:]), placed(there[-1:]):
        loaded = speeds.client.flanked(
            lambda: meter.timed(lambda: _loaded_us(handshake, options, seconds, there), speeds.server)
        )
    took_us = loaded.found.found
    return Served(
        kib=alone.bytes.total / 1024.0,
        took_us={
            "server": Timed(took_us["server_us"], loaded.found.loop_s),
            "client": Timed(took_us["client_us"], loaded.loop_s),
        },
        alone_us={
            "client": Timed(alone.handshake.client_us.median, timed.loop_s),
            "server": Timed(alone.handshake.server_us.median, timed.loop_s),
        },
    )


def _loaded_us(
    handshake: HandshakeId, options: MeasureOptions, seconds: float, there: list[int]
) -> dict[str, float]:
    """CPU time per connection: a long load minus a short one; repeated if other programs took all of it."""
    for _ in range(ATTEMPTS):
        took_us = load_generator.connection_served(handshake, options, seconds, there)
        if min(took_us["server_us"], took_us["client_us"]) > 0.0:
            return took_us
    raise ShakedownError(
        f"other programs used all processors during a load of {seconds:g} s; measure when they have ended"
    )
