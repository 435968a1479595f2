"""Storms in which clients give up: neither figure nor words say that such a storm is over soonest."""

from __future__ import annotations

import pytest

from shakedown.experiments.figure_kinds import load_experiment
from shakedown.experiments.runner import run_experiment
from shakedown.reporting.charts.storm import Storm, storms
from shakedown.reporting.html.simulated import _storm, answer, sections
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
    path = tmp_path_factory.mktemp("storm") / "storm.toml"
    path.write_text(EXPERIMENT)
    run_experiment(load_experiment(path), path.parent / "results")
    return load_results(path.parent / "results")


def test_a_suite_of_which_clients_give_up_is_not_the_quickest(results):
    quick, slow = results.fleets.sort("failed").to_dicts()
    assert quick["failed"] == 0
    assert 0 < slow["failed"] < slow["clients"]
    (said,) = (plain(one) for one in answer(results))
    share = f"{100 * slow['failed'] / slow['clients']:.1f}%"
    assert said.startswith("A storm of 2,000 clients is over after")
    assert f" with {quick['label']}; with {slow['label']} {share} of them give up." in said
    (section,) = (one for one in sections(results) if one.anchor == "storms")
    assert f"with {slow['label']} {share} of the clients give up" in section.lead


def test_no_area_leaves_the_axis():
    """Clients that give up are outside for longer than the last one who gets in."""
    fleet = Storm("x", [(1.0, 5.0), (2.0, 5.0), (40.0, 3.0), (41.0, 0.0)], recovery_s=2.5, failed=3.0)
    for width in (400, 900):
        drawn = storms([fleet], 1.0, width)
        (areas,) = (layer for layer in drawn["layer"] if {"from", "to"} <= set(layer["data"]["values"][0]))
        end_s = areas["encoding"]["x"]["scale"]["domain"][1]
        assert max(one["to"] for one in areas["data"]["values"]) <= end_s < 45.0


def test_nearly_all_are_in_no_later_than_all(results):
    """An interval of the time series may end after the last client is in."""
    for row in results.fleets.to_dicts():
        drawn = _storm(results, row)
        if row["failed"]:
            assert drawn.most_in_s is None
        else:
            assert drawn.most_in_s is not None
            assert 0.2 < drawn.most_in_s <= drawn.recovery_s
