"""Rows are lists of the schema's objects that display themselves as the terminal's tables."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser

import altair
import pandas
import polars
import pytest
import vl_convert
from msgspec import UNSET

import real
import shakedown
from runs import python
from shakedown.files.patterns import is_pattern
from shakedown.reporting.columns import shown_in
from shakedown.reporting.columns.objects import object_table
from shakedown.schema.predictions import Calibration, FailedPrediction, MeasuredTime

SUITES = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
PLACES = {"device": ["phone", "cortex-m4"], "bearer": ["lte", "nb-iot"]}


@pytest.fixture(scope="module")
def predicted():
    return shakedown.predict(SUITES, **PLACES)


@pytest.fixture(scope="module")
def all_rows(predicted):
    """Rows of every type that has columns."""
    return {
        "measure": shakedown.Rows(map(real.measurement, SUITES)),
        "predict": predicted,
        "capacity": shakedown.capacity(SUITES, within_s=2.0),
        "simulate": shakedown.simulate(
            SUITES, shakedown.Fleet(arrivals="storm:5s", clients=40), bearer=["lte", "nb-iot"]
        ),
        "devices": shakedown.devices(),
        "bearers": shakedown.bearers(),
        "suites": shakedown.suites(),
        "stacks": shakedown.stacks(),
        "primitives": shakedown.primitives("digest", seconds=0.01),
    }


class Cells(HTMLParser):
    """The rows of a table's body, as a browser reads them."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.head, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.inside = tag
            (self.head if tag == "th" else self.rows[-1]).append("")

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            (self.head if self.inside == "th" else self.rows[-1])[-1] += data


def printed(*words):
    done = subprocess.run(
        [sys.executable, "-m", "shakedown", *words], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


def test_rows_name_suites_that_the_server_software_does_not_offer():
    server = shakedown.ServerModel(software="nginx")
    said = "tls1.2/psk: nginx does not offer it; figures are those of a server that would"
    for rows in (
        shakedown.predict(SUITES, server=server),
        shakedown.capacity(SUITES, within_s=2.0, server=server),
        shakedown.simulate(SUITES, shakedown.Fleet(arrivals="storm:5s", clients=40), server=server),
    ):
        assert [row.server_software_note for row in rows] == [said, None]
        assert repr(rows).count(said) == 1
        assert rows._repr_html_().count(said) == 1
    measured = shakedown.measure(SUITES, 2, options=shakedown.MeasureOptions(server_software="nginx"))
    assert [row.server_software_note for row in measured] == [said, UNSET]
    assert repr(measured).count(said) == 1
    assert measured._repr_html_().count(said) == 1


NAMES = ["measure", "predict", "capacity", "simulate", "devices", "bearers", "suites", "stacks", "primitives"]


@pytest.mark.parametrize("name", NAMES)
def test_a_repr_fits_a_terminal(all_rows, name):
    lines = repr(all_rows[name]).splitlines()
    assert max(map(len, lines)) <= 80
    if name not in ("devices", "stacks"):  # their titles are folded
        assert len(lines) <= 20
    more = len(all_rows[name]) - 10
    assert (f"… {more:,} more" in lines) == (more > 0)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_table_has_one_row_per_object(all_rows, name):
    cells = Cells(all_rows[name]._repr_html_())
    assert len([row for row in cells.rows if row]) == min(len(all_rows[name]), 200)
    assert {len(row) for row in cells.rows if row} == {len(cells.head)}


def test_repr_equals_the_table_of_the_command():
    words = ["predict", *SUITES, "--device", "cortex-m4", "--bearer", "nb-iot"]
    done = subprocess.run(
        [sys.executable, "-m", "shakedown", *words],
        capture_output=True, text=True, check=True, timeout=300, env={"COLUMNS": "80", "PATH": ""},
    )  # fmt: skip
    shown = repr(shakedown.predict(SUITES, device="cortex-m4", bearer="nb-iot")).splitlines()
    assert len(shown) >= 5
    # Only the repr folds notes.
    table = done.stdout.splitlines()
    assert shown[: 3 + len(SUITES)] == table[: 3 + len(SUITES)]


def test_data_frame_matches_csv_and_dicts_match_json(predicted):
    words = ["predict", *SUITES, "--device", "{phone,cortex-m4}", "--bearer", "{lte,nb-iot}"]
    assert json.loads(printed(*words, "--json")) == predicted.to_dicts()
    frame = predicted.to_polars()
    assert frame.columns == [*printed(*words, "--csv").splitlines()[0].split(","), "error"]
    assert frame["ready_mean_s"].to_list() == [one.ready_s.mean for one in predicted]
    same = predicted.to_pandas()
    assert isinstance(same, pandas.DataFrame)
    assert list(same.columns) == frame.columns
    assert same["ready_mean_s"].tolist() == frame["ready_mean_s"].to_list()


def test_data_frames_of_one_type_of_rows_can_be_concatenated(all_rows, predicted):
    """Also if a column has no value in one of them, or only one has suites without figures."""
    eap = shakedown.predict(SUITES[1], options=shakedown.PredictionOptions(carrier="eap", battery_j=1e3))
    loads = shakedown.simulate(SUITES[1:], shakedown.Fleet(arrivals="poisson:5/s", clients=2000))
    at_rate = shakedown.capacity([*SUITES, "tls9/psk"], within_s=2.0, rate_per_s=9e4)
    for name, others in {
        "predict": [eap, shakedown.predict([SUITES[1], "tls9/psk"], bearer="lte"), predicted[:1]],
        "capacity": [at_rate],
        "simulate": [loads],
    }.items():
        frames = [one.to_polars() for one in (all_rows[name], *others)]
        whole = polars.concat(frames)
        assert whole.height == sum(map(len, frames))
        assert polars.Null not in whole.schema.dtypes()
    for rows in all_rows.values():
        assert polars.Null not in rows.to_polars().schema.dtypes()


@pytest.mark.parametrize("missing", ["pandas", "altair"])
def test_missing_package_is_reported_in_one_line(predicted, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(shakedown.InputError, match=rf"not installed; accepted: .*pip install {missing}"):
        predicted.to_pandas() if missing == "pandas" else predicted.plot()


@pytest.mark.parametrize("name", ["measure", "predict", "capacity", "simulate"])
def test_charts_are_altair_charts_and_render(all_rows, name):
    chart = all_rows[name].plot()
    assert isinstance(chart, altair.TopLevelMixin)
    svg = vl_convert.vegalite_to_svg(json.loads(chart.to_json()), allowed_base_urls=[])
    assert svg.count("psk") >= 1


def test_rows_without_a_chart_name_the_types_that_have_one():
    with pytest.raises(shakedown.InputError, match="there is no chart of Device; accepted: rows of Measure"):
        shakedown.devices("phone").plot()


def test_rows_are_a_list(predicted):
    assert predicted == list(predicted)
    assert isinstance(predicted[:2], shakedown.Rows)
    assert pickle.loads(pickle.dumps(predicted[:2])) == predicted[:2]
    assert repr(shakedown.Rows()) == "no rows"
    assert shakedown.Rows().to_polars().is_empty()


def test_failed_suites_are_listed_below_and_in_the_data_frame():
    found = shakedown.predict(["tls1.2/psk", "tls9/psk"])
    assert isinstance(found[1], FailedPrediction)
    assert "tls9/psk: unknown protocol" in repr(found)
    assert "tls9/psk: unknown protocol" in found._repr_html_()
    frame = found.to_polars()
    assert frame["suite"].to_list() == ["tls1.2/psk", "tls9/psk"]
    assert frame["error"].is_null().to_list() == [True, False]


def test_rows_of_two_kinds_have_a_table_each(predicted):
    both = shakedown.Rows([*predicted[:2], *shakedown.capacity("tls1.2/psk", within_s=2.0)])
    assert [repr(both).count(word) for word in ("modelled: phone over", "modelled: the mean within 2 s")] == [
        1,
        1,
    ]
    assert both._repr_html_().count("<table>") == 2
    assert both.to_polars()["unloaded_s"].is_null().to_list() == [True, True, False]
    with pytest.raises(shakedown.InputError, match="there is no chart of rows of 2 kinds"):
        both.plot()


def test_notes_name_the_suites_and_devices_they_concern():
    suites = [*SUITES, "tls1.3/x448/p256/server"]
    found = shakedown.predict(suites, device=["palm-vii", "cortex-m4"], bearer=["gprs", "lte"])
    said = "\n".join(object_table(found).notes(set()))
    energy = "energy of tls1.3/x25519/p256/server, tls1.3/x448/p256/server on palm-vii over gprs is not"
    assert energy in said
    assert "no figure on palm-vii: client keygen ecdh x25519: " in said
    kept = shakedown.capacity(SUITES[0], within_s=0.3, bearer=["gprs", "lte"])
    assert f"{SUITES[0]} over gprs: " in repr(kept)


def test_html_is_escaped_and_controls_are_visible(predicted):
    import msgspec

    bad = msgspec.structs.replace(predicted[0], device="<script>alert(1)</script>\x1b[2J")
    for shown in (shakedown.Rows([bad, predicted[1]])._repr_html_(), shakedown.Rows([bad])._repr_html_()):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
        assert "\x1b" not in shown


def test_marks_of_guessed_figures_are_explained(predicted):
    for shown in (repr(predicted), predicted._repr_html_()):
        assert "≈ " in shown
        assert "≈ in part assumed" in shown


def test_a_measurement_displays_its_messages():
    one = real.measurement("tls1.3/x25519/p256/server")
    cells = Cells(one._repr_html_())
    names = [row[cells.head.index("message")] for row in cells.rows if row]
    assert names == [message.name for message in one.messages] + ["(no message)", "all"]
    assert shakedown.machine()._repr_html_() is None


def test_a_comparison_displays_its_figures():
    from shakedown.schema.comparison import Compared, Comparison, Method

    figure = Compared(
        suite="tls1.2/psk", after_suite="tls1.2/psk", stacks="openssl", after_stacks="openssl",
        quantity="bytes", unit="bytes", side="client", sender=None, message=None, operation=None,
        before=340, after=344, change=4 / 340, lower=None, upper=None, n=10, verdict="different", reason=None,
    )  # fmt: skip
    method = Method(alpha=0.01, margin=0.02, floor=0.0)
    found = Comparison(before="a<b", after="b", method=method, rows=(figure,), failed=("tls1.2/x: not run",))
    rows = shakedown.Rows(found.rows)
    shown = found._repr_html_()
    [row] = [row for row in Cells(shown).rows if row]
    assert row[-1] == "more"
    assert "a&lt;b → b" in shown
    assert "tls1.2/x: not run" in shown
    assert rows.to_polars()["after"].to_list() == [344]


def test_one_suite_returns_an_object_and_a_list_returns_rows():
    one = shakedown.measure("tls1.2/psk", 2)
    assert one.suite == "tls1.2/psk"
    [same] = shakedown.measure(["tls1.2/psk"], 2)
    assert same.suite == one.suite
    several = shakedown.measure(["tls1.3/{x25519,x448}/p256/server"], 2)
    assert [found.suite for found in several] == ["tls1.3/x25519/p256/server", "tls1.3/x448/p256/server"]
    for use in (shakedown.measure, shakedown.predict, shakedown.simulate):
        with pytest.raises(
            shakedown.InputError, match=r'suite "tls1.3/\*" is a pattern; accepted: a name, or'
        ):
            use("tls1.3/*")
    with pytest.raises(shakedown.InputError, match=r'bearer "gprs-\*" is a pattern'):
        shakedown.predict("tls1.2/psk", bearer="gprs-*")
    with pytest.raises(shakedown.InputError, match="no device is named"):
        shakedown.predict("tls1.2/psk", device=[])


def test_capture_and_serve_accept_suite_patterns(tmp_path):
    suites = ["tls1.3/{x25519,x448}/p256/server"]
    shakedown.capture(suites, tmp_path / "two.pcap", keylog=tmp_path / "two.keys")
    found = shakedown.inspect(tmp_path / "two.pcap", tmp_path / "two.keys")
    named = [f"tls1.3/{group}/p256/server" for group in ("x25519", "x448")]
    assert [one.connection.suite for one in found] == named
    wanted = shakedown.LoadOptions(rate_per_s=20.0, duration_s=0.2)
    with shakedown.serve(suites) as server:
        for suite in named:
            assert shakedown.load(server.address, suite, wanted).completed


def test_several_places_equal_separate_predictions(predicted):
    apart = [
        row
        for device in PLACES["device"]
        for bearer in PLACES["bearer"]
        for row in shakedown.predict(SUITES, device=device, bearer=bearer)
    ]
    assert predicted == apart
    found = shakedown.bearers("gprs-*")
    assert len(found) > 2
    assert [row.bearer for row in shakedown.capacity("tls1.2/psk", within_s=2.0, bearer=["gprs-*"])] == [
        one.name for one in found
    ]


def test_malformed_calibration_is_reported_in_one_line():
    wrong = Calibration(
        target="h:1", suite="tls1.2/psk", method="rate", processes=(), server_s={"estimate": 1.0}, rounds=1,
        handshakes=1,
    )  # fmt: skip
    with pytest.raises(shakedown.InputError, match="calibrations: "):
        shakedown.capacity("tls1.2/psk", within_s=1.0, calibrations=[wrong])


def calibrated(lower: float, estimate: float, upper: float, **changes: object) -> Calibration:
    took = MeasuredTime(lower=lower, estimate=estimate, upper=upper)
    given = {
        "target": "h:1", "suite": "tls1.2/psk", "method": "rate", "processes": (), "server_s": took,
        "rounds": 6, "handshakes": 100,
    }  # fmt: skip
    return Calibration(**{**given, **changes})


@pytest.mark.parametrize("lower", [1e-3, 0.9e-3, 1e-4, 1e-6])
def test_calibration_range_becomes_the_range_of_the_limit(lower):
    """Also if the range begins below the connection's share of the work."""
    known = calibrated(lower, 1e-3, 2e-3)
    (row,) = shakedown.capacity("tls1.2/psk", within_s=1.0, bearer="ethernet", calibrations=[known])
    limit = row.limit_per_s
    assert (limit.lower, limit.estimate, limit.upper) == pytest.approx((500.0, 1000.0, 1.0 / lower))


@pytest.mark.parametrize(
    ("calibrations", "said"),
    [
        (
            [(1e-3, 1e-3, 1e-3), (2e-3, 2e-3, 2e-3)],
            "tls1.2/psk is there twice, of h:1 and h:1",
        ),
        ([(0.0, 0.0, 0.0)], "server_s is 0 s from 0 to 0; accepted: above 0"),
        ([(2e-3, 1e-3, 3e-3)], "accepted: above 0, the estimate between both ends"),
        ([(1e-3, 4e-3, 3e-3)], "accepted: above 0, the estimate between both ends"),
    ],
)
def test_calibrations_that_contradict_are_refused(calibrations, said):
    with pytest.raises(shakedown.InputError, match=said):
        shakedown.capacity(
            "tls1.2/psk", within_s=1.0, calibrations=[calibrated(*one) for one in calibrations]
        )


def test_several_rates_and_arrivals_give_one_row_each():
    rates = [0.0, 10.0, 5000.0]
    found = shakedown.predict(SUITES[1], rate_per_s=rates)
    assert [row.rate_per_s for row in found] == rates
    assert found[1:2] == shakedown.predict(SUITES[1], rate_per_s=10.0)
    assert "3 rates" in repr(found)
    saturated = shakedown.predict(SUITES[1], rate_per_s=[10.0, 1e6])
    for shown in (repr(saturated), saturated._repr_html_(), repr(saturated[1:])):
        assert "no steady state" in shown
    assert saturated.to_polars()["ready_mean_s"].is_null().to_list() == [False, True]
    assert json.loads(found.plot().to_json())["layer"]
    both = ["storm:2s", "poisson:10/s"]
    wanted = [shakedown.Fleet(arrivals=one, clients=30) for one in both]
    fleets = shakedown.simulate(SUITES[1], wanted)
    assert [row.arrivals for row in fleets] == both
    assert fleets[:1] == shakedown.simulate(SUITES[1], wanted[0])
    assert "2 kinds of arrivals" in " ".join(repr(fleets).split())
    with pytest.raises(shakedown.InputError, match=r"rate is -1.0; accepted"):
        shakedown.predict("tls1.2/psk", rate_per_s=[1, -1])


@pytest.mark.parametrize(
    ("fleets", "title", "columns"),
    [
        (({"cells": 3}, {"cells": 10}), "; 30 clients, storm:5s, seed 1", {"cells": ["3", "10"]}),
        (({"cells": 3}, {}), "; 30 clients, storm:5s, seed 1", {"cells": ["3", "own links"]}),
        (({}, {"clients": 20}), "; 20 – 30 clients, each with a link", {"clients": ["30", "20"]}),
        (({}, {"servers": 2}), "own, servers (round-robin), storm:5s", {"servers": ["1", "2"]}),
        (({"resumption": 0.5}, {}), "own, storm:5s, seed 1\n", {"resumption": ["50%", "0%"]}),
    ],
)
def test_settings_in_which_rows_differ_are_in_columns_and_not_in_the_title(fleets, title, columns):
    given = [
        shakedown.Fleet(**{"arrivals": "storm:5s", "clients": 30, "from_idle": True, **one}) for one in fleets
    ]
    found = shakedown.simulate(SUITES[1], given, bearer="nb-iot")
    table = object_table(found)
    assert title in f"{table.title}\n"
    assert title.strip() in " ".join(repr(found).split())
    shown = {one.key: one for one in shown_in(table.shown, table.rows, 0)}
    assert {key: [shown[key].cell(row) for row in table.rows] for key in columns} == columns
    frame = found.to_polars()
    assert all(frame[key].n_unique() == 2 for key in columns)


def test_rows_of_two_seeds_have_a_column_of_seeds():
    fleet = shakedown.Fleet(arrivals="storm:5s", clients=30)
    found = shakedown.Rows(row for seed in (7, 8) for row in shakedown.simulate(SUITES[1], fleet, seed=seed))
    assert object_table(found).title.endswith("storm:5s")
    assert [line.split()[1] for line in repr(found).splitlines() if line.startswith(SUITES[1])] == ["7", "8"]


def test_settings_of_runs_are_columns_of_the_data_frame():
    fleet = shakedown.Fleet(
        arrivals="storm:5s", clients=30, from_idle=True, cells=2, timeout_s=30.0, retries=2
    )
    server = shakedown.ServerModel(software="nginx")
    frame = shakedown.simulate(SUITES[1], fleet, bearer="nb-iot", server=server).to_polars()
    settings = {
        "server_software": "nginx", "cells": 2, "servers": 1, "balance": "round-robin", "discipline": "fifo",
        "from_idle": True, "timeout_s": 30.0, "retries": 2, "seed": 1,
    }  # fmt: skip
    assert frame.select(*settings).to_dicts() == [settings]
    frame = shakedown.capacity(
        SUITES[1], within_s=2.0, percentile=99, rate_per_s=100.0, server=server
    ).to_polars()
    asked = {"server_software": "nginx", "within_s": 2.0, "percentile": 99.0, "asked_rate_per_s": 100.0}
    assert frame.select(*asked).to_dicts() == [asked]


@pytest.mark.parametrize(("software", "named"), [("nginx", "to server (nginx)"), ("openssl", "to server")])
def test_titles_name_server_software_other_than_the_default(software, named):
    server = shakedown.ServerModel(software=software)
    fleet = shakedown.Fleet(arrivals="storm:5s", clients=30)
    found = (
        shakedown.predict(SUITES, server=server),
        shakedown.capacity(SUITES, within_s=2.0, server=server),
        shakedown.simulate(SUITES, fleet, server=server),
    )
    for rows in found:
        assert re.search(f"{re.escape(named)}(?! \\()", object_table(rows).title)


def test_title_has_the_range_of_the_clients_that_the_precision_determines():
    fleets = [shakedown.Fleet(arrivals="poisson:10/s", clients=many) for many in (300, 500)]
    assert "; 300 – 500 clients, poisson:10/s" in object_table(shakedown.simulate(SUITES[1], fleets)).title


def test_progress_of_several_suites_never_decreases():
    done = []
    shakedown.measure(SUITES, 400, progress=done.append)
    assert done == sorted(done)
    assert 400 < done[-1] <= 800


def test_several_mixture_files_give_one_row_each(tmp_path):
    for name, suite in zip("ab", SUITES, strict=True):
        (tmp_path / f"{name}.toml").write_text(f'[[clients]]\nsuite = "{suite}"\nweight = 1\n')
    fleet = shakedown.Fleet(clients=20)
    found = shakedown.simulate_mix([tmp_path / "a.toml", tmp_path / "b.toml"], fleet)
    assert [one.mix for one in found] == ["a", "b"]
    assert found[0] == shakedown.simulate_mix(tmp_path / "a.toml", fleet)
    assert found.to_polars()["mix"].to_list() == ["a", "a", "b", "b"]
    assert "simulated: a to server" in found[0]._repr_html_()


def test_displaying_rows_loads_no_table_library():
    code = (
        "import sys, shakedown; rows = shakedown.suites('tls1.3'); repr(rows); rows._repr_html_(); "
        "one = shakedown.measure('tls1.2/psk', 2); one._repr_html_(); repr(shakedown.Rows([one, one])); "
        "print(*[name for name in ('polars', 'numpy', 'pandas', 'altair') if name in sys.modules])"
    )
    done = python(code)
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_no_shipped_name_is_a_pattern():
    assert not any(is_pattern(one.name) for one in (*shakedown.devices(), *shakedown.bearers()))
