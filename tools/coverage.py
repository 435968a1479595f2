"""How often the simulator's 95 % intervals hold the mean wait of M/M/1 or M/D/1, near saturation too.

    python -m tools.coverage --seeds 150
    python -m tools.coverage --seeds 150 --loads .98 .99 --service constant --precision 0.2

Each seed is a run of its own, of the length that the precision asks for. The row of a load gives how many
intervals hold Pollaczek and Khinchine's ρ s (1 + c²) / (2 (1 - ρ)), how many runs were as precise as asked,
and how many of those hold it. Exit status 1 where fewer than 90 % of the intervals of unmarked runs hold it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shakedown.native import virtual_time
from shakedown.simulation.fleet import (
    MAX_EVENTS,
    PRECISION,
    REPLICATIONS,
    REPLICATIONS_TO_PRECISION,
    WARMUP,
)

LOADS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
SERVICE_S = 0.01
CLIENTS = 100_000
"""Of the first run, as the command has them."""

MIN_HELD = 0.9


@dataclass(frozen=True)
class Result:
    """The runs at one load.

    Attributes:
        held: intervals that hold the exact mean; `fixed_held`: those of runs of the first length alone.
        met: runs that say that they are as precise as asked, `met_held` of which hold it.
        bias, fixed_bias: the mean of all runs over the exact one, less 1.
    """

    load: float
    seeds: int
    fixed_held: int
    fixed_bias: float
    held: int
    bias: float
    met: int
    met_held: int
    clients: int
    margin: float


SERVICES: dict[str, tuple[dict[str, Any], float]] = {
    "exponential": ({"kind": "exponential", "minimum_s": 0.0, "mean_s": SERVICE_S}, 1.0),
    "constant": ({"kind": "constant", "s": SERVICE_S}, 0.0),
}
"""Service times, and their squared coefficients of variation."""


def queue(work: dict[str, Any], load: float, seed: int, max_events: int, precision: float) -> dict[str, Any]:
    """A run's report: one kind of client, no network."""
    nothing = {"kind": "constant", "s": 0.0}
    request = {"from": "client", "name": "Request", "bytes": 1, "flight": 1}
    replications = REPLICATIONS_TO_PRECISION if max_events else REPLICATIONS
    each = CLIENTS // replications
    warmup = int(each * WARMUP)
    spec = {
        "classes": [
            {
                "handshake": {
                    "name": "customer",
                    "transport": "ideal",
                    "messages": [{**request, "generate": nothing, "process": work}],
                },
                "bearer": {"up_bits_per_s": None, "down_bits_per_s": None, "traversal_s": 0.0},
            }
        ],
        "clients": each + warmup,
        "warmup_clients": warmup,
        "arrivals": {"kind": "poisson", "per_s": load / SERVICE_S},
        "seed": seed,
        "replications": replications,
        "precision": {"relative": precision, "max_events": max_events},
    }
    return virtual_time.simulate(spec)


def check(
    loads: Sequence[float], seeds: int, max_events: int, service: str, precision: float
) -> Iterator[Result]:
    work, variation = SERVICES[service]
    for load in loads:
        exact_s = load * SERVICE_S * (1.0 + variation) / (2.0 * (1.0 - load))

        def holds(report: dict[str, Any], exact_s: float = exact_s) -> bool:
            wait = report["client_wait_s"]
            return bool(abs(wait["mean"] - exact_s) <= wait["mean_margin"])

        def bias(reports: Sequence[dict[str, Any]], exact_s: float = exact_s) -> float:
            return statistics.fmean(one["client_wait_s"]["mean"] for one in reports) / exact_s - 1.0

        fixed = [queue(work, load, seed, 0, precision) for seed in range(1, seeds + 1)]
        found = [queue(work, load, seed, max_events, precision) for seed in range(1, seeds + 1)]
        met = [one for one in found if one["precision"]["is_met"]]
        yield Result(
            load=load,
            seeds=seeds,
            fixed_held=sum(map(holds, fixed)),
            fixed_bias=bias(fixed),
            held=sum(map(holds, found)),
            bias=bias(found),
            met=len(met),
            met_held=sum(map(holds, met)),
            clients=round(statistics.median(one["clients"] for one in found)),
            margin=statistics.median(one["precision"]["reached"] for one in found),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; the exit status."""
    parser = argparse.ArgumentParser(
        prog="tools.coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=150)
    parser.add_argument("--loads", type=float, nargs="+", default=list(LOADS))
    parser.add_argument("--service", choices=SERVICES, default="exponential")
    parser.add_argument("--precision", type=float, default=PRECISION)
    parser.add_argument("--max-events", type=int, default=MAX_EVENTS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    print(
        "load  seeds | 100,000 clients: held   bias | to precision: held    bias   met  held"
        "   clients  margin"
    )
    results = []
    for one in check(given.loads, given.seeds, given.max_events, given.service, given.precision):
        results.append(one)
        print(
            f"{one.load:4.2f} {one.seeds:6} {one.fixed_held:23} {100 * one.fixed_bias:+6.1f} % "
            f"{one.held:19} {100 * one.bias:+6.1f} % {one.met:5} {one.met_held:5} {one.clients:9,} "
            f"{100 * one.margin:5.1f} %",
            flush=True,
        )
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=1) + "\n", encoding="utf-8")
    return int(any(one.met_held < MIN_HELD * one.met for one in results))


if __name__ == "__main__":
    sys.exit(main())
