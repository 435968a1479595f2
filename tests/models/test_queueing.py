"""Exact results of queueing theory, and properties that every result must have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats

from shakedown.models import handshake, queueing, waiting
from shakedown.models.distribution import Distribution

services = st.floats(1e-4, 5.0)
loads = st.floats(0.01, 0.97)
workers = st.integers(1, 8)


def percentile_s(wait: waiting.Wait, percentile: float) -> float:
    """The wait that ``percentile`` per cent of customers do not exceed, in seconds."""
    target = percentile / 100.0
    if target <= wait.cdf[0]:
        return 0.0
    return float(np.interp(target, wait.cdf, wait.step_s * np.arange(len(wait.cdf))))


def test_mg1_matches_textbook_values():
    assert queueing.mg1_wait_s(0.8, 1.0, 1.0) == pytest.approx(2.0)  # fixed service
    assert queueing.mg1_wait_s(0.8, 1.0, 2.0) == pytest.approx(4.0)  # exponential service
    assert queueing.mm1_wait_s(0.8, 1.0) == pytest.approx(4.0)


def test_mdc_matches_published_tables():
    """W/X for M/D/2 and M/D/4 at load 0.8 against a simulation of 200 million customers' published tables."""
    assert queueing.mdc_wait_s(0.8, 1.0, 1) == pytest.approx(2.0)
    assert queueing.mdc_wait_s(1.6, 1.0, 2) == pytest.approx(0.9033, abs=1e-4)
    assert queueing.mdc_wait_s(3.2, 1.0, 4) == pytest.approx(0.3861, abs=1e-4)


def crommelins_wait(load: float, count: int) -> float:
    """W/X for M/D/c from the roots of z^c = exp(cρ (z - 1)) (C. D. Crommelin, 1932)."""
    unity = np.exp(2j * np.pi * np.arange(1, count) / count)
    roots = unity
    for _ in range(100):
        roots = unity * np.exp(load * (roots - 1.0))
    rest = ((count * load) ** 2 - count * (count - 1)) / (2.0 * count * (1.0 - load))
    return float(((1.0 / (1.0 - roots)).sum().real + rest) / (count * load))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("load", [0.5, 0.7])
def test_mdc_matches_crommelin_roots(load, count):
    """The roots' sum is about c, so its absolute error is about 1e-15 c."""
    exact = crommelins_wait(load, count)
    assert queueing.mdc_wait_s(count * load, 1.0, count) == pytest.approx(exact, rel=1e-12, abs=1e-15 * count)


def spitzers_wait(load: float, count: int) -> float:
    """W/X for M/D/c as a random walk's sum of gamma probabilities (F. Spitzer, 1956)."""
    step = np.arange(1, int(2 + 80 / (count * (1 - load) ** 2)))
    late = special.gammainc(step * count, step * count * load)
    return float((late - special.gammainc(step * count + 1, step * count * load) / load).sum())


@pytest.mark.parametrize("count", [100, 1000, 10_000, 100_000])
@pytest.mark.parametrize("spare", [0.03, 0.3, 1.0, 3.0, 9.0])
def test_mdc_and_erlang_are_exact_for_many_workers(count, spare):
    """`spare` is (1 - ρ) √c: with 9, hardly a client in 10^20 waits."""
    load = 1.0 - spare / math.sqrt(count)
    if count * (1 - load) ** 2 > 0.05:
        # Near saturation scipy's probabilities differ by little, and the differences have few digits.
        exact = spitzers_wait(load, count)
        assert queueing.mdc_wait_s(count * load, 1.0, count) == pytest.approx(exact, rel=1e-6)
    blocked = stats.poisson.pmf(count, count * load) / stats.poisson.cdf(count, count * load)
    assert queueing.erlang_b(count * load, count) == pytest.approx(blocked, rel=1e-8)


@pytest.mark.parametrize("count", [1, 30, 1000, 100_000])
@pytest.mark.parametrize("idle", [1e-4, 1e-6, 1e-8])
def test_mdc_approaches_the_brownian_limit_at_saturation(count, idle):
    """The mean of a Gaussian walk's maximum: c W/X = 1 / (2 (1-ρ)) + ζ(1/2) √(c/2π) + c (1-ρ) / 4 + …

    (J. Chang, Y. Peres, "Ladder heights, Gaussian random walks and the Riemann zeta function", 1997.)
    """
    zeta = -1.4603545088095868
    walk = 0.5 / idle + zeta * math.sqrt(count / (2.0 * math.pi)) + count * idle / 4.0
    wait = float(queueing.mdc_wait_s(count * (1.0 - idle), 1.0, count))
    assert count * wait == pytest.approx(walk, abs=1.0 + 2e-15 / idle**2)


def test_waits_and_blocking_that_underflow_are_zero():
    assert queueing.mdc_wait_s(1.0, 1.0, 100_000) == 0.0
    assert queueing.erlang_b([0.0, 1.0], 100_000).tolist() == [0.0, 0.0]
    assert queueing.erlang_b(0.0, 1) == 0.0


def test_erlang_formulas_match_known_values():
    assert queueing.erlang_b(10.0, 10) == pytest.approx(0.21458, abs=1e-5)
    assert queueing.delay_probability(2.0, 1.0, 3) == pytest.approx(4.0 / 9.0)
    assert queueing.mmc_wait_s(2.0, 1.0, 3) == pytest.approx(4.0 / 9.0)


@given(services, loads, st.floats(0.0, 1.4), workers)
@example(1.0, 0.010031655683036576, 1.25, 8)  # its waits are as small as rounding
def test_wait_never_decreases_with_load(service, load, variation, count):
    rates = np.linspace(0.01, load, 8) * count / service
    waits = queueing.mgc_wait_s(rates, service, variation * service, count)
    assert np.all(np.diff(waits) >= -1e-12 * service)
    assert np.all(waits >= 0.0)


@given(services, st.floats(1.0, 5.0), st.floats(0.0, 2.0), workers)
def test_at_full_load_there_is_no_steady_state(service, load, variation, count):
    rate = load * count / service * (1 + 1e-9)
    assert math.isnan(queueing.mgc_wait_s(rate, service, variation * service, count))
    assert math.isnan(queueing.mm1_wait_s(rate, service * count))
    assert waiting.mgc_wait(rate, waiting.spread_service(service, variation * service), count) is None


@given(services, loads)
def test_mgc_is_exact_for_exponential_and_fixed_service(service, load):
    rate = load / service
    assert queueing.mgc_wait_s(rate, service, service, 1) == pytest.approx(queueing.mm1_wait_s(rate, service))
    assert queueing.mgc_wait_s(rate, service, 0.0, 1) == pytest.approx(queueing.mm1_wait_s(rate, service) / 2)
    for count in (2, 5):
        exponential = queueing.mmc_wait_s(rate * count, service, count)
        assert queueing.mgc_wait_s(rate * count, service, service, count) == pytest.approx(exponential)


@given(st.lists(services, min_size=1, max_size=6), st.floats(0.05, 0.95))
def test_message_wait_is_never_less_than_handshake_wait(times, load):
    """One message per handshake: the same wait. Several: at least as much in total, and the same if equal."""
    rate = load / sum(times)
    by_message = len(times) * queueing.message_wait_s(rate, times)
    whole = queueing.mg1_wait_s(rate, sum(times), sum(times) ** 2)
    assert by_message >= whole * (1 - 1e-9)
    equal = [sum(times) / len(times)] * len(times)
    assert len(times) * queueing.message_wait_s(rate, equal) == pytest.approx(float(whole))


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.95])
def test_wait_distribution_matches_mm1(load):
    wait = waiting.mg1_wait(load, waiting.spread_service(1.0, 1.0, 2000))
    assert wait is not None
    for at in (0.0, 1.0, 5.0):
        exact = 1.0 - load * math.exp(-(1.0 - load) * at)
        assert float(wait.probability_within(at)) == pytest.approx(exact, abs=2e-4)


def erlangs_fixed_service_cdf(at: float, load: float) -> float:
    """P(W <= t) of M/D/1 with unit service (A. K. Erlang, 1909)."""
    terms = (
        (-load * (at - k)) ** k / math.factorial(k) * math.exp(load * (at - k)) for k in range(int(at) + 1)
    )
    return (1.0 - load) * sum(terms)


@pytest.mark.parametrize("load", [0.3, 0.8])
@pytest.mark.parametrize("at", [0.5, 2.0, 5.0, 8.5])
def test_wait_distribution_matches_erlang_for_fixed_service(load, at):
    wait = waiting.mg1_wait(load, waiting.spread_service(1.0, 0.0))
    assert wait is not None
    assert float(wait.probability_within(at)) == pytest.approx(erlangs_fixed_service_cdf(at, load), abs=1e-3)


@given(services, loads, st.floats(0.0, 1.8), workers)
def test_mean_of_the_wait_distribution_is_the_mean_wait(service, load, variation, count):
    kind = waiting.spread_service(service, variation * service, 64)
    rate = load * count / service
    wait = waiting.mgc_wait(rate, kind, count)
    assert wait is not None
    expected = float(queueing.mgc_wait_s(rate, kind.mean_s, kind.sd_s, count))
    mean_s = float(np.sum(1.0 - (wait.cdf[1:] + wait.cdf[:-1]) / 2.0) * wait.step_s)
    assert mean_s == pytest.approx(expected, rel=1e-3, abs=1e-9)
    assert np.all(np.diff(wait.cdf) >= 0.0)


@given(services, st.floats(0.0, 2.5))
def test_spread_service_has_the_given_moments(mean, variation):
    kind = waiting.spread_service(mean, variation * mean)
    assert kind.mean_s == pytest.approx(mean, rel=1e-3)
    assert kind.sd_s == pytest.approx(variation * mean, rel=0.02, abs=1e-8 * mean)
    assert np.all(kind.points_s >= 0.0)


def test_percentiles_grow_with_the_share():
    kind = waiting.spread_service(1.0, 0.5)
    found = [percentile_s(waiting.mgc_wait(0.8, kind), share) for share in (10, 50, 90, 99)]
    assert found[0] == 0.0
    assert found == sorted(found)
    assert found[-1] > found[1] > 0.0


@given(services, st.floats(0.0, 1.5), workers, st.floats(0.05, 20.0), st.sampled_from([None, 50.0, 99.0]))
def test_highest_rate_meets_the_limit_and_a_higher_one_does_not(mean, variation, count, slack, percentile):
    kind = waiting.spread_service(mean, variation * mean, 64)
    within, unloaded = mean + slack * mean, mean
    rate = handshake.highest_rate_per_s(within, Distribution.exactly(unloaded), kind, count, percentile)
    assert 0.0 < rate <= count / kind.mean_s

    def late(at: float) -> float:
        if percentile is None:
            return float(queueing.mgc_wait_s(at, kind.mean_s, kind.sd_s, count)) - slack * mean
        wait = waiting.mgc_wait(at, kind, count)
        return math.nan if wait is None else percentile_s(wait, percentile) - slack * mean

    assert late(0.99 * rate) <= 1e-6 * mean
    beyond = late(1.02 * rate)
    assert math.isnan(beyond) or beyond > -1e-6 * mean


def test_unreachable_limit_gives_rate_zero():
    late = Distribution.exactly(1.0)
    assert handshake.highest_rate_per_s(0.5, late, waiting.spread_service(0.1, 0.0)) == 0.0
    spread = Distribution.normal(1.0, 0.1)
    assert handshake.highest_rate_per_s(0.5, spread, waiting.spread_service(0.1, 0.0), percentile=99.0) == 0.0
