"""The distribution of the wait, and its percentiles.

For M/G/1 the wait is a geometric sum of equilibrium residual service times (Pollaczek-Khinchine); the sum
is formed on a lattice with one pair of Fourier transforms. For M/G/c, positive waits have the distribution
of M/G/1 with c-fold faster service, scaled to the mean of ``queueing.mgc_wait_s``; the probability of waiting
is Erlang's delay formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats
from shakedown.models.queueing import delay_probability, mgc_wait_s

_POINTS = 1 << 14
_NEGLIGIBLE = 1e-12  # smaller shares and probabilities count as 0
_TAIL = 32.0  # length of the lattice in mean positive waits: e^-32 of the mass lies beyond


@dataclass(frozen=True)
class Service:
    """A service time as weighted values.

    Attributes:
        points_s: possible times in seconds, shape ``(n,)``.
        weights: their probabilities, shape ``(n,)``.
    """

    points_s: Floats
    weights: Floats

    @property
    def mean_s(self) -> float:
        return float(self.points_s @ self.weights)

    @property
    def second_moment_s2(self) -> float:
        return float(self.points_s**2 @ self.weights)

    @property
    def sd_s(self) -> float:
        return math.sqrt(float((self.points_s - self.mean_s) ** 2 @ self.weights))


def spread_service(mean_s: float, sd_s: float, bins: int = 256) -> Service:
    """A service of given mean and deviation: fixed work plus an exponential part, as in a rejection loop.

    If the deviation exceeds the mean, the minimum is 0, and a balanced two-phase hyperexponential matches
    both moments.
    Args:
        mean_s, sd_s: mean and standard deviation in seconds.
        bins: number of equally likely values of one exponential, each its bin's conditional mean.
    """
    if sd_s <= _NEGLIGIBLE * mean_s:
        return Service(np.array([mean_s]), np.array([1.0]))
    if sd_s <= mean_s:
        above = _exponential_bins(bins) - 1.0
        values = mean_s + above * (sd_s / math.sqrt(float(above @ above) / bins))
        return Service(np.maximum(values, 0.0), np.full(bins, 1.0 / bins))
    spread = math.sqrt((sd_s**2 / mean_s**2 - 1.0) / (sd_s**2 / mean_s**2 + 1.0))
    # The second share equals (1 - spread) / 2, but does not cancel when spread is near 1.
    shares = np.array([(1.0 + spread) / 2.0, 1.0 / ((sd_s**2 / mean_s**2 + 1.0) * (1.0 + spread))])
    values = np.concatenate([_exponential_bins(bins) * mean_s / (2.0 * share) for share in shares])
    return Service(values, np.repeat(shares / bins, bins))


@dataclass(frozen=True)
class Wait:
    """A distribution of the wait on a lattice: ``cdf[k]`` is the probability of at most ``k * step_s``."""

    step_s: float
    cdf: Floats

    def probability_within(self, wait_s: Numbers) -> Floats:
        """Probability that the wait is at most ``wait_s``; 0 below zero."""
        at = floats(wait_s)
        inside = np.interp(at, self.step_s * np.arange(len(self.cdf)), self.cdf)
        return np.where(at < 0.0, 0.0, inside)


def mg1_wait(rate_per_s: float, service: Service) -> Wait | None:
    """The wait in M/G/1 as a distribution; None without a steady state."""
    rho = rate_per_s * service.mean_s
    if rho >= 1.0:
        return None
    if rho <= 0.0:
        return Wait(max(service.mean_s, 1e-9), np.ones(2))
    step_s = _TAIL * service.second_moment_s2 / (2.0 * service.mean_s * (1.0 - rho)) / _POINTS
    times = floats(np.arange(_POINTS + 1) * step_s)
    area = _equilibrium_area(times, service) / step_s
    residual = np.concatenate([area[1:2], np.diff(area, 2)])  # each mass split so that the mean is kept
    transform = np.fft.rfft(residual, 2 * _POINTS)
    mass = np.fft.irfft((1.0 - rho) / (1.0 - rho * transform), 2 * _POINTS)[:_POINTS]
    below = np.cumsum(mass)
    cdf = below - mass / 2.0  # half of a lattice point's mass lies on each side of it
    cdf[0] = 1.0 - rho
    return Wait(step_s, np.clip(np.maximum.accumulate(cdf), 0.0, 1.0))


def mgc_wait(rate_per_s: float, service: Service, workers: int = 1) -> Wait | None:
    """The wait in M/G/c as a distribution; None without a steady state; exact for one worker."""
    if workers == 1:
        return mg1_wait(rate_per_s, service)
    faster = mg1_wait(rate_per_s, Service(service.points_s / workers, service.weights))
    if faster is None or rate_per_s <= 0.0:
        return faster
    rho = rate_per_s * service.mean_s / workers
    delayed = float(delay_probability(rate_per_s, service.mean_s, workers))
    if delayed < _NEGLIGIBLE:
        return Wait(faster.step_s, np.ones(2))
    mean_s = float(mgc_wait_s(rate_per_s, service.mean_s, service.sd_s, workers))
    alone_s = rate_per_s * service.second_moment_s2 / workers**2 / (2.0 * (1.0 - rho)) / rho
    conditional = 1.0 - (1.0 - faster.cdf) / rho
    step_s = faster.step_s * (mean_s / delayed) / alone_s
    return Wait(step_s, np.clip(1.0 - delayed * (1.0 - conditional), 0.0, 1.0))


def _equilibrium_area(at_s: Floats, service: Service) -> Floats:
    """∫ F_e from 0 to each time, with the residual's F_e(t) = ∫ (1 - F) / X1 from 0 to t."""
    order = np.argsort(service.points_s)
    points, weights = service.points_s[order], service.weights[order]
    passed = np.concatenate([[0.0], np.cumsum(weights)])
    first = np.concatenate([[0.0], np.cumsum(points * weights)])
    second = np.concatenate([[0.0], np.cumsum(points**2 * weights)])
    index = np.searchsorted(points, at_s, side="right")
    ahead = np.maximum(passed[-1] - passed[index], 0.0) * at_s**2 / 2.0
    return floats((ahead + first[index] * at_s - second[index] / 2.0) / service.mean_s)


def _exponential_bins(bins: int) -> Floats:
    """Conditional means of a unit exponential in ``bins`` equally likely bins."""
    upper = 1.0 - np.arange(bins + 1) / bins
    with np.errstate(divide="ignore", invalid="ignore"):
        antiderivative = np.where(upper > 0.0, upper * (1.0 - np.log(upper)), 0.0)
    return (antiderivative[:-1] - antiderivative[1:]) * bins
