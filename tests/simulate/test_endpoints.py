"""`simulate --endpoints`: protocol engines in virtual time, and the comparison with a replay."""

from __future__ import annotations

import json
import math

import pytest

import shakedown as package
from runs import printed
from shakedown.schema.base import convert
from shakedown.schema.simulated import Simulated

TLS, WTLS = "tls1.3/x25519/rsa2048/server", "wtls/rsa/rsa1024/server"


def engines(shakedown, *arguments: str) -> list[Simulated]:
    done = shakedown("simulate", *arguments, "--endpoints", "--json")
    return [convert(row, Simulated) for row in printed(done)]


def test_engines_of_two_protocols_match_their_replays(shakedown):
    rows = engines(shakedown, TLS, WTLS, "--arrivals", "poisson:5/s", "--clients", "200", "--bearer", "gprs")
    assert [row.endpoints.client_stack for row in rows] == ["openssl", "wtls"]
    for row in rows:
        found = row.endpoints.replayed
        assert row.completed == row.clients == 200
        assert found.clients >= 5_000
        assert found.mean_ratio == pytest.approx(1.0, abs=0.1), "the bearer's delays vary"
        assert 0.0 <= found.distance <= found.critical
        assert row.traffic.packets > 4 * row.clients


def test_without_loss_engine_and_replay_means_agree(shakedown):
    for suite in (TLS, WTLS):
        (row,) = engines(
            shakedown, suite, "--arrivals", "deterministic:1/s", "--clients", "400", "--bearer", "ethernet"
        )
        assert row.endpoints.replayed.mean_ratio == pytest.approx(1.0, abs=0.05), suite


def test_rows_are_reproducible_and_have_the_fields_of_a_replay(shakedown):
    command = (TLS, "--arrivals", "storm:1s", "--clients", "60", "--bearer", "lte")
    (row,) = engines(shakedown, *command)
    assert engines(shakedown, *command) == [row]
    replayed = shakedown("simulate", *command, "--json")
    (other,) = json.loads(replayed.stdout)
    (ours,) = json.loads(shakedown("simulate", *command, "--endpoints", "--json").stdout)
    assert set(ours) - set(other) == {"endpoints"}
    assert "agree" in shakedown("simulate", *command, "--endpoints").stdout


def test_clients_that_share_a_queue_are_compared_without_a_test_of_independent_times(shakedown):
    """At 92 % utilisation, two samples of one fleet differ by more than two of independent times."""
    load = ("tls1.2/rsa/rsa2048/server", "--arrivals", "poisson:2400/s", "--bearer", "ethernet")
    (row,) = engines(shakedown, *load)
    assert row.endpoints.replayed.distance > 0.0
    assert row.endpoints.replayed.critical is None
    assert row.precision is not None
    assert not row.precision.is_met
    said = shakedown("simulate", *load, "--endpoints").stdout
    assert "distributions not tested, because clients wait for the server: distance 0." in said
    assert "the run is short compared with the correlation time of the queues" in said
    table_row = said.splitlines()[2]
    assert "! " in table_row


STORMS_IN_CELLS = [
    (TLS, "nb-iot", 120, 4, "random access and a scheduler"),
    (WTLS, "nb-iot", 120, 4, "datagrams"),
    (TLS, "802154", 600, 20, "carrier sense"),
    (TLS, "wifi", 600, 2, "802.11's carrier sense"),
    (WTLS, "gsm-csd", 120, 3, "circuits"),
]


@pytest.mark.parametrize(("suite", "bearer", "clients", "cells", "how"), STORMS_IN_CELLS)
def test_engines_share_cells_as_replays_do(shakedown, suite, bearer, clients, cells, how):
    """Tolerances were fixed before the first comparison: means within 5 %, 95th percentiles within 10 %,
    distributions within the distance that independent times exceed with a probability of 1 %.
    """
    storm = ("--arrivals", "storm:2s", "--clients", str(clients), "--cells", str(cells), "--bearer", bearer)
    (row,) = engines(shakedown, suite, *storm, "--from-idle")
    replayed = row.endpoints.replayed
    assert replayed.clients > 10_000
    assert replayed.critical is None, "clients that share cells have no independent times"
    assert replayed.distance <= 1.63 * math.sqrt(1 / row.completed + 1 / replayed.clients), how
    assert replayed.mean_ratio == pytest.approx(1.0, abs=0.05), how
    assert row.ready_s.p95 == pytest.approx(replayed.ready_s.p95, rel=0.1), how
    assert row.access is not None
    assert row.access.cells == cells


def test_python_runs_engines_of_other_stacks():
    rows = package.simulate(
        TLS, package.Fleet(clients=30), endpoints=package.Stacks(client="rustls", server="openssl")
    )
    assert (rows[0].endpoints.client_stack, rows[0].endpoints.server_stack) == ("rustls", "openssl")
    assert rows[0].completed == 30


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--stack", "rustls"), "--stack requires --endpoints"),
        (("--endpoints", "--stack", "carrier-pigeon"), "carrier-pigeon"),
        (("--endpoints", "--stack", "wtls"), "wtls"),
        (("--endpoints", "--resumption", "0.5"), "resumption is not supported with endpoints"),
        (("--endpoints", "--discipline", "ps"), "discipline is not supported with endpoints; accepted: fifo"),
        (("--endpoints", "--max-handshakes", "3"), "max handshakes is not supported"),
        (("--endpoints", "--clients", "0"), "clients is 0"),
    ],
)
def test_options_unsupported_by_engines_are_reported_in_one_line(shakedown, arguments, says):
    done = shakedown("simulate", TLS, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
