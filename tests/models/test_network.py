"""When handshakes are ready and done: arithmetic, published paths, Linux' own TCP, another simulation."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path as File

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.lossy_tcp import Net, simulate
from shakedown.models import distribution as distributions
from shakedown.models.distribution import RESOLUTION, Distribution
from shakedown.models.network import DTLS, TCP, WTLS, Datagrams, Exchange, Step, Tcp, exchange
from shakedown.models.path import Direction, Path
from shakedown.profiles import bearer_names, load_bearer

HELLO, FINISHED = 230, 80
KERNEL = json.loads((File(__file__).parent / "kernel_tcp.json").read_text())["rows"]


def tls13(*server_bytes: float, hello: float = HELLO, work_s: float = 0.0) -> list[Step]:
    """A TLS 1.3 handshake with a server flight of these messages."""
    answer = [Step("server", size, work_s if not number else 0.0) for number, size in enumerate(server_bytes)]
    return [Step("client", hello), *answer, Step("client", FINISHED)]


def fixed_path(
    up_bits_per_s: float,
    down_bits_per_s: float,
    one_way_s: float,
    *,
    loss: float = 0.0,
    mtu_bytes: int = 1500,
    link_bytes: int = 0,
) -> Path:
    """A path whose delay does not vary, the same each way."""
    delay = Distribution.exactly(one_way_s)
    return Path(
        Direction(up_bits_per_s, delay, loss),
        Direction(down_bits_per_s, delay, loss),
        Distribution.exactly(0.0),
        mtu_bytes,
        link_bytes,
    )


def test_a_handshake_added_up_by_hand():
    """GSM CSD, three flights of one segment: every byte and crossing, bare acknowledgements included."""
    tau = 0.391
    connect = (60 + 60) * 8 / 9600 + 2 * tau
    hello = (52 + 230 + 52) * 8 / 9600 + tau
    answer = (52 + 1063 + 52) * 8 / 9600 + tau
    finished = (52 + 80 + 52) * 8 / 9600 + tau
    times = exchange(tls13(1063), fixed_path(9600, 9600, tau))
    assert times.ready.mean == pytest.approx(connect + hello + answer)
    assert times.done.mean == pytest.approx(connect + hello + answer + finished)


def test_work_is_on_the_way():
    path = fixed_path(1e9, 1e9, 0.1)
    idle = exchange(tls13(1063), path)
    steps = [Step("client", HELLO, 0.01), Step("server", 1063, 0.02), Step("client", FINISHED, 0.03)]
    busy = exchange(steps, path, server_end_s=0.04)
    assert busy.ready.mean - idle.ready.mean == pytest.approx(0.06, abs=1e-4)
    assert busy.done.mean - idle.done.mean == pytest.approx(0.10, abs=1e-4)


def test_datagrams_need_no_connection():
    times = exchange(tls13(1063), fixed_path(9600, 9600, 0.391), DTLS)
    assert times.done.mean == pytest.approx((230 + 1063 + 80 + 3 * 28) * 8 / 9600 + 3 * 0.391)


@pytest.mark.parametrize(
    ("up", "down", "one_way_s", "chain_bytes", "measured_s"),
    [
        (9600, 9600, 0.391, 5_000, 5.677),
        (9600, 9600, 0.391, 15_000, 14.319),
        (10_500, 18_800, 0.376, 5_000, 3.363),
        (10_500, 18_800, 0.376, 15_000, 7.776),
        (30e3, 60e3, 0.800, 5_000, 2.428),
        (30e3, 60e3, 0.800, 15_000, 3.811),
        (12e6, 12e6, 0.035, 5_000, 0.0758),
        (12e6, 12e6, 0.035, 15_000, 0.1450),
        (10e6, 10e6, 0.300, 5_000, 0.607),
        (10e6, 10e6, 0.300, 15_000, 1.205),
    ],
)
def test_the_kernels_own_tcp_takes_as_long(up, down, one_way_s, chain_bytes, measured_s):
    """TLS 1.3 from the connection made to the client's Finished, Linux 6.18 over a userspace link, no loss.

    ClientHello and what the server's flight has beyond its chain, 280 bytes, are those that the row for a
    flight of 700 bytes gives (1.735 s on CSD).
    """
    times = exchange(tls13(155, chain_bytes + 15, 110), fixed_path(up, down, one_way_s))
    connect_s = 60 * 8 / up + 60 * 8 / down + 2 * one_way_s
    tolerance = 0.03 if up == 12e6 else 0.01
    assert times.ready.mean - connect_s == pytest.approx(measured_s, rel=tolerance)


def test_what_waits_for_the_window_goes_in_full_segments():
    """42 kB over GEO: written in 4,096 bytes each, it fits windows of 10 and 20 only where they are filled.

    The emulated bearer's 2.15 s with Linux' own TCP, to the client's Finished at the server.
    """
    path = fixed_path(10e6, 10e6, 0.3)
    times = exchange(tls13(155, 42_000 + 15, 110), path)
    assert times.done.mean == pytest.approx(2.15, rel=0.02)
    # 30 full segments are the most that two windows hold.
    one_more = exchange(tls13(155, 30 * 1448, 110), path)
    assert one_more.done.mean - times.done.mean == pytest.approx(0.6, rel=0.05)


CELLS = [
    # Paquin, Stebila and Tamvada, ePrint 2019/1447, 1 Gbit/s: median and 95th percentile in ms.
    ("P-256", 195.7, 0.0, 393.1, 394.0, tls13(90, 600, 100, 58)),
    ("P-256", 195.7, 0.05, 393.0, 1411.9, tls13(90, 600, 100, 58)),
    ("P-256", 195.7, 0.20, 993.8, 4575.0, tls13(90, 600, 100, 58)),
    ("P-256 and Kyber512", 195.7, 0.0, 393.2, 394.2, tls13(860, 600, 100, 58, hello=1030)),
    ("P-256 and Kyber512", 195.7, 0.03, 393.0, 1414.7, tls13(860, 600, 100, 58, hello=1030)),
    ("P-256 and Kyber512", 195.7, 0.10, 393.3, 2426.9, tls13(860, 600, 100, 58, hello=1030)),
    ("Frodo640", 195.7, 0.0, 395.5, 397.8, tls13(9810, 600, 100, 58, hello=9850)),
    ("ECDSA P-256", 195.6, 0.0, 392.8, 393.7, tls13(90, 600, 100, 58)),
    ("qTESLA-p-I", 195.6, 0.0, 588.4, 590.5, tls13(90, 17_600, 2_630, 58)),
]


@pytest.mark.parametrize(("name", "trip_ms", "loss", "median_ms", "p95_ms", "steps"), CELLS)
def test_published_paths(name, trip_ms, loss, median_ms, p95_ms, steps):
    """Their kernel doubled SYN timeouts from the first; their hosts worked for 0.9 to 1.7 ms."""
    ready = exchange(steps, fixed_path(1e9, 1e9, trip_ms / 2e3, loss=loss), Tcp(linear_syn_timeouts=0)).ready
    assert ready.p50 * 1e3 == pytest.approx(median_ms, rel=0.01, abs=1.0)
    if loss:  # without, the spread is their hosts'
        assert ready.p95 * 1e3 == pytest.approx(p95_ms, rel=0.10)


@pytest.mark.parametrize("row", [row for row in KERNEL if row["loss"] <= 0.1 and row["round_trip_s"] < 0.2])
def test_the_kernels_tcp_under_loss(row):
    """Thousands of handshakes over the kernel's own TCP; a loaded machine made each some ms later."""
    steps = tls13(*_messages(row["server_writes_bytes"]))
    path = fixed_path(
        row["rate_bits_per_s"], row["rate_bits_per_s"], row["round_trip_s"] / 2, loss=row["loss"]
    )
    ready = exchange(steps, path).ready
    measured = row["ready"]
    allowance_s = 0.010 + 2.0 * measured["standard_error_s"]
    assert abs(ready.mean - measured["mean_s"]) <= 0.03 * measured["mean_s"] + allowance_s


def _messages(writes: list[float]) -> list[float]:
    return [writes[0] + writes[1], *writes[2:]] if len(writes) > 1 else writes


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize(
    "writes", [[1063.0], [4096.0, 1248.0], [4096.0, 4096.0, 3000.0], [4096.0, 4096.0, 4096.0, 4096.0]]
)
def test_another_simulation_agrees(loss, writes):
    """Mean and percentiles against a packet-level simulation that shares no code with the model."""
    count, one_way_s = 2500, 0.098
    flights = [("client", [float(HELLO)]), ("server", writes), ("client", [float(FINISHED)])]
    ready, done = simulate(flights, Net(1e9, 1e9, lambda _: one_way_s, loss), count, seed=11)
    times = exchange(tls13(*_messages(writes)), fixed_path(1e9, 1e9, one_way_s, loss=loss))
    for ours, theirs in ((times.ready, np.array(ready)), (times.done, np.array(done))):
        error_s = theirs.std() / np.sqrt(count)
        assert abs(ours.mean - theirs.mean()) <= 0.05 * theirs.mean() + 2.0 * error_s
        for share in (0.5, 0.95, 0.99):
            # Where a step of a timer lies within the sample's own uncertainty, either side of it will do.
            low, high = np.quantile(
                theirs,
                [
                    share - 2.2 * np.sqrt(share * (1 - share) / count),
                    min(1.0, share + 2.2 * np.sqrt(share * (1 - share) / count)),
                ],
            )
            assert 0.95 * low <= ours.quantile(share) <= 1.05 * high


def test_delays_that_vary_add_up():
    """Two crossings each way until ready, one more up until done, each a draw of its own."""
    delay = Distribution.lognormal(0.03, 0.05, 0.8)
    path = Path(Direction(1e9, delay), Direction(1e9, delay), Distribution.exactly(0.0), delay_holds_s=0.02)
    times = exchange(tls13(1063), path)
    assert times.ready.mean == pytest.approx(4 * delay.mean, rel=1e-3)
    assert times.ready.sd == pytest.approx(2 * delay.sd, rel=0.03)
    assert times.done.sd == pytest.approx(np.sqrt(5) * delay.sd, rel=0.03)
    rng = np.random.default_rng(1)
    draws = (0.03 + 0.02 * np.exp(0.8 * rng.normal(size=(100_000, 4)))).sum(axis=1)
    for share in (0.05, 0.5, 0.95, 0.99):
        assert times.ready.quantile(share) == pytest.approx(np.quantile(draws, share), rel=0.02)


def test_packets_apart_draw_their_own_delays_and_none_overtakes():
    delay = Distribution.of_quantiles([(0.0, 0.0), (1.0, 1.0)])
    fast = Path(Direction(1e9, delay), Direction(1e9, delay), Distribution.exactly(0.0))
    done = exchange([Step("client", 100), Step("server", 3 * 1400)], fast, DTLS).done
    draws = np.random.default_rng(2).random((100_000, 4))
    latest = draws[:, 0] + draws[:, 1:].max(axis=1)  # the last of three cannot pass the others
    assert done.mean == pytest.approx(latest.mean(), rel=0.01)
    assert done.p95 == pytest.approx(np.quantile(latest, 0.95), rel=0.01)


def test_a_client_that_repeats_alone():
    """WTLS: a lost flight of either side costs the client's timer, 3 s, then 6; five sendings in all."""
    loss = 0.1
    steps = [Step("client", 100), Step("server", 300), Step("client", 300), Step("server", 60)]
    times = exchange(steps, fixed_path(1e6, 1e6, 0.1, loss=loss), WTLS)
    through = (1 - loss) ** 2
    late = sum(through * (1 - through) ** n * wait for n, wait in enumerate([0, 3, 9, 21, 45]))
    late /= 1 - (1 - through) ** 5
    base = exchange(steps, fixed_path(1e6, 1e6, 0.1), WTLS).done.mean
    assert times.done.mean - base == pytest.approx(2 * late, rel=1e-3)
    assert times.failed == pytest.approx(1 - (1 - (1 - through) ** 5) ** 2, rel=1e-3)


def test_sides_that_repeat_their_own_flights():
    """DTLS: each flight costs its sender's timer; the last comes again when its receiver asks."""
    loss = 0.2
    way = Datagrams(timeout_s=1.0, sends=8)
    times = exchange(tls13(800), fixed_path(1e6, 1e6, 0.05, loss=loss), way)
    own = sum((1 - loss) * loss**n * (2**n - 1) for n in range(8)) / (1 - loss**8)
    base = exchange(tls13(800), fixed_path(1e6, 1e6, 0.05), way).ready.mean
    assert times.ready.mean - base == pytest.approx(2 * own, rel=1e-3)


def test_a_radio_that_sleeps_is_set_up_first():
    path = load_bearer("nb-iot").path()
    awake, asleep = (exchange(tls13(1063), path, from_idle=idle).ready.mean for idle in (False, True))
    assert asleep - awake == pytest.approx(path.setup.mean, rel=0.2)


@pytest.mark.parametrize("name", bearer_names())
@pytest.mark.parametrize("transport", [TCP, DTLS])
def test_every_range_has_width(name, transport):
    path = load_bearer(name).path()
    if path.mtu_bytes < 100 and transport is TCP:
        with pytest.raises(ValueError, match="accepted: more than the headers'"):
            exchange(tls13(90), dataclasses.replace(path, mtu_bytes=12))
        return
    times = exchange(tls13(90, 600, 100, 58), path, transport)
    for distribution in (times.ready, times.done):
        low, high = distribution.interval(0.9)
        assert low <= distribution.p50 <= high
        assert low < high
    for share in (0.05, 0.5, 0.95, 0.99):
        assert times.ready.quantile(share) <= times.done.quantile(share)


networks = st.tuples(
    st.floats(2e3, 1e9), st.floats(2e3, 1e9), st.floats(1e-4, 1.0), st.sampled_from([0.0, 0.005, 0.05])
)


@settings(max_examples=25, deadline=None)
@given(
    networks, st.lists(st.floats(10.0, 20_000.0), min_size=1, max_size=3), st.booleans(), st.floats(1.2, 8.0)
)
def test_a_worse_network_never_wins(network, sizes, datagrams, factor):
    up, down, tau, loss = network
    way = DTLS if datagrams else TCP

    def times(one_way_s: float, slower: float, lost: float) -> Exchange:
        return exchange(tls13(*sizes), fixed_path(up / slower, down / slower, one_way_s, loss=lost), way)

    good, bad = times(tau, 1.0, loss), times(tau * factor, factor, min(0.2, loss * factor))
    # Handshakes that are given up count, too: the slow ones that are left out of a mean make it less.
    longest_s = max(float(one.done.values_s[-1]) for one in (good, bad))
    for what in ("ready", "done"):
        good_s, bad_s = (
            (1.0 - one.failed) * getattr(one, what).mean + one.failed * longest_s for one in (good, bad)
        )
        assert good_s <= bad_s


@settings(max_examples=25, deadline=None)
@given(networks, st.floats(10.0, 30_000.0), st.floats(1.0, 20_000.0))
def test_more_bytes_never_arrive_sooner(network, size, more):
    up, down, tau, loss = network
    path = fixed_path(up, down, tau, loss=loss)
    few, many = (exchange(tls13(90.0, total, 100.0), path).ready.mean for total in (size, size + more))
    # What losses do is known as finely as points of distributions are kept apart.
    assert few <= many * (1.0 + (RESOLUTION if loss else 1e-9))


def test_sums_of_many_points_take_few(monkeypatch):
    """Two flights of thousands of ways each: their sum is made of a tenth of a million points, not of ten."""
    merged = distributions._merged
    sizes = []

    def counting(values, weights):
        sizes.append(len(values))
        return merged(values, weights)

    many = Distribution(np.linspace(1.0, 9.0, 3_000), np.full(3_000, 1.0 / 3_000))
    more = Distribution(np.linspace(0.0, 5.0, 4_000), np.full(4_000, 1.0 / 4_000))
    monkeypatch.setattr(distributions, "_merged", counting)
    found = many.plus(more)
    assert max(sizes) < 1_000_000
    assert found.mean == pytest.approx(7.5, rel=1e-9)
    assert found.p99 == pytest.approx(13.1, rel=5e-3)


def test_datagrams_that_hardly_ever_arrive_have_times():
    """Of handshakes in small packets of which nine in ten are lost hardly any succeeds: those are timed."""
    way = Direction(2e4, Distribution.exactly(0.1), 0.9)
    found = exchange(tls13(90, 600, 100, 58), Path(way, way, Distribution.exactly(0.0), 100), WTLS)
    assert found.failed > 0.999_999
    assert 0.0 < found.ready.p50 <= found.done.p99
