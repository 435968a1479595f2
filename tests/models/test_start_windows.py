"""First windows longer than ten segments: ML-KEM and ML-DSA over s2n, both sides authenticated."""

from __future__ import annotations

import pytest

from shakedown.models.distribution import Distribution
from shakedown.models.network import Step, Tcp, exchange
from shakedown.models.path import Direction, Path

WIDE = 24
PING_BYTES = 98

CELLS = [
    # manastasova/pq-tls-benchmark at 79fea646, emulation-exp/code/kex/data,
    # test_pq_icwnd_server24_client24_RTT*_bytes0: Mbit/s, round trip of their ping (ms), median of
    # handshake_time_ms (of 23 rows of a file or more; a file's rows are within 2 % of each other).
    (1.0, 36.698, 457.8),
    (100.0, 35.086, 111.8),
    (1.0, 51.510, 503.0),
    (1000.0, 50.362, 156.3),
    (1.0, 152.188, 808.6),
    (100.0, 149.676, 462.2),
    (1000.0, 150.668, 463.1),
]


def handshake_ms(
    mbit_per_s: float, ping_ms: float, flight_bytes: float, work_ms: float = 0.0, window: int = WIDE
) -> float:
    """Connecting, both hellos, both chains, and an answer to the client's: what their client timed."""
    rate = mbit_per_s * 1e6
    one_way_s = ping_ms / 2e3 - PING_BYTES * 8 / rate
    direction = Direction(rate, Distribution.exactly(one_way_s))
    path = Path(direction, direction, Distribution.exactly(0.0))
    steps = [
        Step("client", 1_600),
        Step("server", flight_bytes, work_ms / 2e3),
        Step("client", flight_bytes, work_ms / 2e3),
        Step("server", 100),
    ]
    # s2n hands TCP its records, of up to 8 KiB.
    return 1e3 * exchange(steps, path, Tcp(initial_window=window, write_bytes=8_192)).done.mean


@pytest.fixture(scope="module")
def own() -> tuple[float, float]:
    """What is not published, from the two cells of the shortest path: bytes of a flight, both hosts' work."""
    (slow, slow_ping, slow_ms), (fast, fast_ping, fast_ms) = CELLS[:2]
    low, high, work_ms = 10_000.0, 40_000.0, 0.0
    for _ in range(30):
        size = (low + high) / 2.0
        work_ms = fast_ms - handshake_ms(fast, fast_ping, size)
        low, high = (size, high) if handshake_ms(slow, slow_ping, size, work_ms) < slow_ms else (low, size)
    return low, work_ms


def test_the_lengths_that_follow_are_those_of_such_chains(own):
    """Two certificates of ML-DSA's, 5 to 8 kB each, and a signature: more than ten segments, less than 24."""
    flight_bytes, work_ms = own
    assert 10 * 1448 < flight_bytes < WIDE * 1448
    assert 0.0 < work_ms < 15.0


@pytest.mark.parametrize(("mbit_per_s", "ping_ms", "published_ms"), CELLS[2:])
def test_the_other_cells_follow(own, mbit_per_s, ping_ms, published_ms):
    assert handshake_ms(mbit_per_s, ping_ms, *own) == pytest.approx(published_ms, rel=0.05)


def test_ten_segments_cost_round_trips_where_the_link_is_fast(own):
    """One for each flight; theirs of 10 at the client alone took one more: 612.8 ms."""
    wide = handshake_ms(100.0, 149.676, *own)
    assert handshake_ms(100.0, 149.676, *own, window=10) - wide == pytest.approx(2 * 149.7, rel=0.02)
