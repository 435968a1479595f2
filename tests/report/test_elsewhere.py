"""The pages that show models: what they say is what the predictions say."""

from __future__ import annotations

import csv
import io

import pytest

import synthetic
from shakedown.experiment import Experiment
from shakedown.pricing.experiment_predictions import forecast
from shakedown.report.elsewhere import STEPS_S, predictions_section, time_map
from shakedown.report.figure import NARROW_PX, WIDE_PX, draw
from shakedown.report.queue import queue_curves, queue_section
from shakedown.results.folder import Results, results_of
from shakedown.units import seconds

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519/p256/server")


@pytest.fixture(scope="module")
def results() -> Results:
    experiment = Experiment(
        name="e",
        suites=SUITES,
        devices=("palm-vii", "nokia-7650", "cortex-m4"),
        bearers=("gprs", "lte"),
        rates_per_s=(10.0, 1e6),
    )
    measured = [synthetic.measurement(suite) for suite in SUITES]
    foreseen = forecast(experiment, measured)
    plain = results_of(measured)
    return Results(
        plain.manifest,
        plain.table,
        plain.measurements,
        None,
        foreseen.predictions,
        foreseen.queues,
        foreseen.unpriced,
    )


def test_results_without_models_have_no_such_pages():
    plain = results_of([synthetic.measurement()])
    assert predictions_section(plain) is None
    assert queue_section(plain) is None


def test_the_lead_names_the_quickest_and_the_widest_gap(results):
    lead = predictions_section(results).lead
    quiet = [row for row in results.predictions if row["rate_per_s"] == 10.0]
    gaps = {}
    for row in quiet:
        gaps.setdefault((row["device"], row["bearer"]), []).append(row["total_s"])
    device, bearer = max(gaps, key=lambda place: max(gaps[place]) / min(gaps[place]))
    assert "tls1.2/psk is the quickest in 6 of 6 places" in lead
    here = gaps[device, bearer]
    assert f"{device} over {bearer}: from {seconds(min(here))} (tls1.2/psk) to {seconds(max(here))}" in lead


@pytest.mark.parametrize("width", [WIDE_PX, NARROW_PX])
def test_the_map_shows_every_prediction_at_the_lowest_rate(results, width):
    quiet = [row for row in results.predictions if row["rate_per_s"] == 10.0]
    svg = draw(time_map(quiet, width))
    for row in quiet:
        assert f">{seconds(row['total_s'])}<" in svg
        assert row["suite"] in svg
    assert svg.count(">gprs<") == 3


def test_the_map_s_steps_are_told_apart_by_their_cells_words(results):
    quiet = [row for row in results.predictions if row["rate_per_s"] == 10.0]
    cells = time_map(quiet, WIDE_PX)["layer"][0]["data"]["values"]
    steps = [f"step{sum(row['total_s'] >= step for step in STEPS_S)}" for row in quiet]
    assert sorted(cell["step"] for cell in cells) == sorted(steps)


def test_all_rates_and_ranges_are_in_the_csv(results):
    figure = predictions_section(results).blocks[0].figure
    rows = list(csv.DictReader(io.StringIO(figure.csv)))
    assert len(rows) == len(results.predictions)
    assert all(row["kind"] == "modelled" for row in rows)
    assert float(rows[0]["low_s"]) <= float(rows[0]["total_s"]) <= float(rows[0]["high_s"])
    assert {row["total_s"] for row in rows if row["utilisation"] and float(row["utilisation"]) >= 1} == {""}


def test_what_runs_away_and_what_was_extrapolated_is_said(results):
    blocks = {block.folded_table: block.table for block in predictions_section(results).blocks if block.table}
    rates = {row[0]: row for row in blocks["By rate"].rows}
    assert rates["tls1.3/x25519/p256/server"][3] == "runs away"
    extrapolated = blocks["What was extrapolated, and how"].rows
    named = {(row["device"], one["operation"]) for row in results.predictions for one in row["extrapolated"]}
    assert named
    for device, operation in named:
        if device == "palm-vii":
            assert any(operation in row[1] for row in extrapolated)


def test_every_queue_has_its_knee_and_limit_marked(results):
    svg = draw(queue_curves(results.queues, [10.0], WIDE_PX))
    for queue in results.queues:
        assert f">knee {queue['knee_per_s']:,.0f}/s<" in svg
        assert f"{queue['suite']}" in svg
    section = queue_section(results)
    assert "tls1.2/psk" in section.blocks[0].figure.caption
