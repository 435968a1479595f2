"""Fleets in experiments: keys, rows of the table, the report; invalid keys with their line."""

from __future__ import annotations

import polars as pl
import pytest

import runs
from runs import experiment
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import kind
from shakedown.experiments.runner import run_experiment
from shakedown.reporting.html.simulated import sections
from shakedown.reporting.html.write import write_report
from shakedown.reporting.terminal.fleets import fleet_tables as simulated_tables
from shakedown.results.folder import load_results
from shakedown.results.quantities import QUANTITIES

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


def test_every_quantity_of_the_table_is_documented(results):
    described = {quantity.name: quantity.unit for quantity in QUANTITIES["simulated"]}
    rows = results.table.filter(pl.col("kind") == "simulated").select("quantity", "unit").unique().rows()
    assert rows
    for quantity, unit in rows:
        assert described[quantity] == (unit or ""), quantity


def test_report_has_storms_and_the_modelled_figures(results, tmp_path):
    page = write_report(results, tmp_path / "report.html").read_text()
    titles = ("Storms", "Fleets at a steady load")
    for words in (*titles, "clients not yet ready", "storm-1"):
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


def test_engines_are_shown_beside_the_replay(tmp_path):
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


MIX = """
[[clients]]
suite = "tls1.3/x25519/p256/server"
weight = 3
resumption = 0.5

[[clients]]
suite = "tls1.3/x25519mlkem768/mldsa65/server"
device = "cortex-m4"
bearer = "nb-iot"
"""

MIXED = """
suites = ["tls1.3/x25519/p256/server"]
repeat = 2
seed = 5
devices = ["phone", "raspberry-pi"]
bearers = ["lte"]

[simulated]
arrivals = ["poisson:200/s", "storm:1s"]
clients = 2000
mix = "meters.toml"
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "meters.toml").write_text(MIX)
    return runs.results(folder, MIXED)


def test_mixture_has_a_fleet_for_each_unspecified_place(mixed):
    fleets = mixed.fleets.filter(pl.col("mix").is_not_null())
    assert fleets["label"].to_list() == ["meters"] * 4
    assert fleets["device"].to_list() == ["phone", "phone", "raspberry-pi", "raspberry-pi"]
    assert (fleets["completed"] + fleets["failed"] == fleets["clients"]).all()
    kinds = mixed.fleet_kinds
    assert kinds.height == 8
    first, second = kinds.filter(pl.col("scenario") == fleets["scenario"][2]).sort("item").to_dicts()
    assert (first["device"], first["bearer"], first["share"]) == ("raspberry-pi", "lte", 0.75)
    assert (first["resumption"], second["resumption"]) == (0.5, 0.0)
    assert (second["suite"], second["device"]) == ("tls1.3/x25519mlkem768/mldsa65/server", "cortex-m4")
    assert first["clients"] + second["clients"] == 2000.0
    assert second["handshake_mean_s"] > first["handshake_mean_s"]
    mean_s = sum(one["handshake_mean_s"] * one["clients"] for one in (first, second)) / 2000.0
    assert fleets["handshake_mean_s"][2] == pytest.approx(mean_s, rel=1e-9)


def test_mixture_of_an_experiment_matches_the_command(tmp_path):
    """The results are the same if both estimate suites from the same traces, here the library's."""
    import shakedown as lab
    from shakedown.schema.simulated import SimulatedMix

    (tmp_path / "meters.toml").write_text(MIX)
    text = MIXED.replace("tls1.3/x25519/p256/server", "tls1.2/psk").replace(', "storm:1s"', "")
    printed = []
    run_experiment(
        experiment(tmp_path, text.replace(', "raspberry-pi"', "")),
        tmp_path / "results",
        printed=printed.append,
    )
    (ours,) = [one for one in printed if isinstance(one, SimulatedMix)]
    row = lab.simulate_mix(
        tmp_path / "meters.toml", lab.Fleet(arrivals="poisson:200/s", clients=2000), seed=5
    )
    assert ours == row
    assert ours.mix == "meters"


def test_report_and_terminal_have_one_line_per_kind(mixed, tmp_path):
    page = write_report(mixed, tmp_path / "report.html").read_text()
    assert "Clients of several kinds at one server" in page
    assert "meters: clients not yet ready (storm:1s)" in page
    text = "\n".join(kind("simulated").terminal(mixed, 200))
    assert "2,000 clients of meters to server, poisson:200/s" in text
    lines = text.splitlines()
    kinds = [line for line in lines if "mldsa65" in line and not line.startswith("! ")]
    assert len(kinds) == 4
    # As `simulate --mix` does, a load that is less precise than the target marks each of its kinds.
    assert ["! " in line for line in kinds] == [True, False, True, False]
    assert sum(line.startswith("! meters: ") and "target ± 5%" in line for line in lines) == 2
    (whole,) = [one for one in mixed.figures() if one.scenario == mixed.fleets["scenario"][-1]]
    assert whole.suite is None
    assert {one.suite for one in whole.figures} >= {"meters", "tls1.3/x25519mlkem768/mldsa65/server"}


def test_two_mixtures_with_the_same_name_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    for folder in (tmp_path, tmp_path / "a"):
        (folder / "meters.toml").write_text(MIX)
    with pytest.raises(InputError, match="two are called meters"):
        experiment(tmp_path, TEXT + '[simulated]\nmix = ["meters.toml", "a/meters.toml"]\n')


def test_mixture_without_cost_figures_is_reported(tmp_path):
    (tmp_path / "meters.toml").write_text(
        '[[clients]]\nsuite = "tls1.2/rsa/rsa2048/server/resumed"\nresumption = 0.5\n'
    )
    found = experiment(tmp_path, TEXT + '[simulated]\nclients = 100\nmix = "meters.toml"\n')
    outcome = run_experiment(found, tmp_path / "results")
    assert not outcome.failures
    results = load_results(tmp_path / "results")
    rows = results.fleets.filter(pl.col("without_cost").is_not_null()).to_dicts()
    assert [row["suite"] for row in rows] == ["meters"] * 2
    # The terminal states the reason once, because both fleets have the same one.
    said = [one for one in simulated_tables(results, 80) if "simulated: meters" in one]
    assert said == [f"not simulated: meters: {rows[0]['without_cost']}"]


def test_without_arrivals_the_rates_are_simulated(tmp_path):
    found = experiment(tmp_path, TEXT + "[simulated]\nclients = 500\nseed = 9\n")
    assert [one.arrivals for one in found.kind_tables["simulated"].fleets] == [
        "poisson:500/s",
        "poisson:9000/s",
    ]
    assert found.kind_tables["simulated"].seed == 9


def test_arrival_file_is_relative_to_the_experiment(tmp_path):
    (tmp_path / "times.txt").write_text("0\n1\n")
    found = experiment(tmp_path, TEXT + '[simulated]\narrivals = ["file:times.txt"]\n')
    assert found.kind_tables["simulated"].fleets[0].arrivals == f"file:{tmp_path / 'times.txt'}"


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
        ('[simulated]\ntimeout = "soon"', "is not a duration"),
        ("[simulated]\nretries = -1", "key simulated.retries: retries is -1"),
        ("[simulated]\nresumption = 3", "key simulated.resumption: found 3; accepted: a share from 0 to 1"),
        ('[simulated]\nresumption = "half"', "a share from 0 to 1"),
        ("[simulated]\nfrom_idle = 1", "accepted: true, false"),
        ('[simulated]\ndiscipline = "lifo"', "accepted: fifo, ps"),
        ("[simulated]\nendpoints = 1", "key simulated.endpoints: found 1; accepted: true, false"),
        (
            "[simulated]\nendpoints = true\nresumption = 0.5",
            "key simulated.endpoints: resumption is not supported",
        ),
        ("[simulated]\nmix = 3", "key simulated.mix: found 3; accepted: a file, or an array of them"),
        ('[simulated]\nmix = ["nothing.toml"]', "line 8, key simulated.mix:"),
        (
            '[simulated]\narrivals = ["storm:1s"]\nprecision = 0.05',
            'key simulated.precision: precision is 0.05 and arrivals are "storm:1s"; accepted with a rate',
        ),
        ("[simulated]\nmax_handshakes = 0", "key simulated.max_handshakes: max handshakes is 0"),
    ],
)
def test_wrong_keys_are_reported_with_their_line(tmp_path, table, says):
    with pytest.raises(InputError) as found:
        experiment(tmp_path, TEXT + table + "\n")
    assert says in str(found.value)
    assert "\n" not in str(found.value)


def test_fleets_need_a_rate_or_arrivals(tmp_path):
    text = TEXT.replace('rates = ["500/s", "9000/s"]', "") + "[simulated]\nclients = 10\n"
    with pytest.raises(InputError, match="is missing, and there are no rates"):
        experiment(tmp_path, text)


SATURATED = """
suites = ["tls1.2/psk"]
repeat = 2
seed = 5
bearers = ["nb-iot"]

[simulated]
arrivals = ["poisson:60/s"]
clients = 2000
cells = 1
"""


def test_saturated_cells_are_named_in_notes_table_and_report(tmp_path):
    outcome = run_experiment(experiment(tmp_path, SATURATED), tmp_path / "results")
    named = "cells of nb-iot saturated ("
    assert any(named in note for note in outcome.notes)
    results = load_results(tmp_path / "results")
    (row,) = results.fleets.to_dicts()
    assert row["saturated"].startswith(named)
    assert named in "\n".join(simulated_tables(results, 120))
    page = write_report(results, tmp_path / "report.html").read_text()
    assert named in page


def test_saturated_cells_are_named_for_fleets_of_one_replication(tmp_path):
    text = SATURATED + "replications = 1\n"
    notes = run_experiment(experiment(tmp_path, text), tmp_path / "results").notes
    assert sum("from one replication; precision unknown" in note for note in notes) == 1
    [named] = [note for note in notes if "cells of nb-iot saturated (" in note]
    assert named.startswith("tls1.2/psk, ")
