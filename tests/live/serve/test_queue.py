"""A server's queue, timed by the server, and its comparison with the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tools import queue_check, queue_waits

from live.serve.serving import serving
from shakedown.native.serving import QueueTraces


@pytest.mark.parametrize("suite", ["tls1.3/x25519/p256/server", "wtls/rsa/rsa1024/server"])
def test_every_message_of_a_handshake_is_timed(shakedown, suite):
    with serving(suite, "--queue-times") as server:
        options = ("--rate", "50/s", "--duration", "1s", "--count", "20", "--json")
        done = shakedown("load", f"{'wtls' if 'wtls' in suite else 'tls'}://{server.target}", suite, *options)
        counted = server.stop()
    assert done.returncode == 0, done.stderr
    queue, handshakes = counted["queue"], counted["handshakes"]["full"]
    assert handshakes == 21
    for name in ("first_wait_s", "handshake_wait_s", "handshake_service_s"):
        assert queue[name]["count"] == handshakes
    # ClientHello, and the client's last flight.
    assert queue["message_wait_s"]["count"] == queue["message_service_s"]["count"] == 2 * handshakes
    assert queue["handshake_service_s"]["mean"] == pytest.approx(2 * queue["message_service_s"]["mean"])
    assert queue["handshake_wait_s"]["mean"] == pytest.approx(2 * queue["message_wait_s"]["mean"])
    assert 0.0 < queue["first_wait_s"]["mean"] <= queue["handshake_wait_s"]["mean"]
    # The stack's work is part of the worker's.
    assert queue["handshake_service_s"]["mean"] > counted["busy_s"]["mean"]
    assert handshakes * queue["handshake_service_s"]["mean"] < queue["worked_s"] < counted["elapsed_s"]


def test_queue_is_not_timed_by_default():
    with serving("tls1.3/x25519/p256/server") as server:
        assert server.stop()["queue"] is None


def traces(arrived_s, service_s, *, handshake=None, delay_s=0.0, beside_s=0.0):
    """The queue of a server that serves in turn, wakes up in `delay_s` and works `beside_s` after each."""
    taken_up, done, worked, free_s, sum_s = [], [], [], -math.inf, 0.0
    for at_s, work_s in zip(arrived_s, service_s, strict=True):
        taken_up.append(free_s if free_s > at_s else at_s + delay_s)
        worked.append(sum_s)
        done.append(taken_up[-1] + work_s)
        free_s = done[-1] + beside_s
        sum_s += work_s + beside_s
    numbers = np.arange(len(taken_up)) if handshake is None else np.array(handshake)
    first = np.isin(np.arange(len(numbers)), np.unique(numbers, return_index=True)[1])
    return QueueTraces(*map(np.array, (arrived_s, taken_up, done, worked)), handshake=numbers, is_first=first)


def test_replay_has_the_waits_of_an_always_awake_server():
    generator = np.random.default_rng(1)
    arrived_s = np.cumsum(generator.exponential(1.0, 500))
    service_s = generator.uniform(0.2, 1.4, 500)
    found = traces(arrived_s, service_s)
    shuffled = generator.permutation(500)
    waits_s = queue_waits.replayed_s(arrived_s[shuffled], service_s[shuffled])
    assert waits_s == pytest.approx((found.taken_up_s - found.arrived_s)[shuffled], abs=1e-9)


def test_work_between_messages_is_attributed_to_the_previous_one():
    found = traces([0.0, 10.0, 20.0], [1.0, 2.0, 3.0], beside_s=0.5)
    assert queue_waits.services_s(found) == pytest.approx([1.5, 2.5, 3.5])


@pytest.mark.parametrize("utilisation", [0.2, 0.6])
def test_wake_up_delays_are_subtracted_from_the_waits(utilisation):
    """Without the wake-up time, the wait is that of M/M/1's formula."""
    generator = np.random.default_rng(2)
    count = 200_000
    arrived_s = np.cumsum(generator.exponential(1.0 / utilisation, count))
    service_s = generator.exponential(1.0, count)
    found = queue_waits.messages(traces(arrived_s, service_s, delay_s=0.4))
    # M/M/1: the wait is ρ / (1 - ρ) services.
    assert found.queued_s == pytest.approx(utilisation / (1.0 - utilisation), rel=0.05)
    assert found.formula_s == pytest.approx(utilisation / (1.0 - utilisation), rel=0.05)
    assert found.set_up_s > 0.25


def test_messages_are_grouped_by_handshake():
    found = traces([0.0, 1.5, 5.0, 6.5, 9.0], [0.5, 1.0, 0.5, 2.0, 0.5], handshake=[4, 4, 7, 7, 9])
    customers = queue_waits.handshakes(found)
    assert customers.service_s == pytest.approx([1.5, 2.5, 0.5])
    assert customers.rate_per_s == pytest.approx(3 / 9.0)
    both = queue_waits.pairs(found)
    assert both.first_s == pytest.approx([0.5, 0.5])
    assert both.second_s == pytest.approx([1.0, 2.0])
    assert both.between_s == pytest.approx([1.0, 1.0])


def test_simulated_waits_match_the_formulas_where_these_are_exact():
    """Second messages have no work and come at once, so they find the queue that the first ones left."""
    nothing = np.zeros(1)
    first_only = queue_waits.Pairs(np.ones(1), nothing, nothing)
    found_s = queue_waits.simulated_wait_s(first_only, 0.5, 100_000, 1)
    # M/D/1 at ρ = 0.5: first messages wait ρ / (2 (1 - ρ)), and leave ρ + ρ² / (2 (1 - ρ)) others behind.
    assert found_s == pytest.approx((0.5, 0.75), rel=0.06)


def test_second_messages_wait_less_at_low_load():
    """The work ahead of the first message is done when the second comes, and little has come since."""
    first_s, second_s, between_s = 0.1, 1.0, 0.2
    pairs = queue_waits.Pairs(*(np.array([one]) for one in (first_s, second_s, between_s)))
    rate_per_s, apart_s = 0.01, first_s + between_s
    found_s = queue_waits.simulated_wait_s(pairs, rate_per_s, 100_000, 1)
    wanted_s = (rate_per_s * (first_s**2 + second_s**2) / 2, rate_per_s * (second_s - apart_s / 2) * apart_s)
    assert found_s == pytest.approx(wanted_s, rel=0.15)


@pytest.mark.parametrize(("first_s", "second_s"), [(0.1, 1.0), (1.0, 0.1), (0.5, 0.5)])
def test_first_wait_formula_holds_for_any_second_message_arrivals(first_s, second_s):
    found = queue_waits.Pairs(*(np.array([one]) for one in (first_s, second_s, 0.3)))
    wanted_s, second_wait_s = queue_waits.simulated_wait_s(found, 0.6, 100_000, 1)
    law_s = queue_waits.first_wait_s(0.6, found.first_s, found.second_s, second_wait_s)
    assert law_s == pytest.approx(wanted_s, rel=0.06)


def test_clients_sharing_a_processor_shorten_the_waits():
    heavy = queue_waits.Pairs(np.zeros(1), np.ones(1), 0.8 * np.ones(1))
    (_, apart_s), (_, shared_s) = (
        queue_waits.simulated_wait_s(heavy, 0.1, 30_000, 1, client_work_s=work_s) for work_s in (0.0, 0.8)
    )
    # The client's work keeps second messages, which have all server work, at least 0.8 of it apart.
    assert 0.0 < shared_s < 0.7 * apart_s


def test_first_messages_of_a_shared_processor_wait_for_second_ones():
    """At low load, a message that comes while a client makes its second one waits for all its work."""
    first_s, second_s, work_s = 0.1, 1.0, 0.2
    pairs = queue_waits.Pairs(*(np.array([one]) for one in (first_s, second_s, work_s)))
    rate_per_s = 0.01
    (found_s, _) = queue_waits.simulated_wait_s(pairs, rate_per_s, 200_000, 1, client_work_s=work_s)
    alone_s = rate_per_s * (first_s**2 + second_s**2) / 2
    assert found_s == pytest.approx(alone_s + rate_per_s * work_s * second_s, rel=0.1)


def test_first_messages_soon_after_second_ones_are_counted():
    # Handshake 7 begins 0.1 after the second message of 4; 9 does not.
    found = traces([0.0, 1.5, 1.6, 6.5, 9.0], [0.5, 1.0, 0.5, 2.0, 0.5], handshake=[4, 4, 7, 7, 9])
    share, by_chance = queue_waits.close_behind(found, 0.2)
    assert share == pytest.approx(1 / 3)
    assert by_chance == pytest.approx(1 - math.exp(-0.2 * 2 / 9.0))


def test_wait_is_met_within_its_tolerance_or_its_interval():
    near = queue_check.compare([1.1, 1.1], [5, 5], 1.0, 0.5)
    assert (near.met, near.off) == (True, pytest.approx(0.1))
    assert not queue_check.compare([1.2, 1.2], [5, 5], 1.0, 0.5).met
    assert queue_check.compare([1.2, 1.2], [5, 5], 1.0, 0.8).met
    # Far off, but the interval is as wide.
    assert queue_check.compare([0.5, 2.5], [5, 5], 1.0, 0.5).met


def test_a_small_check_computes_its_table(capsys):
    """Only a quiet machine can show whether the formula holds; any machine computes the whole table."""
    (one,) = queue_check.check("wtls/rsa/rsa2048/server", [0.3], 60, 3, quiet=20)
    assert one.handshakes >= 60
    assert one.failed == 0
    # Computed from the previous run's handshakes; on a busy machine it may exceed 1.
    assert one.utilisation > 0.0
    for found in (one.message, one.handshake, one.first):
        assert found.formula_s > 0.0
        assert math.isfinite(found.live_s)
        assert found.margin_s > 0.0
    for waits in (one.replayed, one.imitated, one.imitated_one_client):
        assert waits.first_s >= 0.0
        assert 0.0 < waits.first_s + waits.second_s < math.inf
    assert one.suite in queue_check.line(one)
