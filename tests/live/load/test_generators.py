"""Several generators at once: a background beside a measured load, and the workers of a cluster."""

from __future__ import annotations

import pytest

from live.serve.serving import serving
from shakedown import core
from shakedown.errors import InputError
from shakedown.loading import _shares

SUITE = "tls1.3/x25519/p256/server"


def test_a_background_loads_beside_a_measured_client(load):
    with serving(SUITE) as server:
        status, found, err = load(server.target, SUITE, "--background", "40/s", "--duration", "3s")
        counted = server.stop()
    assert status == 0, err
    beside = found["background"]
    assert (found["arrivals"], found["clients"]) == ("closed", 1)
    assert beside["rate_per_s"]["planned"] == 40
    assert 60 < beside["planned"] == beside["completed"] < 190
    assert found["completed"] == found["planned"] > 0
    assert beside["background"] is None
    # Each of the two generators meets the server once before.
    assert counted["handshakes"]["full"] == found["completed"] + beside["completed"] + 2


def test_a_background_that_cannot_begin_keeps_the_load_from_beginning(load):
    from live.load import servers

    status, found, err = load(
        f"127.0.0.1:{servers.free_port()}", SUITE, "--background", "5/s", "--duration", "1s"
    )
    assert (status, found) == (1, {})
    assert "connection refused" in err


def test_the_cap_holds_for_all_together(load):
    capped = ("--i-may-load", "192.0.2.1", "--rate", "30/s", "--background", "30/s", "--duration", "1s")
    status, _, err = load("192.0.2.1:443", *capped)
    assert status == 2
    assert "60/s is above the cap of 50/s" in err


def test_workers_of_a_cluster_load_together(load):
    with serving(SUITE) as server:
        options = ("--rate", "60/s", "--duration", "1s", "--clients", "5", "--workers", "2")
        status, found, err = load(server.target, SUITE, *options)
        counted = server.stop()
    assert status == 0, err
    assert found["generators"] == 2
    assert found["rate_per_s"]["planned"] == 60
    assert 30 < found["completed"] == found["planned"] < 100
    assert found["handshake_s"]["n"] == found["completed"]
    assert counted["handshakes"]["full"] == found["completed"] + 2


def test_parts_merge_exactly():
    """Two runs' parts, once each and once together: counts, sums and extremes are those of both."""
    config = {"arrivals": "closed", "duration_s": 0.3, "clients": 2}
    with serving(SUITE) as server:
        parts = [
            core.load_part(config | {"target": server.target, "seed": seed}, SUITE, {}) for seed in (1, 2)
        ]
    alone, both = [core.merge_loads([part]) for part in parts], core.merge_loads(parts)
    assert both.generators == 2
    for name in ("planned", "completed"):
        assert getattr(both, name) == sum(getattr(one, name) for one in alone)
    for name in ("connect_s", "handshake_s", "start_lateness_s"):
        times, each = getattr(both, name), [getattr(one, name) for one in alone]
        assert times.n == sum(one.n for one in each)
        assert times.max == max(one.max for one in each)
        assert times.mean == pytest.approx(sum(one.n * one.mean for one in each) / times.n, rel=1e-12)
        assert min(one.p50 for one in each) <= times.p50 <= max(one.p50 for one in each)


def test_shares_add_up_to_the_whole():
    config = {
        "clients": 7,
        "max_starts": 5,
        "traces": 3,
        "rate_per_s": 10.0,
        "background_per_s": None,
        "seed": 4,
    }
    shares = _shares(config, 3)
    for name in ("clients", "max_starts", "traces"):
        assert sum(share[name] for share in shares) == config[name]
    assert sum(share["rate_per_s"] for share in shares) == pytest.approx(10.0)
    assert len({share["seed"] for share in shares}) == 3
    with pytest.raises(InputError, match="at least 8 of each"):
        _shares(config, 8)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--workers", "0"), "workers is 0"),
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "accepted: one of the two"),
        (("--background", "0"), "background rate: 0"),
    ],
)
def test_wrong_input_is_one_line(load, arguments, told):
    status, found, err = load("127.0.0.1:1", SUITE, "--rate", "5/s", *arguments)
    assert (status, found) == (2, {})
    assert told in err
    assert err.count("\n") == 1
