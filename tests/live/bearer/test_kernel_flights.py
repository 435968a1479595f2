"""The kernel's TCP over an emulated bearer that loses packets, against the simulator: the small case of
`make kernel-flights`. One run of ten thousand that are right fails by chance."""

from __future__ import annotations

import math
from bisect import bisect_right

from tools.kernel_flights import (
    DEVIATIONS,
    NEAR,
    POINTS,
    SHARES,
    Cell,
    disagreements,
    measured,
    replayed,
    row,
)

ATTEMPTS = 5
CALM_S = 0.004
"""How much later than the first of them nearly all flights of a calm machine arrive where nothing is lost."""


def flights_s(cell: Cell, count: int) -> list[float]:
    times = measured(cell, count=count, parallel=100, seed=1)
    assert len(times) == count
    assert all(connected_s <= ready_s for connected_s, ready_s in times)
    return sorted(ready_s for _, ready_s in times)


def test_flights_take_what_the_simulator_says() -> None:
    """As far as the machine lets programs run: beside the flights that lose packets there are as many that
    lose none, before and after, and where those come late other programs had the processors.
    """
    cell = Cell(trip_s=0.04, loss=0.1, segments=4)
    lossless = Cell(trip_s=0.04, loss=0.0, segments=4)
    theirs = replayed(cell)
    was_calm = True
    for _ in range(ATTEMPTS):
        before_s, ordered, after_s = (flights_s(one, 400) for one in (lossless, cell, lossless))
        assert ordered[200] < math.inf
        said = row(cell, ordered, theirs)
        assert said.startswith("| 40 ms | 10% | 4 | 400 | "), said
        # Two round trips, and however long others keep the processors; never less.
        for one in (before_s, ordered, after_s):
            assert one[0] >= 2.0 * cell.trip_s
        for name, share in SHARES.items():
            earlier = bisect_right(ordered, (1.0 - NEAR) * theirs[name]) / len(ordered)
            allowed = min(POINTS, (1.0 - share) / 4.0) + DEVIATIONS * math.sqrt(share * (1.0 - share) / 400)
            assert earlier <= share + allowed, (name, said)
        wrong = disagreements(ordered, theirs)
        if not wrong:
            return
        was_calm &= all(one[int(0.97 * 400)] <= 2.0 * cell.trip_s + CALM_S for one in (before_s, after_s))
    assert not was_calm, (said, wrong)


def test_shares_that_differ_are_told() -> None:
    theirs = {"min": 0.08, "p50": 0.1, "p90": 0.4, "p95": 0.5, "p99": 2.0}
    even = [0.08] * 400 + [0.1] * 200 + [0.4] * 300 + [0.5] * 50 + [2.0] * 40 + [3.0] * 10
    assert not disagreements(even, theirs)
    heavy = even[:950] + [5.0] * 50
    assert [said[:4] for said in disagreements(heavy, theirs)] == ["p99:"]
    late = [took_s if took_s < 0.4 else 2.0 * took_s for took_s in even]
    assert {said[:4] for said in disagreements(late, theirs)} >= {"p90:", "p95:"}
