"""Which measured rates of nginx count, by the rule that the benchmark states."""

from __future__ import annotations

import pytest
from bench.capacity_nginx import LEAST_WINDOWS, LOADS, Booked, Measured, addresses
from bench.nginx_clients import Window


def windows(*rates: float, utilisation: float = 1.0) -> list[Window]:
    return [Window(rate, utilisation, utilisation / rate) for rate in rates]


def test_saturated_windows_of_both_generators_count_and_of_these_the_faster_half():
    measured = Measured({"load": windows(100, 400), "s_time": windows(300, 200)}, [Booked(1e-3, 0.0)])
    assert measured.on_wall_clock
    assert measured.rates() == [400, 300]


def test_windows_in_which_nginx_was_idle_do_not_count():
    idle = windows(900, 900, utilisation=0.96)
    measured = Measured({"load": [*windows(*[100.0] * LEAST_WINDOWS), *idle], "wrk": windows(999, 999, 999)})
    assert set(measured.rates()) == {100}


def test_a_case_whose_clients_are_too_slow_goes_by_cpu_time_of_rounds_without_sleeps():
    few = windows(*[100.0] * (LEAST_WINDOWS - 1))
    measured = Measured({"load": few}, [Booked(1e-3, 0.1), Booked(2e-3, 0.0), Booked(1e-4, 0.5)])
    assert not measured.on_wall_clock
    assert measured.rates() == [pytest.approx(1000)]


def test_every_load_has_an_address_of_its_own():
    found = list(addresses())
    assert len(set(found)) == LOADS
