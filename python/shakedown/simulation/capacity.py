"""How many handshakes a second a server takes within a promise, found by simulating: `capacity "
"--simulated`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET

from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.prediction.bounds import most, simulated
from shakedown.prediction.capacity import capacity_row, limit
from shakedown.prediction.predict import Row, each
from shakedown.prediction.prices import known_basis
from shakedown.prediction.scenario import Scenario as Priced
from shakedown.schema.base import builtins, convert
from shakedown.schema.simulated import FailedSimulatedCapacity, Simulated, SimulatedCapacity
from shakedown.simulation.deployment import Site
from shakedown.simulation.fleet import PRECISION, Settled, settle
from shakedown.simulation.simulate import Job, after_handshake, missing_of, run, stands_on
from shakedown.simulation.spec import Client, mean_work_s

MAX_EVENTS, MAX_EVENTS_TRIED = 200_000_000, 100_000_000
"""At the rate that is answered, and at each that is tried: half a minute of one processor at most."""

REPLICATIONS = 10
"""Of each run: the fewer there are, the fewer warm-ups, which are long near saturation."""

DOUBT = 0.2
"""Relative precision with which a rate is tried first."""

SURE, CLOSER = 1.5, 0.1
"""Margins from the promise at which it is decided; nearer, the rate is simulated more precisely."""

STEP = 1.01
"""The search ends when the rates that keep and break the promise are no further apart."""

NEAR = 0.95
"""How near to the formula's answer the search begins."""

LOWEST = 1e-3
"""Rates below this share of saturation count as zero."""

MAY_FAIL = 0.01
"""Share of clients that may fail where the promise is about a mean."""

PERCENTILES = (50.0, 90.0, 95.0, 99.0)


def simulated_capacity(
    suites: Sequence[str],
    site: Site,
    *,
    within_s: float,
    percentile: float | None = None,
    records: str | None = None,
    progress: Callable[[str], None] = lambda label: None,
) -> list[SimulatedCapacity | FailedSimulatedCapacity]:
    """Find the highest Poisson rate at which handshakes stay within a promise: one row a suite.

    `records` is what each client sends after its handshake, as `Fleet` has it: the server's work on it counts
    at each rate.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    if not (math.isfinite(within_s) and within_s > 0.0):
        raise InputError(f"within is {within_s}; accepted: a time above 0")
    if percentile is not None and percentile not in PERCENTILES:
        accepted = ", ".join(f"{one:g}" for one in PERCENTILES)
        raise InputError(f"percentile is {percentile!r}; accepted where it is simulated: {accepted}")

    settle(Fleet(arrivals="poisson:1/s", records=records))

    def one(suite: str) -> tuple[Priced, dict[str, Any]]:
        found = site.priced(suite)
        progress(found.trace.suite)
        search = _Search(found, within_s, percentile, site.server_workers, site.draws, records)
        return found, {"row": search.row()}

    rows: list[SimulatedCapacity | FailedSimulatedCapacity] = []
    for _, found in each(suites, one, site.names):
        if "row" in found:
            rows.append(found["row"])
        else:
            rows.append(convert(found, FailedSimulatedCapacity))
    return rows


class _Search:
    """Bisection on a logarithmic scale; every rate has the same draws, so that a higher one is no luckier."""

    def __init__(
        self,
        one: Priced,
        within_s: float,
        percentile: float | None,
        workers: int,
        seed: int,
        records: str | None,
    ) -> None:
        self.one, self.within_s, self.percentile = one, within_s, percentile
        self.workers, self.seed, self.records = workers, seed, records
        self.client = Client(one)
        any_rate = self.settled(1.0, DOUBT)
        self.stands_on = stands_on(self.client, any_rate)
        self.after = after_handshake(self.client, any_rate)
        service_s = mean_work_s([self.client], any_rate)
        self.limit_per_s = workers / service_s if service_s > 0.0 else None
        modelled = capacity_row(one, within_s, percentile, workers)["rate_per_s"]
        found = modelled or {"estimate": 0.0}
        # With what clients send later the formula tells where to begin, and no more.
        share = one.service_s.mean / service_s if service_s > 0.0 else 1.0
        self.modelled = modelled if records is None else None
        self.modelled_per_s: float = (found["estimate"] or found["upper"] or 0.0) * share

    def settled(self, rate_per_s: float, precision: float) -> Settled:
        """What is simulated at a rate."""
        fleet = Fleet(
            arrivals=f"poisson:{rate_per_s:.6g}/s",
            precision=precision,
            max_events=MAX_EVENTS if precision <= PRECISION else MAX_EVENTS_TRIED,
            replications=REPLICATIONS,
            records=self.records,
        )
        return settle(fleet)

    def at(self, rate_per_s: float, precision: float) -> Simulated:
        """The fleet at a rate."""
        return run(Job(self.one, None, self.settled(rate_per_s, precision), self.workers, self.seed))

    def keeps(self, rate_per_s: float, precision: float = DOUBT) -> Simulated | None:
        """The fleet at a rate whose whole interval keeps the promise; None where it may be broken."""
        while True:
            found = self.at(rate_per_s, precision)
            value_s, margin_s = self.promised(found)
            off = (self.within_s - value_s) / margin_s if margin_s > 0.0 else math.inf
            known = found.precision is not None and found.precision.is_settled
            if precision <= CLOSER or (known and abs(off) > SURE):
                break
            precision = CLOSER
        may_fail = MAY_FAIL if self.percentile is None else 1.0 - self.percentile / 100.0
        failed = sum(found.failed.values()) / found.clients
        kept = known and value_s + margin_s <= self.within_s and failed <= may_fail
        return found if kept else None

    def promised(self, found: Simulated) -> tuple[float, float]:
        """The promise's figure and half the width of its 95 % interval."""
        spread = found.ready_s
        if self.percentile is None:
            value_s, margin_s = spread.mean, spread.margin
        else:
            value_s, margin_s = (getattr(spread, f"p{self.percentile:.0f}{end}") for end in ("", "_margin"))
        return (math.inf if value_s is None else value_s), margin_s or 0.0

    def best(self) -> tuple[float | None, Simulated | None]:
        """The highest rate that keeps the promise, and the fleet at it."""
        if self.limit_per_s is None:
            return None, None
        # Nearer to saturation no run of acceptable length can decide whether the limit is met.
        low_per_s, high_per_s = LOWEST * self.limit_per_s, self.limit_per_s / STEP
        found: Simulated | None = None
        # The formula is seldom far off: begin on both sides of what it says.
        for guess in (NEAR * self.modelled_per_s, self.modelled_per_s / NEAR):
            if low_per_s < guess < high_per_s:
                tried = self.keeps(guess)
                low_per_s, high_per_s = (low_per_s, guess) if tried is None else (guess, high_per_s)
                found = tried or found
        if found is None:
            found = self.keeps(low_per_s)
            if found is None:
                return 0.0, None
        while high_per_s > low_per_s * STEP:
            # Where a promise is loose the answer lies near saturation: search there first.
            middle = (
                math.sqrt(low_per_s * high_per_s)
                if low_per_s < high_per_s / 4
                else (low_per_s + high_per_s) / 2
            )
            tried = self.keeps(middle)
            if tried is None:
                high_per_s = middle
            else:
                low_per_s, found = middle, tried
        # The result has the precision of any steady load.
        while (found := self.keeps(low_per_s, PRECISION)) is None:
            low_per_s /= STEP
        return low_per_s, found

    def bounds(self, rate_per_s: float) -> Row:
        """A rate; with work that has no cost, it is the most."""
        parts = [self.one.client, self.one.server, *self.after]
        basis = known_basis(parts)
        if missing := missing_of(parts):
            return most(rate_per_s, basis, missing)
        return simulated(rate_per_s, basis)

    def row(self) -> SimulatedCapacity:
        """The answer."""
        one = self.one
        rate_per_s, found = self.best()
        plain: dict[str, Any] = {
            "suite": one.trace.suite,
            "kind": "simulated",
            "server_device": one.server_device.name,
            "server_software": one.software,
            "device": one.device.name,
            "bearer": one.bearer.name,
            "within_s": self.within_s,
            "percentile": self.percentile,
            "workers": self.workers,
            "rate_per_s": None if rate_per_s is None else self.bounds(rate_per_s),
            "utilisation": None if found is None else found.utilisation.estimate,
            "ready_s": None if found is None else builtins(found.ready_s),
            "done_s": None if found is None else builtins(found.done_s),
            "limit_per_s": limit(one, self.workers, *self.after),
            "modelled_rate_per_s": self.modelled,
            "clients": 0 if found is None else found.clients,
            "precision": None if found is None else builtins(found.precision),
            "seed": self.seed,
            "basis": self.stands_on["basis"],
            "without_cost": self.stands_on["without_cost"],
        }
        if found is not None and found.records is not UNSET:
            plain["records"] = builtins(found.records)
        return convert(plain, SimulatedCapacity)
