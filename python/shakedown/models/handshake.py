"""The duration of a handshake and the rate at which it may be asked for."""

from __future__ import annotations

import math

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats
from shakedown.models.queueing import mgc_wait_s
from shakedown.models.waiting import Service, mgc_wait

_HALVINGS = 60
_NODES = 24


def duration_s(processing_s: Numbers, transmission_s: Numbers, wait_s: Numbers) -> Floats:
    """Duration of one handshake, H = P + D + W (Bayoglu 2004, 3.1; Kuo et al. without W)."""
    return floats(processing_s) + floats(transmission_s) + floats(wait_s)


def steady_rate_limit_per_s(mean_s: float, workers: int = 1) -> float:
    """Arrival rate at which the queue runs away, c / X1."""
    return math.inf if mean_s <= 0.0 else workers / mean_s


def highest_rate_per_s(
    within_s: float,
    unloaded_s: float,
    service: Service,
    workers: int = 1,
    percentile: float | None = None,
    spread_s: float = 0.0,
) -> float:
    """Highest arrival rate at which a handshake stays within a promised time.

    Args:
        within_s: the promise.
        unloaded_s: mean duration without any wait.
        service: the server's time for one handshake.
        workers: number of workers.
        percentile: None for the mean duration, else the share in per cent of handshakes that must keep the
            promise.
        spread_s: standard deviation of the unloaded duration (normal); it counts only under a percentile.

    Returns:
        Handshakes per second; 0 if the promise fails without load, infinity if the server takes no time.
    """
    slack_s = within_s - unloaded_s
    limit = steady_rate_limit_per_s(service.mean_s, workers)
    if not _kept(0.0, slack_s, service, workers, percentile, spread_s):
        return 0.0
    if math.isinf(limit):
        return math.inf
    if percentile is None and workers == 1:
        return 2.0 * slack_s / (service.second_moment_s2 + 2.0 * slack_s * service.mean_s)
    low, high = 0.0, limit
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _kept(middle, slack_s, service, workers, percentile, spread_s):
            low = middle
        else:
            high = middle
        if high - low < 1e-9 * limit:
            break
    return low


def _kept(
    rate_per_s: float,
    slack_s: float,
    service: Service,
    workers: int,
    percentile: float | None,
    spread_s: float,
) -> bool:
    if percentile is None:
        wait_s = float(mgc_wait_s(rate_per_s, service.mean_s, service.sd_s, workers)) if rate_per_s else 0.0
        return not math.isnan(wait_s) and wait_s <= slack_s
    target = percentile / 100.0
    wait = mgc_wait(rate_per_s, service, workers)
    if wait is None:
        return False
    if spread_s <= 0.0:
        return slack_s >= 0.0 and float(wait.probability_within(slack_s)) >= target
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    shares = weights / weights.sum()
    if rate_per_s <= 0.0:
        return 0.5 * (1.0 + math.erf(slack_s / spread_s / math.sqrt(2.0))) >= target
    return float(wait.probability_within(slack_s - spread_s * nodes) @ shares) >= target
