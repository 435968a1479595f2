"""Predictions and capacities: documented rows, published models, refused input."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predict import handmade
from shakedown.errors import InputError
from shakedown.prediction.capacity import capacity_rows, workers_needed
from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.prediction.library import TraceLibrary, open_library, write_library
from shakedown.prediction.literature import LITERATURE
from shakedown.prediction.literature.thesis import queued_message_s
from shakedown.prediction.predict import predict_rows, rows
from shakedown.prediction.scenario import MODELS, scenario, work_spread
from shakedown.profiles import load_bearer
from shakedown.schema.options import PredictionOptions

P256 = "tls1.3/x25519/p256/server"
RSA = "tls1.2/rsa/rsa2048/server"
PSK = "tls1.2/psk"
ML_DSA = "tls1.3/x25519mlkem768/mldsa65/server"
WTLS = "wtls/rsa/rsa1024@rsa3072/requested"
KEYS = (
    "suite device server_device bearer rate_per_s kind model client_s server_s transmission_s queue_s "
    "utilisation offered energy_j wake_tail_j resumption_saves_j extrapolated workers basis without_cost "
    "ready_s done_s p99_interval_s connection_s energy_parts_j energy_terms handshakes_per_charge "
    "ratio_to_first failed carrier eap server_software server_software_note unused_key_share_s "
    "handshake_bytes wire_bytes"
)
CAPACITY_KEYS = (
    "suite server_device server_software server_software_note device bearer within_s percentile workers "
    "rate_per_s utilisation failed handshake_bytes unused_key_share_s basis without_cost extrapolated "
    "limit_per_s unloaded_s ready_s done_s"
)


def service_s(row):
    """A worker's time per handshake: the server's work, and the connection's."""
    return row["server_s"]["estimate"] + (row["connection_s"]["server"] if row["model"] == "default" else 0.0)


def grouped(library, **given):
    """Arguments of `predict_rows` and `capacity_rows`: the server's, costs and options in groups."""
    named = {"server_device": "device", "server_workers": "workers", "server_software": "software"}
    server = {name: given.pop(flat) for flat, name in named.items() if flat in given}
    options = {name: given.pop(name) for name in PredictionOptions.__struct_fields__ if name in given}
    given |= {"options": PredictionOptions(**options)} if options else {}
    costs = Costs(library, given.pop("scale_from", None))
    return {**given, "server": ServerModel(**server), "costs": costs}


def one(suite, library, **options):
    (row,) = predict_rows([suite], **grouped(library, **options))
    return row


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


@pytest.mark.parametrize("percentile", [None, 99.0])
@pytest.mark.parametrize("workers", [1, 4])
def test_capacity_is_the_highest_rate_within_the_limit(library, percentile, workers):
    (row,) = capacity_rows(
        [RSA],
        within_s=6.0,
        bearer="gprs-best",
        percentile=percentile,
        server=ServerModel(workers=workers),
        costs=Costs(library),
    )
    assert list(row) == CAPACITY_KEYS.split()
    assert 0.0 < row["utilisation"] < 1.0
    assert row["unloaded_s"]["lower"] < row["unloaded_s"]["estimate"] < row["within_s"]
    rate = row["rate_per_s"]["estimate"]
    if percentile is None:
        at = one(RSA, library, bearer="gprs-best", rate_per_s=rate, server_workers=workers)
        assert at["ready_s"]["mean"] == pytest.approx(6.0, rel=1e-3)


def test_failed_handshakes_count_as_not_ready_in_the_percentile_of_capacity(library):
    found = scenario(PSK, "phone", "server", "nb-iot:loss=70%", traces=library)
    failed, completed = found.exchange.failed, found.unloaded()[0]
    assert 0.1 < failed < 0.3
    within_s = completed.quantile(0.8)
    ready = (1.0 - failed) * completed.probability_within(within_s)
    options = {"within_s": within_s, "bearer": "nb-iot:loss=70%", "rate_per_s": 10.0, "costs": Costs(library)}

    def at(percentile):
        return capacity_rows([PSK], percentile=percentile, **options)[0]

    below, above, beyond = (at(100.0 * share) for share in (ready - 0.01, ready + 0.01, 1.0 - failed + 0.01))
    assert below["failed"] == failed
    assert below["rate_per_s"]["estimate"] > 0.0
    assert below["unloaded_s"]["estimate"] <= within_s < above["unloaded_s"]["estimate"]
    assert below["workers_needed"]["estimate"] == 1
    assert beyond["unloaded_s"] is None
    for row in (above, beyond):
        assert [row["rate_per_s"][end] for end in ("estimate", "lower", "upper")] == [0.0, 0.0, 0.0]
        assert row["workers_needed"] is None


def test_no_rate_keeps_a_mean_if_more_than_one_percent_of_handshakes_fail(library):
    options = {"within_s": 1e5, "rate_per_s": 10.0, "costs": Costs(library)}
    (good,) = capacity_rows([PSK], bearer="nb-iot:loss=20%", **options)
    (bad,) = capacity_rows([PSK], bearer="nb-iot:loss=70%", **options)
    assert good["failed"] < 0.01 < bad["failed"]
    assert good["rate_per_s"]["estimate"] > 0.0
    assert bad["rate_per_s"]["estimate"] == 0.0
    assert bad["workers_needed"] is None
    assert bad["unloaded_s"]["estimate"] < 1e5


def test_percentiles_that_too_few_replayed_handshakes_exceed_are_refused(library):
    found = scenario(PSK, "phone", "server", "lte:loss=1%", traces=library)
    replayed = found.exchange
    assert 99.0 < replayed.highest_percentile < 99.99
    options = {"within_s": 60.0, "bearer": "lte:loss=1%", "costs": Costs(library)}
    (row,) = capacity_rows([PSK], percentile=replayed.highest_percentile - 1e-3, **options)
    assert row["rate_per_s"]["estimate"] > 0.0
    with pytest.raises(
        InputError, match=r"percentile is 99\.9999999, .*'lte:loss=1%'.*; accepted there: up to 99"
    ):
        capacity_rows([PSK], percentile=99.9999999, **options)
    with pytest.raises(InputError, match=r"percentile is 99\.9999999, "):
        workers_needed(found, 60.0, 99.9999999, [1.0])


@pytest.mark.parametrize("within_s", [0.0, -1.0, math.nan, math.inf, 1.1e7, 1e12])
def test_time_limits_that_are_not_above_0_or_beyond_ten_million_seconds_are_refused(library, within_s):
    with pytest.raises(InputError, match="; accepted: a time above 0 s, 10,000,000 s at most"):
        capacity_rows([PSK], within_s=within_s, costs=Costs(library))


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("percentile", [None, 50.0, 99.0])
def test_the_longest_time_limit_has_percentiles_in_order(library, percentile, workers):
    server = ServerModel(workers=workers)
    (row,) = capacity_rows([RSA], within_s=1e7, percentile=percentile, server=server, costs=Costs(library))
    ready = row["ready_s"]
    assert 0.0 < ready["p50"] < ready["mean"] < ready["p95"] < ready["p99"]
    assert ready["mean"] <= 1e7 * (1.0 + 1e-6)
    assert row["utilisation"] < 1.0


def test_capacity_grows_with_workers_and_time_and_falls_with_percentile(library):
    def rate(**options):
        given = grouped(library, server_device="wap-gateway-p4", bearer="ethernet", **options)
        (row,) = capacity_rows([RSA], **given)
        return row["rate_per_s"]["estimate"]

    assert rate(within_s=1.0) < rate(within_s=2.0) < rate(within_s=2.0, server_workers=2)
    assert rate(within_s=1.0, percentile=99) < rate(within_s=1.0)


def test_unreachable_limit_gives_rate_zero(library):
    (row,) = capacity_rows([RSA], within_s=0.1, bearer="geo", costs=Costs(library))
    assert row["rate_per_s"]["estimate"] == 0
    assert row["unloaded_s"]["estimate"] > 0.1
    assert row["utilisation"] == 0


def test_the_interval_of_a_capacity_contains_the_uncertainty_of_the_connection(library):
    """On this board most of a PSK handshake's work is the assumed work of its TCP connection."""
    options = {"device": "cortex-m4", "bearer": "ethernet", "costs": Costs(library)}

    def at(within_s):
        return capacity_rows([PSK], within_s=within_s, rate_per_s=1000.0, **options)[0]

    predicted = one(PSK, library, device="cortex-m4", bearer="ethernet")["ready_s"]
    ends = predicted["lower"], predicted["upper"]
    unloaded = at(1.0)["unloaded_s"]
    assert (unloaded["lower"], unloaded["upper"]) == pytest.approx(ends, rel=0.1)
    slow, fast = (at(within_s)["rate_per_s"] for within_s in (0.9 * ends[1], 1.2 * ends[0]))
    assert slow["lower"] == 0.0 < slow["estimate"] < slow["upper"]
    assert at(0.9 * ends[1])["workers_needed"]["upper"] is None
    assert fast["lower"] == fast["estimate"] == 0.0 < fast["upper"]
    needed = at(1.2 * ends[0])["workers_needed"]
    assert needed["estimate"] is needed["upper"] is None
    assert needed["lower"] == 1
    assert at(0.9 * ends[0])["workers_needed"] is None


OWN_DEVICE = """schema = 1
name = "own"
title = "Own"
chip = "C"
clock_hz = 1e8
library = "L"
build = "-O2"
date = "2024"
source = ["test"]
[overhead]
per_message_us = 100
[connection]
client_us = 500
server_us = 500
[[primitive]]
operation = "verify"
algorithm = "rsa"
parameters = "rsa2048"
time_ms = 3
[[primitive]]
operation = "encrypt"
algorithm = "rsa"
parameters = "rsa2048"
time_ms = 3
[[primitive]]
operation = "decrypt"
algorithm = "rsa"
parameters = "rsa2048"
time_ms = 90
"""


@pytest.mark.parametrize("server", ["own", "cortex-m4"])
def test_predict_and_capacity_have_the_same_range_without_load(library, tmp_path, server):
    """On one device the errors of both sides' work are the same, on two they are independent."""
    path = tmp_path / "own.toml"
    path.write_text(OWN_DEVICE)
    place = {"device": str(path), "server_device": str(path) if server == "own" else server}
    place |= {"bearer": "ethernet"}
    ready = one(RSA, library, **place)["ready_s"]
    (row,) = capacity_rows([RSA], within_s=1.0, **grouped(library, **place))
    ends = row["unloaded_s"]
    assert (ready["lower"], ready["upper"]) == pytest.approx((ends["lower"], ends["upper"]), rel=0.005)
    found = scenario(RSA, *place.values(), traces=library)
    away_s: dict[str, float] = {}
    for number, side in enumerate(found.both):
        for cause, part in side.parts_with_connection.items():
            name = cause if server == "own" else f"{number} {cause}"
            away_s[name] = away_s.get(name, 0.0) + part.high - part.mean
    assert ends["upper"] - ends["estimate"] == pytest.approx(math.hypot(*away_s.values()))


@pytest.mark.parametrize("percentile", [None, 99.0])
@pytest.mark.parametrize("server", ["server", "cortex-m4"])
def test_workers_for_many_rates_match_separate_searches(library, percentile, server):
    """One search over many rates gives the same results as one search per rate."""
    found = scenario(RSA, "phone", server, "lte", traces=library)
    rates = [0.5, 900.0, 1.0, 20.0, 21.0, 300.0, 300.5, 301.0, 20000.0, 3.0, 1e9, 5.0, 20.0]
    together = workers_needed(found, 4.0, percentile, rates)
    assert together == [one for rate in rates for one in workers_needed(found, 4.0, percentile, [rate])]
    assert together[rates.index(1e9)] == (None, None, None)
    means = [mean for mean, _, _ in together if mean is not None]
    assert len(set(means)) > 1
    for _, low, high in together:
        assert low is None or high is None or low <= high


def test_server_without_public_keys_has_a_finite_capacity(library):
    """The stack's own work and the connection limit it: nothing is free."""
    (row,) = capacity_rows([PSK], within_s=2, costs=Costs(library))
    rate, limit = row["rate_per_s"], row["limit_per_s"]
    assert 1_000 < rate["lower"] < rate["estimate"] < rate["upper"] < 100_000
    assert all(rate[end] < limit[end] for end in ("lower", "estimate", "upper"))


@pytest.mark.parametrize("percentile", [None, 99.0])
def test_workers_needed_are_the_fewest_that_meet_the_limit(library, percentile):
    options = {"within_s": 0.2, "bearer": "ethernet", "percentile": percentile, "costs": Costs(library)}
    (row,) = capacity_rows([RSA], rate_per_s=9000.0, **options)
    needed = row["workers_needed"]["estimate"]
    assert needed >= 2
    assert row["workers_needed"]["lower"] <= needed <= row["workers_needed"]["upper"]
    enough, few = (
        capacity_rows([RSA], server=ServerModel(workers=count), **options)[0]["rate_per_s"]["estimate"]
        for count in (needed, needed - 1)
    )
    assert few < 9000.0 <= enough * 1.001


def test_no_number_of_workers_is_given_if_the_network_is_too_slow(library):
    (row,) = capacity_rows([RSA], within_s=0.1, bearer="geo", rate_per_s=10.0, costs=Costs(library))
    assert row["workers_needed"] is None


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


@pytest.mark.parametrize(
    ("options", "words"),
    [({"within_s": 0.0}, "within is 0"), ({"within_s": 1.0, "percentile": 100.0}, "percentile is 100")],
)
def test_wrong_capacity_options_are_refused(library, options, words):
    with pytest.raises(InputError, match=words):
        capacity_rows([RSA], costs=Costs(library), **options)


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
