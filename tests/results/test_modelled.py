"""Estimates in other places of an experiment are saved and read back unchanged."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import real
from results.folders import in_memory
from shakedown.experiments.figure_kinds import Run, modelled
from shakedown.experiments.file.experiment import Experiment
from shakedown.models.distribution import Distribution
from shakedown.native.scenario import Places, Scenario
from shakedown.prediction import predict
from shakedown.prediction.inputs import Costs
from shakedown.prediction.scenario import scenario as estimated
from shakedown.prediction.trace import parse_trace
from shakedown.reporting.columns.modelled import PREDICTIONS, prediction_row, saved_prediction
from shakedown.results import queries
from shakedown.results.folder import load_results
from shakedown.results.reader import missing
from shakedown.results.writer import ResultsWriter
from shakedown.schema import builtins
from shakedown.schema.saved import AboutExperiment, Manifest

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519/p256/server")
PLACES = Places(
    devices=("palm-vii", "cortex-m4"),
    bearers=("gprs", "lte"),
    rates_per_s=(10.0, 1e6),
    server_device="server",
)


def estimate(places: Places) -> list[tuple[Scenario, modelled.Modelled]]:
    """Every scenario of the suites in these places."""
    scenarios = tuple(
        Scenario(kind="measured", handshake=real.identity(real.measurement(suite))) for suite in SUITES
    )
    run = Run(Experiment(AboutExperiment(name="e"), scenarios, places))
    for scenario, suite in zip(scenarios, SUITES, strict=True):
        run.keep(scenario, real.measurement(suite))
    return [(one, modelled.run(one, run)) for batch in modelled.scenarios(run) for one in batch]


def test_predictions_are_kept_if_replays_do_not_determine_the_percentile_of_the_workers():
    places = Places(devices=("cortex-m4",), bearers=("lte",), rates_per_s=(10.0,), within_s=1.0)
    for percentile, workers in ((99.0, 1), (99.9999, 0)):
        for _, found in estimate(msgspec.structs.replace(places, percentile=percentile)):
            assert len(found.predictions) == 1
            assert len(found.workers) == workers


def traces():
    return {suite: parse_trace(builtins(real.measurement(suite)), suite) for suite in SUITES}


def test_no_predictions_without_devices_or_bearers():
    assert estimate(Places()) == []


def test_every_scenario_is_a_row_of_predict():
    rows = [row for _, found in estimate(PLACES) for row in modelled.printed(found)]
    scenarios = [
        (suite, device, bearer, rate)
        for suite in SUITES
        for device in PLACES.devices
        for bearer in PLACES.bearers
        for rate in PLACES.rates_per_s
    ]
    assert [(row["suite"], row["device"], row["bearer"], row["rate_per_s"]) for row in rows] == scenarios
    alone = predict.predict_rows(
        [SUITES[0]],
        device="palm-vii",
        bearer="gprs",
        rate_per_s=10.0,
        costs=Costs(traces()),
    )
    assert [rows[0]] == alone


def test_omitted_places_have_the_usual_defaults():
    for scenario, _ in estimate(Places(devices=("cortex-m4",))):
        assert (scenario.server_device, scenario.bearer, scenario.load.rates_per_s) == (
            "server",
            "lte",
            (0.0,),
        )


def test_places_without_cost_figures_are_reported_and_others_continue():
    found = estimate(Places(devices=("kuo-p4", "cortex-m4")))
    assert {one.device for one, made in found if made.predictions} == {"cortex-m4"}
    without_cost = [(one.label, one.device) for one, made in found if made.without_cost]
    assert without_cost == [(suite, "kuo-p4") for suite in SUITES]
    assert "no primitives" in found[0][1].without_cost


def test_knee_of_the_queue_has_the_highest_power():
    scenario = estimated(SUITES[0], "cortex-m4", "server", "lte", traces=traces())
    queue = modelled.queue_of(scenario)
    assert queue is not None
    assert queue.saturation_per_s == pytest.approx(1 / scenario.service_s.mean)

    def power(rate):
        return rate / (queue.service_s + scenario.wait_s("default", np.array([rate]), 1)[0])

    knee = queue.knee_per_s
    assert power(knee) > power(0.97 * knee)
    assert power(knee) > power(1.03 * knee)
    # Kleinrock's rule for service without spread: half the saturation rate or a little above it.
    assert 0.5 < knee / queue.saturation_per_s < 0.62
    waits = [wait for _, wait in queue.points]
    assert waits == sorted(waits)
    assert waits[0] == 0


def test_predictions_are_read_back_unchanged(tmp_path):
    devices, bearers = ("kuo-p4", "palm-vii", "cortex-m4"), ("nb-iot",)
    places = Places(devices=devices, bearers=bearers, rates_per_s=(10.0, 1e6), battery_j=9000.0)
    found = estimate(places)
    with ResultsWriter(tmp_path / "r", Manifest(provenance="p", created="")) as writer:
        for scenario, made in found:
            writer.add("modelled", scenario.label, modelled.table([(scenario, made)]))
    loaded = load_results(tmp_path / "r")
    expected = [row for _, made in found for row in made.predictions]
    for row, one in zip(loaded.predictions.to_dicts(), expected, strict=True):
        same = ("suite", "device", "bearer", "rate_per_s", "basis")
        assert [row["energy_terms"]] == one["energy_terms"]
        assert {key: row[key] for key in same} == {key: one[key] for key in same}
        for name, unit in (
            ("client", "_s"), ("server", "_s"), ("queue", "_s"), ("utilisation", ""), ("offered", ""),
            ("energy", "_j"), ("wake_tail", "_j"), ("handshakes_per_charge", ""),
        ):  # fmt: skip
            whole = one[name + unit] or dict.fromkeys(("estimate", "lower", "upper"))
            for end, place in (("", "estimate"), ("_low", "lower"), ("_high", "upper")):
                assert row[f"{name}{end}{unit}"] == whole[place]
        for end in ("ready", "done"):
            times = one[f"{end}_s"] or dict.fromkeys(("mean", "p50", "p95", "p99", "lower", "upper"))
            assert [row[f"{end}_low_s"], row[f"{end}_high_s"]] == [times["lower"], times["upper"]]
            for name in ("mean", "p50", "p95", "p99"):
                assert row[f"{end}_{name}_s"] == times[name]
        assert row["missing"] == len(one["without_cost"])
    assert any(row["ready_s"] is None for row in expected)
    assert queries.without_cost(loaded).height == len(SUITES)
    queues = queries.queues(loaded)
    assert queues.height == sum(made.queue is not None for _, made in found) > 0
    points = queries.queue_points(loaded)
    for scenario, made in found:
        if made.queue is not None:
            assert points[scenario.key] == list(made.queue.points)


def test_extrapolated_figures_are_in_the_table(tmp_path):
    [(scenario, made), *_] = estimate(Places(devices=("palm-vii",)))
    told = queries.extrapolated(in_memory(modelled.table([(scenario, made)]))).to_dicts()
    assert len(told) == len(made.predictions[0]["extrapolated"])
    for row, one in zip(told, made.predictions[0]["extrapolated"], strict=True):
        assert (row["how"], row["time_s"]) == (one["method"], one["time_s"])
        assert row["where"] == ("palm-vii" if one["side"] == "client" else "server")


def test_workers_and_limit_of_the_experiment_are_used():
    rates = (100.0, 20_000.0)
    [*_, (_, one)] = estimate(Places(devices=("cortex-m4",), rates_per_s=rates))
    [*_, (scenario, four)] = estimate(
        Places(devices=("cortex-m4",), rates_per_s=rates, workers=4, within_s=2.0)
    )
    for alone, shared in zip(one.predictions, four.predictions, strict=True):
        assert shared["offered"]["estimate"] == pytest.approx(alone["offered"]["estimate"] / 4)
    assert one.workers == ()
    for (mean, low, high), row in zip(four.workers, four.predictions, strict=True):
        assert 0 < low <= mean <= high
        assert row["rate_per_s"] * row["server_s"]["estimate"] < mean
    view = queries.predictions(in_memory(modelled.table([(scenario, four)])))
    assert view["workers_needed"].to_list() == [needed[0] for needed in four.workers]
    assert view["workers"].unique().to_list() == [4]


def test_work_grows_linearly_with_places_and_rates(monkeypatch):
    """Counts sums of distributions, which take nearly all the time, for more places and rates."""
    summed = 0
    plus = Distribution.plus

    def counted(one: Distribution, other: Distribution) -> Distribution:
        nonlocal summed
        summed += 1
        return plus(one, other)

    monkeypatch.setattr(Distribution, "plus", counted)

    def work(devices: int, bearers: int, rates: int) -> int:
        nonlocal summed
        summed = 0
        found = estimate(
            Places(
                devices=("palm-vii", "cortex-m4")[:devices],
                bearers=("gprs", "lte")[:bearers],
                rates_per_s=tuple(float(rate) for rate in range(1, 1 + rates)),
                server_device="server",
            )
        )
        assert len(found) == len(SUITES) * devices * bearers
        assert all(len(made.predictions) == rates for _, made in found)
        return summed

    one = work(1, 1, 1)
    assert 0 < work(2, 2, 1) <= 5 * one
    assert work(1, 1, 5) <= 5 * one


def test_predictions_of_many_places_are_saved_in_several_parts(monkeypatch, tmp_path, fake):
    from shakedown.experiments import runner
    from shakedown.experiments.figure_kinds import load_experiment

    path = tmp_path / "e.toml"
    path.write_text(
        'suites = ["tls1.2/psk"]\nrepeat = 1\ndevices = ["phone", "cortex-m4"]\n'
        'bearers = ["gprs", "lte", "wifi"]\nrates = [0, 10]\n'
    )
    wanted = load_experiment(path)
    runner.run_experiment(wanted, tmp_path / "whole")
    monkeypatch.setattr(runner, "FIGURES_A_PART", 4)
    runner.run_experiment(wanted, tmp_path / "parts")
    whole, parts = load_results(tmp_path / "whole"), load_results(tmp_path / "parts")
    assert [part.about for part in parts.manifest.parts if part.kind == "modelled"] == [
        "tls1.2/psk, places 1 to 2",
        "tls1.2/psk, places 3 to 4",
        "tls1.2/psk",
    ]
    assert len(whole.manifest.parts) == 2
    assert parts.is_whole
    assert parts.table.drop("provenance", "scenario").equals(whole.table.drop("provenance", "scenario"))
    # If the run is killed before the last part, the suite's predictions are missing.
    short = msgspec.structs.replace(parts.manifest, parts=parts.manifest.parts[:-1])
    assert [one.about for one in missing(short, short.parts)] == ["tls1.2/psk"]


def test_saved_figures_have_the_marks_of_printed_ones():
    """The same columns print a figure of `predict` on the terminal and its cell in the report."""
    found = estimate(
        Places(
            devices=("palm-vii", "cortex-m4", "lpc1114"),
            bearers=("gprs", "lte"),
            rates_per_s=(0.1,),
            server_device="esp32",
            battery_j=9000.0,
        )
    )
    saved = queries.predictions(in_memory(modelled.table(found))).to_dicts()
    marks, bounded = set(), set()
    for row, one in zip(saved, (row for _, made in found for row in made.predictions), strict=True):
        printed, kept = prediction_row(one), saved_prediction(row)
        for column in PREDICTIONS:
            # The total has a mark of its own in the report alone; the other keys are not saved.
            if column.key in kept and column.key not in ("ready_mean_s", "basis", "suite"):
                assert column.cell(kept) == column.cell(printed), column.key
                marks.add((column.key, column.cell(kept)[:1]))
                if column.cell(kept).startswith("≥") or " – " in column.cell(kept):
                    bounded.add(column.key)
    for key in ("client_s", "server_s", "energy_j", "handshakes_per_charge"):
        assert (key, "≈") in marks
    assert {"client_s", "server_s"} & bounded
