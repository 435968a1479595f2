"""Shared cells: published results, options, and headlines."""

import json

import pytest
from tools import access_check

from shakedown import simulate
from shakedown.errors import InputError
from shakedown.experiments.figure_kinds import load_experiment
from shakedown.native.scenario import Fleet
from shakedown.prediction.scenario import scenario
from shakedown.profiles import load_bearer
from shakedown.reporting.columns.objects import object_table
from shakedown.simulation.fleet import settle
from shakedown.simulation.simulate import Job, run
from unknowns import without_cost

STORM = ("simulate", "tls1.2/psk", "--arrivals", "storm:2s", "--clients", "200", "--bearer", "nb-iot")


def test_published_results_are_matched_and_documented():
    rows = access_check.rows()
    outside = {(row.source, row.what) for row in rows if not row.agrees}
    assert outside == access_check.OUTSIDE
    assert f"-->\n{access_check.markdown(rows)}\n<!-- end" in access_check.PAGE.read_text()


def said(shakedown, *more):
    done = shakedown(*STORM, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_storm_without_cells_states_that_links_are_separate(shakedown):
    assert "200 clients, each with a link of its own, storm:2s" in said(shakedown)
    assert "200 clients in 2 cells, storm:2s" in said(shakedown, "--cells", "2")
    # A cell has the clients of one replication.
    assert "2 times 100 clients in 2 cells" in said(shakedown, "--cells", "2", "--replications", "2")
    steady = said(shakedown, "--arrivals", "poisson:10/s", "--replications", "1")
    assert "link of its own" not in steady


def test_fewer_cells_take_longer():
    def last_s(cells):
        fleet = Fleet(arrivals="storm:2s", clients=200, from_idle=True, cells=cells)
        (row,) = simulate("tls1.2/psk", fleet, bearer="nb-iot")
        return row.last_ready_s.estimate

    assert last_s(1) > last_s(10) > last_s(None)


def test_the_same_seed_gives_the_same_rows():
    for bearer in ("nb-iot", "wifi", "802154", "lorawan-sf7", "gsm-csd", "lte-m", "gprs"):
        suite = "wtls/ecdh_ecdsa/160p/server" if bearer in ("lorawan-sf7", "802154") else "tls1.2/psk"
        fleet = Fleet(arrivals="storm:2s", clients=40, from_idle=True, cells=2)
        once, again = (simulate(suite, fleet, bearer=bearer) for _ in range(2))
        assert once == again
        (row,) = once
        assert row.cells == 2
        assert row.access is not None
        assert row.access.cells == 2


def test_impossible_cells_are_refused():
    with pytest.raises(InputError, match="bearer 'ethernet' has no table \\[cell\\]"):
        simulate("tls1.2/psk", Fleet(arrivals="storm:2s", clients=20, cells=2), bearer="ethernet")
    with pytest.raises(InputError, match="cells is 0; accepted: a whole number from 1"):
        simulate("tls1.2/psk", Fleet(arrivals="storm:2s", clients=20, cells=0), bearer="nb-iot")


def test_clients_per_cell_sets_the_number_of_cells(shakedown):
    assert "200 clients in 4 cells, storm:2s" in said(shakedown, "--clients-per-cell", "60")
    once, again = (
        simulate(
            "tls1.2/psk", Fleet(arrivals="storm:2s", clients=200, from_idle=True, **one), bearer="nb-iot"
        )
        for one in ({"cells": 4}, {"clients_per_cell": 50})
    )
    assert once == again
    # Replications share the clients: each has half of them in its cells.
    halves = Fleet(arrivals="storm:2s", clients=200, replications=2, clients_per_cell=50)
    (row,) = simulate("tls1.2/psk", halves, bearer="nb-iot")
    assert row.cells == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cells": 2, "clients_per_cell": 9}, "clients per cell is 9 and cells 2; accepted: one of them"),
        ({"clients_per_cell": 0}, "clients per cell is 0; accepted: a whole number from 1"),
        (
            {"clients_per_cell": 9, "arrivals": "poisson:5/s"},
            'arrivals "poisson:5/s" do not determine the number of clients',
        ),
    ],
)
def test_invalid_clients_per_cell_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        simulate("tls1.2/psk", Fleet(**{"arrivals": "storm:2s", "clients": 20, **wrong}), bearer="nb-iot")


def test_conflicting_keys_of_an_experiment_are_named(tmp_path):
    path = tmp_path / "storm.toml"
    path.write_text(
        'name = "storm"\nsuites = ["tls1.2/psk"]\n[simulated]\narrivals = ["storm:2s"]\n'
        "cells = 2\nclients_per_cell = 3\n"
    )
    with pytest.raises(InputError, match=r"simulated\.clients_per_cell: clients per cell is 3 and cells 2"):
        load_experiment(path)


def test_coverage_classes_share_cells_and_have_separate_preambles():
    cells = [load_bearer(name).cell for name in ("nb-iot", "nb-iot-ce1", "nb-iot-ce2")]
    assert len({cell.medium for cell in cells}) == 1
    assert len({cell.entry for cell in cells}) == 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('medium = "x"\nup_bps = 1', "down_bps is missing"),
        ('medium = ""\nup_bps = 1\ndown_bps = 1', "[cell]: medium is empty; accepted: a non-empty string"),
        ('medium = "x"\n[cell.csma]\nslot_ms = 1', "[cell]: [csma]: window is missing"),
        ('medium = "x"\n[cell.circuits]\nchannels = 1.5', "channels is 1.5; accepted: a whole number"),
        ('medium = "x"\n[cell.circuits]\nlines = 3', "channels is missing"),
        ('medium = "x"\n[cell.aloha]\n[cell.csma]', "accepted: one of them"),
    ],
)
def test_wrong_cell_tables_are_reported(tmp_path, table, message):
    path = tmp_path / "mine.toml"
    text = 'schema = 2\nname = "mine"\ntitle = "t"\ndate = "2024"\nsource = ["s"]\n'
    path.write_text(f"{text}up_bps = 9600\ndown_bps = 9600\ntraversal_ms = 10\n[cell]\n{table}\n")
    with pytest.raises(InputError) as error:
        load_bearer(str(path))
    assert message in str(error.value)


def test_json_has_random_access_counts(shakedown):
    (row,) = json.loads(said(shakedown, "--cells", "2", "--from-idle", "--json"))
    access = row["access"]
    assert access["requests"] == access["admitted"] + access["refused"]
    assert access["transmissions"] >= access["admitted"] > 0
    series = access["series"]
    assert sum(one["admitted"] for one in series) == access["admitted"]
    assert sum(one["bytes"][1] for one in series) == access["bytes"][1] <= row["traffic"]["down_bytes"]
    carried_s = sum(one["utilisation"][0] for one in series) * row["series_s"] * access["cells"]
    assert carried_s == pytest.approx(access["airtime_s"][0])


def test_note_on_energy_counts_the_preambles_of_refused_accesses(shakedown):
    busy = ("--device", "cortex-m4", "--cells", "1", "--from-idle", "--clients", "400")
    (row,) = json.loads(said(shakedown, *busy, "--json"))
    access = row["access"]
    assert access["refused"] > 0
    each = access["transmissions"] / access["admitted"]
    assert each > access["attempts"]["mean"] + 0.5
    note = (
        "energies exclude failed preambles and listening for their responses: "
        f"{each:.1f} preambles per successful access"
    )
    assert note in said(shakedown, *busy, "--columns", "suite,energy")
    circuits = [one if one != "nb-iot" else "gsm-csd" for one in (*STORM, *busy)]
    done = shakedown(*circuits, "--columns", "suite,energy")
    assert done.returncode == 0, done.stderr
    assert "preambles" not in done.stdout


@pytest.mark.parametrize("side", ["client", "server"])
def test_times_in_cells_have_no_lower_bound_if_work_has_no_figure(side):
    """More work separates the clients' messages, so that they compete less."""
    one = without_cost(scenario("tls1.2/psk", "cortex-m4", "server", "nb-iot", from_idle=True), side, None)
    for cells in (1, None):
        settled = settle(Fleet(arrivals="storm:2s", clients=100, from_idle=True, cells=cells))
        found = run(Job(one, None, settled, 1, 1))
        table = object_table([found])
        shown = {column.key: column.cell(table.rows[0]) for column in table.shown}
        lower = (found.ready_s.p50, found.done_s.mean, found.recovery_s.lower)
        texts = [shown[key] for key in ("ready_p50_s", "ready_max_s", "recovery_s", "failed")]
        if cells is None:
            assert None not in lower
            assert [text[:1] for text in texts[:3]] == ["≥"] * 3
        else:
            assert lower == (None, None, None)
            assert found.connect_s.mean is None
            assert found.utilisation.lower is None
            assert texts == ["unknown"] * 4


def test_capacity_of_cells_has_the_saturation_as_upper_bound_if_work_has_no_figure(shakedown):
    asked = ("capacity", "tls1.2/psk", "--server-device", "palm-v", "--bearer", "nb-iot", "--within", "100s")
    done = shakedown(*asked, "--simulated", "--cells", "2", "--json")
    (row,) = json.loads(done.stdout)
    assert row["rate_per_s"]["estimate"] is None
    assert row["rate_per_s"]["upper"] == min(row["cells_limit_per_s"], row["limit_per_s"]["upper"])
    assert row["ready_s"] is None


def test_saturated_cells_of_a_steady_load_are_named(shakedown):
    """On one cell of NB-IoT, sixty handshakes a second are too many; one is not."""
    steady = ("simulate", "tls1.2/psk", "--bearer", "nb-iot", "--cells", "1", "--clients", "2000")
    (busy,) = json.loads(shakedown(*steady, "--arrivals", "poisson:60/s", "--json").stdout)
    (idle,) = json.loads(shakedown(*steady, "--arrivals", "poisson:1/s", "--json").stdout)
    (found,) = busy["access"]["saturated"]
    assert found["medium"] == "nb-iot"
    assert found["offered"] > 1.0
    assert idle["access"]["saturated"] == []
    table = shakedown(*steady, "--arrivals", "poisson:60/s").stdout
    assert "cells of nb-iot saturated (" in table
    assert "correlation time" not in table
