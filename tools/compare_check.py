"""What `compare` and `check` find and what they do not: the first table of docs/validation/compare-check.md.

    python -m tools.compare_check

Draws data whose truth is known, and counts false alarms and what was found. Prints a table as Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shakedown.comparison.figures import Figure, Handshake, Readings
from shakedown.comparison.folders import MIN_RUNS
from shakedown.comparison.pairs import DEFAULT_BLOCKS, ORDERS, ROUNDS
from shakedown.comparison.verdicts import Pair, Rules, comparison
from shakedown.schema.comparison import Compared, Comparison

HANDSHAKE = Handshake("tls1.2/ecdhe_rsa+x25519/rsa2048/server", "openssl", "openssl", "bare", "generated")
SIGN = Figure("time", "server", "server", "ServerKeyExchange", operation="sign rsa rsa2048")
DRAWN = (
    *(Figure("time", side) for side in ("client", "server")),
    *(
        Figure("time", side, "server", message)
        for side in ("client", "server")
        for message in ("ServerHello", "Certificate", "ServerKeyExchange", "Finished")
    ),
    *(
        Figure("time", side, "server", "ServerHello", operation=f"op {n}")
        for side in ("client", "server")
        for n in range(15)
    ),
    SIGN,
)
"""Figures of a simulated comparison."""


@dataclass(frozen=True)
class Tally:
    """What comparisons of one kind said."""

    comparisons: int
    times: int
    alarms: int
    alarmed: int
    equivalent: int
    named: int
    half_width: float

    def cells(self) -> str:
        """Of a table."""
        return (
            f"{self.comparisons} | {self.times:,} | {self.alarms} ({self.alarms / max(1, self.times):.2%}) | "
            f"{self.alarmed} | {self.equivalent / max(1, self.times):.0%} | ±{self.half_width:.2%}"
        )


HEAD = "comparisons | times | called different | comparisons with any | equivalent | median interval"
RULE = "---: | ---: | ---: | ---: | ---: | ---:"


def tally(found: Sequence[Comparison], truth: Callable[[Compared], bool] = lambda row: False) -> Tally:
    """Alarms are differences that are none; a comparison names what is different where it says so of it."""
    times = [[row for row in one.rows if row.quantity == "time" and not row.reason] for one in found]
    every = [row for rows in times for row in rows]
    alarms = [[row for row in rows if row.verdict == "different" and not truth(row)] for rows in times]
    widths = [(row.upper - row.lower) / 2 for row in every if row.lower is not None and row.upper is not None]
    return Tally(
        comparisons=len(found),
        times=len(every),
        alarms=sum(map(len, alarms)),
        alarmed=sum(map(bool, alarms)),
        equivalent=sum(row.verdict == "equivalent" for row in every),
        named=sum(any(row.verdict == "different" and truth(row) for row in rows) for rows in times),
        half_width=median(widths) if widths else float("inf"),
    )


def machine(random: np.random.Generator, readings: int) -> NDArray[np.float64]:
    """A processor's time for the same work at each reading: drift, a step of 20 %, one in 20 disturbed."""
    times = np.arange(readings)
    step = 1 + 0.2 * (times > random.integers(readings))
    disturbed = np.where(random.random(readings) < 0.05, 1.3, 1.0)
    return step * (1 + 0.1 * times / readings) * disturbed


def simulated_pairs(
    random: np.random.Generator, *, noise: float, slower: float = 1.0, blocks: int = DEFAULT_BLOCKS
) -> Comparison:
    """As `compare --pair` would find it: processes differ by `noise` (sd), and so do readings of one."""
    pace = machine(random, blocks * ROUNDS * 4).reshape(blocks, ROUNDS, 4, 1)
    is_after = np.array(
        [[[letter == "B" for letter in ORDERS[(n + r) % 2]] for r in range(ROUNDS)] for n in range(blocks)]
    )[..., None]
    processes = random.normal(0, noise, (2, blocks, 1, 1, len(DRAWN)))
    readings = random.normal(0, noise, (blocks, ROUNDS, 4, len(DRAWN))) + np.log(pace)
    readings = readings + np.where(is_after, processes[1], processes[0])
    # As Block.difference: of each round's two readings of both, the median of the rounds.
    rounds = np.where(is_after, readings, -readings).sum(axis=2) / 2
    differences = np.median(rounds, axis=1) + _changes(slower)
    return _simulated(lambda at: {"differences": tuple(map(float, differences[:, at]))})


def simulated_runs(
    random: np.random.Generator, *, noise: float, slower: float = 1.0, runs: int = MIN_RUNS
) -> Comparison:
    """As `compare` would find it in two folders of so many runs, which differ by `noise` (sd)."""
    before, after = random.normal(0, noise, (2, runs, len(DRAWN)))
    after = after + _changes(slower)
    return _simulated(
        lambda at: {"groups": (tuple(map(float, before[:, at])), tuple(map(float, after[:, at])))}
    )


def _changes(slower: float) -> NDArray[np.float64]:
    return np.array([np.log(slower) if figure == SIGN else 0.0 for figure in DRAWN])


def _simulated(drawn: Callable[[int], Mapping[str, Any]]) -> Comparison:
    one = Readings("us", 10.0)
    every = [Pair((HANDSHAKE, HANDSHAKE), figure, one, one, **drawn(at)) for at, figure in enumerate(DRAWN)]
    return comparison("a", "b", every, Rules())


def simulated(count: int, seed: int, row: Sequence[str] | None = None) -> Iterator[str]:
    """False alarms and power by design, noise and change; one row alone has draws of its own."""
    random = np.random.default_rng(seed)
    designs: tuple[tuple[str, Callable[..., Comparison]], ...] = (
        (f"{DEFAULT_BLOCKS} blocks", simulated_pairs),
        (f"{MIN_RUNS} runs of each", simulated_runs),
    )
    yield f"| design | noise | change of one of {len(DRAWN)} | {HEAD} | found and named |"
    yield f"| --- | ---: | ---: | {RULE} | ---: |"
    for name, draw in designs:
        for noise, change in product((0.002, 0.005, 0.02), (0.0, 0.01, 0.02, 0.05)):
            if row is not None and (row[0] not in name or [noise, change] != list(map(float, row[1:]))):
                continue
            found = [draw(random, noise=noise, slower=1 + change) for _ in range(count)]
            truth = SIGN.operation if change else ""
            seen = tally(found, lambda one, truth=truth: one.operation == truth)
            named = f"{seen.named / count:.0%}" if change else "–"
            yield f"| {name} | {noise:.1%} | {change:.1%} | {seen.cells()} | {named} |"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=int, default=200, help="of each row")
    parser.add_argument("--seed", type=int, default=20_260_105)
    parser.add_argument(
        "--row", nargs=3, metavar=("DESIGN", "NOISE", "CHANGE"), help="one row: blocks 0.02 0.05"
    )
    given = parser.parse_args()
    for line in simulated(given.comparisons, given.seed, given.row):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
