"""What an experiment asks elsewhere is priced, saved, and comes back the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import synthetic
from shakedown.experiment import Experiment
from shakedown.pricing import predict
from shakedown.pricing.experiment_predictions import Forecast, forecast, queue_of
from shakedown.pricing.trace import parse_trace
from shakedown.results.folder import ResultsWriter, load_results

SUITES = ("tls1.2/dhe_rsa+dh2048/rsa2048/server", "tls1.2/psk", "tls1.3/x25519/p256/server")
PLAIN = Experiment(name="e", suites=SUITES)
ASKING = replace(
    PLAIN,
    devices=("palm-vii", "cortex-m4"),
    bearers=("gprs", "lte"),
    rates_per_s=(10.0, 1e6),
    server_device="server",
)
MEASURED = [synthetic.measurement(suite) for suite in SUITES]


def test_nothing_is_priced_unasked():
    assert forecast(PLAIN, MEASURED) == Forecast()


def test_every_scenario_is_a_row_of_predict():
    foreseen = forecast(ASKING, MEASURED)
    scenarios = [
        (suite, device, bearer, rate)
        for suite in SUITES
        for device in ASKING.devices
        for bearer in ASKING.bearers
        for rate in ASKING.rates_per_s
    ]
    assert [
        (row["suite"], row["device"], row["bearer"], row["rate_per_s"]) for row in foreseen.predictions
    ] == scenarios
    traces = {one["suite"]: parse_trace(one, one["suite"]) for one in MEASURED}
    alone = predict.predict(
        [SUITES[0]], device="palm-vii", server_device="server", bearer="gprs", rate_per_s=10.0, traces=traces
    )
    assert [foreseen.predictions[0]] == alone
    assert foreseen.unpriced == ()


def test_what_is_left_out_is_as_everywhere():
    rows = forecast(replace(PLAIN, devices=("cortex-m4",)), MEASURED).predictions
    assert {(row["server_device"], row["bearer"], row["rate_per_s"]) for row in rows} == {
        ("server", "lte", 0.0)
    }


def test_what_cannot_be_priced_is_said_and_the_rest_goes_on():
    foreseen = forecast(replace(ASKING, devices=("kuo-p4", "cortex-m4")), MEASURED)
    assert {row["device"] for row in foreseen.predictions} == {"cortex-m4"}
    assert [(one["suite"], one["device"]) for one in foreseen.unpriced] == [
        (suite, "kuo-p4") for suite in SUITES
    ]
    assert "no primitives" in foreseen.unpriced[0]["reason"]


def test_the_queue_has_its_knee_where_power_is_highest():
    traces = {one["suite"]: parse_trace(one, one["suite"]) for one in MEASURED}
    scenario = predict.scenario(SUITES[0], "cortex-m4", "server", "lte", traces=traces)
    queue = queue_of(scenario)
    assert queue is not None
    assert queue["limit_per_s"] == pytest.approx(1 / scenario.server.total.mean)

    def power(rate):
        return rate / (queue["service_s"] + scenario.wait_s("default", np.array([rate]), 1)[0])

    knee = queue["knee_per_s"]
    assert power(knee) > power(0.97 * knee)
    assert power(knee) > power(1.03 * knee)
    # Kleinrock's rule for service without spread: half the limit or a little above it.
    assert 0.5 < knee / queue["limit_per_s"] < 0.62
    waits = [wait for _, wait in queue["points"]]
    assert waits == sorted(waits)
    assert waits[0] == 0


def test_a_forecast_survives_the_disk(tmp_path):
    foreseen = forecast(replace(ASKING, devices=("kuo-p4", "palm-vii")), MEASURED)
    writer = ResultsWriter(tmp_path / "r", {})
    for one in MEASURED:
        writer.add(one)
    writer.add_models(foreseen.predictions, foreseen.queues, foreseen.unpriced)
    writer.close()
    loaded = load_results(tmp_path / "r")
    assert loaded.predictions == foreseen.predictions
    assert loaded.queues == foreseen.queues
    assert loaded.unpriced == foreseen.unpriced
    assert any(row["total_s"] is None for row in loaded.predictions)
    assert set(loaded.table["kind"].unique()) == {"measured", "modelled"}


def test_old_models_do_not_outlive_a_replaced_run(tmp_path):
    foreseen = forecast(ASKING, MEASURED)
    writer = ResultsWriter(tmp_path / "r", {})
    writer.add_models(foreseen.predictions, foreseen.queues)
    ResultsWriter(tmp_path / "r", {}, replace=True).close()
    assert load_results(tmp_path / "r").predictions == ()
