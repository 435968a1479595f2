"""Mean waits in a server's queue: M/G/1, M/M/1, M/D/c, M/M/c and M/G/c, first come first served.

Every function broadcasts over its arguments. At a utilisation of 1 or more there is no steady state, and the
result is NaN. "Thesis" is Bayoglu 2004; see ``processing``.
"""

from __future__ import annotations

import math

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats, only_if

_STEPS = 192  # integration steps for M/D/c: enough for a utilisation of 1 - 1e-9


def utilisation(rate_per_s: Numbers, mean_s: Numbers, workers: Numbers = 1) -> Floats:
    """Offered load per worker: λ X1 / c (thesis, 3.10)."""
    return floats(rate_per_s) * floats(mean_s) / floats(workers)


def residual_work_s(rate_per_s: Numbers, second_moment_s2: Numbers) -> Floats:
    """Mean residual service found by an arrival, R0 = λ X2 / 2 (thesis, 3.11)."""
    return floats(rate_per_s) * floats(second_moment_s2) / 2.0


def mg1_wait_s(rate_per_s: Numbers, mean_s: Numbers, second_moment_s2: Numbers) -> Floats:
    """Mean wait in M/G/1 by Pollaczek and Khinchine: λ X2 / (2 (1 - ρ)) (thesis, 3.12).

    With the service time of a whole handshake, ``rate_per_s`` counts handshakes; with that of one message
    (``processing.queue_moments``), it counts messages.
    """
    rho = utilisation(rate_per_s, mean_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        return only_if(rho < 1.0, residual_work_s(rate_per_s, second_moment_s2) / (1.0 - rho))


def message_wait_s(handshakes_per_s: Numbers, message_s: Numbers) -> Floats:
    """Mean wait of one message in the thesis's queue, at a rate of whole handshakes (thesis, 3.12 with
    3.13-3.18).

    The thesis puts a rate of messages into 3.12 and calls it handshake requests; here the rate counts
    handshakes, and n times as many messages arrive. The wait is (λ S2) / (2 (1 - λ S1)), where S1 and S2 are
    the sums of the messages' times and of their squares.

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
    """Probability that an arrival finds all workers busy and is rejected, M/G/c/c (Erlang's loss formula).

    1 / B = 1 + c/a + c (c-1)/a² + … + c!/a^c; all terms are positive. A probability below 1e-308 is 0.

    Args:
        offered: offered load λ X1 in erlangs, any shape.
        workers: number of workers, at least 1.
    """
    load = floats(offered)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        inverse = [1.0 + np.cumprod(np.arange(workers, 0, -1) / one).sum() for one in load.ravel()]
    return floats(1.0 / np.reshape(inverse, load.shape))


def delay_probability(rate_per_s: Numbers, mean_s: Numbers, workers: int = 1) -> Floats:
    """Probability that an arrival has to wait in M/M/c (Erlang's delay formula); ρ in M/G/1."""
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
    """Mean wait in M/D/c, exact; the computing time does not depend on the number of workers.

    Under first come first served, each worker gets every c-th arrival, so the queue is E_c/D/1. Its mean wait
    is Pollaczek's integral (J. Abate, G. L. Choudhury, W. Whitt, "Calculation of the GI/G/1 waiting-time
    distribution and its cumulants from Pollaczek's formulas", 1993), here along the path of steepest descent
    z = θ cot θ + iθ, where the transform of an increment is real, and integrated once by parts:

    W / X1 = 1/π ∫ (θ² + b²) / (θ² + (1 - ρ - b)²) / (exp(c (E + ρ - 1 - ln ρ)) - 1) dθ from 0 to π, with
    b = 1 - θ cot θ and E = b + ln(θ / sin θ). No term is negative, so no digits cancel.
    """
    rate, service = np.broadcast_arrays(floats(rate_per_s), floats(service_s))
    rho = rate * service / workers
    stable = (rho > 0.0) & (rho < 1.0)
    load = np.where(stable, rho, 0.5)[..., None]
    # The integrand is as narrow as 1 - ρ, and vanishes where c E is 40. In u, with θ = π x / √(1 + x²) and
    # x = (1 - ρ) / π sinh u, it is analytic in a wide strip: the trapezoidal rule converges exponentially.
    idle = 1.0 - load
    u = np.arcsinh(np.pi * math.sqrt(20.0 / workers) / idle) * np.arange(1, _STEPS + 1) / _STEPS
    x = idle / np.pi * np.sinh(u)
    theta = np.pi * x / np.sqrt(1.0 + x**2)
    slope = idle * np.cosh(u) / (1.0 + x**2) ** 1.5
    b = 1.0 - theta / np.tan(theta)
    square = theta**2
    series = square * (1 / 2 + square * (1 / 36 + square * (1 / 405 + square * (1 / 4200 + square / 42525))))
    exponent = np.where(theta < 0.1, series, b + np.log(theta / np.sin(theta)))
    with np.errstate(over="ignore"):
        density = 1.0 / np.expm1(workers * (exponent - idle - np.log1p(-idle)))
    density *= (square + b**2) / (square + (idle - b) ** 2)
    waits = (density * slope * u[..., :1]).sum(axis=-1) / np.pi
    return np.where(rho == 0.0, 0.0, only_if(rho < 1.0, service * waits))


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
    # With cv² above 1 the interpolation is an extrapolation, which may fall below zero.
    return np.maximum((1.0 - cv2) * fixed + cv2 * exponential, 0.0)
