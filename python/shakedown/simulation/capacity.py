"""The highest handshake rate of a server within a time limit, by simulation: `capacity --simulated`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.prediction.bounds import simulated, upper_bound
from shakedown.prediction.capacity import capacity_row, check_within, limit
from shakedown.prediction.library import announce
from shakedown.prediction.predict import Row, each
from shakedown.prediction.scenario import Scenario as Estimate
from shakedown.prediction.work import SideCost, known_basis
from shakedown.schema.base import MAX_NUMBER, builtins, convert
from shakedown.schema.predictions import max_failed_share
from shakedown.schema.simulated import FailedSimulatedCapacity, Simulated, SimulatedCapacity
from shakedown.simulation.cell_limit import CellLimit, cell_limit
from shakedown.simulation.deployment import Site
from shakedown.simulation.figures import after_handshake, cost_basis, missing_of
from shakedown.simulation.fleet import PRECISION, Settled, settle
from shakedown.simulation.simulate import Job, run
from shakedown.simulation.spec import Client, mean_work_s, with_lowest_work

MAX_EVENTS, MAX_EVENTS_TRIED = 200_000_000, 100_000_000
"""Limits of events at the resulting rate and at each tried rate: half a minute of one processor at most."""

CELLS_SHARE = 4
"""Divisor of these limits with cells: near saturation, retransmitted segments use all events."""

REPLICATIONS = 10
"""Replications of each run. Each has a warm-up, which is long near saturation, so there are few."""

FIRST_RUN_CLIENTS = 20_000
"""Number of clients of the first run at a rate. Servers and cells begin empty, so times grow during a run: if
so few clients exceed the limit, more do too, and a rate beyond saturation needs no longer run.
"""

EXCESS_MARGINS = 2.0
"""Margins above the limit at which a run of few clients shows that the limit is exceeded; also the factor of
the clients that may fail."""

TRIED_PRECISION = 0.2
"""Relative precision of the next run at a rate."""

DECISIVE_MARGINS, CLOSE_PRECISION = 1.5, 0.1
"""Margins from the limit at which a run decides; nearer to it, the rate is simulated more precisely."""

CONFIRMING_CLIENTS = (100_000, 400_000)
"""With cells, the clients of further runs at the resulting rate, with other seeds. Near saturation,
retransmissions may by chance overload a cell, which then stays overloaded; one run may not contain this
event. A short run precedes, because runs with overloaded cells take long.
"""

STEP = 1.01
"""The search ends when the highest rate within the limit and the lowest beyond it differ by this factor."""

START_SHARE = 0.95
"""The search begins at the formula's result times and divided by this factor."""

MIN_SATURATION_SHARE, MAX_SATURATION_SHARE = 1e-3, 0.97
"""Rates below the first share of saturation count as zero; rates above the second are not tried. Halving the
distance to saturation multiplies the events that a run needs by four.
"""

PERCENTILES = (50.0, 90.0, 95.0, 99.0)


def simulated_capacity(
    suites: Sequence[str],
    site: Site,
    *,
    within_s: float,
    percentile: float | None = None,
    records: str | None = None,
    cells: int | None = None,
    from_idle: bool = False,
    progress: Callable[[str], None] = lambda label: None,
) -> list[SimulatedCapacity | FailedSimulatedCapacity]:
    """Find the highest Poisson rate at which handshakes stay within a time limit: one row per suite.

    `records`, `cells` and `from_idle` are those of `Fleet`: the server's work on records counts at each rate,
    and clients share the cells. Raises `InputError`.
    """
    check_within(within_s)
    if percentile is not None and percentile not in PERCENTILES:
        accepted = ", ".join(f"{one:g}" for one in PERCENTILES)
        raise InputError(f"percentile is {percentile!r}; accepted where it is simulated: {accepted}")

    fleet = Fleet(
        arrivals="poisson:1/s", replications=REPLICATIONS, records=records, cells=cells, from_idle=from_idle
    )
    settle(fleet)

    def one(suite: str) -> SimulatedCapacity | FailedSimulatedCapacity:
        found = site.estimate(suite, from_idle=from_idle)
        progress(found.trace.suite)
        return _Search(found, within_s, percentile, site.server_workers, site.draws, fleet).row()

    announce(site.library, suites)
    return each(suites, one, lambda row: convert(row, FailedSimulatedCapacity), site.names)


class _Search:
    """Bisection on a logarithmic scale; every rate has the same random draws, so results are comparable."""

    def __init__(
        self,
        one: Estimate,
        within_s: float,
        percentile: float | None,
        workers: int,
        seed: int,
        fleet: Fleet,
    ) -> None:
        self.one, self.within_s, self.percentile = one, within_s, percentile
        self.workers, self.seed, self.fleet = workers, seed, fleet
        any_rate = self.settled(1.0, TRIED_PRECISION)
        (self.client,) = with_lowest_work([Client(one)], any_rate)
        self.cost_basis = cost_basis(self.client, any_rate)
        self.after = after_handshake(self.client, any_rate)
        service_s = mean_work_s([self.client], any_rate)
        self.cells_limit: CellLimit | None = None if fleet.cells is None else cell_limit(one, fleet.cells)
        limits = [workers / service_s] if service_s > 0.0 else []
        if self.cells_limit is not None:
            limits.append(self.cells_limit.rate_per_s)
        self.limit_per_s = min(limits, default=None)
        modelled = capacity_row(one, within_s, percentile, workers)["rate_per_s"]
        found = modelled or {"estimate": 0.0}
        # With records or cells, the formula only gives the start of the search.
        handshake_s = self.client.full.work.server.with_connection.mean
        share = handshake_s / service_s if service_s > 0.0 else 1.0
        self.modelled = modelled if fleet.records is None and fleet.cells is None else None
        self.upper_per_s = 0.0  # upper bound of the rates within the limit
        self.last: Simulated | None = None  # of the rate tried last
        self.confirmed_clients: int | None = None
        self.modelled_per_s: float = (found["estimate"] or found["upper"] or 0.0) * share
        if self.cells_limit is not None:
            self.modelled_per_s = min(self.modelled_per_s, self.cells_limit.rate_per_s)

    def settled(self, rate_per_s: float, precision: float) -> Settled:
        """The parameters of the simulation at a rate."""
        events = MAX_EVENTS if precision <= PRECISION else MAX_EVENTS_TRIED
        fleet = replace(
            self.fleet,
            arrivals=f"poisson:{rate_per_s:.6g}/s",
            precision=precision,
            max_events=events if self.fleet.cells is None else events // CELLS_SHARE,
        )
        return settle(fleet)

    def at(self, settled: Settled) -> Simulated:
        self.last = run(Job(self.one, None, settled, self.workers, self.seed))
        return self.last

    def exceeds_limit(self, rate_per_s: float) -> bool:
        """Whether few clients at a rate show that the limit is exceeded."""
        settled = self.settled(rate_per_s, TRIED_PRECISION)
        few = replace(settled.fleet, clients=min(FIRST_RUN_CLIENTS, settled.clients), max_events=None)
        found = self.at(settle(few))
        value_s, margin_s = self.limited_figure(found)
        late = value_s - EXCESS_MARGINS * margin_s > self.within_s
        return late or self.failed(found) > EXCESS_MARGINS * max_failed_share(self.percentile)

    @staticmethod
    def failed(found: Simulated) -> float:
        """The share of clients that failed."""
        return sum(found.failed.values()) / found.clients

    def within_limit(self, rate_per_s: float, precision: float = TRIED_PRECISION) -> Simulated | None:
        """The fleet at a rate, if its whole interval is within the limit; None if it may exceed it."""
        if precision > PRECISION and self.exceeds_limit(rate_per_s):
            return None
        while True:
            found = self.at(self.settled(rate_per_s, precision))
            value_s, margin_s = self.limited_figure(found)
            off = (self.within_s - value_s) / margin_s if margin_s > 0.0 else math.inf
            known = found.precision is not None and found.precision.is_settled
            # A run that is not settled now would not be with the same events and a higher precision.
            if (
                not known
                or abs(off) > DECISIVE_MARGINS
                or min(precision, self.reached(found)) <= CLOSE_PRECISION
            ):
                break
            precision = CLOSE_PRECISION
        return found if known and self.meets_limit(found) else None

    def meets_limit(self, found: Simulated) -> bool:
        """Whether the whole interval is within the limit, and few enough clients failed."""
        value_s, margin_s = self.limited_figure(found)
        few_failed = self.failed(found) <= max_failed_share(self.percentile)
        return few_failed and value_s + margin_s <= self.within_s

    @staticmethod
    def reached(found: Simulated) -> float:
        """The precision of a run; a run with a larger target would repeat it."""
        known = found.precision
        return math.inf if known is None or known.reached is None or not known.is_met else known.reached

    def limited_figure(self, found: Simulated) -> tuple[float, float]:
        """The limited figure and half the width of its 95 % interval."""
        spread = found.ready_s
        if self.percentile is None:
            value_s, margin_s = spread.mean, spread.margin
        else:
            value_s, margin_s = (getattr(spread, f"p{self.percentile:.0f}{end}") for end in ("", "_margin"))
        return (math.inf if value_s is None else value_s), margin_s or 0.0

    def best(self) -> tuple[float | None, Simulated | None]:
        """The highest rate within the limit, and the fleet at it; if there is none, that at the lowest."""
        if self.limit_per_s is None:
            return None, None
        if self.cells_limit is not None and missing_of(self.parts()):
            # The times of clients that share cells have no bound (`may_shorten_times`).
            self.upper_per_s = self.limit_per_s
            return self.limit_per_s, None
        low_per_s = MIN_SATURATION_SHARE * self.limit_per_s
        high_per_s = highest_per_s = MAX_SATURATION_SHARE * self.limit_per_s
        found: Simulated | None = None
        # The formula is seldom far off: begin on both sides of its result.
        for guess in (
            START_SHARE * self.modelled_per_s,
            min(self.modelled_per_s / START_SHARE, highest_per_s),
        ):
            if low_per_s < guess <= high_per_s:
                tried = self.within_limit(guess)
                low_per_s, high_per_s = (low_per_s, guess) if tried is None else (guess, high_per_s)
                found = tried or found
        if found is None:
            found = self.within_limit(low_per_s)
            if found is None:
                return 0.0, self.last
        while high_per_s > low_per_s * STEP:
            # With a loose limit the result lies near saturation: search there first.
            far = low_per_s < high_per_s / 4
            middle = math.sqrt(low_per_s * high_per_s) if far else (low_per_s + high_per_s) / 2
            tried = self.within_limit(middle)
            if tried is None:
                high_per_s = middle
            else:
                low_per_s, found = middle, tried
        self.upper_per_s = self.limit_per_s if high_per_s == highest_per_s else high_per_s * STEP
        # The result has the precision of any steady load. If a run does not reach it, or if a further run has
        # an overloaded cell, steps get longer.
        step = STEP
        while True:
            found = self.within_limit(low_per_s, PRECISION)
            if found is not None and self.is_confirmed(low_per_s):
                break
            low_per_s, step = low_per_s / step, step * step
        return low_per_s, found

    def is_confirmed(self, rate_per_s: float) -> bool:
        """Whether further runs at a rate, with other seeds, are within the limit and have no overloaded cell.
        True without cells.
        """
        if self.cells_limit is None:
            return True
        fleet = replace(self.settled(rate_per_s, PRECISION).fleet, max_events=None)
        for number, clients in enumerate(CONFIRMING_CLIENTS, start=1):
            settled = settle(replace(fleet, clients=clients))
            found = run(Job(self.one, None, settled, self.workers, (self.seed + number) % MAX_NUMBER))
            reached = None if found.precision is None else found.precision.reached
            # An overloaded cell with few of the clients hardly changes a percentile, but widens intervals.
            if reached is None or reached > TRIED_PRECISION or not self.meets_limit(found):
                return False
        self.confirmed_clients = sum(CONFIRMING_CLIENTS)
        return True

    def parts(self) -> list[SideCost]:
        """The work of both sides."""
        return [self.one.client, self.one.server, *self.after]

    def bounds(self, rate_per_s: float) -> Row:
        """A rate; an upper bound if work has no cost."""
        basis = known_basis(self.parts())
        if missing := missing_of(self.parts()):
            return upper_bound(self.upper_per_s if rate_per_s else rate_per_s, basis, missing)
        return simulated(rate_per_s, basis)

    def row(self) -> SimulatedCapacity:
        one = self.one
        rate_per_s, found = self.best()
        plain: dict[str, Any] = {
            **one.names,
            "kind": "simulated",
            "within_s": self.within_s,
            "percentile": self.percentile,
            "workers": self.workers,
            "cells": self.fleet.cells,
            "cells_limit_per_s": None if self.cells_limit is None else self.cells_limit.rate_per_s,
            "cells_limit_of": None if self.cells_limit is None else self.cells_limit.of,
            "from_idle": self.fleet.from_idle,
            "rate_per_s": None if rate_per_s is None else self.bounds(rate_per_s),
            "utilisation": None if found is None else found.utilisation.estimate,
            "ready_s": None if found is None else builtins(found.ready_s),
            "done_s": None if found is None else builtins(found.done_s),
            "limit_per_s": limit(one, self.workers, *self.after),
            "failed": None if found is None else self.failed(found),
            "modelled_rate_per_s": self.modelled,
            "clients": 0 if found is None else found.clients,
            "confirmed_clients": self.confirmed_clients,
            "precision": None if found is None else builtins(found.precision),
            "seed": self.seed,
            "handshake_bytes": one.handshake_bytes._asdict(),
            "unused_key_share_s": one.unused_key_share_s,
            "basis": self.cost_basis["basis"],
            "without_cost": self.cost_basis["without_cost"],
        }
        if found is not None and found.records is not UNSET:
            plain["records"] = builtins(found.records)
        return convert(plain, SimulatedCapacity)
