"""Models of energy, and ranges."""

from __future__ import annotations

import pytest

from shakedown.models import energy, ranges


def test_battery_lifetime_follows_charge_and_current():
    """Kambourakis's iPAQ: 80 % of its charge, the card's currents, nothing else drawing."""
    assert energy.lifetime_h(1400, 23, 0.8) == pytest.approx(48.7, abs=0.1)
    mean = energy.mean_current_ma(100, 175, 5, 10)
    assert mean == pytest.approx(187.5)
    assert energy.mean_current_ma(100, 175, 20, 10) == 275


def test_energy_follows_bytes_sent_and_received():
    assert energy.byte_energy_j(100, 1e-6, 1000, 2e-6) == pytest.approx(2.1e-3)


def test_ranges_are_added_scaled_and_widened():
    one, two = ranges.Range(1.0, 2.0, 4.0), ranges.exactly(3.0)
    assert one.plus(two) == (4.0, 5.0, 7.0)
    assert one.times(2.0) == (2.0, 4.0, 8.0)
    assert two.widened(2.0) == (1.5, 3.0, 6.0)
    assert one.widened(1.5) == (1.0, 2.0, 4.0)
