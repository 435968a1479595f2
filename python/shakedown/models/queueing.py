"""Mean waits in a server's queue: M/G/1, M/M/1, M/D/c, M/M/c and M/G/c, first come first served.

Every function broadcasts over its arguments. Where the utilisation is 1 or more there is no steady state
and the answer is NaN. "Thesis" is Bayoglu 2004; see ``processing``.
"""

from __future__ import annotations

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats, only_if

_ROOTS_AT_ONCE = 1 << 18
_ROOT_ITERATIONS = 64


def utilisation(rate_per_s: Numbers, mean_s: Numbers, workers: Numbers = 1) -> Floats:
    """Share of the workers' time that is asked for: λ X1 / c (thesis, 3.10)."""
    return floats(rate_per_s) * floats(mean_s) / floats(workers)


def residual_work_s(rate_per_s: Numbers, second_moment_s2: Numbers) -> Floats:
    """Mean residual service found by an arrival, R0 = λ X2 / 2 (thesis, 3.11)."""
    return floats(rate_per_s) * floats(second_moment_s2) / 2.0


def mg1_wait_s(rate_per_s: Numbers, mean_s: Numbers, second_moment_s2: Numbers) -> Floats:
    """Mean wait in M/G/1 by Pollaczek and Khinchine: λ X2 / (2 (1 - ρ)) (thesis, 3.12).

    What is counted as a customer is the caller's: with a whole handshake's service time, ``rate_per_s``
    counts handshakes; with one message's (``processing.queue_moments``), it counts messages.
    """
    rho = utilisation(rate_per_s, mean_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        return only_if(rho < 1.0, residual_work_s(rate_per_s, second_moment_s2) / (1.0 - rho))


def message_wait_s(handshakes_per_s: Numbers, message_s: Numbers) -> Floats:
    """Mean wait of one message in the thesis's queue, at a rate of whole handshakes (thesis, 3.12 with
    3.13-3.18).

    The thesis puts a rate of messages into 3.12 and calls it handshake requests; here the rate counts
    handshakes, and n times as many messages arrive. The wait is (λ S2) / (2 (1 - λ S1)) with the plain sums
    S1, S2 over the messages.

    Args:
        handshakes_per_s: handshakes per second, shape ``(...)``.
        message_s: server seconds of the n applicable messages, shape ``(..., n)``.
    """
    times = floats(message_s)
    return mg1_wait_s(handshakes_per_s, times.sum(axis=-1), (times**2).sum(axis=-1))


def mm1_wait_s(rate_per_s: Numbers, mean_s: Numbers) -> Floats:
    """Mean wait in M/M/1: T_s ρ / (1 - ρ) (A. Levi and E. Savas, 2003, as the thesis cites them)."""
    rho = utilisation(rate_per_s, mean_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        return only_if(rho < 1.0, floats(mean_s) * rho / (1.0 - rho))


def erlang_b(offered: Numbers, workers: int) -> Floats:
    """Probability that an arrival finds all workers busy and is turned away, M/G/c/c (Erlang's loss formula).

    Args:
        offered: offered load λ X1 in erlangs, any shape.
        workers: number of workers, at least 1.
    """
    load = floats(offered)
    blocked = np.ones_like(load)
    for worker in range(1, workers + 1):
        blocked = load * blocked / (worker + load * blocked)
    return blocked


def delay_probability(rate_per_s: Numbers, mean_s: Numbers, workers: int = 1) -> Floats:
    """Probability that an arrival has to wait in M/M/c (Erlang's delay formula); exactly ρ for one worker,
    any G.
    """
    load = floats(rate_per_s) * floats(mean_s)
    rho = load / workers
    blocked = erlang_b(load, workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        return only_if(rho < 1.0, blocked / (1.0 - rho * (1.0 - blocked)))


def mmc_wait_s(rate_per_s: Numbers, mean_s: Numbers, workers: int = 1) -> Floats:
    """Mean wait in M/M/c: C X1 / (c (1 - ρ)), C from ``delay_probability``."""
    rho = utilisation(rate_per_s, mean_s, workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = delay_probability(rate_per_s, mean_s, workers) * floats(mean_s) / (workers * (1.0 - rho))
    return only_if(rho < 1.0, wait)


def mdc_wait_s(rate_per_s: Numbers, service_s: Numbers, workers: int = 1) -> Floats:
    """Mean wait in M/D/c, exactly (C. D. Crommelin, 1932).

    λ W = Σ 1/(1 - z) + ((cρ)² - c(c-1)) / (2 c (1 - ρ)), over the roots z ≠ 1 of z^c = exp(cρ (z - 1))
    inside the unit circle, found by iterating z = ω exp(ρ (z - 1)) for each other c-th root of unity ω.
    """
    rate, service = np.broadcast_arrays(floats(rate_per_s), floats(service_s))
    rho = rate * service / workers
    stable = (rho > 0.0) & (rho < 1.0)
    load = np.where(stable, rho, 0.5)
    # As many rates at a time as keep what is held small.
    step = max(1, _ROOTS_AT_ONCE // workers)
    flat = load.ravel()
    sums = [_sum_over_roots(flat[at : at + step], workers) for at in range(0, len(flat), step)]
    waiting = np.concatenate(sums).reshape(load.shape) if sums else load
    waiting = waiting + ((workers * load) ** 2 - workers * (workers - 1)) / (2.0 * workers * (1.0 - load))
    wait = np.maximum(waiting, 0.0) / np.where(stable, rate, 1.0)
    return np.where(rho == 0.0, 0.0, only_if(rho < 1.0, wait))


def _sum_over_roots(load: Floats, workers: int) -> Floats:
    """Σ 1/(1 - z) of Crommelin's formula at each load of a worker, shape ``(rates,)``."""
    roots_of_unity = np.exp(2j * np.pi * np.arange(1, workers) / workers)
    root = np.broadcast_to(roots_of_unity, (*load.shape, workers - 1)).astype(np.complex128)
    for _ in range(_ROOT_ITERATIONS):
        value = roots_of_unity * np.exp(load[..., None] * (root - 1.0))
        root = root - (root - value) / (1.0 - load[..., None] * value)  # Newton's step
    return floats((1.0 / (1.0 - root)).sum(axis=-1).real)


def mgc_wait_s(rate_per_s: Numbers, mean_s: Numbers, sd_s: Numbers, workers: int = 1) -> Floats:
    """Mean wait in M/G/c by interpolation between M/D/c and M/M/c in the squared coefficient of variation.

    W = (1 - cv²) W(M/D/c) + cv² W(M/M/c) (H. C. Tijms, "A First Course in Stochastic Models", 2003, chapter
    9). Exact for one worker (Pollaczek-Khinchine), for fixed and for exponential service; within a few per
    cent for cv² up to about 2.

    Args:
        rate_per_s: arrivals per second.
        mean_s, sd_s: mean and standard deviation of the service time.
        workers: number of workers, at least 1.
    """
    mean, sd = floats(mean_s), floats(sd_s)
    if workers == 1:
        return mg1_wait_s(rate_per_s, mean, mean**2 + sd**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        cv2 = np.where(mean > 0.0, (sd / mean) ** 2, 0.0)
    fixed, exponential = mdc_wait_s(rate_per_s, mean, workers), mmc_wait_s(rate_per_s, mean, workers)
    # Waits below what a sum of rounded numbers resolves come out on either side of zero.
    return np.maximum((1.0 - cv2) * fixed + cv2 * exponential, 0.0)
