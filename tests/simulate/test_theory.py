"""Simulations compared with formulas: Pollaczek–Khinchine waits, and those of the thesis's mixtures."""

from __future__ import annotations

import pytest

import shakedown
from shakedown.native import virtual_time
from shakedown.prediction.library import open_library
from shakedown.prediction.scenario import scenario
from shakedown.prediction.spec import work_spec
from shakedown.simulation.simulate import jobs, moments

WIDER = 1.8
"""The 95 % interval of ten replications, widened to 99.8 %: twenty comparisons seldom fail by chance."""

SUITES = ("tls1.3/x25519/p256/server", "tls1.2/rsa/rsa2048/server", "tls1.2/ecdhe_ecdsa/p256/mutual")


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_handshake_waits_once_per_flight(suite, load):
    estimate = scenario(suite, traces=open_library())
    rate = load / estimate.service_s.mean
    (row,) = shakedown.simulate(suite, shakedown.Fleet(arrivals=f"poisson:{rate:.6g}/s", clients=100_000))
    wait, formulas = row.queue_wait_s, row.modelled
    assert row.utilisation.estimate == pytest.approx(load, rel=0.03)
    assert abs(wait.mean - formulas.flights_queue_wait_s) <= WIDER * wait.margin
    assert wait.margin < 0.12 * wait.mean, "the interval says nothing"
    # The formula with handshakes as customers lets each wait once: it holds only where jobs are alike.
    if formulas.flights_queue_wait_s > 1.3 * formulas.queue_wait_s:
        assert wait.mean - formulas.queue_wait_s > WIDER * wait.margin


def test_unloaded_handshake_time_matches_the_model():
    for bearer in ("lte", "nb-iot", "gprs"):
        (row,) = shakedown.simulate(
            SUITES[0], shakedown.Fleet(arrivals="poisson:0.01/s", clients=20_000), bearer=bearer
        )
        simulated, modelled = row.ready_s.mean, row.modelled.ready_s
        assert simulated == pytest.approx(modelled, rel=0.03), bearer


@pytest.mark.parametrize("limit", [{}, {"max_handshakes": 9}, {"accept_queue": 9}, {"admission": "rate=9/s"}])
def test_no_formula_is_given_for_servers_that_may_refuse_clients(limit):
    fleet = shakedown.Fleet(arrivals="poisson:1/s", clients=100, **limit)
    (row,) = shakedown.simulate(SUITES[0], fleet, bearer="ethernet")
    assert (row.modelled is None) is bool(limit)


def test_single_server_flight_matches_mg1():
    """M/G/1 with the engine alone: an ideal transport, no network."""
    work = {"kind": "exponential", "minimum_s": 0.5, "mean_s": 1.0}
    nothing = {"kind": "constant", "s": 0.0}
    message = {
        "from": "client",
        "name": "ClientHello",
        "bytes": 1,
        "flight": 1,
        "generate": nothing,
        "process": work,
    }
    for load in (0.3, 0.9):
        spec = {
            "classes": [
                {
                    "handshake": {"name": "customer", "transport": "ideal", "messages": [message]},
                    "bearer": {"up_bits_per_s": None, "down_bits_per_s": None, "traversal_s": 0.0},
                }
            ],
            "clients": 60_000,
            "warmup_clients": 10_000,
            "arrivals": {"kind": "poisson", "per_s": load},
            "seed": 3,
            "replications": 10,
        }
        found = virtual_time.simulate(spec)["queue_wait_s"]
        exact = load * (1.0 + 0.25) / (2.0 * (1.0 - load))
        assert abs(found["mean"] - exact) <= WIDER * found["mean_margin"]


@pytest.mark.parametrize(("mean", "sd"), [(1.0, 0.0), (0.02, 0.005), (0.02, 0.02), (0.02, 0.05)])
def test_work_spec_keeps_mean_and_variance(mean, sd):
    found, variance = moments(work_spec(mean, sd))
    assert found == pytest.approx(mean)
    assert variance == pytest.approx(sd**2, abs=1e-15)


def test_server_jobs_add_up_to_its_work():
    for suite in SUITES:
        estimate = scenario(suite, traces=open_library())
        found = jobs(estimate)
        assert sum(mean for mean, _ in found) == pytest.approx(estimate.service_s.mean)
        assert len(found) == 2


@pytest.mark.parametrize(
    ("figure", "name"),
    [("4.14", "283k"), ("4.16", "rsa2048"), ("4.16", "½ rsa1024 + ½ rsa2048"), ("4.23", "rsa3072")],
)
def test_thesis_model_lacks_the_second_wait_and_batching(figure, name):
    """The thesis's own server times give the factor: two flights wait, and a flight's work is one batch."""
    from tools import thesis_queue

    from shakedown.papers.load import load
    from shakedown.papers.thesis.inputs import Thesis

    thesis = Thesis(load("wtls-nokia7650"))
    (curve,) = (one for one in thesis_queue.curves(thesis) if (one.figure, one.name) == (figure, name))
    point = thesis_queue.simulate(thesis, curve, 0.5)
    queued = [thesis.queued_s(case, curve.authentication) for case in curve.cases]
    mixed = sum(share * times for share, times in zip(curve.shares, queued, strict=True))
    whole = sum(share * times.sum() ** 2 for share, times in zip(curve.shares, queued, strict=True))
    expected = 2.0 * whole / (mixed**2).sum()
    assert point.different_s / point.model_s == pytest.approx(expected, rel=0.08)
    # If server work is short beside the clients' part, clients that waited together return together.
    if max(times.sum() for times in queued) < 0.1:
        assert point.alike_s > 1.2 * point.different_s
