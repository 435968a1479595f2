"""Fleets in experiments: keys, rows of the table, the report; wrong keys with their line."""

from __future__ import annotations

import polars as pl
import pytest

from shakedown.errors import InputError
from shakedown.experiment import load_experiment
from shakedown.kinds import reported
from shakedown.reporting import write_report
from shakedown.reporting.simulated import sections
from shakedown.results.folder import load_results
from shakedown.runner import run_experiment

TEXT = """
suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
repeat = 2
seed = 5
bearers = ["lte"]
rates = ["500/s", "9000/s"]
"""

FLEET = (
    TEXT
    + """
[simulated]
arrivals = ["storm:1s", "poisson:500/s", "poisson:9000/s"]
clients = 1000
"""
)


def experiment(tmp_path, text):
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return load_experiment(path)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleets")
    outcome = run_experiment(experiment(folder, FLEET), folder / "results")
    assert not outcome.failures
    assert sum("unstable" in note for note in outcome.notes) >= 1
    return load_results(folder / "results")


def test_each_suite_has_a_fleet_for_each_arrival_process(results):
    fleets = results.fleets
    assert fleets.height == 6
    assert fleets["clients"].to_list() == [1000.0] * 6
    assert (fleets["completed"] + fleets["failed"] == fleets["clients"]).all()
    assert set(fleets["seed"]) == {5.0}
    storms = fleets.filter(pl.col("rate_per_s").is_null())
    assert storms["arrivals"].to_list() == ["storm:1s"] * 2
    series = results.fleet_series.group_by("scenario").agg(pl.col("completed").sum())
    assert dict(series.rows()) == {row["scenario"]: 1000.0 for row in storms.to_dicts()}


def test_all_that_is_in_the_table_is_described(results):
    from shakedown.kinds import quantities

    described = {quantity.name: quantity.unit for kind, quantity in quantities() if kind == "simulated"}
    rows = results.table.filter(pl.col("kind") == "simulated").select("quantity", "unit").unique().rows()
    assert rows
    for quantity, unit in rows:
        assert described[quantity] == (unit or ""), quantity


def test_the_report_shows_storms_and_the_formulas_beside(results, tmp_path):
    page = write_report(results, tmp_path / "report.html", reported()).read_text()
    titles = ("When many come at once", "Fleets at a steady load")
    for words in (*titles, "how many are still outside", "storm-1"):
        assert words in page
    found = {section.anchor: section for section in sections(results)}
    assert set(found) == {"storms", "fleets"}
    figure = found["storms"].blocks[0].figure
    assert figure is not None
    assert figure.png().startswith(b"\x89PNG")
    assert "NaN" not in figure.wide
    outside = [row["outside"] for row in figure.data]
    assert min(outside) == 0.0
    assert 0.0 < max(outside) <= 1000.0


def test_engines_stand_beside_the_replay(tmp_path):
    text = TEXT.replace('"500/s", "9000/s"', '"500/s"') + "[simulated]\nclients = 60\nendpoints = true\n"
    outcome = run_experiment(experiment(tmp_path, text), tmp_path / "results")
    assert not outcome.failures
    found = load_results(tmp_path / "results")
    fleets = found.fleets.sort("label")
    assert fleets["label"].to_list() == [
        "tls1.2/psk",
        "tls1.2/psk (openssl engines)",
        "tls1.3/x25519/p256/server",
        "tls1.3/x25519/p256/server (openssl engines)",
    ]
    assert fleets["completed"].to_list() == [60.0] * 4
    for replayed, engines in (fleets.rows(named=True)[:2], fleets.rows(named=True)[2:]):
        assert engines["handshake_mean_s"] == pytest.approx(replayed["handshake_mean_s"], rel=0.1)
    ratios = found.table.filter(pl.col("quantity") == "simulated.endpoints.mean-ratio")["value"]
    assert len(ratios) == 2
    assert all(0.9 < ratio < 1.1 for ratio in ratios)


def test_without_arrivals_the_rates_are_simulated(tmp_path):
    found = experiment(tmp_path, TEXT + "[simulated]\nclients = 500\nseed = 9\n")
    assert [one.arrivals for one in found.fleets.fleets] == ["poisson:500/s", "poisson:9000/s"]
    assert found.fleets.seed == 9


def test_a_file_of_arrivals_stands_beside_the_experiment(tmp_path):
    (tmp_path / "times.txt").write_text("0\n1\n")
    found = experiment(tmp_path, TEXT + '[simulated]\narrivals = ["file:times.txt"]\n')
    assert found.fleets.fleets[0].arrivals == f"file:{tmp_path / 'times.txt'}"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('simulated = "yes"', "line 7, key simulated: found"),
        (
            '[simulated]\narivals = ["storm:1s"]',
            'key simulated.arivals: unknown key; did you mean "arrivals"',
        ),
        ('[simulated]\narrivals = "storm:1s"', "an array of arrival processes"),
        ("[simulated]\narrivals = []", "key simulated.arrivals: is empty"),
        ('[simulated]\narrivals = ["storm:1s", "poisson:0/s"]', "line 8, key simulated.arrivals"),
        ("[simulated]\nclients = 0", "line 8, key simulated.clients: clients is 0"),
        ('[simulated]\nclients = "many"', "a whole number"),
        ("[simulated]\nworkers = 2", "key simulated.workers: unknown key"),
        ("[simulated]\nseed = -4", "key simulated.seed: seed is -4"),
        ('[simulated]\ntimeout = "soon"', "is no duration"),
        ("[simulated]\nretries = -1", "key simulated.retries: retries is -1"),
        ("[simulated]\nresumption = 3", "key simulated.resumption: resumption is 3"),
        ('[simulated]\nresumption = "half"', "a share from 0 to 1"),
        ("[simulated]\nfrom_idle = 1", "accepted: true, false"),
        ('[simulated]\ndiscipline = "lifo"', "accepted: fifo, ps"),
        ("[simulated]\nendpoints = 1", "key simulated.endpoints: found 1; accepted: true, false"),
        ("[simulated]\nendpoints = true\nresumption = 0.5", "key simulated.endpoints: resumption goes with"),
        ("[simulated]\nmax_handshakes = 0", "key simulated.max_handshakes: max handshakes is 0"),
    ],
)
def test_wrong_keys_are_told_with_their_line(tmp_path, table, says):
    with pytest.raises(InputError) as found:
        experiment(tmp_path, TEXT + table + "\n")
    assert says in str(found.value)
    assert "\n" not in str(found.value)


def test_fleets_need_a_rate_or_arrivals(tmp_path):
    text = TEXT.replace('rates = ["500/s", "9000/s"]', "") + "[simulated]\nclients = 10\n"
    with pytest.raises(InputError, match="is missing, and there are no rates"):
        experiment(tmp_path, text)
