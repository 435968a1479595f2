"""`openssl speed` next to what `devices measure --openssl` makes of the same library, for every size.

`make openssl-check` (six minutes of a quiet machine) alternates the two for each key type and size, on one
processor: a round as `devices measure` has it, beside a loop on the same processor, and a call of `openssl
speed` alone. Each pair gives a ratio. All pairs count: a slow time of the processor affects both sides alike.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

from shakedown.native.processors import placed, processors
from shakedown.prediction.cpu_contention import busy_neighbours, shared
from shakedown.prediction.other_openssl import SPEED, openssl_speed
from shakedown.profiles.costs import Triple

PAGE = Path(__file__).parent.parent / "docs" / "validation" / "capacity-check.md"
BEGIN, END = "<!-- openssl speed: made by make openssl-check -->", "<!-- end of openssl speed -->"
ROUNDS = 6
RESAMPLES, SEED = 2000, 1
TARGET = 1.1

Pairs = dict[Triple, list[tuple[float, float]]]


def measured(program: str, rounds: int) -> Pairs:
    """Microseconds as `devices measure` has them and of `openssl speed` alone, next to each other in time."""
    there, pairs = processors()[:1], Pairs()
    with busy_neighbours(), placed(there):
        for name in SPEED:
            for number in range(rounds):
                found: list[dict[Triple, float]] = []
                for beside in (True, False) if number % 2 else (False, True):
                    if beside:
                        with shared(there[0], 1):
                            ours = openssl_speed(program, name)
                        found.insert(0, ours)
                    else:
                        found.append(openssl_speed(program, name))
                if not found[0]:
                    break
                for triple, time_us in found[0].items():
                    pairs.setdefault(triple, []).append((time_us, found[1][triple]))
    return pairs


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of their median, by resampling."""
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def table(pairs: Pairs) -> str:
    """In Markdown, with a sentence on how many are within the target."""
    lines = [
        "| operation | `devices measure` (µs) | `openssl speed` (µs) | ratio | 95 % interval | n |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    medians = []
    for (operation, _, parameters), some in pairs.items():
        ratios = [ours / plain for ours, plain in some]
        medians.append(statistics.median(ratios))
        low, high = interval(ratios)
        figures = " | ".join(f"{statistics.median(one):,.1f}" for one in zip(*some, strict=True))
        ends = f"{low:.2f} – {high:.2f}"
        lines.append(f"| {operation} {parameters} | {figures} | {medians[-1]:.2f} | {ends} | {len(some)} |")
    near = sum(1.0 / TARGET <= one <= TARGET for one in medians)
    middle = math.exp(statistics.fmean(map(math.log, medians)))
    lines.append(f"\n{near} of {len(medians)} ratios are within 10 %; their geometric mean is {middle:.3f}.")
    return "\n".join(lines)


def main() -> None:
    """Measure, write the page's table, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--openssl", default="openssl", help="the program")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    text = table(measured(given.openssl, given.rounds))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
