"""Predictions: documented rows, published models, refused input."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predict import handmade
from predict.asking import ML_DSA, P256, PSK, RSA, WTLS, grouped, one, service_s
from shakedown.errors import InputError
from shakedown.prediction.capacity import capacity_rows
from shakedown.prediction.inputs import Costs
from shakedown.prediction.library import TraceLibrary, open_library, write_library
from shakedown.prediction.literature import LITERATURE
from shakedown.prediction.literature.thesis import queued_message_s
from shakedown.prediction.predict import predict_rows, rows
from shakedown.prediction.scenario import MODELS, scenario, work_spread
from shakedown.profiles import load_bearer

KEYS = (
    "suite device server_device bearer rate_per_s kind model client_s server_s transmission_s queue_s "
    "utilisation offered energy_j wake_tail_j resumption_saves_j extrapolated workers basis without_cost "
    "ready_s done_s p99_interval_s connection_s energy_parts_j energy_terms handshakes_per_charge "
    "ratio_to_first failed carrier eap server_software server_software_note unused_key_share_s "
    "handshake_bytes wire_bytes"
)


@pytest.mark.parametrize("model", MODELS)
def test_rows_have_exactly_the_documented_keys(library, model):
    row = one(P256, library, model=model, rate_per_s=10)
    assert list(row) == KEYS.split()
    assert row["kind"] == "modelled"
    assert (row["device"], row["server_device"], row["bearer"]) == ("phone", "server", "lte")
    parts = [row[name]["estimate"] for name in ("client_s", "server_s", "queue_s")]
    assert row["done_s"]["mean"] == pytest.approx(sum(parts) + row["transmission_s"])
    for name in ("client_s", "server_s", "queue_s", "utilisation"):
        assert row[name]["lower"] <= row[name]["estimate"] <= row[name]["upper"]
    for name in ("ready_s", "done_s"):
        assert row[name]["lower"] <= row[name]["mean"] <= row[name]["upper"]
    if model == "default":
        low_s, high_s = row["p99_interval_s"]
        assert low_s <= row["ready_s"]["p99"] <= high_s
        assert high_s - low_s < 0.05 * high_s
    json.dumps(row, allow_nan=False)


def test_no_rate_means_no_queue(library):
    for model in MODELS:
        row = one(P256, library, model=model)
        assert row["queue_s"]["estimate"] == row["utilisation"]["estimate"] == row["rate_per_s"] == 0.0


def test_no_worker_works_more_than_all_of_the_time(library):
    quiet = one(RSA, library, server_workers=4, rate_per_s=1.0)
    assert quiet["utilisation"] == quiet["offered"]
    taken_s = service_s(quiet)
    over = one(RSA, library, server_workers=4, rate_per_s=40.0 / taken_s)
    assert over["offered"]["estimate"] == pytest.approx(10.0)
    assert over["offered"]["lower"] < 10.0 < over["offered"]["upper"]
    assert [over["utilisation"][end] for end in ("lower", "estimate", "upper")] == [1.0, 1.0, 1.0]


def test_at_full_load_queue_and_total_are_null(library):
    for model in MODELS:
        taken_s = service_s(one(RSA, library, model=model))
        row = one(RSA, library, model=model, rate_per_s=(1.0 + 1e-9) / taken_s)
        assert row["queue_s"] is None
        assert row["ready_s"] is None
        assert row["utilisation"]["estimate"] == pytest.approx(1.0)
        assert row["done_s"] is None
        json.dumps(row, allow_nan=False)


def test_an_uncertain_server_may_have_a_steady_state_at_one_end_only(library):
    server = "raspberry-pi"
    row = one(RSA, library, server_device=server)
    rate = 0.98 / service_s(row)
    loaded = one(RSA, library, server_device=server, rate_per_s=rate)
    assert loaded["ready_s"]["lower"] > 0.0
    assert loaded["ready_s"]["upper"] is None
    assert loaded["queue_s"]["upper"] is None


def test_default_wait_matches_pollaczek_khinchine(library):
    for suite in (RSA, ML_DSA):
        unloaded = one(suite, library, server_device="cortex-m4")
        found = scenario(suite, server_device="cortex-m4", traces=library)
        mean_s, sd_s = service_s(unloaded), found.server.sd_s
        rate = 0.8 / mean_s
        row = one(suite, library, server_device="cortex-m4", rate_per_s=rate)
        assert row["queue_s"]["estimate"] == pytest.approx(rate * (mean_s**2 + sd_s**2) / (2 * 0.2))
    assert sd_s > 0.0


def test_kuo_model_is_bytes_over_throughput(library):
    row = one(RSA, library, model="kuo", bearer="gsm-csd", rate_per_s=100)
    sizes = sum(message["bytes"] for message in handmade.TLS12_RSA["messages"])
    assert row["transmission_s"] == pytest.approx(8 * sizes / 9600)
    assert row["queue_s"]["estimate"] == 0.0


def test_thesis_model_counts_messages_to_the_server(library):
    row = one(
        WTLS, library, model="thesis", device="nokia-7650", server_device="wap-gateway-p4", bearer="gsm-csd"
    )
    sizes = sum(message["bytes"] for message in handmade.wtls_rsa("rsa3072", "rsa1024")["messages"])
    thesis = load_bearer("gsm-csd").thesis
    assert thesis is not None
    sizes += thesis.overhead_bytes
    assert row["transmission_s"] == pytest.approx(8 * sizes / 9600 + 2 * 5 * 0.3913, rel=1e-3)


def test_thesis_model_rate_is_in_handshakes(library):
    """W = λ Σ s² / (2 (1 - λ Σ s)) over the messages to the server, at λ handshakes per second."""
    row = one(WTLS, library, model="thesis", server_device="wap-gateway-p4", rate_per_s=10)
    server = scenario(WTLS, server_device="wap-gateway-p4", traces=library).server
    # The overhead belongs to no message, so the first one has it. The key exchange's message has the
    # decryption.
    first_s, decrypt_s = server.message_s[None], server.message_s[6]
    both = first_s + decrypt_s
    expected_s = 10 * (first_s**2 + decrypt_s**2) / (2 * (1 - 10 * both))
    assert row["queue_s"]["estimate"] == pytest.approx(expected_s, rel=1e-6)


def test_tls13_server_work_is_mostly_for_the_client_hello(library):
    found = scenario(P256, traces=library)
    first, last = queued_message_s(found)
    assert first + last == pytest.approx(found.server.total.mean)
    assert last == pytest.approx(found.server.message_s[6])
    assert first > 3 * last


def test_levi_savas_model_is_mm1_and_key_material(library):
    row = one(RSA, library, model="levi-savas", rate_per_s=1000)
    rho = row["utilisation"]["estimate"]
    assert row["queue_s"]["estimate"] == pytest.approx(row["server_s"]["estimate"] * rho / (1 - rho))
    assert row["transmission_s"] == pytest.approx(8 * 900 / 12e6 + 8 * 267 / 12e6)


@pytest.mark.parametrize("model", LITERATURE)
def test_models_of_the_literature_load_the_server_without_its_tcp_connection(library, model):
    row = one(PSK, library, model=model, server_device="cortex-m4", rate_per_s=20)
    loads = {end: 20 * row["server_s"][end] for end in ("lower", "estimate", "upper")}
    assert {end: row["offered"][end] for end in loads} == pytest.approx(loads)
    if model == "levi-savas":
        waits = {end: row["server_s"][end] * load / (1 - load) for end, load in loads.items()}
        assert {end: row["queue_s"][end] for end in waits} == pytest.approx(waits)


def test_range_includes_the_delay_spread_of_the_bearer(library):
    row = one(PSK, library, bearer="gsm-csd")
    # The devices' own work is a thousandth of it: the range's upper end is the 95th percentile.
    assert row["ready_s"]["lower"] < row["done_s"]["p50"]
    assert row["ready_s"]["upper"] == pytest.approx(row["done_s"]["p95"], rel=0.02)
    assert row["done_s"]["p50"] < row["done_s"]["p95"] < row["done_s"]["p99"]


@pytest.mark.parametrize("utilisation", [0.0, 0.5])
@pytest.mark.parametrize("bearer", ["ethernet", "nb-iot", "lte-m"])
def test_the_90_percent_interval_contains_median_and_p95(library, bearer, utilisation):
    for suite in (P256, RSA):
        rate_per_s = utilisation / service_s(one(suite, library))
        row = one(suite, library, device="cortex-m4", bearer=bearer, rate_per_s=rate_per_s)
        for name in ("ready_s", "done_s"):
            times = row[name]
            assert 0.0 < times["lower"] < times["p50"], (suite, name)
            assert times["p95"] <= times["upper"], (suite, name)


def test_datagrams_save_the_connection_setup(library):
    tcp = one(PSK, library, bearer="geo")["transmission_s"]
    udp = one(WTLS, library, bearer="geo")["transmission_s"]
    assert tcp - udp > 0.59


def test_more_workers_never_wait_longer(library):
    rate = 0.9 / service_s(one(RSA, library))
    found = [one(RSA, library, rate_per_s=rate, server_workers=workers) for workers in (1, 2, 4)]
    waits = [row["queue_s"]["estimate"] for row in found]
    assert waits == sorted(waits, reverse=True)


# Exactly at the limit, rounding alone decides whether the queue is steady.
loads = st.floats(0.0, 2.0).filter(lambda share: abs(share - 1.0) > 1e-9)


@settings(deadline=None)
@given(st.lists(loads, min_size=2, max_size=6), st.sampled_from(MODELS), st.sampled_from([RSA, P256, ML_DSA]))
def test_ready_time_never_decreases_with_load(tmp_path_factory, shares, model, suite):
    found = scenario(suite, traces=shared_library(tmp_path_factory))
    taken_s = found.service_s.mean if model == "default" else found.server.total.mean
    limit = 1.0 / taken_s
    totals = [
        one["ready_s"] and one["ready_s"]["mean"]
        for one in rows(found, model, sorted(share * limit for share in shares), 1)
    ]
    steady = [total for total in totals if total is not None]
    assert steady == sorted(steady)
    assert totals[len(steady) :] == [None] * (len(totals) - len(steady))
    assert len(steady) == sum(share * limit * taken_s < 1.0 for share in shares)


@settings(deadline=None)
@given(st.sampled_from(MODELS), st.sampled_from([RSA, P256, ML_DSA, PSK, WTLS]))
def test_a_faster_bearer_is_never_slower(tmp_path_factory, model, suite):
    """GPRS at midnight has more rate and less delay than at noon; 3G fast has less delay than 3G."""
    library = shared_library(tmp_path_factory)
    for slow, fast in (("gprs", "gprs-best"), ("3g", "3g-fast"), ("3g-slow", "3g"), ("4g", "wifi")):
        assert (
            one(suite, library, bearer=fast, model=model)["ready_s"]["mean"]
            <= one(suite, library, bearer=slow, model=model)["ready_s"]["mean"]
        )


_SHARED: list[TraceLibrary] = []


def shared_library(factory) -> TraceLibrary:
    if not _SHARED:
        path = factory.mktemp("shared") / "traces.json"
        write_library(path, handmade.LIBRARY)
        _SHARED.append(TraceLibrary(path))
    return _SHARED[0]


def test_suite_that_cannot_be_predicted_gives_an_error_row(library):
    good, bad = predict_rows([RSA, "tls1.2/nonsense"], costs=Costs(library))
    assert good["ready_s"]["mean"] > 0.0
    assert "tls1.2/nonsense" in bad["error"]
    with pytest.raises(InputError):
        predict_rows(["tls1.2/nonsense"], costs=Costs(library))


def test_rows_match_the_schema(library):
    from shakedown.schema import convert
    from shakedown.schema.predictions import Capacity, FailedPrediction, Prediction

    good, psk, bad = predict_rows(
        [ML_DSA, PSK, "tls1.2/nonsense"], device="stm32wb55:pka", costs=Costs(library), rate_per_s=5
    )
    for row in (good, psk):
        convert(json.loads(json.dumps(row)), Prediction)
    convert(bad, FailedPrediction)
    assert good["basis"] == "unknown"
    assert good["without_cost"]
    assert good["client_s"]["estimate"] is None
    # Costs that are too uncertain for an estimate are in the upper ends.
    assert good["client_s"]["lower"] < good["client_s"]["upper"] < good["ready_s"]["upper"]
    assert good["client_s"]["missing"] == good["ready_s"]["missing"] != []
    assert psk["basis"] == "assumed"
    for row in capacity_rows([RSA, PSK], within_s=1, rate_per_s=10.0, costs=Costs(library)):
        convert(json.loads(json.dumps(row)), Capacity)


def test_estimated_symmetric_work_states_its_number_of_calls():
    """Also if the rate is the device's own and only the cost of a call is estimated."""
    calls = {}
    for operation in open_library()[P256].operations:
        key = operation.side, *operation.triple
        calls[key] = calls.get(key, 0) + operation.count
    guessed = {
        (one["side"], one["operation"], one["algorithm"], one["parameters"]): one["count"]
        for one in predict_rows([P256])[0]["extrapolated"]
    }
    assert guessed["client", "cipher", "aes-128-gcm", ""] == calls["client", "cipher", "aes-128-gcm", ""] > 0
    assert all(guessed.values())


def test_without_a_steady_state_an_energy_has_no_estimate(library):
    quiet, busy = (
        one(P256, library, device="cortex-m4", bearer="nb-iot", rate_per_s=rate) for rate in (1.0, 1e6)
    )
    assert quiet["energy_j"]["missing"] == []
    assert busy["energy_j"]["missing"] == ["the wait in an unstable queue"]
    assert busy["energy_j"]["estimate"] is busy["energy_j"]["upper"] is None
    assert 0.0 < busy["energy_j"]["lower"] < quiet["energy_j"]["lower"]
    assert busy["wake_tail_j"] == quiet["wake_tail_j"]


def test_method_of_a_figure_is_stated_once():
    (row,) = predict_rows(["tls1.3/x25519mlkem768/p256/server"], device="esp32")
    methods = [one["method"] for one in row["extrapolated"]]
    assert any(method.count("parts: ") for method in methods)
    assert all(method.count("parts: ") <= 1 for method in methods)


def test_ratio_of_suites_cancels_shared_assumptions(library):
    first, psk = predict_rows([P256, PSK], device="cortex-m4", costs=Costs(library))
    assert first["ratio_to_first"] is None
    share = psk["ratio_to_first"]
    assert share["lower"] < share["estimate"] < share["upper"] < 0.2
    assert share["upper"] < psk["client_s"]["upper"] / first["client_s"]["lower"]


@pytest.mark.parametrize("server", ["server", "cortex-m4"])
def test_ratio_of_suites_contains_the_work_of_both_sides(library, server):
    """Also if both sides are the same device, whose figures have the same errors."""
    found = predict_rows([P256, RSA, PSK], **grouped(library, device="cortex-m4", server_device=server))
    worked_s = [row["client_s"]["estimate"] + row["server_s"]["estimate"] for row in found]
    for row, mine_s in zip(found[1:], worked_s[1:], strict=True):
        assert row["ratio_to_first"]["estimate"] == pytest.approx(mine_s / worked_s[0])


def test_energy_is_reported_if_the_profiles_state_it(library, tmp_path):
    device = tmp_path / "device.toml"
    device.write_text(
        """schema = 1
name = "powered"
title = "P"
chip = "C"
clock_hz = 1e8
library = "L"
build = "B"
date = "2024"
source = ["x"]
[energy]
active_w = 0.5
idle_w = 0.1
[[primitive]]
operation = "verify"
algorithm = "rsa"
parameters = "rsa2048"
time_ms = 10
""",
        encoding="utf-8",
    )
    bearer = tmp_path / "bearer.toml"
    bearer.write_text(
        """schema = 2
name = "radio"
title = "R"
date = "2024"
source = ["x"]
up_bps = 8_000_000
down_bps = 8_000_000
traversal_ms = 0
[energy]
send_j_per_byte = 1e-6
receive_j_per_byte = 2e-6
idle_w = 0.02
""",
        encoding="utf-8",
    )
    row = one(RSA, library, device=str(device), bearer=str(bearer))
    # Two flights each way with 52 bytes of headers, the first of them acknowledged in a packet of its own,
    # the others by the answer, or after the end; up also SYN and its acknowledgement.
    up_bytes = (120 + 52) + (318 + 52) + 60 + 52 + 52
    down_bytes = (999 + 52) + (51 + 52) + 60 + 52
    assert row["handshake_bytes"] == {"up": 120 + 318, "down": 999 + 51}
    assert row["wire_bytes"] == {"up": up_bytes, "down": down_bytes}
    computing_s = row["client_s"]["estimate"] + row["connection_s"]["client"]
    radio_j = up_bytes * 1e-6 + 2 * down_bytes * 1e-6
    # The processor waits when it does not compute; a radio's energy per byte is added to its idle power.
    waiting_j = 0.1 * (row["done_s"]["mean"] - computing_s) + 0.02 * row["done_s"]["mean"]
    energy = row["energy_j"]
    assert energy["estimate"] == pytest.approx(0.5 * computing_s + waiting_j + radio_j)
    assert energy["lower"] < energy["estimate"] < energy["upper"]
    assert row["wake_tail_j"]["estimate"] is None
    assert row["wake_tail_j"]["missing"] == ["the radio's inactivity tail over radio"]
    device.write_text(device.read_text(encoding="utf-8").replace("idle_w = 0.1\n", ""), encoding="utf-8")
    energy = one(RSA, library, device=str(device), bearer=str(bearer))["energy_j"]
    assert energy["missing"] == ["the processor while it waits"]
    assert energy["estimate"] is energy["upper"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "thesi"}, 'unknown model "thesi".*did you mean "thesis"'),
        ({"device": "nokia"}, "unknown device 'nokia'"),
        ({"server_device": "sevrer"}, 'did you mean "server"'),
        ({"bearer": "gsm-cds"}, 'did you mean "gsm-csd"'),
        ({"device": "kuo-p4"}, "has no primitives"),
        ({"server_device": "via-533"}, "has no primitives"),
        ({"scale_from": "phone"}, "figures are not needed"),
        ({"device": "kuo-p4", "scale_from": "via-533"}, "has no primitives to scale from"),
        ({"rate_per_s": -1.0}, "rate is -1"),
        ({"rate_per_s": math.inf}, "rate is inf"),
        ({"server_workers": 0}, "workers is 0"),
        ({"server_workers": 2, "model": "thesis"}, "workers is 2; accepted with model thesis: 1"),
    ],
)
def test_wrong_predict_options_are_refused(library, options, words):
    with pytest.raises(InputError, match=words):
        predict_rows([RSA], **grouped(library, **options))


def test_prediction_reads_only_the_needed_traces(library, monkeypatch):
    """A scenario reads one trace and two or three profiles, not the library."""
    read = []
    from shakedown.prediction import library as traces

    real = traces._json
    monkeypatch.setattr(
        traces, "_json", lambda text, path, line: read.append(len(text)) or real(text, path, line)
    )
    one(PSK, library)
    assert len(read) == 2  # the index and the trace


def test_many_rates_give_the_rows_of_each_rate():
    one = scenario("tls1.3/x25519/p256/server", "cortex-m4", "server", "gprs")
    rates = [0.0, 1.0, 100.0, 2000.0, 1e7]
    for model, workers in (("default", 1), ("default", 3), ("thesis", 1)):
        together = rows(one, model, rates, workers)
        assert together == [rows(one, model, [rate], workers)[0] for rate in rates]


def test_rates_and_places_share_common_computations(monkeypatch):
    """What depends on the place alone, or on the rate alone, is computed once for each."""
    from shakedown.models import queueing, waiting
    from shakedown.prediction import scenario as scenarios

    counts: dict[str, int] = {}

    def counted(module, name):
        called = getattr(module, name)

        def wrapped(*arguments, **options):
            counts[name] = counts.get(name, 0) + 1
            return called(*arguments, **options)

        monkeypatch.setattr(module, name, wrapped)

    for module, name in (
        (scenarios, "exchange"), (scenarios, "mgc_wait"), (queueing, "mgc_wait_s"), (waiting, "mg1_wait"),
    ):  # fmt: skip
        counted(module, name)
    scenarios._wait.cache_clear()
    scenarios._waits_s.cache_clear()
    devices, bearers, rates = (
        ("phone", "cortex-m4", "esp32"),
        ("lte", "wifi"),
        [7.0 + rate for rate in range(40)],
    )
    for device in devices:
        for bearer in bearers:
            one = scenario("tls1.2/psk", device, "server", bearer)
            assert len(rows(one, "default", rates, 1)) == len(rates)
    places = len(devices) * len(bearers)
    assert counts["exchange"] == places
    assert counts["mgc_wait"] == counts["mg1_wait"] == len(rates)
    # The mean, the low and the high end of the one server's range.
    assert counts["mgc_wait_s"] == 3


@given(st.floats(1e-6, 1e3), st.floats(1e-9, 1e12))
def test_varying_work_never_has_a_negative_time(mean_s, times):
    """Even if the deviation is far above the mean, percentiles are not negative times."""
    spread = work_spread(mean_s, times * mean_s)
    assert spread.values_s[0] >= -mean_s * (1 + 1e-9)
    if times < 1e4:
        assert spread.mean == pytest.approx(0.0, abs=1e-4 * mean_s * (1.0 + times))
    assert work_spread(mean_s).values_s.tolist() == [0.0]
