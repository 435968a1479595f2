"""`openssl speed` next to what `devices measure --openssl` makes of the same library, for every size.

`make openssl-check` (some minutes of a quiet machine) alternates the two for each key type and size: a round
as `devices measure` has it (beside the loop of `shakedown.prediction.processor_speed`), and a call of
`openssl speed` alone on the same processor, between two such loops. Of each the times at full speed count. A
row has the ratio of the medians, with a 95 % interval from resampling both, and how many rounds count.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from shakedown.native.processors import placed, processors
from shakedown.prediction.cpu_contention import busy_neighbours, shared
from shakedown.prediction.other_openssl import SPEED, _speed
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles.costs import Triple

PAGE = Path(__file__).parent.parent / "docs" / "validation" / "capacity-check.md"
BEGIN, END = "<!-- openssl speed: made by make openssl-check -->", "<!-- end of openssl speed -->"
ROUNDS = 2
RESAMPLES, SEED = 2000, 1
TARGET = 1.1

Rounds = dict[Triple, list[Timed[float]]]


def measured(program: str, rounds: int) -> dict[Triple, tuple[list[float], list[float]]]:
    """Microseconds at full speed: as `devices measure` has them, and of `openssl speed` alone."""
    there, pairs = processors()[:1], []
    with busy_neighbours(), placed(there):
        alone, beside = Speed.warmed_up(), Speed()
        for name in SPEED:
            ours: Rounds = {}
            plain: Rounds = {}
            call = partial(_speed, program, name)
            for _ in range(rounds):
                with shared(there[0], 1) as meter:
                    _keep(ours, meter.timed(call, beside))
                _keep(plain, alone.flanked(call))
                if not ours:
                    break
            pairs.append((ours, plain))
    return {
        triple: (beside.at_full(ours[triple]), alone.at_full(plain[triple]))
        for ours, plain in pairs
        for triple in ours
        if triple in plain
    }


def _keep(found: Rounds, timed: Timed[dict[Triple, float]]) -> None:
    for triple, time_us in timed.found.items():
        found.setdefault(triple, []).append(Timed(time_us, timed.loop_s))


def interval(ours: Sequence[float], plain: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the ratio of the medians."""
    draw = random.Random(SEED)
    ratios = sorted(
        statistics.median(draw.choices(ours, k=len(ours)))
        / statistics.median(draw.choices(plain, k=len(plain)))
        for _ in range(RESAMPLES)
    )
    return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40]


def table(found: dict[Triple, tuple[list[float], list[float]]]) -> str:
    """In Markdown, with a sentence on how many are within the target."""
    lines = [
        "| operation | `devices measure` (µs) | n | `openssl speed` (µs) | n | ratio | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    near = 0
    for (operation, _, parameters), (ours, plain) in found.items():
        ratio = statistics.median(ours) / statistics.median(plain)
        near += 1.0 / TARGET <= ratio <= TARGET
        low, high = interval(ours, plain)
        figures = " | ".join(f"{statistics.median(one):,.1f} | {len(one)}" for one in (ours, plain))
        lines.append(f"| {operation} {parameters} | {figures} | {ratio:.2f} | {low:.2f} – {high:.2f} |")
    lines.append(f"\n{near} of {len(found)} ratios are within 10 %.")
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
