"""Properties of all costs on any device: clock rates, order of times, widths of ranges."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shakedown.errors import InputError
from shakedown.prediction.library import open_library
from shakedown.prediction.predict import predict_rows
from shakedown.prediction.side_cost import side_cost
from shakedown.profiles import bearer_names, load_bearer, load_device
from shakedown.profiles.registry import shipped_names

SUITES = ("tls1.2/psk", "tls1.2/rsa/rsa2048/server", "tls1.3/x25519/p256/server")
BUILDS = [
    build
    for name in shipped_names("devices")
    for device in [load_device(name)]
    if device.has_primitives
    for build in (device, *device.variants)
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BUILDS), st.sampled_from(SUITES), st.floats(1.0, 20.0))
def test_a_faster_clock_of_the_same_core_never_costs_more(device, suite, faster):
    """Work that a profile has no figure for is assumed by the clock; its own figures stay."""
    trace = open_library()[suite]
    quicker = dataclasses.replace(device, clock_hz=device.clock_hz * faster)
    for side in ("client", "server"):
        slow, quick = side_cost(trace, side, device), side_cost(trace, side, quicker)
        # A rough cipher's cost counts only beside much longer work, which the clock may change either way.
        # Without that cost, the total is a lower bound.
        unknown, more = ({_key(row): row["count"] for row in one.without_cost} for one in (slow, quick))
        assert {row for row in more if row[0] != "cipher"} <= unknown.keys()
        added = {key: row for key, row in _figures(quick).items() if key in unknown and key not in more}
        parts = _figures(slow)
        for key, row in _figures(quick).items():
            if key not in added:
                for here, there in zip((row["time_s"], *row["range_s"]), _times(parts[key]), strict=True):
                    assert here <= there * (1 + 1e-12)
        known_s = quick.total.mean - sum(row["time_s"] for row in added.values())
        assert known_s <= slow.total.mean * (1 + 1e-12)
        if not added:
            assert quick.total.high <= slow.total.high * (1 + 1e-12)


def _key(row):
    return row["operation"], row["algorithm"], row["parameters"]


def _figures(cost):
    return {_key(row): row for row in cost.figures}


def _times(row):
    return row["time_s"], *row["range_s"]


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["cortex-m4", "esp32", "raspberry-pi"]), st.sampled_from(SUITES), st.floats(1.0, 20.0))
def test_scaled_costs_are_proportional_to_the_clock_period(reference, suite, faster):
    trace = open_library()[suite]
    described = load_device("via-533")
    quicker = dataclasses.replace(described, clock_hz=described.clock_hz * faster)
    slow, quick = (side_cost(trace, "client", one, load_device(reference)) for one in (described, quicker))
    assert quick.total.mean * faster == pytest.approx(slow.total.mean)


@pytest.mark.parametrize("bearer", bearer_names())
def test_ready_never_follows_done_and_every_range_has_width(bearer):
    if load_bearer(bearer).mtu_bytes < 40:
        with pytest.raises(InputError, match="packets of 12 bytes, too small"):
            predict_rows(["tls1.2/psk"], device="cortex-m4", bearer=bearer)
        return
    if bearer in ("lorawan-sf10", "lorawan-sf11", "lorawan-sf12"):
        with pytest.raises(InputError, match="packets of 51 bytes, too small"):
            predict_rows(["tls1.2/psk"], device="cortex-m4", bearer=bearer)
        return
    rows = predict_rows(["tls1.3/x25519/p256/server", "tls1.2/psk"], device="cortex-m4", bearer=bearer)
    for row in rows:
        if "error" in row:
            continue
        assert row["ready_s"]["lower"] < row["ready_s"]["mean"] < row["ready_s"]["upper"]
        for name in ("mean", "p50", "p95", "p99", "lower", "upper"):
            assert row["ready_s"][name] <= row["done_s"][name] * (1 + 1e-9)
        assert row["done_s"]["p50"] <= row["done_s"]["p95"] <= row["done_s"]["p99"]
        client = row["client_s"]
        assert client["lower"] < client["estimate"] < client["upper"]
