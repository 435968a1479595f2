"""A server that holds a limited number of handshakes and turns the rest away.

Y. Shin, M. Gupta and S. Myers ("A Study of the Performance of SSL on PDAs", 2009) limit the handshakes
outstanding at a server; these functions say what the limit costs. ``capacity`` counts those in service and
those waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.waiting import Service


@dataclass(frozen=True)
class Admission:
    """What a limit does: share turned away, rate carried, mean wait and mean number present of those
    admitted.
    """

    blocked: float
    carried_per_s: float
    wait_s: float
    present: float


def mmck(rate_per_s: float, mean_s: float, workers: int, capacity: int) -> Admission:
    """M/M/c/K, exactly, at any load (birth-death balance; any queueing text).

    Raises:
        ValueError: if ``capacity`` is less than ``workers`` or ``workers`` less than 1.
    """
    _check(workers, capacity)
    load = rate_per_s * mean_s
    terms = np.ones(capacity + 1)
    for present in range(1, capacity + 1):
        terms[present] = terms[present - 1] * load / min(present, workers)
        terms /= terms.max()
    return _admission(terms / terms.sum(), rate_per_s, mean_s, workers)


def mg1k(rate_per_s: float, service: Service, capacity: int) -> Admission:
    """M/G/1/K, exactly for the given service times, at any load.

    The chain of numbers left behind by departures has one more arrival count per step; its stationary
    vector follows by forward recursion, and the numbers seen by arrivals by normalising with the load (L.
    Kleinrock, "Queueing Systems", 1975, vol. 1, section 5; J. Keilson and L. Servi, 1989).
    """
    _check(1, capacity)
    load = rate_per_s * service.mean_s
    if load <= 0.0:
        return Admission(0.0, 0.0, 0.0, 0.0)
    arrivals = _arrival_counts(rate_per_s, service, capacity)
    left = np.zeros(capacity)  # numbers left behind by a departure: 0 .. K-1
    left[0] = 1.0
    for number in range(capacity - 1):
        inflow = left[0] * arrivals[number] + left[1 : number + 1] @ arrivals[number:0:-1]
        left[number + 1] = max(0.0, (left[number] - inflow) / arrivals[0])
        left /= left.max()
    left /= left.sum()
    seen = np.append(left, 0.0) / (left[0] + load)
    seen[capacity] = 1.0 - 1.0 / (left[0] + load)
    return _admission(np.maximum(seen, 0.0), rate_per_s, service.mean_s, 1)


def _arrival_counts(rate_per_s: float, service: Service, capacity: int) -> Floats:
    """Probability of k arrivals in one service, k = 0 .. K-1."""
    expected = rate_per_s * service.points_s
    counts = np.zeros(capacity)
    term = np.exp(-expected) * service.weights
    for number in range(capacity):
        counts[number] = term.sum()
        term = term * expected / (number + 1)
    return counts


def _admission(seen: Floats, rate_per_s: float, mean_s: float, workers: int) -> Admission:
    blocked = float(seen[-1])
    carried = rate_per_s * (1.0 - blocked)
    numbers = np.arange(len(seen))
    waiting = float(np.maximum(numbers - workers, 0) @ seen)
    wait_s = waiting / carried if carried > 0.0 else 0.0
    return Admission(blocked, carried, wait_s, float(numbers @ seen))


def _check(workers: int, capacity: int) -> None:
    if workers < 1 or capacity < workers:
        raise ValueError(f"workers {workers}, capacity {capacity}; accepted: 1 <= workers <= capacity")
