"""Bytes on the way: packets, link encryption, pings, energy."""

from __future__ import annotations

import numpy as np
import pytest

from shakedown.models import energy, ranges, transmission, transport


def test_weps_cost_grows_linearly_with_the_file():
    sizes = np.array([130, 256, 512, 1024, 2048]) * 1500.0
    cost = transport.wep_cost_s(sizes, 6e6, 2e-8, 1e-5)
    slope, intercept = np.polyfit(sizes, cost, 1)
    assert slope > 0
    assert intercept == pytest.approx(0.0, abs=1e-9)


def test_pings_of_several_sizes_give_delay_and_rate():
    sizes = np.repeat([64.0, 512.0, 1400.0], 20)
    noise = np.tile(np.linspace(-0.01, 0.01, 20), 3)
    trips = 2 * 0.376 + sizes * (8 / 10_500 + 8 / 18_770) + noise
    fit = transmission.fit_pings(sizes, trips)
    assert fit.traversal_s == pytest.approx(0.376, abs=0.001)
    assert fit.s_per_byte == pytest.approx(8 / 10_500 + 8 / 18_770, rel=1e-6)
    assert fit.traversal_sd_s == pytest.approx(np.std(noise, ddof=1) / 2, rel=0.05)
    with pytest.raises(ValueError, match="at least two sizes"):
        transmission.fit_pings([64, 64], [1.0, 1.1])


def test_batteries_last_as_long_as_their_charge():
    """Kambourakis's iPAQ: 80 % of its charge, the card's currents, nothing else drawing."""
    assert energy.lifetime_h(1400, 23, 0.8) == pytest.approx(48.7, abs=0.1)
    mean = energy.mean_current_ma(100, 175, 5, 10)
    assert mean == pytest.approx(187.5)
    assert energy.mean_current_ma(100, 175, 20, 10) == 275
    cryptography, messages = energy.split_energy_j(1.062, 0.07)
    assert cryptography + messages == pytest.approx(1.062)
    assert cryptography == pytest.approx(0.0743, abs=1e-4)
    assert energy.handshakes_per_charge(1000.0, 0.5) == 2000


def test_energy_is_power_times_time():
    assert energy.handshake_energy_j(2.0, 0.5, 1.0, 0.8, 2.0, 0.6, 5.0, 0.01) == pytest.approx(3.05)
    assert energy.byte_energy_j(100, 1e-6, 1000, 2e-6) == pytest.approx(2.1e-3)


def test_ranges_carry():
    one, two = ranges.Range(1.0, 2.0, 4.0), ranges.exactly(3.0)
    assert ranges.total([one, two]) == (4.0, 5.0, 7.0)
    assert one.times(2.0) == (2.0, 4.0, 8.0)
    assert two.widened(2.0) == (1.5, 3.0, 6.0)
    assert one.widened(1.5) == (1.0, 2.0, 4.0)
