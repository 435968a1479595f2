"""Coverage of the mean wait of M/M/1 or M/D/1 by the simulator's 95 % intervals, also near saturation.

    python -m tools.coverage --seeds 150
    python -m tools.coverage --seeds 150 --loads .98 .99 --service constant --precision 0.2

Each seed is a run of its own, of the length that the precision needs. The row of a load has the number of
intervals that contain Pollaczek and Khinchine's ρ s (1 + c²) / (2 (1 - ρ)), the number of runs that reach the
precision, and how many of these contain it. The exit status is 1 if fewer than 90 % of the intervals of
unmarked runs contain it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from shakedown.native import virtual_time
from shakedown.prediction.spec import message_spec
from shakedown.simulation.fleet import (
    MAX_EVENTS,
    PRECISION,
    REPLICATIONS,
    REPLICATIONS_TO_PRECISION,
    WARMUP,
)
from tools import ideal, pages

LOADS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
SERVICE_S = 0.01
CLIENTS = 100_000
"""Clients of the first run, as in the command."""

MIN_HELD = 0.9
SERVICES: dict[str, tuple[dict[str, Any], float]] = {
    "exponential": ({"kind": "exponential", "minimum_s": 0.0, "mean_s": SERVICE_S}, 1.0),
    "constant": ({"kind": "constant", "s": SERVICE_S}, 0.0),
}
"""Service times, and their squared coefficients of variation."""


def queue(work: dict[str, Any], load: float, seed: int, max_events: int, precision: float) -> dict[str, Any]:
    """A run's report: one kind of client, no network."""
    replications = REPLICATIONS_TO_PRECISION if max_events else REPLICATIONS
    each = CLIENTS // replications
    warmup = int(each * WARMUP)
    return virtual_time.simulate(
        {
            "classes": [ideal.clients([message_spec("client", "Request", 1, flight=1, process=work)])],
            "clients": each + warmup,
            "warmup_clients": warmup,
            "arrivals": {"kind": "poisson", "per_s": load / SERVICE_S},
            "seed": seed,
            "replications": replications,
            "precision": {"relative": precision, "max_events": max_events},
        }
    )


def check(load: float, given: argparse.Namespace) -> tuple[str, bool]:
    """A line of the table, and whether enough intervals of unmarked runs contain the exact mean."""
    work, variation = SERVICES[given.service]
    exact_s = load * SERVICE_S * (1.0 + variation) / (2.0 * (1.0 - load))
    fixed, found = (
        [queue(work, load, seed, events, given.precision) for seed in range(1, given.seeds + 1)]
        for events in (0, given.max_events)
    )

    def held(reports: list[dict[str, Any]]) -> int:
        waits = [one["client_wait_s"] for one in reports]
        return sum(abs(wait["mean"] - exact_s) <= wait["mean_margin"] for wait in waits)

    def bias(reports: list[dict[str, Any]]) -> float:
        return 100 * (statistics.fmean(one["client_wait_s"]["mean"] for one in reports) / exact_s - 1.0)

    met = [one for one in found if one["precision"]["is_met"]]
    clients = round(statistics.median(one["clients"] for one in found))
    margin = statistics.median(one["precision"]["reached"] for one in found)
    line = (
        f"{load:4.2f} {given.seeds:6} {held(fixed):23} {bias(fixed):+6.1f} % {held(found):19} "
        f"{bias(found):+6.1f} % {len(met):5} {held(met):5} {clients:9,} {100 * margin:5.1f} %"
    )
    return line, held(met) >= MIN_HELD * len(met)


def main() -> int:
    """Run the tool; return the exit status."""
    parser = pages.options("coverage", __doc__)
    parser.add_argument("--seeds", type=int, default=150)
    parser.add_argument("--loads", type=float, nargs="+", default=list(LOADS))
    parser.add_argument("--service", choices=SERVICES, default="exponential")
    parser.add_argument("--precision", type=float, default=PRECISION)
    parser.add_argument("--max-events", type=int, default=MAX_EVENTS)
    given = parser.parse_args()
    print(
        "load  seeds | 100,000 clients: held   bias | to precision: held    bias   met  held"
        "   clients  margin"
    )
    good = True
    for load in given.loads:
        line, enough = check(load, given)
        print(line, flush=True)
        good &= enough
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
