"""A server's waits from the traces of messages in its queue: measured, by formula, replayed, simulated.

Everything here is arithmetic on `shakedown.native.serving.QueueTraces` of one worker; times are in seconds.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from shakedown.models.arrays import Floats, floats
from shakedown.models.queueing import mg1_wait_s
from shakedown.native.serving import QueueTraces


@dataclass(frozen=True)
class Customers:
    """Customers of the queue: messages, or handshakes with the work of all their messages.

    Attributes:
        rate_per_s: arrivals per second.
        wait_s: time of each from its arrival until it is read; for a handshake, that of its first message.
        service_s: the worker's time for each, of shape (customers,).
        unqueued_s: waits of messages that found an empty queue: for the worker to wake up.
    """

    rate_per_s: float
    wait_s: Floats
    service_s: Floats
    unqueued_s: Floats

    @property
    def utilisation(self) -> float:
        """The share of time in which the server works."""
        return float(self.rate_per_s * self.service_s.mean())

    @property
    def set_up_s(self) -> float:
        """The part of the mean wait of all customers that is due to the unqueued ones' waits.

        A server that has a set-up of D before each busy period adds (2 E[D] + λ E[D²]) / (2 (1 + λ E[D])) to
        the wait of Pollaczek and Khinchine (Welch 1964; Takagi, Queueing Analysis 1, 1991).
        """
        if not len(self.unqueued_s):
            return 0.0
        mean_s, second_s2 = self.unqueued_s.mean(), (self.unqueued_s**2).mean()
        return float((2 * mean_s + self.rate_per_s * second_s2) / (2 * (1 + self.rate_per_s * mean_s)))

    @property
    def queued_s(self) -> float:
        """Mean wait in the queue, without that for waking up."""
        return float(self.wait_s.mean()) - self.set_up_s

    @property
    def formula_s(self) -> float:
        """Mean wait by the formula of Pollaczek and Khinchine."""
        service_s = self.service_s
        return float(mg1_wait_s(self.rate_per_s, float(service_s.mean()), float((service_s**2).mean())))


def services_s(traces: QueueTraces) -> Floats:
    """The worker's time for each message, and after it until the next: accepting, waking up, closing."""
    served_s: Floats = traces.done_s - traces.taken_up_s
    if len(served_s) < 2:
        return served_s
    beside_s = np.clip(np.diff(traces.worked_s) - served_s[:-1], 0.0, None)
    return floats(served_s + np.append(beside_s, beside_s.mean()))


def messages(traces: QueueTraces) -> Customers:
    wait_s = traces.taken_up_s - traces.arrived_s
    rate_per_s = len(wait_s) / elapsed_s(traces)
    return Customers(rate_per_s, wait_s, services_s(traces), wait_s[_found_no_queue(traces)])


def handshakes(traces: QueueTraces) -> Customers:
    """Each handshake as a customer whose whole work arrives with its first message."""
    numbers, places = np.unique(traces.handshake, return_inverse=True)
    service_s = floats(np.bincount(places, weights=services_s(traces), minlength=len(numbers)))
    first = traces.is_first
    wait_s = traces.taken_up_s - traces.arrived_s
    unqueued_s = wait_s[_found_no_queue(traces) & first]
    return Customers(int(first.sum()) / elapsed_s(traces), wait_s[first], service_s, unqueued_s)


def _found_no_queue(traces: QueueTraces) -> npt.NDArray[np.bool_]:
    """Which messages arrived after the previous one was done."""
    return traces.arrived_s >= np.append(-np.inf, traces.done_s[:-1])


def replayed_s(arrived_s: Floats, service_s: Floats) -> Floats:
    """Waits in a server that never sleeps, for customers that arrive at these times with this work."""
    order = np.argsort(arrived_s, kind="stable")
    ahead_s = service_s[order][:-1] - np.diff(arrived_s[order])
    # Lindley: each wait is the largest sum of the work ahead minus gaps, back to any earlier customer.
    sums_s = np.append(0.0, np.cumsum(ahead_s))
    waits_s = np.empty_like(sums_s)
    waits_s[order] = sums_s - np.minimum.accumulate(sums_s)
    return waits_s


def first_wait_s(rate_per_s: float, first_s: Floats, second_s: Floats, second_wait_s: float) -> float:
    """Mean wait of first messages; handshakes arrive as a Poisson process, second messages in any way.

    A Poisson arrival finds the mean work in the system, which is λ (E[S²] / 2 + E[S] W) summed over both
    messages (Brumelle, J. Appl. Prob. 8, 1971). If both wait equally, this is the formula of Pollaczek and
    Khinchine.
    """
    halves_s = rate_per_s * float((first_s**2).mean() + (second_s**2).mean()) / 2
    others_s = rate_per_s * float(second_s.mean()) * second_wait_s
    return (halves_s + others_s) / (1 - rate_per_s * float(first_s.mean()))


_DUE, _SECOND, _STARTED = range(3)
"""Events of a handshake at the server: its first message, its second, or a first one that had to wait for the
clients' processor, which sends a second message before it starts another handshake.
"""


@dataclass(frozen=True)
class Pairs:
    """Handshakes of two messages: work for each, and the client's time between, of shape (handshakes,)."""

    first_s: Floats
    second_s: Floats
    between_s: Floats


def pairs(traces: QueueTraces) -> Pairs:
    """The handshakes of which both messages are recorded."""
    order = np.lexsort((traces.taken_up_s, traces.handshake))
    same = traces.handshake[order][1:] == traces.handshake[order][:-1]
    one, other = order[:-1][same], order[1:][same]
    service_s = services_s(traces)
    between_s = np.clip(traces.arrived_s[other] - traces.done_s[one], 0.0, None)
    return Pairs(service_s[one], service_s[other], between_s)


def simulated_wait_s(
    found: Pairs, rate_per_s: float, count: int, seed: int, *, client_work_s: float = 0.0
) -> tuple[float, float]:
    """Mean waits of first and of second messages in a simulated server.

    Handshakes arrive as a Poisson process; the second message of each arrives the client's time after its
    first was done. With `client_work_s`, this part of that time is work on a processor that all clients
    share; meanwhile no handshake starts, and no other client's second message is made.
    """
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, len(found.first_s), count)
    starts_s = np.cumsum(generator.exponential(1.0 / rate_per_s, count))
    events = [(float(at_s), _DUE, place) for place, at_s in enumerate(starts_s)]
    heapq.heapify(events)
    free_s = 0.0
    working: deque[tuple[float, float]] = deque()
    waited_s = {_DUE: 0.0, _STARTED: 0.0, _SECOND: 0.0}
    while events:
        at_s, step, place = heapq.heappop(events)
        while working and working[0][1] <= at_s:
            working.popleft()
        if step == _DUE and working and working[0][0] <= at_s:
            heapq.heappush(events, (working[0][1], _STARTED, place))
            continue
        waited_s[step] += max(0.0, free_s - at_s)
        work_s = found.second_s if step == _SECOND else found.first_s
        free_s = max(free_s, at_s) + float(work_s[chosen[place]])
        if step != _SECOND:
            between_s = float(found.between_s[chosen[place]])
            own_s = min(client_work_s, between_s)
            begin_s = free_s + between_s - own_s
            if own_s > 0.0:
                begin_s = max(begin_s, working[-1][1] if working else 0.0)
                working.append((begin_s, begin_s + own_s))
            heapq.heappush(events, (begin_s + own_s, _SECOND, place))
    return (waited_s[_DUE] + waited_s[_STARTED]) / count, waited_s[_SECOND] / count


def close_behind(traces: QueueTraces, within_s: float) -> tuple[float, float]:
    """Share of first messages that arrive within this time after a second message, and a Poisson process's.

    Clients that share a processor do not start another while one of them makes its second message. Starts
    that are due meanwhile follow directly, and wait for all of the server's work on that message.
    """
    first_s = np.sort(traces.arrived_s[traces.is_first])
    second_s = np.sort(traces.arrived_s[~traces.is_first])
    before = np.searchsorted(second_s, first_s) - 1
    gaps_s = first_s - np.where(before >= 0, second_s[np.maximum(before, 0)], -np.inf)
    rate_per_s = len(second_s) / elapsed_s(traces)
    return float((gaps_s < within_s).mean()), 1.0 - math.exp(-rate_per_s * within_s)


def later(traces: QueueTraces, count: int) -> QueueTraces:
    """All messages except the first `count`."""
    return QueueTraces(*(getattr(traces, one.name)[count:] for one in fields(traces)))


def elapsed_s(traces: QueueTraces) -> float:
    """Time from the first arrival to the last."""
    return float(traces.arrived_s.max() - traces.arrived_s.min())
