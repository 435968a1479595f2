"""Times until ready and done: arithmetic, published paths, and Linux's TCP."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shakedown.errors import InputError
from shakedown.models.distribution import Distribution
from shakedown.prediction.network import Exchange, exchange, replayed, replays
from shakedown.prediction.scenario import scenario
from shakedown.prediction.spec import DTLS, WTLS, Timers, datagram_spec, message_spec, stream_spec, work_spec
from shakedown.profiles import bearer_names, load_bearer
from shakedown.schema.base import builtins

HELLO, FINISHED = 230, 80
KERNEL = json.loads((Path(__file__).parent / "kernel_tcp.json").read_text())["rows"]

Message = tuple[str, float, float]
"""Sender, bytes, and the sender's work before it in seconds."""


def tls13(*server_bytes: float, hello: float = HELLO) -> list[Message]:
    """A TLS 1.3 handshake with a server flight of these messages."""
    answer: list[Message] = [("server", size, 0.0) for size in server_bytes]
    return [("client", hello, 0.0), *answer, ("client", FINISHED, 0.0)]


def spec(messages: list[Message], timers: Timers | None = None) -> dict[str, Any]:
    """A handshake as the core reads it, over TCP or, with timers, over UDP."""
    flight, found = 0, []
    for number, (sender, size, work_s) in enumerate(messages):
        flight += number > 0 and sender != messages[number - 1][0]
        work = work_spec(work_s)
        found.append(message_spec(sender, str(number), size, flight=flight, generate=work))
    return stream_spec("test", found) if timers is None else datagram_spec("test", found, timers)


def path(up_bits_per_s: float, down_bits_per_s: float, one_way_s: float, **more: Any) -> dict[str, Any]:
    """A path with the same constant delay each way."""
    return {
        "up_bits_per_s": up_bits_per_s,
        "down_bits_per_s": down_bits_per_s,
        "traversal_s": one_way_s,
        "packet_overhead_bytes": 0,
        **more,
    }


def times(
    messages: list[Message], bearer: dict[str, Any], timers: Timers | None = None, **tcp: Any
) -> Exchange:
    """The handshake over the path."""
    return replayed({"handshake": spec(messages, timers), "bearer": bearer, "tcp": tcp}, "test")


def test_handshake_time_matches_a_manual_calculation():
    """GSM CSD, three flights of one segment: every byte and crossing, bare acknowledgements included."""
    tau = 0.391
    connect = (60 + 60) * 8 / 9600 + 2 * tau
    hello = (52 + 230 + 52) * 8 / 9600 + tau
    answer = (52 + 1063 + 52) * 8 / 9600 + tau
    finished = (52 + 80 + 52) * 8 / 9600 + tau
    found = times(tls13(1063), path(9600, 9600, tau))
    assert found.ready.mean == pytest.approx(connect + hello + answer)
    assert found.done.mean == pytest.approx(connect + hello + answer + finished)
    assert found.p99_interval_s == (found.ready.mean, found.ready.mean)


def test_work_of_both_sides_adds_to_the_handshake_time():
    idle = times(tls13(1063), path(1e9, 1e9, 0.1))
    messages = [("client", HELLO, 0.01), ("server", 1063, 0.02), ("client", FINISHED, 0.03)]
    busy = times(messages, path(1e9, 1e9, 0.1))
    assert busy.ready.mean - idle.ready.mean == pytest.approx(0.06, abs=1e-4)


def test_datagram_handshake_has_no_connection_setup():
    found = times(tls13(1063), path(9600, 9600, 0.391), dataclasses.replace(DTLS, initial_s=60.0))
    assert found.done.mean == pytest.approx((230 + 1063 + 80 + 3 * 28) * 8 / 9600 + 3 * 0.391)


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
def test_kernel_tcp_takes_the_same_time(up, down, one_way_s, chain_bytes, measured_s):
    """TLS 1.3 from the open connection to the client's Finished, Linux 6.18 over a userspace link, no loss.

    The sizes of the ClientHello and of the server's flight without its chain, 280 bytes, follow from the
    row for a flight of 700 bytes (1.735 s on CSD).
    """
    found = times(tls13(155, chain_bytes + 15, 110), path(up, down, one_way_s))
    connect_s = 60 * 8 / up + 60 * 8 / down + 2 * one_way_s
    tolerance = 0.03 if up == 12e6 else 0.01
    assert found.ready.mean - connect_s == pytest.approx(measured_s, rel=tolerance)


def test_data_waiting_for_the_window_is_sent_in_full_segments():
    """42 kB over GEO, in writes of 4,096 bytes, fit windows of 10 and 20 segments only if segments are full.

    Linux's own TCP took 2.15 s over the emulated bearer, until the server had the client's Finished.
    """
    geo = path(10e6, 10e6, 0.3)
    found = times(tls13(155, 42_000 + 15, 110), geo)
    assert found.done.mean == pytest.approx(2.15, rel=0.02)
    # 30 full segments are the most that two windows hold.
    one_more = times(tls13(155, 30 * 1448, 110), geo)
    assert one_more.done.mean - found.done.mean == pytest.approx(0.6, rel=0.05)


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


@pytest.mark.parametrize(("name", "trip_ms", "loss", "median_ms", "p95_ms", "messages"), CELLS)
def test_times_match_published_paths(name, trip_ms, loss, median_ms, p95_ms, messages):
    """Their kernel doubled SYN timeouts from the first; their hosts worked for 0.9 to 1.7 ms."""
    ready = times(messages, path(1e9, 1e9, trip_ms / 2e3, loss=loss), syn_linear_timeouts=0).ready
    assert ready.p50 * 1e3 == pytest.approx(median_ms, rel=0.01, abs=1.0)
    if loss:  # without loss, their hosts cause the spread
        assert ready.p95 * 1e3 == pytest.approx(p95_ms, rel=0.10)


@pytest.mark.parametrize("row", KERNEL)
def test_kernel_tcp_times_under_loss_are_matched(row):
    """Thousands of handshakes over the kernel's own TCP; a loaded machine made each some ms later."""
    writes = row["server_writes_bytes"]
    rate, loss = row["rate_bits_per_s"], row["loss"]
    ready = times(
        tls13(sum(writes)), path(rate, rate, row["round_trip_s"] / 2, loss=loss), one_clock=True
    ).ready
    measured = row["ready"]
    allowance_s = 0.010 + 2.0 * measured["standard_error_s"]
    assert abs(ready.mean - measured["mean_s"]) <= 0.03 * measured["mean_s"] + allowance_s


def test_varying_delays_are_added_per_crossing():
    """Two crossings each way until ready, one more up until done, each a draw of its own."""
    delay = {"kind": "lognormal", "minimum_s": 0.03, "median_s": 0.05, "sigma": 0.8}
    ways = {"traversal_up": delay, "traversal_down": delay, "traversal_holds_s": 0.02}
    found = times(tls13(1063), path(1e9, 1e9, 0.0, **ways))
    draws = 0.03 + 0.02 * np.exp(0.8 * np.random.default_rng(1).normal(size=(100_000, 5)))
    for ours, theirs in ((found.ready, draws[:, :4].sum(axis=1)), (found.done, draws.sum(axis=1))):
        assert ours.mean == pytest.approx(theirs.mean(), rel=0.01)
        for share in (0.05, 0.5, 0.95, 0.99):
            assert ours.quantile(share) == pytest.approx(np.quantile(theirs, share), rel=0.03)


def test_the_interval_of_p99_contains_it_if_times_hardly_vary():
    """Times within 0.1 % become one value, the mean, which is below the 99th percentile of single times."""
    delay = {"kind": "uniform", "minimum_s": 0.05, "maximum_s": 0.0501}
    found = times(tls13(1063), path(1e5, 1e5, 0.0, traversal_up=delay, traversal_down=delay))
    low_s, high_s = found.p99_interval_s
    assert low_s <= found.ready.p99 <= high_s
    assert low_s < high_s < 1.001 * low_s


def test_packets_draw_separate_delays_and_are_not_reordered():
    delay = {"kind": "uniform", "minimum_s": 0.0, "maximum_s": 1.0}
    fast = path(1e9, 1e9, 0.0, traversal_up=delay, traversal_down=delay)
    slow_timer = dataclasses.replace(DTLS, initial_s=60.0)
    done = times([("client", 100, 0.0), ("server", 3 * 1400, 0.0)], fast, slow_timer).done
    draws = np.random.default_rng(2).random((100_000, 4))
    latest = draws[:, 0] + draws[:, 1:].max(axis=1)  # the last of three cannot pass the others
    assert done.mean == pytest.approx(latest.mean(), rel=0.01)
    assert done.p95 == pytest.approx(np.quantile(latest, 0.95), rel=0.02)


def test_wtls_client_timer_repeats_flights_of_both_sides():
    """WTLS: a lost flight of either side costs the client's timer, 3 s, then 6; five sendings in all."""
    loss = 0.1
    messages = [("client", 100, 0.0), ("server", 300, 0.0), ("client", 300, 0.0), ("server", 60, 0.0)]
    found = times(messages, path(1e6, 1e6, 0.1, loss=loss), WTLS)
    through = (1 - loss) ** 2
    late = sum(through * (1 - through) ** n * wait for n, wait in enumerate([0, 3, 9, 21, 45]))
    late /= 1 - (1 - through) ** 5
    base = times(messages, path(1e6, 1e6, 0.1), WTLS).done.mean
    assert found.done.mean == pytest.approx(base + 2 * late, rel=0.02)
    assert found.failed == pytest.approx(1 - (1 - (1 - through) ** 5) ** 2, abs=1e-3)


def test_dtls_side_repeats_its_own_lost_flights():
    """DTLS: each flight costs its sender's timer."""
    loss = 0.2
    timers = dataclasses.replace(DTLS, sends=8)
    found = times(tls13(800), path(1e6, 1e6, 0.05, loss=loss), timers)
    own = sum((1 - loss) * loss**n * (2**n - 1) for n in range(8)) / (1 - loss**8)
    base = times(tls13(800), path(1e6, 1e6, 0.05), timers).ready.mean
    assert found.ready.mean == pytest.approx(base + 2 * own, rel=0.02)


def test_idle_radio_adds_its_setup_time():
    bearer = load_bearer("nb-iot")
    assert bearer.setup is not None
    awake = exchange(spec(tls13(1063)), bearer).ready.mean
    asleep = exchange(spec(tls13(1063)), bearer, setup=builtins(bearer.setup)).ready.mean
    assert asleep - awake == pytest.approx(bearer.setup_s, rel=0.2)


@pytest.mark.parametrize("timers", [None, DTLS])
@pytest.mark.parametrize("name", bearer_names())
def test_every_range_has_width(name, timers):
    bearer = load_bearer(name)
    handshake = spec(tls13(90, 600, 100, 58), timers)
    if bearer.mtu_bytes < 100 and timers is None:
        with pytest.raises(InputError, match=r"packets of .* bytes have no room beside|mtu_bytes is"):
            exchange(handshake, bearer, mtu_bytes=min(52, bearer.mtu_bytes))
        return
    if bearer.mtu_bytes < 28:
        with pytest.raises(InputError, match="datagrams; accepted: up to 128"):
            exchange(handshake, bearer)
        return
    if timers is not None and bearer.up.duty_cycle < 1.0:
        handshake = spec(tls13(90, 600, 100, 58), timers.slower(10_000.0))
    found = exchange(handshake, bearer)
    low_s, high_s = found.p99_interval_s
    assert low_s <= found.ready.p99 <= high_s
    for distribution in (found.ready, found.done):
        low, high = distribution.interval(0.9)
        assert low <= distribution.p50 <= high
        assert low < high
    for share in (0.05, 0.5, 0.95, 0.99):
        assert found.ready.quantile(share) <= 1.002 * found.done.quantile(share)


networks = st.tuples(
    st.floats(2e3, 1e9), st.floats(2e3, 1e9), st.floats(1e-4, 1.0), st.sampled_from([0.0, 0.005, 0.05])
)


CHANCE = 0.04
"""Allowed relative difference of two drawn means: each ends within 2 % of its true mean (95 %)."""


@settings(max_examples=25, deadline=None)
@given(
    networks, st.lists(st.floats(10.0, 20_000.0), min_size=1, max_size=3), st.booleans(), st.floats(1.2, 8.0)
)
def test_worse_network_is_never_faster(network, sizes, datagrams, factor):
    up, down, tau, loss = network
    timers = DTLS if datagrams else None

    def of(one_way_s: float, slower: float, lost: float) -> Exchange | None:
        try:
            return times(tls13(*sizes), path(up / slower, down / slower, one_way_s, loss=lost), timers)
        except InputError as error:
            if not re.search("(no handshake|replayed handshakes) completes?,", str(error)):
                raise
            return None

    good, bad = of(tau, 1.0, loss), of(tau * factor, factor, min(0.2, loss * factor))
    if bad is None:
        return
    assert good is not None
    # Failed handshakes are checked too: without the slow ones, a mean would be too low.
    longest_s = max(float(one.done.values_s[-1]) for one in (good, bad))
    for what in ("ready", "done"):
        good_s, bad_s = (
            (1.0 - one.failed) * getattr(one, what).mean + one.failed * longest_s for one in (good, bad)
        )
        assert good_s <= bad_s * (1.0 + (CHANCE if loss else 1e-9))
        assert getattr(good, what).p50 <= 1.01 * getattr(bad, what).p50


@settings(max_examples=25, deadline=None)
@given(networks, st.floats(10.0, 30_000.0), st.floats(1.0, 20_000.0))
def test_more_bytes_never_arrive_sooner(network, size, more):
    up, down, tau, loss = network
    link = path(up, down, tau, loss=loss)
    few, many = (times(tls13(90.0, total, 100.0), link).ready.mean for total in (size, size + more))
    assert few <= many * (1.0 + (CHANCE if loss else 1e-9))


@pytest.mark.parametrize("loss", [0.5, 0.7, 0.75])
def test_no_quantile_of_done_is_below_that_of_ready_if_handshakes_fail(loss):
    found = times(tls13(*[1400.0] * 10), path(1e6, 1e6, 0.05, loss=loss))
    assert found.failed > 0.0
    assert found.done.mean >= found.ready.mean
    for share in np.linspace(0.001, 1.0, 500):
        assert found.done.quantile(share) >= found.ready.quantile(share) * (1.0 - 1e-12)


def test_all_percentiles_of_a_path_without_chance_are_known():
    found = times(tls13(90), path(1e6, 1e6, 0.1))
    assert (found.handshakes, found.highest_percentile) == (1, 100.0)


def test_larger_quantiles_of_two_times_are_combined():
    one = Distribution.of_samples([1.0, 2.0, 10.0])
    other = Distribution.of_samples([3.0, 4.0])
    both = one.at_least(other)
    assert both.values_s.tolist() == pytest.approx([3.0, 4.0, 10.0])
    assert both.weights.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 3])
    assert both.at_least(other) is both


def test_figures_of_too_few_completed_handshakes_are_refused():
    """Of tens of thousands of replayed handshakes, both sides complete one or two."""
    found = scenario("tls1.3/x25519mlkem768/mldsa65/mutual", bearer="dsl:loss=80%")
    with pytest.raises(InputError, match=r"only \d of [\d,]+ replayed handshakes complete, .* accepted: "):
        _ = found.exchange
    with replays(coarse=True):
        # First answers are shown until the full ones are computed.
        found = scenario("tls1.3/x25519mlkem768/mldsa65/mutual", bearer="dsl:loss=75%")
        assert found.exchange.completed < 30


def test_path_that_loses_everything_is_refused():
    with pytest.raises(InputError, match=r"'test': no handshake completes, .* accepted: "):
        times(tls13(90), path(1e6, 1e6, 0.1, loss=1.0))
