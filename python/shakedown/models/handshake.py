"""The duration of a handshake, the highest rate within a time limit, and the workers that a rate needs."""

from __future__ import annotations

import math

from shakedown.models.arrays import Floats, Numbers, floats
from shakedown.models.distribution import Distribution
from shakedown.models.queueing import mgc_wait_s
from shakedown.models.waiting import Service, mgc_wait

_HALVINGS = 60


def duration_s(processing_s: Numbers, transmission_s: Numbers, wait_s: Numbers) -> Floats:
    """Duration of one handshake, H = P + D + W (Bayoglu 2004, 3.1; Kuo et al. without W)."""
    return floats(processing_s) + floats(transmission_s) + floats(wait_s)


def steady_rate_limit_per_s(mean_s: float, workers: int = 1) -> float:
    """Arrival rate at which the queue saturates, c / X1."""
    return math.inf if mean_s <= 0.0 else workers / mean_s


def highest_rate_per_s(
    within_s: float,
    unloaded: Distribution,
    service: Service,
    workers: int = 1,
    percentile: float | None = None,
) -> float:
    """Highest arrival rate at which a handshake stays within a time limit.

    Args:
        within_s: the time limit.
        unloaded: duration without any wait.
        service: the server's time for one handshake.
        workers: number of workers.
        percentile: None to limit the mean duration, else the percentage of handshakes that must stay within
            the limit.

    Returns:
        Handshakes per second; 0 if the limit is exceeded without load, infinity if the server takes no time.
    """
    limit = steady_rate_limit_per_s(service.mean_s, workers)
    if not is_within_limit(0.0, within_s, unloaded, service, workers, percentile):
        return 0.0
    if math.isinf(limit):
        return math.inf
    if percentile is None and workers == 1:
        slack_s = within_s - unloaded.mean
        return 2.0 * slack_s / (service.second_moment_s2 + 2.0 * slack_s * service.mean_s)
    low, high = 0.0, limit
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if is_within_limit(middle, within_s, unloaded, service, workers, percentile):
            low = middle
        else:
            high = middle
        if high - low < (1e-9 if percentile is None else 1e-4) * limit:
            break
    return low


def min_workers(
    within_s: float,
    unloaded: Distribution,
    service: Service,
    rate_per_s: float,
    percentile: float | None = None,
    max_workers: int = 100_000,
    insufficient: int = 0,
) -> int | None:
    """The smallest number of workers that keeps durations within a limit; None if above ``max_workers``.

    ``insufficient``: a number that is known to be insufficient, as it is at a lower rate.
    """
    if insufficient == 0 and not is_within_limit(0.0, within_s, unloaded, service, 1, percentile):
        return None
    # Utilisation would be 1 or more with this number.
    low = max(insufficient, math.floor(rate_per_s * service.mean_s))
    if low >= max_workers:
        return None
    step = 1
    while not is_within_limit(rate_per_s, within_s, unloaded, service, low + step, percentile):
        step *= 2
        if low + step > max_workers:
            return None
    few, enough = low + step // 2, low + step
    while enough - few > 1:
        middle = (few + enough) // 2
        if is_within_limit(rate_per_s, within_s, unloaded, service, middle, percentile):
            enough = middle
        else:
            few = middle
    return enough


def is_within_limit(
    rate_per_s: float,
    within_s: float,
    unloaded: Distribution,
    service: Service,
    workers: int,
    percentile: float | None,
) -> bool:
    """Whether the mean duration, or that of ``percentile`` % of handshakes, is within a limit at a rate."""
    if percentile is None:
        slack_s = within_s - unloaded.mean
        if rate_per_s <= 0.0:
            return slack_s >= 0.0
        wait_s = float(mgc_wait_s(rate_per_s, service.mean_s, service.sd_s, workers))
        return not math.isnan(wait_s) and wait_s <= slack_s
    target = percentile / 100.0
    if rate_per_s <= 0.0:
        return unloaded.probability_within(within_s) >= target
    wait = mgc_wait(rate_per_s, service, workers)
    if wait is None:
        return False
    within = wait.probability_within(within_s - unloaded.values_s)
    return float(within @ unloaded.weights) / float(unloaded.weights.sum()) >= target
