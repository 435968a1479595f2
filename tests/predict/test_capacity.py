"""Capacities and the workers that a rate needs: limits, percentiles, failures, refused input."""

from __future__ import annotations

import math

import pytest

from predict.asking import PSK, RSA, grouped, one
from shakedown.errors import InputError
from shakedown.prediction.capacity import capacity_rows, workers_needed
from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.prediction.scenario import scenario

CAPACITY_KEYS = (
    "suite server_device server_software server_software_note device bearer within_s percentile workers "
    "rate_per_s utilisation failed handshake_bytes unused_key_share_s basis without_cost extrapolated "
    "limit_per_s unloaded_s ready_s done_s"
)

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


@pytest.mark.parametrize(
    ("options", "words"),
    [({"within_s": 0.0}, "within is 0"), ({"within_s": 1.0, "percentile": 100.0}, "percentile is 100")],
)
def test_wrong_capacity_options_are_refused(library, options, words):
    with pytest.raises(InputError, match=words):
        capacity_rows([RSA], costs=Costs(library), **options)
