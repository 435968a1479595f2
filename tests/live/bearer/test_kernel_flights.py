"""The kernel's TCP over an emulated bearer that loses packets, against the simulator: the small case of
`make kernel-flights`. One run of ten thousand that are right fails by chance."""

from __future__ import annotations

import math

from tools.kernel_flights import Cell, disagreements, measured, modelled, row, simulated


def test_flights_take_what_the_simulator_says() -> None:
    cell = Cell(trip_s=0.04, loss=0.1, segments=4)
    times = measured(cell, count=400, parallel=100, seed=1)
    ordered = sorted(ready_s for _, ready_s in times)
    theirs = simulated(cell)
    assert len(ordered) == 400
    assert all(connected_s <= ready_s for connected_s, ready_s in times)
    assert ordered[200] < math.inf
    said = row(cell, ordered, theirs, modelled(cell))
    assert said.startswith("| 40 ms | 10% | 4 | 400 | "), said
    assert not disagreements(ordered, theirs), said


def test_shares_that_differ_are_told() -> None:
    theirs = {"min": 0.08, "p50": 0.1, "p90": 0.4, "p95": 0.5, "p99": 2.0}
    even = [0.08] * 400 + [0.1] * 200 + [0.4] * 300 + [0.5] * 50 + [2.0] * 40 + [3.0] * 10
    assert not disagreements(even, theirs)
    heavy = even[:950] + [5.0] * 50
    assert [said[:4] for said in disagreements(heavy, theirs)] == ["p99:"]
    late = [took_s if took_s < 0.4 else 2.0 * took_s for took_s in even]
    assert {said[:4] for said in disagreements(late, theirs)} >= {"p90:", "p95:"}
