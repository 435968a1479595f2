"""Handshakes over TCP run with losses (``tcp_lossy_flow``), and what is made of them (``tcp_lost``)."""

from __future__ import annotations

import random

import pytest

from models.test_lossy_flights import BANDS, RATE_BITS_PER_S, flight_bytes, simulated
from models.test_network import FINISHED, HELLO, fixed_path
from models.test_varying_delays import CLASSIC, HYBRID, POST_QUANTUM, PSK, steps
from shakedown.models.distribution import Distribution
from shakedown.models.draws import Draw, draws
from shakedown.models.network import TCP, Step, Tcp, exchange
from shakedown.models.path import Direction, Path
from shakedown.models.steps import written
from shakedown.models.tcp_flow import Flow, Sent, flow
from shakedown.models.tcp_lossy_flow import Loses, lossy_flow
from shakedown.models.tcp_lost import _Chance, _Stage, lost
from shakedown.profiles import load_bearer

ROUND_TRIP_S = 0.196
HANDSHAKES = 10_000


def nothing(_number: int, _packet: object) -> bool:
    return False


@pytest.mark.parametrize("suite", [CLASSIC, HYBRID, POST_QUANTUM, PSK])
@pytest.mark.parametrize("bearer", ["nb-iot", "nb-iot-ce1", "thread", "lte-m", "gprs", "geo"])
def test_without_losses_both_recursions_are_the_same(bearer, suite):
    """Timers fire in most of these, needlessly: two ways to take back what they did."""
    path, flights = load_bearer(bearer).path(), written(steps(suite), TCP.write_bytes)
    for draw in draws(path, 24):
        plain, other = flow(flights, path, TCP, draw=draw), lossy_flow(flights, path, TCP, nothing, draw=draw)
        assert other is not None
        assert (plain.ready_s, plain.done_s) == pytest.approx((other.ready_s, other.done_s), abs=1e-9)
        assert plain.sent == other.sent


def test_silence_fills_no_queue():
    """A gateway's pause and a duty cycle keep packets waiting for minutes, but few bytes."""
    path, flights = load_bearer("lorawan-sf7").path(), written(steps(CLASSIC), TCP.write_bytes)
    assert path.up.queue_bytes is not None
    assert 8.0 * path.up.queue_bytes / path.up.rate_bits_per_s < 120.0
    found = flow(flights, path, TCP)
    assert found.done_s > 120.0
    assert not any(times.dropped for times in found.flights)


def handshake(segments: int) -> list[Step]:
    """Three flights, the server's of so many segments."""
    return [Step("client", HELLO), Step("server", flight_bytes(segments)), Step("client", FINISHED)]


def late_s(segments: int, *numbers: int) -> float:
    """How late a handshake is ready when these packets are lost, no timer of its hosts ever late."""
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ROUND_TRIP_S / 2.0)
    tcp, flights = Tcp(write_bytes=0, tick_s=0.0), written(handshake(segments), 0)
    found = lossy_flow(flights, path, tcp, lambda number, _: number in numbers)
    assert found is not None
    return found.ready_s - flow(flights, path, tcp).ready_s


@pytest.mark.parametrize(
    ("segments", "numbers", "expected_s"),
    [
        (1, [0], 1.0),  # the SYN
        (1, [1], 1.0),  # the SYN-ACK
        (1, [2], 0.0),  # its acknowledgement: the flight says it, too
        (4, [4], 0.0),  # the acknowledgement of the first flight
        (10, [5], ROUND_TRIP_S),  # of many segments the first: three acknowledgements beyond it, and its copy
        # The only segment: its probe would come after two round trips and 200 ms, the timeout after three.
        (1, [3], 3.0 * ROUND_TRIP_S),
        (1, [3, 4], 6.0 * ROUND_TRIP_S),  # and that probe: the timeout, as long, after it
        (1, [3, 4, 5], 12.0 * ROUND_TRIP_S),  # and its copy: the next is twice as long
        # Of four segments the last: the same, from when the others were acknowledged.
        (4, [8], ROUND_TRIP_S + 3.0 * ROUND_TRIP_S),
    ],
)
def test_what_one_loss_costs(segments, numbers, expected_s):
    assert late_s(segments, *numbers) == pytest.approx(expected_s, abs=2e-3)


@pytest.mark.parametrize(("segments", "loss"), [(1, 0.05), (12, 0.05), (12, 0.2)])
def test_losses_by_chance_make_the_simulators_times(segments, loss):
    """Within 5 %, besides what chance does to so many handshakes' percentiles: half a point either way."""
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ROUND_TRIP_S / 2.0, loss=loss)
    flights, chance = written(handshake(segments), 0), random.Random(1)
    tcp = Tcp(write_bytes=0)
    found = [
        lossy_flow(flights, path, tcp, lambda *_: chance.random() < loss, draw=draw)
        for draw in draws(path, HANDSHAKES)
    ]
    theirs = simulated(segments, loss, ROUND_TRIP_S, 100_000)
    for name in ("ready", "done"):
        ours = Distribution.of_samples([getattr(one, f"{name}_s") for one in found if one is not None])
        assert ours.mean == pytest.approx(theirs[name].mean_s, rel=0.05)
        for share in BANDS:
            low, high = (
                theirs[name].quantile(share - 0.005),
                theirs[name].quantile(min(share + 0.005, 0.9999)),
            )
            assert 0.95 * low <= ours.quantile(share) <= 1.05 * high


def test_what_is_run_weighs_as_much_as_it_is_probable():
    """Of a path on which every loss costs the same, the share that is late is that which loses something that
    matters: one of the first four packets, the acknowledgements left out.
    """
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ROUND_TRIP_S / 2.0, loss=0.03)
    chosen, flights = draws(path, 32), written(handshake(1), 0)
    flows = [flow(flights, path, Tcp(write_bytes=0), draw=draw) for draw in chosen]

    def run(draw: Draw, loses: Loses) -> Flow | None:
        return lossy_flow(flights, path, Tcp(write_bytes=0), loses, draw=draw)

    found = lost(chosen, flows, path, run)["ready_s"]
    total = found.added_to(Distribution.exactly(flows[0].ready_s))
    # SYN, SYN-ACK, the ClientHello and the answer to it.
    assert total.probability_within(flows[0].ready_s + 1e-6) == pytest.approx(0.97**4, abs=0.004)
    assert found.failed == 0.0


def test_bursts_make_a_repair_fail_more_often():
    """As many packets are lost, but copies more often: fewer handshakes are late, and those for longer."""

    def found(burst: float) -> Distribution:
        way = Direction(1e7, Distribution.exactly(0.05), 0.01, loss_burst_packets=burst)
        return exchange(handshake(4), Path(way, way, Distribution.exactly(0.0)), Tcp(write_bytes=0)).ready

    alone, bursts = found(0.0), found(3.0)
    on_time_s = min(float(alone.values_s[0]), float(bursts.values_s[0])) + 0.005
    assert bursts.probability_within(on_time_s) > alone.probability_within(on_time_s)
    assert bursts.quantile(0.999) > 1.5 * alone.quantile(0.999)


def test_a_side_gives_up_after_as_many_timeouts_as_linux():
    """``tcp_retries2``: 15 of them, and the first sending and its probe before."""
    sent = []

    def loses(number: int, packet: Sent) -> bool:
        sent.append(packet)
        return number > 2

    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ROUND_TRIP_S / 2.0)
    assert lossy_flow(written(handshake(1), 0), path, Tcp(write_bytes=0), loses) is None
    assert len([side for side, more, stage in sent if side == "client" and more and stage]) in (16, 17)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.75])
def test_losses_go_on_by_chance_however_many_there_were(share):
    """Half of all, or bursts of two: numbers that halving uses up, after which all or nothing was lost."""
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ROUND_TRIP_S / 2.0, loss=share)
    flights = written(handshake(4), 0)
    flows = [flow(flights, path, TCP)]
    stage = _Stage(None, draws(path, 1), flows, lambda *_: None, _Chance(path), 24)
    count = 2_000
    for number in range(8):
        loses = stage.further(0, 1, (0.5 + number * 0.732) % 1.0)
        found = [loses(packet, ("server", True, 1)) for packet in range(2, 2 + count)]
        assert sum(found) / count == pytest.approx(share, abs=6.0 * (share * (1.0 - share) / count) ** 0.5)


def test_over_a_satellite_in_low_orbit_nobody_gives_up():
    """None of 20,000 simulated clients does; of runs whose losses never ended, one in 5,000 did."""
    path = load_bearer("leo").path()
    assert exchange(steps(CLASSIC), path).failed < 1e-5


@pytest.mark.parametrize(("bearer", "suite"), [("thread", POST_QUANTUM), ("lorawan-sf7", HYBRID)])
def test_no_share_of_handshakes_is_done_before_it_is_ready(bearer, suite):
    found = exchange(steps(suite), load_bearer(bearer).path())
    for share in (0.05, 0.5, 0.9, 0.95, 0.99, 0.999):
        assert found.ready.quantile(share) <= found.done.quantile(share)


@pytest.mark.parametrize(
    ("suite", "mtu_bytes", "sigma", "half_duplex", "up", "down"),
    [
        # Timers jam the way up: losses make slow handshakes faster, by more than the fast ones take.
        (CLASSIC, 128, 2.78, False, (50.0, 0.001, 65_536), (2_400.0, 0.2, 65_536)),
        # The queue drops what the window sends, and every crossing has the same delay.
        (POST_QUANTUM, 1500, 1.457, True, (1e11, 0.05, 1_600), (1e5, 0.05, None)),
    ],
)
def test_no_handshake_is_faster_than_its_packets(suite, mtu_bytes, sigma, half_duplex, up, down):
    ways = [
        Direction(rate, delay, loss, queue_bytes=queue)
        for (rate, loss, queue), delay in zip(
            (up, down), (Distribution.lognormal(0.21, 0.3, sigma), Distribution.exactly(1e-4)), strict=True
        )
    ]
    path = Path(*ways, Distribution.exactly(0.0), mtu_bytes, delay_holds_s=5.0, half_duplex=half_duplex)
    # SYN and ClientHello have to get there.
    least_s = 2.0 * 0.21 + 8.0 * steps(suite)[0].size_bytes / up[0]
    found = exchange(steps(suite), path)
    assert found.ready.values_s[0] >= 0.98 * least_s
    assert found.done.values_s[0] >= 0.98 * least_s


def test_long_handshakes_are_run_less_often():
    """Hundreds of small segments and half of them lost: a quarter of a million packets, not millions."""
    path = fixed_path(RATE_BITS_PER_S, RATE_BITS_PER_S, ROUND_TRIP_S / 2.0, loss=0.5)
    flights, sent = written(handshake(200), 0), []
    flows = [flow(flights, path, TCP)]

    def run(_draw: Draw, _loses: Loses) -> Flow:
        sent.append(len(flows[0].sent))
        return flows[0]

    lost(draws(path, 1), flows, path, run)
    assert len(sent) > 100
    assert sum(sent) < 250_000
