"""The pages of models agree with the predictions."""

from __future__ import annotations

import csv
import io
import itertools
import re

import polars as pl
import pytest

import real
import runs
from shakedown.experiments.figure_kinds import Run, modelled
from shakedown.experiments.figure_kinds.in_memory_results import results_of
from shakedown.experiments.file.experiment import Experiment
from shakedown.native.scenario import Places, Scenario
from shakedown.reporting.charts.figure import NARROW_PX, WIDE_PX, draw
from shakedown.reporting.charts.map import STEPS_S, time_map
from shakedown.reporting.charts.queue import queue_curves
from shakedown.reporting.columns.capacity import none_suffices
from shakedown.reporting.columns.notes import MAX_REASONS, not_estimated
from shakedown.reporting.figures import (
    BASIS_MARKS,
    as_given,
    energy_range,
    legend,
    marked_rate,
    marked_time,
    rounded_down,
    share,
    time,
    time_range,
)
from shakedown.reporting.html.modelled import _workers, predictions_section, queue_section, sections
from shakedown.reporting.terminal.modelled import predicted_tables
from shakedown.results import queries
from shakedown.results.folder import Results
from shakedown.schema.saved import AboutExperiment

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519/p256/server")


@pytest.fixture(scope="module")
def results() -> Results:
    places = Places(
        devices=("palm-vii", "nokia-7650", "cortex-m4"),
        bearers=("gprs", "lte"),
        rates_per_s=(10.0, 1e6),
        within_s=60.0,
        battery_j=9000.0,
    )
    own = [real.measurement(suite) for suite in SUITES]
    run = Run(Experiment(AboutExperiment(name="e"), (), places))
    for one in own:
        run.keep(Scenario(kind="measured", handshake=real.identity(one)), one)
    rows = [
        modelled.table([(scenario, modelled.run(scenario, run))])
        for batch in modelled.scenarios(run)
        for scenario in batch
    ]
    plain = results_of(own)
    return Results(plain.manifest, pl.concat([plain.table, *rows]))


def ready(row: dict) -> str:
    return marked_time(row["ready_mean_s"], row["basis"])


def lowest(results: Results) -> list[dict]:
    return results.predictions.filter(rate_per_s=10.0).to_dicts()


def test_results_without_predictions_have_no_section():
    assert list(sections(results_of([real.measurement()]))) == []


def test_lead_names_the_fastest_suite_and_the_widest_gap(results):
    [section] = predictions_section(results)
    gaps, wins, least = {}, {}, set()
    for row in lowest(results):
        place = (row["device"], row["bearer"])
        gaps.setdefault(place, {})[row["suite"]] = row
        if row["missing"]:
            least.add((*place, row["suite"]))
    assert least  # a suite without a figure cannot win
    quickest = {}
    for place, here in gaps.items():
        known = {suite: row for suite, row in here.items() if (*place, suite) not in least}
        if known:
            quickest[place] = min(known, key=lambda suite: known[suite]["ready_mean_s"])
            wins[quickest[place]] = wins.get(quickest[place], 0) + 1
    most = max(wins, key=wins.get)
    assert section.lead.startswith(f"{most} is the quickest in {wins[most]} of {len(quickest)} places")

    def gap(place):
        here = gaps[place]
        return max(row["ready_mean_s"] for row in here.values()) / here[quickest[place]]["ready_mean_s"]

    place = max(quickest, key=gap)
    here = gaps[place]
    quick, slow = quickest[place], max(here, key=lambda suite: here[suite]["ready_mean_s"])
    ends = [f"{ready(here[one])} ({one})" for one in (quick, slow)]
    assert f"{place[0]} over {place[1]}: from {ends[0]} to {ends[1]}" in section.lead


def test_every_cell_not_measured_on_the_device_is_marked(results):
    quiet = lowest(results)
    assert {row["basis"] for row in quiet} >= {"assumed", "unknown"}
    cells = [text for layer in time_map(quiet, WIDE_PX)["layer"][1:] for text in layer["data"]["values"]]
    texts = [one["text"] for one in cells]
    for row in quiet:
        assert ready(row).startswith(BASIS_MARKS[row["basis"]])
        assert ready(row) in texts
    [section] = predictions_section(results)
    assert legend(row["basis"] for row in quiet) in section.blocks[0].figure.caption


def test_run_says_that_an_energy_is_not_estimated_only_if_it_is_not(tmp_path):
    """Over a slow bearer, the energy of work without a figure is negligible, and the total is estimated."""
    suites = f'suites = ["tls1.2/psk", "{SUITES[2]}"]'
    results = runs.results(tmp_path, f'{suites}\nrepeat = 2\ndevices = ["lpc1114"]\nbearers = ["nb-iot"]')
    rows = results.predictions.to_dicts()
    assert all(row["energy_missing"] for row in rows)
    assert [row["energy_j"] is None for row in rows] == [False, True]
    [line] = [one for one in predicted_tables(results, 200) if "is not estimated" in one]
    assert line.startswith(f"energy of {SUITES[2]} on lpc1114 over nb-iot is not estimated: no figure for ")


def test_tables_have_percentiles_energy_workers_and_missing_costs(results):
    [section] = predictions_section(results)
    blocks = {block.folded_table: block.table for block in section.blocks if block.table}
    table = blocks["Percentiles, ranges and energy"]
    quiet = lowest(results)
    assert len(table.rows) == len(quiet)
    for line, row in zip(table.rows, quiet, strict=True):
        cells = dict(zip(table.head, line, strict=True))
        for name, heading in (("ready", "p99"), ("done", "done p99")):
            p99_s = row[f"{name}_p99_s"]
            least = f"≥ {time(rounded_down(p99_s), 2)}"
            assert cells[heading] == (least if row["missing"] else time(float(f"{p99_s:.2g}"), 2))
        assert row["ready_p99_s"] <= row["done_p99_s"]
        assert (cells["no energy of"] == "–") == (row["energy_missing"] is None)
        assert row["energy_missing"] is not None or row["energy_j"] > 0.0
        assert (cells["energy"] == "unknown") == (row["energy_high_j"] is None)
    needed = {cells[0]: cells[1:] for cells in blocks["Workers needed"].rows}
    for row in results.predictions.filter(pl.col("missing") == 0).to_dicts():
        column = [10.0, 1e6].index(row["rate_per_s"])
        shown = needed[row["suite"]][column]
        if shown.startswith("no number suffices"):
            same = results.predictions.filter(label=row["label"], rate_per_s=row["rate_per_s"])
            assert None in same["workers_needed"].to_list(), "a place in which no number is enough"
            continue
        assert int(shown.lstrip("≥ ").split(" ")[0].replace(",", "")) >= row["workers_needed_low"] > 0
        assert row["workers_needed"] >= row["rate_per_s"] * row["server_s"]
    missing = {(cells[0], cells[2]) for cells in blocks["Work without a figure"].rows}
    assert missing == {(row["where"], row["why"]) for row in queries.missing(results).to_dicts()}


@pytest.mark.parametrize("width", [WIDE_PX, NARROW_PX])
def test_the_map_shows_every_prediction_at_the_lowest_rate(results, width):
    quiet = lowest(results)
    svg = draw(time_map(quiet, width))
    for row in quiet:
        assert f">{ready(row)}<" in svg
        assert row["suite"] in svg
    assert svg.count(">gprs<") == 3


@pytest.mark.parametrize("width", [WIDE_PX, NARROW_PX])
def test_a_map_of_many_bearers_stays_inside_its_width(results, width):
    [one, *_] = lowest(results)
    rows = [{**one, "device": device, "bearer": f"b{number}"} for device in "abc" for number in range(37)]
    definition = time_map(rows, width)
    cells = definition["layer"][0]["data"]["values"]
    assert len(cells) == len(rows)
    assert max(cell["to"] for cell in cells) <= width
    assert max(cell["bottom"] for cell in cells) <= definition["height"]
    places = {(cell["from"], cell["top"]) for cell in cells}
    assert len(places) == len(rows)


def test_report_prints_the_share_of_handshakes_that_fail(results):
    def ranges(some):
        [section] = predictions_section(some)
        blocks = {block.folded_table: block.table for block in section.blocks if block.table}
        return blocks["Percentiles, ranges and energy"]

    assert "failed" not in ranges(results).head
    places = Places(devices=("phone",), bearers=("nb-iot:loss=70%",), rates_per_s=(10.0,))
    own = real.measurement("tls1.2/psk")
    run = Run(Experiment(AboutExperiment(name="e"), (), places))
    run.keep(Scenario(kind="measured", handshake=real.identity(own)), own)
    [[scenario]] = modelled.scenarios(run)
    found = modelled.run(scenario, run)
    plain = results_of([own])
    lossy = Results(plain.manifest, pl.concat([plain.table, modelled.table([(scenario, found)])]))
    failed = found.predictions[0]["failed"]
    assert lossy.predictions["failed"].to_list() == [failed]
    table = ranges(lossy)
    assert str(table.rows[0][table.head.index("failed")]) == share(failed, 1)
    assert "Times are those of the handshakes that do not fail." in table.caption
    line = f"tls1.2/psk: failed handshakes: {failed:.1%}; times are those of the others"
    assert line in list(predicted_tables(lossy, 100))
    assert "failed" not in "".join(predicted_tables(results, 100))


def test_map_cells_have_the_step_of_their_value(results):
    quiet = lowest(results)
    cells = time_map(quiet, WIDE_PX)["layer"][0]["data"]["values"]
    steps = [
        "none" if row["missing"] else f"step{sum(row['ready_mean_s'] >= step for step in STEPS_S)}"
        for row in quiet
    ]
    assert "none" in steps
    assert sorted(cell["step"] for cell in cells) == sorted(steps)


def test_all_rates_and_ranges_are_in_the_csv(results):
    [section] = predictions_section(results)
    rows = list(csv.DictReader(io.StringIO(section.blocks[0].figure.csv)))
    assert len(rows) == results.predictions.height
    assert all(row["kind"] == "modelled" for row in rows)
    assert [float(row["failed"]) for row in rows] == results.predictions["failed"].to_list()
    whole = [row for row in rows if row["ready_mean_s"] and row["ready_high_s"]]
    assert whole
    for row in whole:
        for name in ("ready", "done"):
            low, mean, high = (float(row[f"{name}_{end}_s"]) for end in ("low", "mean", "high"))
            assert low <= mean <= high
    assert {row["ready_mean_s"] for row in rows if row["utilisation"] and float(row["utilisation"]) >= 1} == {
        ""
    }


def test_saturated_and_extrapolated_figures_are_listed(results):
    [section] = predictions_section(results)
    blocks = {block.folded_table: block.table for block in section.blocks if block.table}
    rates = {row[0]: row for row in blocks["By rate"].rows}
    assert rates["tls1.3/x25519/p256/server"][3] == "saturated"
    shown = {tuple(row[:2]) for row in blocks["What was extrapolated, and how"].rows}
    named = {
        (row["where"], f"{row['operation']} {row['algorithm']} {row['parameters']}".strip())
        for row in queries.extrapolated(results).to_dicts()
    }
    assert named == shown


def test_every_queue_has_its_knee_and_saturation_rate_marked(results):
    points = queries.queue_points(results)
    queues = [{**row, "points": points[row["scenario"]]} for row in queries.queues(results).to_dicts()]
    svg = draw(queue_curves(queues, [10.0, 1e3], WIDE_PX))
    waits = [tip for tip in re.findall("<title>(.*?)</title>", svg) if tip.startswith("at 1000/s: wait ")]
    assert waits
    for queue in queues:
        work_s = queue["service_s"]
        assert f"<title>work {marked_time(work_s, queue['basis'])}; knee" in svg
        assert f">knee {marked_rate(queue['knee_per_s'], queue['basis'])}/s<" in svg
        assert f"saturates at {marked_rate(queue['saturation_per_s'], queue['basis'])}/s" in svg
        assert queue["suite"] in svg
    assert {queue["basis"] for queue in queues} == {"scaled", "assumed"}
    # A model's waits have two digits and a mark, as its rates have.
    for tip in waits:
        assert re.fullmatch(r"at 1000/s: wait [~≈] \d\.?\d0? .s, with the work [~≈] \d\.?\d0? .s", tip)
    # A handshake without public keys has a queue too: its stack and its connection take time.
    assert "tls1.2/psk" in {queue["suite"] for queue in queues}
    [section] = queue_section(results)
    assert marked_rate(min(queue["saturation_per_s"] for queue in queues), "scaled") in section.lead
    assert "≈ in part assumed" in section.blocks[0].figure.caption
    unknown = [{**queue, "basis": "unknown"} for queue in queues]
    assert ">knee ≤ " in draw(queue_curves(unknown, [10.0], WIDE_PX))


def test_a_marked_time_has_two_digits():
    assert marked_time(0.2934, "assumed") == "≈ 290 ms"
    assert marked_time(0.2994, "unknown") == "≥ 290 ms"
    assert marked_time(1.06, None) == "1.1 s"


def test_fast_handshake_is_not_shown_as_zero():
    """Over Ethernet, the handshake takes about a millisecond."""
    places = Places(devices=("phone",), bearers=("ethernet",), rates_per_s=(0.0,))
    own = real.measurement("tls1.2/psk")
    run = Run(Experiment(AboutExperiment(name="e"), (), places))
    run.keep(Scenario(kind="measured", handshake=real.identity(own)), own)
    (batch,) = modelled.scenarios(run)
    rows = [modelled.table([(one, modelled.run(one, run))]) for one in batch]
    plain = results_of([own])
    results = Results(plain.manifest, pl.concat([plain.table, *rows]))
    (total,) = results.predictions["ready_mean_s"]
    _title, _heading, row, *_rest = predicted_tables(results, 100)
    _suite, shown = row.split(maxsplit=1)
    assert total < 0.005
    assert float(shown.strip("≈ ")) == pytest.approx(total, rel=0.06)


def test_terminal_prints_why_there_is_no_estimate():
    """For a device with a description only, one line for all bearers gives the reason."""
    places = Places(devices=("axim-x51v",), bearers=("lte", "gprs"), rates_per_s=(0.0,))
    own = real.measurement("tls1.2/psk")
    run = Run(Experiment(AboutExperiment(name="e"), (), places))
    run.keep(Scenario(kind="measured", handshake=real.identity(own)), own)
    (batch,) = modelled.scenarios(run)
    plain = results_of([own])
    rows = [modelled.table([(one, modelled.run(one, run))]) for one in batch]
    (line,) = predicted_tables(Results(plain.manifest, pl.concat([plain.table, *rows])), 100)
    assert line == (
        "not estimated on axim-x51v: device 'axim-x51v' has no primitives, only a description; "
        "accepted: a device with primitives (tls1.2/psk)"
    )


def test_many_reasons_are_counted():
    rows = [
        {"device": "d", "suite": f"s{number}", "reason": f"r{number}"} for number in range(MAX_REASONS + 2)
    ]
    *lines, rest = not_estimated(rows)
    assert lines == [f"not estimated on d: r{number} (s{number})" for number in range(MAX_REASONS)]
    assert rest == "2 more reasons are in the report"


def test_workers_are_a_lower_bound_if_any_place_lacks_a_figure():
    rows = [
        {"label": "s", "rate_per_s": 1.0, "workers_needed": needed, "workers_needed_low": needed,
         "workers_needed_high": needed, "missing": missing, "basis": "assumed"}
        for needed, missing in ((2, 0), (1, 3))
    ]  # fmt: skip
    for view in (rows, rows[::-1]):
        assert _workers(pl.DataFrame(view), [1.0]).rows == [["s", "≥ 2"]]


def test_the_place_without_a_sufficient_number_of_workers_that_needs_the_most_is_shown():
    rows = [
        {"label": "s", "rate_per_s": 1.0, "workers_needed": needed, "workers_needed_low": low,
         "workers_needed_high": None, "missing": 0, "basis": "assumed"}
        for needed, low in ((None, None), (None, 7), (9, 8))
    ]  # fmt: skip
    for view in itertools.permutations(rows):
        assert _workers(pl.DataFrame(view), [1.0]).rows == [["s", none_suffices(None)]]
    for view in itertools.permutations(rows[1:]):
        assert _workers(pl.DataFrame(view), [1.0]).rows == [["s", none_suffices(7)]]


@pytest.mark.parametrize(
    ("said", "shown"),
    [(time(3.6e-15), "< 1 ns"), (time(0.0), "0"), (time(0.6e-9), "0.600 ns"), (share(0.002), "< 1%"),
     (share(0.0), "0%"), (share(0.0004, 1), "< 0.1%"), (share(0.0051), "1%")],
)  # fmt: skip
def test_small_values_are_not_shown_as_zero(said, shown):
    assert said == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [(time_range(470.0, 600.0, 2), "7.8 min – 10 min"), (time_range(0.86, 1.3, 2), "0.86 s – 1.3 s"),
     (time_range(700.0, 4000.0), "12 min – 67 min"), (time_range(6.1, 1080.0, 2), "6.1 s – 18 min"),
     (time_range(0.39, 0.5, 2), "390 ms – 500 ms"),
     (time_range(2.18e-6, 23.1e-6), "2.18 µs – 23.1 µs"), (time_range(57e-3, 3.1, 2), "57 ms – 3.1 s"),
     (time_range(0.0, 1.3, 2), "0 – 1.3 s"), (energy_range(0.25, 1.2), "0.25 J – 1.2 J"),
     (energy_range(0.129, 0.696), "130 mJ – 700 mJ"), (as_given(2.0), "2 s"), (as_given(0.5), "500 ms"),
     (as_given(1.5), "1.5 s"), (as_given(1200.0), "20 min"),
     (as_given(0.2585), "258.5 ms"), (as_given(611.5), "611.5 s")],
)  # fmt: skip
def test_range_has_one_unit_and_given_times_keep_their_digits(said, shown):
    assert said == shown
