"""The capacity limit of cells, and `capacity --simulated --cells`, which finds their capacity."""

from __future__ import annotations

import dataclasses
import re

import pytest
from msgspec import structs

from runs import printed
from shakedown.profiles import load_bearer
from shakedown.schema.profiles import RandomAccess
from shakedown.simulation.cell_limit import admitted, cell_limit
from shakedown.simulation.deployment import Site

PSK = "tls1.2/psk"


def estimate(bearer: str, *, from_idle: bool = False):
    return Site(device="cortex-m4", bearer=bearer).estimate(PSK, from_idle=from_idle)


def test_airtime_limit_follows_from_bytes_on_the_link():
    one = estimate("nb-iot")
    cell = one.bearer.cell
    most = cell_limit(one, 40)
    assert most.of == "airtime"
    # Full duplex: the slower direction decides.
    up_s, down_s = 8 * one.link_bytes.up / cell.up_bits_per_s, 8 * one.link_bytes.down / cell.down_bits_per_s
    assert most.rate_per_s == pytest.approx(40 / max(up_s, down_s))
    half = dataclasses.replace(
        one, bearer=structs.replace(one.bearer, cell=structs.replace(cell, half_duplex=True))
    )
    assert cell_limit(half, 40).rate_per_s == pytest.approx(40 / (up_s + down_s))


def test_circuit_limit_follows_from_the_handshake_time():
    one = estimate("gsm-csd")
    most = cell_limit(one, 3)
    assert (most.of, most.rate_per_s) == ("circuits", pytest.approx(3 * 14 / one.unloaded()[1].mean))


def test_random_access_limits_clients_that_start_idle():
    assert cell_limit(estimate("nb-iot"), 1).of == "airtime"
    most = cell_limit(estimate("nb-iot", from_idle=True), 1)
    assert most.of == "random access"
    # Of twelve clients on twelve preambles 4.6 are alone.
    assert most.rate_per_s == pytest.approx(12 * (11 / 12) ** 11 / 0.32)


@pytest.mark.parametrize("preambles", [1, 2, 12, 54])
def test_admission_limit_is_the_maximum_over_contenders(preambles):
    entry = RandomAccess(0.005, preambles, 10, 0.0, 0.0, 0.0)
    best = max(n * (1 - 1 / preambles) ** (n - 1) for n in range(1, 200))
    assert admitted(entry) == pytest.approx(best)
    assert admitted(structs.replace(entry, grants=1)) == 1.0


@pytest.mark.parametrize("bearer", ["wifi", "802154", "lorawan-sf7", "lte", "lte-m", "gprs"])
def test_each_shared_medium_has_a_limit(bearer):
    assert load_bearer(bearer).cell is not None
    one, four = (cell_limit(estimate(bearer), cells) for cells in (1, 4))
    assert four.rate_per_s == pytest.approx(4 * one.rate_per_s)


def test_capacity_depends_on_the_number_of_cells(shakedown, quick):
    asked = ("capacity", PSK, "--bearer", "nb-iot", "--device", "cortex-m4", "--within", "3s", "--simulated")
    few, many = (printed(shakedown(*asked, "--cells", cells, "--json"))[0] for cells in ("2", "20"))
    assert (few["cells"], few["cells_limit_of"], few["modelled_rate_per_s"]) == (2, "airtime", None)
    assert many["cells_limit_per_s"] == pytest.approx(10 * few["cells_limit_per_s"])
    for row in (few, many):
        rate = row["rate_per_s"]["estimate"]
        assert (
            0.2 * row["cells_limit_per_s"] < rate < row["cells_limit_per_s"] < row["limit_per_s"]["estimate"]
        )
        assert row["ready_s"]["mean"] <= 3.0
    # Cells are alike, so that ten times as many carry ten times as much.
    assert many["rate_per_s"]["estimate"] == pytest.approx(10 * few["rate_per_s"]["estimate"], rel=0.3)
    done = shakedown(*asked, "--cells", "2")
    assert "to server, 2 cells, seed 1" in done.stdout
    assert "2 cells cannot carry more than" in done.stdout
    said = (
        "30,000 further clients in runs with other seeds at this rate met the limit, and overloaded no cell"
    )
    assert said in done.stdout


def test_from_idle_adds_setup_time_to_the_capacity_result(shakedown, quick):
    asked = ("capacity", PSK, "--bearer", "nb-iot", "--device", "cortex-m4", "--simulated", "--cells", "2")
    late = shakedown(*asked, "--within", "2s", "--from-idle").stdout
    assert "unreachable" in late
    assert re.search(r"psk: ready after [23]\.\d+ s on average even at the lowest rate tried", late)
    (row,) = printed(shakedown(*asked, "--within", "6s", "--from-idle", "--json"))
    assert (row["from_idle"], row["cells_limit_of"]) == (True, "random access")
    assert 0.0 < row["rate_per_s"]["estimate"] < row["cells_limit_per_s"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--cells", "3"), "--cells requires --simulated"),
        (("--from-idle",), "--from-idle requires --simulated"),
        (("--simulated", "--cells", "0"), "cells is 0; accepted: a whole number from 1 to 1,000,000"),
        (("--simulated", "--cells", "3", "--bearer", "ethernet"), "has no table [cell]"),
    ],
)
def test_invalid_cells_are_refused(shakedown, more, said):
    done = shakedown("capacity", PSK, "--within", "1s", *more)
    assert done.returncode == 2
    assert said in done.stderr


def test_capacity_of_cells_is_confirmed_by_runs_with_other_seeds(shakedown, quick, monkeypatch):
    """At 22 handshakes/s, retransmissions overload one cell of NB-IoT in one of a hundred runs of 400 s, for
    good.
    """
    monkeypatch.setattr("shakedown.simulation.capacity.CONFIRMING_CLIENTS", (100_000, 50_000))
    scenario = (PSK, "--device", "cortex-m4", "--bearer", "nb-iot", "--cells", "1")
    limit = ("--within", "3s", "--percentile", "95", "--simulated")
    (row,) = printed(shakedown("capacity", *scenario, *limit, "--json"))
    assert row["confirmed_clients"] == 150_000
    rate_per_s = row["rate_per_s"]["estimate"]
    load = ("--arrivals", f"poisson:{rate_per_s:g}/s", "--clients", "100000", "--seed", "2", "--json")
    (other,) = printed(shakedown("simulate", *scenario, *load))
    assert other["ready_s"]["p95"] + other["ready_s"]["p95_margin"] < 3.0
    assert other["precision"]["is_met"]
