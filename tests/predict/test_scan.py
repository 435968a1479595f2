"""Costs, `predict` and `simulate` for all devices and builds, as client and as server: unknown figures are
never zero, and figures that depend on them are marked.
"""

from __future__ import annotations

import pytest

from shakedown.native.scenario import Fleet
from shakedown.prediction.library import open_library
from shakedown.prediction.predict import row
from shakedown.prediction.scenario import scenario
from shakedown.profiles import load_device
from shakedown.profiles.registry import shipped_names
from shakedown.schema.base import builtins
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job, run

SUITES = (
    "tls1.0/rsa/rsa1024/server", "tls1.0/rsa/rsa2048/server", "tls1.0/dhe_dss+dh1024/dsa1024/server",
    "tls1.1/dhe_rsa+dh2048/rsa2048/mutual", "tls1.2/psk", "tls1.2/dhe_psk+ffdhe2048", "tls1.2/ecdhe_psk+p256",
    "tls1.2/rsa/rsa2048/server", "tls1.2/rsa/rsa2048/server/resumed",
    "tls1.2/dhe_rsa+ffdhe2048/rsa2048/server",
    "tls1.2/ecdhe_ecdsa+p256/p256/mutual", "tls1.2/ecdhe_rsa+p256/rsa2048/server", "tls1.3/psk",
    "tls1.3/x25519/p256/server", "tls1.3/x25519/p256/server/resumed", "tls1.3/p256/p256/mutual",
    "tls1.3/p384/p384/server", "tls1.3/x25519/ed25519/server", "tls1.3/x25519mlkem768/mldsa65/server",
    "wtls/ecdh_ecdsa/163k/mutual", "wtls/rsa/rsa1024/server",
)  # fmt: skip
"""The number of usual choices: each protocol, key exchange and kind of key."""

BEARER = """schema = 2
name = "fixed"
title = "A fixed delay"
date = "2026"
source = ["a test's"]
up_bps = 1_000_000
down_bps = 1_000_000
traversal_ms = 10
[energy]
send_w = 0.5
receive_w = 0.3
idle_w = 0.2
tail_w = 0.1
tail_s = 2
"""

WORK = ("ready_s", "done_s")


@pytest.fixture(scope="module")
def bearer(tmp_path_factory):
    path = tmp_path_factory.mktemp("bearer") / "fixed.toml"
    path.write_text(BEARER, encoding="utf-8")
    return str(path)


def test_each_suite_of_the_scan_is_recorded():
    assert len(SUITES) == 21
    assert all(suite in open_library() for suite in SUITES)


@pytest.mark.parametrize(
    "board", [name for name in shipped_names("devices") if load_device(name).has_primitives]
)
def test_unknown_costs_are_not_zero_and_dependent_figures_are_marked(board, bearer):
    device = load_device(board)
    for build in (device, *device.variants):
        for suite in SUITES:
            for side in ("client", "server"):
                here = {"client": {"device": build.name}, "server": {"server_device": build.name}}[side]
                one = scenario(suite, bearer=bearer, **here)
                everything_is_accounted_for(one, side, build)
                predicted_figures_are_marked(one)
                simulated_figures_are_marked(one)


def everything_is_accounted_for(one, side, build):
    """Each operation has the device's own cost, an estimated one, or is named as without cost."""
    cost = getattr(one, side)
    key = "operation", "algorithm", "parameters"
    found = {tuple(row[name] for name in key): row["time_s"] for row in cost.figures}
    named = {tuple(row[name] for name in key) for row in cost.without_cost}
    names = {message.index: message.name for message in one.trace.messages}
    for operation in one.trace.operations:
        if operation.side != side or not operation.count:
            continue
        message = names.get(operation.message, "")
        placed = build.overhead.primitive(one.trace.protocol, message, operation.triple)
        own = placed or build.costs.get(operation.triple)
        where = (build.name, one.trace.suite, side, operation.triple)
        assert own is not None or operation.triple in named or found.get(operation.triple, 0.0) > 0.0, where
    assert 0.0 < cost.total.low <= cost.total.mean <= cost.total.high
    assert (cost.without_cost_high_s > 0.0) == bool(cost.without_cost)
    assert cost.connection is not None


def predicted_figures_are_marked(one):
    made = row(one, "default", 1e-6, 1)
    client, server = one.client.missing, one.server.missing
    for name, missing in (
        ("client_s", client), ("server_s", server), ("queue_s", server), ("utilisation", server),
        ("offered", server), ("ready_s", client + server), ("done_s", client + server),
    ):  # fmt: skip
        figure = made[name]
        assert figure is None or figure["missing"] == list(missing), name
        if figure is not None and "estimate" in figure:
            assert (figure["estimate"] is None) == bool(missing), name
            assert figure["lower"] > 0.0 or name == "queue_s"
    lacks = bool(client or server) or one.device.power.active_w is None
    assert bool(made["energy_j"]["missing"]) == lacks
    assert made["wake_tail_j"]["estimate"] == pytest.approx(0.2)


def simulated_figures_are_marked(one):
    fleet = settle(Fleet(arrivals="deterministic:0.01/s", clients=4, replications=1))
    found = builtins(run(Job(one, None, fleet, 1, 1)))
    client, server = one.client.missing, one.server.missing
    for name, missing in (
        ("ready_s", client + server), ("done_s", client + server), ("queue_wait_s", client + server),
        ("job_wait_s", client + server), ("utilisation", client + server), ("offered", client + server),
        ("recovery_s", client + server), ("connect_s", ()),
    ):  # fmt: skip
        assert found[name]["missing"] == tuple(missing), name
        assert "estimate" not in found[name] or (found[name]["estimate"] is None) == bool(missing)
    assert found["missing"] == client + server
    assert (found["unstable"] is None) == (bool(client + server) and found["offered"]["lower"] < 1.0)
    assert bool(found["energy_j"]["missing"]) == (bool(client or server) or one.device.power.active_w is None)
