"""The thesis's queue: waits, limits and capacities, with the rate counted as the thesis counts it.

The thesis uses the mean time of one message in equation 3.12, so its rate counts messages, which it calls
handshake requests. Rates of handshakes are named as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shakedown.models.arrays import Floats, Numbers
from shakedown.models.handshake import steady_rate_limit_per_s
from shakedown.models.processing import mixture_moments, mixture_s
from shakedown.models.queueing import mg1_wait_s, utilisation
from shakedown.papers.thesis.inputs import Authentication, Case, Thesis

RATES_PER_S = np.arange(0.0, 100.01, 0.25)
"""Messages per second at which the thesis's curves are drawn."""


@dataclass(frozen=True)
class Queue:
    """One curve of the thesis: a mixture of cases that share the CA's key.

    Attributes:
        name: the name in the figures.
        first_s, second_s2: moments of one queued message (3.21 to 3.82).
        messages: n, messages in a handshake.
        server_s: the server's whole time for a handshake, mean over the mixture.
    """

    name: str
    first_s: float
    second_s2: float
    messages: int
    server_s: float

    def wait_s(self, messages_per_s: Numbers) -> Floats:
        """Mean wait at a rate of messages (3.12); NaN without a steady state."""
        return mg1_wait_s(messages_per_s, self.first_s, self.second_s2)

    def load(self, messages_per_s: float) -> float:
        """Utilisation at a rate of messages."""
        return float(utilisation(messages_per_s, self.first_s))

    @property
    def pole_per_s(self) -> float:
        """Messages per second above which the queue is unstable."""
        return steady_rate_limit_per_s(self.first_s)

    @property
    def capacity_per_s(self) -> float:
        """The server's true capacity: handshakes per second, 1 / P_s."""
        return steady_rate_limit_per_s(self.server_s)

    def rate_at_per_s(self, wait_s: float) -> float:
        """Messages per second at which the mean wait has this value: equation 3.12 solved for the rate."""
        return 2.0 * wait_s / (self.second_s2 + 2.0 * wait_s * self.first_s)


def queue(
    thesis: Thesis,
    authentication: Authentication,
    cases: Sequence[Case],
    shares: Sequence[float] = (1.0,),
    *,
    as_printed: bool = True,
) -> Queue:
    """The queue under a mixture of certificates; mean times are mixed before squaring, as the thesis does."""
    times = np.array([thesis.queued_s(case, authentication) for case in cases])
    first, second = mixture_moments(shares, times, as_printed=as_printed)
    server_s = mixture_s(shares, [thesis.time_s(case, authentication, "server") for case in cases])
    words = [
        case.name if share == 1.0 else f"{share:.0%} {case.name}"
        for case, share in zip(cases, shares, strict=True)
    ]
    return Queue(" + ".join(words), float(first), float(second), times.shape[1], float(server_s))


@dataclass(frozen=True)
class Point:
    """A published point of some curves: a rate in requests per second, and the smallest and largest wait."""

    claim_id: str
    what: str
    queues: tuple[Queue, ...]
    rate_per_s: float
    waits_ms: tuple[float, float]

    def waits_here_ms(self) -> list[float]:
        """Our waits at the printed rate; NaN without a steady state."""
        return [1e3 * float(queue.wait_s(self.rate_per_s)) for queue in self.queues]

    def rates_here_per_s(self) -> tuple[float, float]:
        """The range of rates (messages per second) at which the printed waits occur, over all curves."""
        rates = [queue.rate_at_per_s(wait / 1e3) for queue in self.queues for wait in self.waits_ms]
        return min(rates), max(rates)

    def capacities_per_s(self) -> tuple[float, float]:
        """The server's true capacity, in handshakes per second, over all curves."""
        capacities = [queue.capacity_per_s for queue in self.queues]
        return min(capacities), max(capacities)


def span_words(low: float, high: float, digits: str = ".3g") -> str:
    """Two figures, or one if both have the same digits."""
    return " to ".join(dict.fromkeys((f"{low:{digits}}", f"{high:{digits}}")))


def points(thesis: Thesis) -> list[Point]:
    """The rates and waits that the thesis prints (sections 4.2 and 5)."""

    def group(number: int) -> tuple[Queue, ...]:
        cases = [case for case in thesis.cases if (case.category, case.group) == (3, number)]
        return tuple(queue(thesis, "mutual", [case]) for case in cases)

    def pure(authentication: Authentication, name: str) -> tuple[Queue, ...]:
        return (queue(thesis, authentication, [thesis.case(name)]),)

    def halves(authentication: Authentication) -> tuple[Queue, ...]:
        cases = [thesis.case("rsa3072/rsa1024"), thesis.case("rsa3072/rsa2048")]
        return (queue(thesis, authentication, cases, (0.5, 0.5)),)

    return [
        Point("wn-043", "mutual, group 2 (283k)", group(2), 72, (150, 160)),
        Point("wn-045", "mutual, group 3 (283r)", group(3), 72, (230, 230)),
        Point("wn-046", "mutual, rsa3072/rsa1024", pure("mutual", "rsa3072/rsa1024"), 71, (146, 146)),
        Point("wn-047", "mutual, half rsa1024, half rsa2048", halves("mutual"), 25, (165, 165)),
        Point("wn-050", "mutual, rsa3072/rsa2048", pure("mutual", "rsa3072/rsa2048"), 14, (180, 180)),
        Point("wn-052", "server auth, half rsa1024, half rsa2048", halves("serverauth"), 33, (620, 620)),
        Point(
            "wn-053", "server auth, rsa3072/rsa3072", pure("serverauth", "rsa3072/rsa3072"), 6, (3000, 3000)
        ),
        Point(
            "wn-054", "server auth, rsa3072/rsa2048", pure("serverauth", "rsa3072/rsa2048"), 21, (1500, 1500)
        ),
    ]
