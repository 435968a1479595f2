"""How many handshakes a second a server takes within a promise, found by simulating: `capacity "
"--simulated`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.prediction.capacity import capacity_row
from shakedown.prediction.predict import each
from shakedown.prediction.scenario import Scenario as Priced
from shakedown.schema.base import builtins, convert
from shakedown.schema.simulated import FailedSimulatedCapacity, Simulated, SimulatedCapacity
from shakedown.simulation.deployment import Site
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job, run

CLIENTS = 50_000
"""Clients at each rate that is tried, in ten replications."""

PRECISION = 1.01
"""The search ends when the rates that keep and break the promise are no further apart."""

NEAR = 0.95
"""How near to the formula's answer the search begins."""

LOWEST = 1e-3
"""Rates below this share of saturation are as good as none."""

MAY_FAIL = 0.01
"""Share of clients that may fail where the promise is about a mean."""

PERCENTILES = (50.0, 90.0, 95.0, 99.0)


def simulated_capacity(
    suites: Sequence[str],
    site: Site,
    *,
    within_s: float,
    percentile: float | None = None,
    progress: Callable[[str], None] = lambda label: None,
) -> list[SimulatedCapacity | FailedSimulatedCapacity]:
    """Find the highest Poisson rate at which handshakes stay within a promise: one row a suite.

    Raises:
        InputError: naming what was wrong and what is accepted.
    """
    if not (math.isfinite(within_s) and within_s > 0.0):
        raise InputError(f"within is {within_s}; accepted: a time above 0")
    if percentile is not None and percentile not in PERCENTILES:
        accepted = ", ".join(f"{one:g}" for one in PERCENTILES)
        raise InputError(f"percentile is {percentile!r}; accepted where it is simulated: {accepted}")

    def one(suite: str) -> tuple[Priced, dict[str, Any]]:
        found = site.priced(suite)
        progress(found.trace.suite)
        search = _Search(found, within_s, percentile, site.server_workers, site.draws)
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
        self, one: Priced, within_s: float, percentile: float | None, workers: int, seed: int
    ) -> None:
        self.one, self.within_s, self.percentile = one, within_s, percentile
        self.workers, self.seed = workers, seed
        service_s = one.service_s.mean
        self.limit_per_s = workers / service_s if service_s > 0.0 else None
        self.modelled_per_s: float | None = capacity_row(one, within_s, percentile, workers)["rate_per_s"]

    def at(self, rate_per_s: float) -> Simulated:
        """The fleet at a rate."""
        settled = settle(Fleet(arrivals=f"poisson:{rate_per_s:.6g}/s", clients=CLIENTS))
        return run(Job(self.one, None, settled, self.workers, self.seed))

    def keeps(self, found: Simulated) -> bool:
        """Whether a fleet keeps the promise; who fails has broken it."""
        spread = found.ready_s
        value = spread.mean if self.percentile is None else getattr(spread, f"p{self.percentile:.0f}")
        may_fail = MAY_FAIL if self.percentile is None else 1.0 - self.percentile / 100.0
        failed = sum(found.failed.values()) / found.clients
        return value is not None and value <= self.within_s and failed <= may_fail

    def best(self) -> tuple[float | None, Simulated | None]:
        """The highest rate that keeps the promise, and the fleet at it."""
        if self.limit_per_s is None:
            return None, None
        low_per_s, high_per_s = LOWEST * self.limit_per_s, self.limit_per_s
        found: Simulated | None = None
        # The formula is seldom far off: begin on both sides of what it says.
        for guess in (NEAR * (self.modelled_per_s or 0.0), (self.modelled_per_s or 0.0) / NEAR):
            if low_per_s < guess < high_per_s:
                tried = self.at(guess)
                low_per_s, high_per_s = (guess, high_per_s) if self.keeps(tried) else (low_per_s, guess)
                found = tried if low_per_s == guess else found
        if found is None:
            found = self.at(low_per_s)
            if not self.keeps(found):
                return 0.0, None
        while high_per_s > low_per_s * PRECISION:
            # Where a promise is loose the answer lies near saturation: search there first.
            middle = (
                math.sqrt(low_per_s * high_per_s)
                if low_per_s < high_per_s / 4
                else (low_per_s + high_per_s) / 2
            )
            tried = self.at(middle)
            if self.keeps(tried):
                low_per_s, found = middle, tried
            else:
                high_per_s = middle
        return low_per_s, found

    def row(self) -> SimulatedCapacity:
        """The answer."""
        one = self.one
        rate_per_s, found = self.best()
        plain: dict[str, Any] = {
            "suite": one.trace.suite,
            "kind": "simulated",
            "server_device": one.server_device.name,
            "device": one.device.name,
            "bearer": one.bearer.name,
            "within_s": self.within_s,
            "percentile": self.percentile,
            "workers": self.workers,
            "rate_per_s": rate_per_s,
            "utilisation": None if found is None else found.utilisation,
            "ready_s": None if found is None else builtins(found.ready_s),
            "done_s": None if found is None else builtins(found.done_s),
            "limit_per_s": self.limit_per_s,
            "modelled_rate_per_s": self.modelled_per_s,
            "clients": CLIENTS,
            "seed": self.seed,
            "basis": one.basis,
            "unpriced": [*one.client.unpriced, *one.server.unpriced],
        }
        return convert(plain, SimulatedCapacity)
