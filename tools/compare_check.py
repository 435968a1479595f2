"""Detection by `compare` and `check`: the tables of docs/validation/compare-check.md.

    python -m tools.compare_check simulated   drawn data whose truth is known: false alarms and power
    python -m tools.compare_check pairs       one build in pairs, with a slower primitive, and as runs
    python -m tools.compare_check counts      instructions: ten counts, 30 checks of one budget, 0.2 % more

Each part prints its table. `counts` needs valgrind and a C compiler. On a busy machine times are noisy, so
intervals are wider and fewer changes are found; false alarms do not increase.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench.harness import output

from shakedown.comparison import pairs
from shakedown.comparison.budgets import check_budgets, recorded
from shakedown.comparison.figures import Figure, Figures, Handshake, Readings
from shakedown.comparison.folders import MIN_RUNS, run_pairs
from shakedown.comparison.pairs import DEFAULT_BLOCKS, ORDERS, ROUNDS, Block, Reading, compared
from shakedown.comparison.verdicts import Pair, comparison
from shakedown.models.arrays import Floats
from shakedown.native import counted
from shakedown.schema.budget import CheckedLimit
from shakedown.schema.comparison import Compared, Comparison, Method
from tools import pages

SUITES = ("tls1.2/ecdhe_rsa+x25519/rsa2048/server", "tls1.3/x25519/p256/server")
SLOWER = (0.01, 0.05, 0.1)
"""Relative slowdowns of a primitive."""
SELF_COMPARISONS = 10
"""Comparisons of one build with itself."""
CHECKS = 30
MORE_INSTRUCTIONS = 0.002

HANDSHAKE = Handshake(SUITES[0], "openssl", "openssl", "bare", "generated")
SIGN = Figure("time", "server", "server", "ServerKeyExchange", operation="sign rsa rsa2048")
SIMULATED_FIGURES = (
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
    """The results of comparisons of one kind."""

    comparisons: int
    times: int
    alarms: int
    alarmed: int
    equivalent: int
    named: int
    half_width: float

    def cells(self) -> str:
        """The cells of a table."""
        return (
            f"{self.comparisons} | {self.times:,} | {self.alarms} ({self.alarms / max(1, self.times):.2%}) | "
            f"{self.alarmed} | {self.equivalent / max(1, self.times):.0%} | ±{self.half_width:.2%}"
        )


HEAD = "comparisons | times | called different | comparisons with any | equivalent | median interval"
RULE = "---: | ---: | ---: | ---: | ---: | ---:"


def tally(found: Sequence[Comparison], truth: Callable[[Compared], bool] = lambda row: False) -> Tally:
    """False alarms, and comparisons that name the true difference; `truth`: whether a row really differs."""
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


def machine(random: np.random.Generator, readings: int) -> Floats:
    """A processor's time for the same work at each reading: drift, a 20 % step, one in 20 slower by 30 %."""
    times = np.arange(readings)
    step = 1 + 0.2 * (times > random.integers(readings))
    disturbed = np.where(random.random(readings) < 0.05, 1.3, 1.0)
    return step * (1 + 0.1 * times / readings) * disturbed


def simulated_pairs(random: np.random.Generator, *, noise: float, slower: float = 1.0) -> Comparison:
    """A simulated `compare --pair`: processes differ by `noise` (sd), and so do readings of one process."""
    blocks = DEFAULT_BLOCKS
    pace = machine(random, blocks * ROUNDS * 4).reshape(blocks, ROUNDS, 4, 1)
    is_after = np.array(
        [[[letter == "B" for letter in ORDERS[(n + r) % 2]] for r in range(ROUNDS)] for n in range(blocks)]
    )[..., None]
    processes = random.normal(0, noise, (2, blocks, 1, 1, len(SIMULATED_FIGURES)))
    readings = random.normal(0, noise, (blocks, ROUNDS, 4, len(SIMULATED_FIGURES))) + np.log(pace)
    readings = readings + np.where(is_after, processes[1], processes[0])
    # As in Block.difference: the median over rounds of the difference of each round's readings.
    rounds = np.where(is_after, readings, -readings).sum(axis=2) / 2
    differences = np.median(rounds, axis=1) + _changes(slower)
    return _simulated(lambda at: {"differences": tuple(map(float, differences[:, at]))})


def simulated_runs(random: np.random.Generator, *, noise: float, slower: float = 1.0) -> Comparison:
    """A simulated `compare` of two folders with `MIN_RUNS` runs, which differ by `noise` (sd)."""
    before, after = random.normal(0, noise, (2, MIN_RUNS, len(SIMULATED_FIGURES)))
    after = after + _changes(slower)
    return _simulated(lambda at: {"groups": tuple(tuple(map(float, one[:, at])) for one in (before, after))})


def _changes(slower: float) -> Floats:
    return np.array([np.log(slower) if figure == SIGN else 0.0 for figure in SIMULATED_FIGURES])


def _simulated(drawn: Callable[[int], Mapping[str, Any]]) -> Comparison:
    one = Readings("us", 10.0)
    every = [
        Pair((HANDSHAKE, HANDSHAKE), figure, one, one, **drawn(at))
        for at, figure in enumerate(SIMULATED_FIGURES)
    ]
    return comparison("a", "b", every, Method())


def simulated(count: int, seed: int, row: Sequence[str] | None = None) -> Iterator[str]:
    """False alarms and power by design, noise and change; a single row has its own random draws."""
    random = np.random.default_rng(seed)
    designs: tuple[tuple[str, Callable[..., Comparison]], ...] = (
        (f"{DEFAULT_BLOCKS} blocks", simulated_pairs),
        (f"{MIN_RUNS} runs of each", simulated_runs),
    )
    yield f"| design | noise | change of one of {len(SIMULATED_FIGURES)} | {HEAD} | found and named |"
    yield f"| --- | ---: | ---: | {RULE} | ---: |"
    for name, draw in designs:
        for noise, change in product((0.002, 0.005, 0.02), (0.0, 0.01, 0.02, 0.05)):
            if row is not None and (row[0] not in name or [noise, change] != list(map(float, row[1:]))):
                continue
            found = [draw(random, noise=noise, slower=1 + change) for _ in range(count)]
            seen = tally(found, lambda one: one.operation == SIGN.operation) if change else tally(found)
            named = f"{seen.named / count:.0%}" if change else "–"
            yield f"| {name} | {noise:.1%} | {change:.1%} | {seen.cells()} | {named} |"


def seeded(blocks: Sequence[Block], operation: str, by: float) -> list[Block]:
    """The same blocks with one operation of the server slower in every reading of the second condition, and
    with it the operation's message and the handshake.
    """
    return [replace(block, after=[_slower(one, operation, by) for one in block.after]) for block in blocks]


def _slower(reading: Reading, operation: str, by: float) -> Reading:
    return {handshake: _slower_figures(figures, operation, by) for handshake, figures in reading.items()}


def _slower_figures(figures: Figures, operation: str, by: float) -> Figures:
    (key,) = (
        one
        for one in figures
        if one.quantity == "time" and one.side == "server" and (one.operation or "").startswith(operation)
    )
    more = figures[key].median * by
    whole = {key, key._replace(operation=None), Figure("time", "server")}
    return {
        one: replace(value, median=value.median + more) if one in whole else value
        for one, value in figures.items()
    }


def real_pairs() -> Iterator[str]:
    """One build in pairs, unchanged and with a slower signature."""
    yield f"| suite | the server's signature | {HEAD} | found and named |"
    yield f"| --- | ---: | {RULE} | ---: |"
    every: dict[str, list[list[Block]]] = {}
    for suite in SUITES:
        measured = every.setdefault(suite, [])
        for number in range(SELF_COMPARISONS):
            one = pairs.condition(suite)
            blocks = pairs.measured_blocks(one, one, DEFAULT_BLOCKS, lambda done, label: None)
            measured.append(list(blocks))
            print(f"{number + 1} of {SELF_COMPARISONS}: {suite}", file=sys.stderr)
        yield from pair_rows(suite, measured)
    yield ""
    yield from run_rows(every)


def pair_rows(suite: str, measured: Sequence[list[Block]]) -> Iterator[str]:
    """The rows of measured blocks, unchanged and with a slower signature."""
    for by in (0.0, *SLOWER):
        found = [compared(suite, suite, seeded(blocks, "sign ", by), rules=Method()) for blocks in measured]
        seen = tally(found, is_of_signature) if by else tally(found)
        named = f"{seen.named} of {len(found)}" if by else "–"
        yield f"| `{suite}` | +{by:.0%} | {seen.cells()} | {named} |"


def is_of_signature(row: Compared) -> bool:
    """Whether the row contains the server's signature, which is slower: operation, message, handshake."""
    if row.side != "server" or row.sender not in (None, "server"):
        return False
    if row.operation is not None:
        return row.operation.startswith("sign ")
    return row.message in (None, "ServerKeyExchange", "CertificateVerify")


def run_rows(measured: Mapping[str, Sequence[list[Block]]]) -> Iterator[str]:
    """The first condition's processes as runs of one build, compared like those of folders."""
    found: defaultdict[str, list[Comparison]] = defaultdict(list)
    changes: list[float] = []
    for comparisons in measured.values():
        for blocks in comparisons:
            (handshake,) = blocks[0].before[0]
            runs = [pairs.medians(block.before, handshake) for block in blocks]

            for one, other in pairwise(runs):
                single = of_runs(handshake, [one], [other], floor=0.03)
                found["one of each, with a floor of 3 %"].append(single)
                changes += [abs(row.change) for row in single.rows if row.quantity == "time" and row.change]
            for name, before, after in (
                ("alternately", runs[: 2 * MIN_RUNS : 2], runs[1 : 2 * MIN_RUNS : 2]),
                ("one after the other", runs[:MIN_RUNS], runs[MIN_RUNS : 2 * MIN_RUNS]),
            ):
                found[f"{MIN_RUNS} of each, {name}"].append(of_runs(handshake, before, after))
    yield f"| runs | {HEAD} |"
    yield f"| --- | {RULE} |"
    for name, some in found.items():
        yield f"| {name} | {tally(some).cells()} |"
    yield ""
    changes.sort()
    places = {"median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    yield "Change of a time from one run to the next: " + ", ".join(
        f"{name} {changes[int(share * (len(changes) - 1))]:.1%}" for name, share in places.items()
    )


def of_runs(
    handshake: Handshake, before: Sequence[Figures], after: Sequence[Figures], floor: float = 0.0
) -> Comparison:
    """The result of `compare` for folders of such runs."""
    rules = Method(floor=floor)
    return comparison("a", "b", run_pairs(handshake, before, after, rules, None), rules)


SHIM = """
#include <stddef.h>
extern void *__libc_malloc(size_t);
void *malloc(size_t size) {
    __asm__ volatile(".rept " COUNT "\\n nop\\n .endr");
    return __libc_malloc(size);
}
"""
"""Adds a number of instructions to each allocation."""


@contextmanager
def more_work(instructions: int) -> Iterator[None]:
    """Count instructions with `instructions` more in each allocation."""
    usual, valgrind = os.environ["PATH"], counted.valgrind()
    with tempfile.TemporaryDirectory() as folder:
        source, library, program = (Path(folder) / name for name in ("shim.c", "shim.so", "valgrind"))
        source.write_text(SHIM)
        flags = ("-O1", "-shared", "-fPIC", f'-DCOUNT="{instructions}"')
        output("cc", *flags, "-o", library, source)
        program.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {valgrind} "$@"\n')
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{usual}"
        try:
            yield
        finally:
            os.environ["PATH"] = usual


def counts() -> Iterator[str]:
    """Differences between counts of one build, and the results of `check`."""
    suites = (("openssl", SUITES[1]), ("wtls", "wtls/ecdh_ecdsa/163k/server"), ("rustls", SUITES[1]))
    yield "| counted ten times | different counts of a side | by up to | messages and operations, by up to |"
    yield "| --- | ---: | ---: | ---: |"
    for stack, suite in suites:
        options = {"client_stack": stack, "server_stack": stack}
        found = [counted.count_instructions(suite, options) for _ in range(SELF_COMPARISONS)]
        print(f"{stack}: counted", file=sys.stderr)
        whole = [[one.client.median for one in found], [one.server.median for one in found]]
        parts = [
            *([one.messages[at].generate for one in found] for at in range(len(found[0].messages))),
            *([one.messages[at].process for one in found] for at in range(len(found[0].messages))),
            *([one.operations[at].instructions for one in found] for at in range(len(found[0].operations))),
        ]
        distinct = max(len(set(some)) for some in whole)
        yield f"| {stack}, `{suite}` | {distinct} | {_spread(whole):.3%} | {_spread(parts):.2%} |"
    with tempfile.TemporaryDirectory() as folder:
        budget = Path(folder) / "budget.toml"
        budget.write_text(recorded([SUITES[1]]))
        yield ""
        yield "| `check` of one build | limits | exceeded |"
        yield "| --- | ---: | ---: |"
        checked: list[CheckedLimit] = []
        for number in range(CHECKS):
            checked += check_budgets(budget)
            print(f"check {number + 1} of {CHECKS}", file=sys.stderr)
        yield f"| {CHECKS} times as it is | {len(checked)} | {sum(one.fails for one in checked)} |"
        base = _instructions(check_budgets(budget))
        with more_work(0):
            none = _instructions(check_budgets(budget))
        with more_work(100):
            hundred = _instructions(check_budgets(budget))
        slope = {side: (hundred[side] - none[side]) / 100 for side in base}
        least = max(((1 + MORE_INSTRUCTIONS) * base[side] - none[side]) / slope[side] for side in base)
        with more_work(max(0, math.ceil(least))):
            more = check_budgets(budget)
        by = ", ".join(f"{side} {_instructions(more)[side] / base[side] - 1:+.2%}" for side in base)
        yield f"| with more work in each allocation: {by} | {len(more)} | {sum(one.fails for one in more)} |"


def _instructions(checked: Sequence[CheckedLimit]) -> dict[str, float]:
    return {
        one.quantity.removesuffix("_instructions"): one.found
        for one in checked
        if one.quantity.endswith("_instructions") and one.found is not None
    }


def _spread(figures: Sequence[Sequence[float]]) -> float:
    """The largest range of a figure, as a share of it."""
    return max((max(some) - min(some)) / max(1, min(some)) for some in figures)


def main() -> int:
    """Print the table of a part."""
    parser = pages.options("compare_check", __doc__)
    parser.add_argument("part", choices=("simulated", "pairs", "counts"))
    parser.add_argument("--comparisons", type=int, default=200, help="of each row of `simulated`")
    parser.add_argument("--seed", type=int, default=20_260_105, help="of `simulated`")
    parser.add_argument(
        "--row", nargs=3, metavar=("DESIGN", "NOISE", "CHANGE"), help="one row: blocks 0.02 0.05"
    )
    given = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "simulated": lambda: simulated(given.comparisons, given.seed, given.row),
        "pairs": real_pairs,
        "counts": counts,
    }
    for line in parts[given.part]():
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
