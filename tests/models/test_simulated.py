"""The queueing models against an independent simulator, Ciw, within its own confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import ciw
import numpy as np
import pytest

from models.test_queueing import percentile_s
from shakedown.models import queueing, waiting

RUNS = 12
CUSTOMERS = 6000
WARM_UP = 0.15
STUDENT_99_9 = 4.437  # two-sided 99.9 %, 11 degrees of freedom: sixteen comparisons rarely fail by chance


def simulated(rate: float, service: ciw.dists.Distribution, workers: int) -> list[np.ndarray]:
    """Waits of each run, without the customers that arrived in the warm-up."""
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[service],
        number_of_servers=[workers],
    )
    until = CUSTOMERS / rate
    runs = []
    for seed in range(RUNS):
        ciw.seed(seed)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_time(until)
        records = [r for r in simulation.get_all_records() if WARM_UP * until < r.arrival_date < 0.97 * until]
        runs.append(np.array([record.waiting_time for record in records]))
    return runs


def assert_within_interval(
    runs: list[np.ndarray], statistic: Callable[[np.ndarray], float], model: float
) -> None:
    values = np.array([statistic(run) for run in runs])
    half = STUDENT_99_9 * values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - model) <= half, f"{values.mean():.4f} ± {half:.4f}, model {model:.4f}"
    assert half < 0.25 * model, "the interval says nothing"


SERVICES = {
    "fixed": (ciw.dists.Deterministic(1.0), 0.0),
    "exponential": (ciw.dists.Exponential(1.0), 1.0),
    "shifted": (None, 0.5),
}


class Shifted(ciw.dists.Distribution):
    """Half a second and an exponential half second: a handshake with a rejection loop."""

    def sample(self, t: float | None = None, ind: object = None) -> float:
        return 0.5 + ciw.random.expovariate(2.0)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", ["fixed", "exponential", "shifted"])
def test_waits_match_ciw_simulations(kind, workers):
    service, sd_s = SERVICES[kind]
    rate = 0.7 * workers
    runs = simulated(rate, service or Shifted(), workers)
    if workers == 1:
        model = queueing.mg1_wait_s(rate, 1.0, 1.0 + sd_s**2)
    else:
        model = queueing.mgc_wait_s(rate, 1.0, sd_s, workers)
    assert_within_interval(runs, np.mean, float(model))
    service_time = waiting.spread_service(1.0, sd_s, 1000)
    for percentile in (75.0, 95.0):
        expected = percentile_s(waiting.mgc_wait(rate, service_time, workers), percentile)
        assert_within_interval(runs, lambda run, p=percentile: float(np.percentile(run, p)), expected)
    if kind == "exponential" and workers == 1:
        assert_within_interval(runs, np.mean, float(queueing.mm1_wait_s(rate, 1.0)))
