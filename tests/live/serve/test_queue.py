"""A server's queue, timed by itself, and the check that holds it against the formula."""

from __future__ import annotations

import math

import pytest
from tools import queue_check
from tools.queue_check import Moments

from live.serve.serving import serving


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
    # What the stack works is part of what the worker does.
    assert queue["handshake_service_s"]["mean"] > counted["busy_s"]["mean"]
    assert handshakes * queue["handshake_service_s"]["mean"] < queue["worked_s"] < counted["elapsed_s"]


def test_a_queue_is_not_timed_unasked():
    with serving("tls1.3/x25519/p256/server") as server:
        assert server.stop()["queue"] is None


def test_moments_are_those_of_what_came_since():
    earlier, later = Moments(2, 1.0, 1.5), Moments(5, 2.0, 6.0)
    # Values 0.5, 1.5 with mean of squares 1.25 … as given; then three more.
    assert later.since(earlier) == Moments(3, pytest.approx(8 / 3), pytest.approx(9.0))
    assert math.isnan(earlier.since(earlier).mean_s)
    # (x + 1)² = x² + 2 x + 1.
    assert Moments(4, 2.0, 5.0).plus(1.0) == Moments(4, 3.0, 10.0)


def test_a_wait_is_near_enough_within_its_bound_or_its_interval():
    near = queue_check.compare([1.1, 1.1], [5, 5], 1.0, 0.5)
    assert (near.met, near.off) == (True, pytest.approx(0.1))
    assert not queue_check.compare([1.2, 1.2], [5, 5], 1.0, 0.5).met
    assert queue_check.compare([1.2, 1.2], [5, 5], 1.0, 0.8).met
    # Far off, and as far from knowing it.
    assert queue_check.compare([0.5, 2.5], [5, 5], 1.0, 0.5).met


def test_a_small_check_computes_its_table(capsys):
    """Whether the formula holds is for a quiet machine; that everything is there, for any."""
    (one,) = queue_check.check("wtls/rsa/rsa2048/server", [0.3], 60, 3, quiet=20)
    assert one.handshakes >= 60
    assert one.failed == 0
    assert 0.0 < one.utilisation < 1.0
    for found in (one.message, one.handshake):
        assert found.formula_s > 0.0
        assert math.isfinite(found.live_s)
        assert found.margin_s > 0.0
    assert one.suite in queue_check.line(one)
