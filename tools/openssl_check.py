"""`openssl speed` compared with `devices measure --openssl` for the same library, for every size.

`make openssl-check` (ten minutes and more) alternates the two for each key type and size, on one processor: a
round of `devices measure`, beside a loop on the same processor, and a call of `openssl speed` alone. Each
pair gives a ratio. All pairs count, because a slow time of the processor affects both sides equally. Pairs of
a size are repeated until the interval of the ratio decides whether it is within the target, at most
`MAX_ROUNDS` times.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
from bench.harness import bootstrap_median

from shakedown.models.arrays import Floats, floats
from shakedown.native.processors import placed, processors
from shakedown.prediction.cpu_contention import busy_neighbours, shared
from shakedown.prediction.other_openssl import RARE, SPEED, openssl_speed
from shakedown.profiles.costs import Triple
from tools import pages

PAGE = pages.VALIDATION / "capacity-check.md"
ROUNDS, MAX_ROUNDS = 6, 24
TARGET = 1.1

Pairs = dict[Triple, list[tuple[float, float]]]


def measured(program: str, rounds: int, limit: int) -> Pairs:
    """Microseconds by `devices measure` and by `openssl speed` alone, measured alternately in `rounds`
    rounds, and in up to `limit` rounds if these do not decide.
    """
    there, pairs = processors()[:1], Pairs()
    with busy_neighbours(), placed(there):
        for name in (*SPEED, *RARE):
            found: Pairs = {}
            for number in range(limit):
                if number >= rounds and all(map(decides, found.values())):
                    break
                ours, plain = _pair(program, name, there[0], ours_first=number % 2 == 1)
                if not ours:
                    break
                for triple, time_us in ours.items():
                    found.setdefault(triple, []).append((time_us, plain[triple]))
            pairs |= found
    return pairs


def _pair(
    program: str, name: str, processor: int, *, ours_first: bool
) -> tuple[dict[Triple, float], dict[Triple, float]]:
    """Both, one after another: beside the loop, and alone."""
    plain = {} if ours_first else openssl_speed(program, name)
    with shared([processor]):
        ours = openssl_speed(program, name)
    return ours, openssl_speed(program, name) if ours_first else plain


def ratios(some: Sequence[tuple[float, float]]) -> Floats:
    """The ratio of each pair."""
    readings = floats(some)
    return floats(readings[:, 0] / readings[:, 1])


def within(ends: tuple[float, float]) -> bool:
    """Whether all of an interval is within the target."""
    return ends[0] >= 1.0 / TARGET and ends[1] <= TARGET


def beyond(ends: tuple[float, float]) -> bool:
    """Whether the whole interval is outside the target."""
    return ends[1] < 1.0 / TARGET or ends[0] > TARGET


def decides(some: Sequence[tuple[float, float]]) -> bool:
    """Whether pairs show that their ratio is within the target, or that it is not."""
    ends = bootstrap_median(ratios(some))
    return within(ends) or beyond(ends)


def table(pairs: Pairs) -> str:
    """The table in Markdown, with a sentence on how many ratios are within the target."""
    rows, medians, ends = [], [], []
    for (operation, _, parameters), some in pairs.items():
        found = ratios(some)
        medians.append(float(np.median(found)))
        ends.append(bootstrap_median(found))
        times = (f"{statistics.median(one):,.1f}" for one in zip(*some, strict=True))
        ratio = (f"{medians[-1]:.2f}", "{:.2f} – {:.2f}".format(*ends[-1]))
        rows.append((f"{operation} {parameters}", *times, *ratio, str(len(some))))
    near = sum(1.0 / TARGET <= one <= TARGET for one in medians)
    middle = math.exp(statistics.fmean(map(math.log, medians)))
    inside, outside = (sum(map(of, ends)) for of in (within, beyond))
    head = "operation | >`devices measure` (µs) | >`openssl speed` (µs) | >ratio | >95 % interval | >n"
    return (
        f"{pages.table(head, rows)}\n\n"
        f"{near} of {len(medians)} ratios are within 10 %; their geometric mean is {middle:.3f}. The whole "
        f"interval is within 10 % for {inside}, beyond for {outside}; {len(ends) - inside - outside} remain "
        "undecided."
    )


def main() -> None:
    """Measure, write the page's table, and print it."""
    parser = pages.options("openssl_check", __doc__)
    parser.add_argument("--openssl", default="openssl", help="the program")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--limit", type=int, default=MAX_ROUNDS, help="rounds where the first decide nothing")
    given = parser.parse_args()
    text = table(measured(given.openssl, given.rounds, given.limit))
    pages.write(PAGE, "openssl speed: made by make openssl-check", text)
    print(text)


if __name__ == "__main__":
    main()
