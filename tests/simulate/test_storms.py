"""Storms in which clients give up: no figure or text presents such a storm as over first."""

from __future__ import annotations

import pytest

import runs
from shakedown.errors import InputError
from shakedown.experiments.runner import run_experiment
from shakedown.reporting.charts.storm import (
    ACCESS,
    CAUSES,
    GONE,
    PAUSING,
    SERVER,
    UNDER_WAY,
    Storm,
    loads,
    storms,
)
from shakedown.reporting.columns.simulated import NOT_RECOVERED, recovery
from shakedown.reporting.html.fleet_series import loads_of, points, storm_of
from shakedown.reporting.html.simulated import answer, sections
from shakedown.reporting.html.text import plain
from shakedown.results.folder import load_results

EXPERIMENT = """
name = "storm"
suites = ["tls1.2/psk", "tls1.2/rsa/rsa2048/server"]
repeat = 2
devices = ["phone"]
bearers = ["lte"]

[simulated]
arrivals = ["storm:0.2s"]
clients = 2000
timeout = "0.35s"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return runs.results(tmp_path_factory.mktemp("storm"), EXPERIMENT)


def test_suite_with_failed_clients_is_not_the_fastest(results):
    quick, slow = results.fleets.sort("failed").to_dicts()
    assert quick["failed"] == 0
    assert 0 < slow["failed"] < slow["clients"]
    said, *_ = (plain(one) for one in answer(results))
    share = f"{100 * slow['failed'] / slow['clients']:.1f}%"
    assert said.startswith("A storm of 2,000 clients is over after")
    assert f" with {quick['label']}; with {slow['label']} {share} of the clients give up." in said
    (section,) = (one for one in sections(results) if one.anchor == "storms")
    assert f"with {slow['label']} {share} of the clients give up" in section.lead


def test_answer_mentions_the_worst_storm(tmp_path):
    text = EXPERIMENT.replace('["storm:0.2s"]', '["storm:60s", "storm:0.2s"]')
    found = runs.results(tmp_path, text)
    worst = max(found.fleets.to_dicts(), key=lambda row: row["failed"])
    first, *_, last = (plain(one) for one in answer(found))
    assert first.startswith("A storm of 2,000 clients is over after")
    assert "give up" not in first
    share = f"{100 * worst['failed'] / worst['clients']:.1f}%"
    assert last == f"With 2,000 clients, storm:0.2s over lte, {share} of them give up with {worst['label']}."


def test_storm_areas_stay_within_the_axis():
    """Clients that give up are outside for longer than the last client that gets in."""
    fleet = Storm("x", [(1.0, 5.0), (2.0, 5.0), (40.0, 3.0), (41.0, 0.0)], recovery_s=2.5, failed=3.0)
    for width in (400, 900):
        drawn = storms([fleet], 1.0, width)
        (areas,) = (layer for layer in drawn["layer"] if {"from", "to"} <= set(layer["data"]["values"][0]))
        end_s = areas["encoding"]["x"]["scale"]["domain"][1]
        assert max(one["to"] for one in areas["data"]["values"]) <= end_s < 45.0


@pytest.mark.parametrize(
    ("recovery_s", "failed", "said"),
    [
        (2.5, 0.0, "recovery time 2.50 s"),
        (2.5, 3.0, "last one ready after 2.50 s, 3 gave up"),
        (0.0, 5.0, "none ready, 5 gave up"),
    ],
)
def test_a_storm_that_has_not_recovered_has_no_recovery_time(recovery_s, failed, said):
    fleet = Storm("x", [(1.0, 5.0), (2.0, 5.0), (3.0, 0.0)], recovery_s=recovery_s, failed=failed)
    assert f"'{said}'" in str(storms([fleet], 1.0, 900))


def test_causes_are_stacked():
    causes = {ACCESS: [3.0, 9.0], SERVER: [4.0, 9.0], PAUSING: [1.0, 0.0], GONE: [0.0, 2.0]}
    fleet = Storm("x", [(1.0, 10.0), (2.0, 6.0)], recovery_s=2.0, failed=2.0, causes=causes)
    first, second = (
        {one["cause"]: (one["low"], one["high"]) for one in fleet.stacked() if one["to"] == at_s}
        for at_s in (1.0, 2.0)
    )
    assert first == {ACCESS: (0.0, 3.0), SERVER: (3.0, 7.0), PAUSING: (7.0, 8.0), UNDER_WAY: (8.0, 10.0)}
    # The stages add up to the clients in progress; failed clients are drawn above them.
    assert second == {ACCESS: (0.0, 6.0), GONE: (6.0, 8.0)}


def test_areas_add_up_to_waiting_and_failed_clients(results):
    for row in results.fleets.to_dicts():
        drawn, gone = storm_of(results, row), 0.0
        areas = drawn.stacked()
        assert {one["cause"] for one in areas} <= set(CAUSES)
        assert any(one["cause"] == SERVER for one in areas)
        for point in points(results, row):
            gone += point["failed"]
            high = max((one["high"] for one in areas if one["to"] == point["end_s"]), default=0.0)
            assert high == pytest.approx(point["outside"] + gone)
        assert gone == row["failed"]


def test_loads_are_means_over_equal_numbers_of_intervals():
    one = {"sent": 6.0, "collided": 2.0, "up": 0.5, "down": 1.0, "bytes": 4000.0, "waiting": 0.0, "busy": 1.0}
    one |= {"refused": 0.0, "servers": 2.0}
    none = dict.fromkeys(one, 0.0)
    series = [{"start_s": 2.0 * n, "end_s": 2.0 * n + 2.0, **row} for n, row in enumerate([one, none, one])]
    lanes = {load.name: load for load in loads_of(series, 4.0, 2)}
    assert lanes["attempts at access per second"].values == [(4.0, 1.5), (6.0, 3.0)]
    assert lanes["attempts at access per second"].part == [0.5, 1.0]
    assert lanes["a cell's time from clients, %"].values == [(4.0, 25.0), (6.0, 50.0)]
    assert lanes["kB/s a cell"].values == [(4.0, 0.25), (6.0, 0.5)]
    assert lanes["servers in service"].most == "at most 2"
    fixed = [{**each, "servers": None} for each in series]
    assert {load.name for load in loads_of(fixed, None, 2)} == {
        "flights waiting at the server",
        "workers at work",
    }
    for width in (400, 900):
        drawn = loads([("x", list(lanes.values()))], width)
        areas = drawn["layer"][0]["data"]["values"]
        # Each interval has two corners.
        assert len(areas) == 2 * 2 * len(lanes)
        assert all(0.0 <= one["top"] <= one["bottom"] <= drawn["height"] for one in areas)


def test_most_clients_are_ready_no_later_than_all(results):
    """An interval of the time series may end after the last client is in."""
    for row in results.fleets.to_dicts():
        drawn = storm_of(results, row)
        if row["failed"]:
            assert drawn.most_in_s is None
        else:
            assert drawn.most_in_s is not None
            assert 0.2 < drawn.most_in_s <= drawn.recovery_s


SWEPT = """
name = "map"
suites = ["tls1.2/psk"]
repeat = 2
devices = ["phone"]
bearers = ["nb-iot"]
[simulated]
arrivals = ["storm:1s", "poisson:5/s"]
clients = [40, 80]
cells = [1, 2]
retry = ["base=1s,jitter=none", "base=1s,jitter=full"]
from_idle = true
replications = 1
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return runs.experiment(tmp_path_factory.mktemp("swept"), SWEPT)


def test_arrays_expand_to_all_combinations(swept):
    fleets = swept.kind_tables["simulated"].fleets
    found = {(one.arrivals, one.clients, one.cells, one.retry) for one in fleets}
    assert len(fleets) == len(found) == 2 * 2 * 2 * 2
    assert ("storm:1s", 80, 2, "base=1s,jitter=full") in found


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("clients = []", "simulated.clients: is empty"),
        ("clients = [40, 40]", "simulated.clients"),
        ('cells = [1, "x"]', 'simulated.cells: found "x"; accepted: a whole number'),
        ("cells = [1, 0]", "simulated.cells: cells is 0"),
    ],
)
def test_wrong_arrays_are_reported(tmp_path, key, message):
    text = f'suites = ["tls1.2/psk"]\n[simulated]\narrivals = ["storm:1s"]\n{key}\n'
    with pytest.raises(InputError) as error:
        runs.experiment(tmp_path, text)
    assert message in str(error.value)


def test_map_has_the_recovery_time_of_each_storm(swept, tmp_path):
    run_experiment(swept, tmp_path / "results")
    results = load_results(tmp_path / "results")
    (section,) = (one for one in sections(results) if one.anchor == "storms")
    drawn = {block.figure.name: block.figure for block in section.blocks if block.figure is not None}
    storms_ = [row for row in results.fleets.to_dicts() if row["width_s"] is not None]
    saved = {
        (one["clients"], one["cells"], one["retry"]): one["recovery_s"] for one in drawn["recovery-1"].data
    }
    assert saved == {
        (row["clients"], row["cells"], row["retry"]): None if row["failed"] else row["recovery_s"]
        for row in storms_
    }
    assert {one["suite"] for one in drawn["recovery-1"].data} == {row["label"] for row in storms_}
    assert len(saved) == 8
    definition = drawn["recovery-1"].define(900)
    assert len(definition["layer"][0]["data"]["values"]) == 8
    # Not all storms of a large map have pictures of their own.
    assert {name for name in drawn if name.endswith("-loads")} == {f"storm-{n}-loads" for n in (1, 2, 3, 4)}
    assert section.lead.endswith(" Figures over time: the first 4 of 8 storms.")


def test_recovery_time_is_printed_only_if_every_client_is_ready():
    row = {"recovery_s": 12.3, "recovery_low_s": None, "failed": 0, "clients": 10}
    assert recovery(row) == "12.3 s"
    assert recovery(row | {"failed": 1}) == NOT_RECOVERED


def test_the_answer_names_the_cells_of_the_first_storm(tmp_path):
    text = SWEPT.replace('"storm:1s", "poisson:5/s"', '"storm:1s"').replace("[40, 80]", "[40]")
    first, *_ = (plain(one) for one in answer(runs.results(tmp_path, text)))
    assert first.startswith("A storm of 40 clients in 1 cell is over after")
