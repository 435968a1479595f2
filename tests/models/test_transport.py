"""Bytes on the way: packets, connection set-up, slow start, loss, link encryption, energy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shakedown.models import energy, ranges, transmission, transport

FLIGHTS = [230.0, 1400.0, 60.0]
UPWARD = [True, False, True]


def test_an_exchange_added_up_by_hand():
    """GSM CSD, three flights, each below one segment: every byte and crossing counted."""
    up = down = 9600.0
    tau = 0.391
    connect = (60 + 60 + 52) * 8 / 9600 + 2 * tau
    flights = (230 + 52 + 1400 + 52 + 60 + 52) * 8 / 9600 + 3 * tau
    acknowledgements = 2 * 52 * 8 / 9600
    ours = transport.exchange_s(FLIGHTS, UPWARD, up, down, tau)
    assert float(ours) == pytest.approx(connect + flights + acknowledgements)


def test_datagrams_need_no_connection():
    ours = transport.exchange_s(FLIGHTS, UPWARD, 9600.0, 9600.0, 0.391, datagrams=True)
    assert float(ours) == pytest.approx((230 + 1400 + 60 + 3 * 28) * 8 / 9600 + 3 * 0.391)


def test_the_eleventh_segment_costs_a_round_trip_on_a_fast_link_only():
    fast = [float(transport.exchange_s([n * 1448.0], [False], 1e9, 1e9, 0.1)) for n in (10, 11)]
    slow = [float(transport.exchange_s([n * 1448.0], [False], 9600, 9600, 0.1)) for n in (10, 11)]
    assert fast[1] - fast[0] == pytest.approx(0.2, rel=1e-3)
    assert slow[1] - slow[0] == pytest.approx(1500 * 8 / 9600)


def test_slow_start_doubles():
    stall = transport.slow_start_stall_s([10, 11, 30, 31, 70, 71], 0.0, 1.0)
    assert stall.tolist() == [0, 1, 1, 2, 2, 3]


bearers = st.tuples(
    st.floats(1e3, 1e9),
    st.floats(1e3, 1e9),
    st.floats(0.0, 2.0),
    st.sampled_from([0, 8, 38]),
    st.floats(0.0, 0.2),
)


@given(
    bearers, st.lists(st.floats(1.0, 40_000.0), min_size=1, max_size=6), st.booleans(), st.floats(1.0, 10.0)
)
def test_a_faster_bearer_is_never_slower(bearer, sizes, datagrams, faster):
    up, down, tau, link, loss = bearer
    directions = [number % 2 == 0 for number in range(len(sizes))]

    def lasts(up_rate: float, down_rate: float, delay: float, lost: float) -> float:
        return float(
            transport.exchange_s(
                sizes, directions, up_rate, down_rate, delay, link_bytes=link, loss=lost, datagrams=datagrams
            )
        )

    base = lasts(up, down, tau, loss)
    limit = base * (1 + 1e-12)
    assert lasts(up * faster, down, tau, loss) <= limit
    assert lasts(up, down * faster, tau, loss) <= limit
    assert lasts(up, down, tau / faster, loss) <= limit
    assert lasts(up, down, tau, loss / faster) <= limit


def test_wep_costs_its_bytes():
    open_, wep = (
        float(transport.exchange_s(FLIGHTS, UPWARD, 6e6, 6e6, 0.001, link_bytes=link)) for link in (0, 8)
    )
    sent = 3 + 3 + 2  # data segments, the connection's, bare acknowledgements
    assert wep - open_ == pytest.approx(sent * 8 * 8 / 6e6)


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


@pytest.mark.parametrize(
    ("up", "down", "one_way_s", "chain_bytes", "measured_s"),
    [
        (9600, 9600, 0.391, 5_000, 5.677),
        (9600, 9600, 0.391, 15_000, 14.319),
        (10_500, 18_800, 0.376, 5_000, 3.363),
        (10_500, 18_800, 0.376, 15_000, 7.776),
        (12e6, 12e6, 0.035, 5_000, 0.0758),
        (12e6, 12e6, 0.035, 15_000, 0.1450),
        (10e6, 10e6, 0.300, 5_000, 0.607),
        (10e6, 10e6, 0.300, 15_000, 1.205),
    ],
)
def test_the_kernels_own_tcp_takes_as_long(up, down, one_way_s, chain_bytes, measured_s):
    """TLS 1.3 from the connection made to the server's Finished, Linux 6.18 over an emulated link, no loss.

    The certificate chain brings the server's flight to its own size and 350 bytes; the measured times hold
    some milliseconds of computing.
    """
    exchange = transport.exchange_s([230, chain_bytes + 350], [True, False], up, down, one_way_s)
    syns = 60 * 8 / up + 60 * 8 / down + 2 * one_way_s
    assert float(exchange) - syns == pytest.approx(measured_s, rel=0.025)
