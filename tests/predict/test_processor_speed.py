"""Only readings at the processor's full speed count, as decided by the loop alone."""

from __future__ import annotations

import os

import pytest

from shakedown.native.processors import placed
from shakedown.prediction import processor_speed
from shakedown.prediction.cpu_contention import shared
from shakedown.prediction.processor_speed import Speed, Timed


def test_samples_are_selected_by_the_loop_and_not_by_their_value():
    speed = Speed([1.0] * 10 + [1.6] * 30)
    some = [Timed(5.0, 1.6), Timed(90.0, 1.0), Timed(1.0, 1.5), Timed(70.0, 1.09)]
    assert speed.counted(some) == [90.0, 70.0]
    assert speed.has(2, some)
    assert not speed.has(3, some)
    assert speed.lowest == 1.0


def test_fastest_samples_are_used_if_too_few_are_at_full_speed():
    speed = Speed([1.0] * 10)
    assert speed.counted([Timed("a", 1.5), Timed("b", 1.3), Timed("c", 1.4)], 2) == ["b", "c"]
    assert speed.lowest == 1.4
    assert speed.spread == pytest.approx(1.96)  # a profile of this time is no surer than that


def test_selected_times_are_corrected_to_full_speed():
    """Counted times are corrected by the ratio of the loop's times."""
    speed = Speed([2.0] * 10)
    found = speed.at_full([Timed(100.0, 2.0), Timed(105.0, 2.1), Timed(300.0, 4.0)])
    assert found == pytest.approx([100.0, 100.0])


def test_single_fast_loop_does_not_set_full_speed():
    assert Speed([0.5] + [1.0] * 19).full_s == 1.0


def test_short_measurement_uses_the_slower_loop_beside_it(monkeypatch):
    monkeypatch.setattr(processor_speed, "FLANK", 1)
    monkeypatch.setattr(processor_speed, "loop_s", iter([1.0, 1.5, 2.0, 1.0]).__next__)
    speed = Speed()
    assert speed.flanked(lambda: "x") == Timed("x", 1.5)
    assert speed.flanked(lambda: "y") == Timed("y", 2.0)
    assert speed.loops_s == [1.0, 1.5, 2.0, 1.0]


def test_a_meter_times_the_loop_beside_a_long_measurement():
    """The loop is timed in CPU time, so its processes' share of the processor does not matter."""
    processor, speed = min(os.sched_getaffinity(0)), Speed()
    with placed([processor]), shared([processor], 2) as meter:
        timed = meter.timed(lambda: [processor_speed.loop_s() for _ in range(100)], speed)
    assert speed.loops_s == [timed.loop_s]
    assert min(timed.found) * 0.8 < timed.loop_s < max(timed.found) * 1.25
