"""What TCP's timers add to a handshake although nothing is lost, where delays vary.

A timer is as long as the round trips before it made it. A packet that meets a longer delay, or waits behind
others, is then sent again while it is still on its way, and its copy delays what follows. Whether that
happens depends on each handshake's own delays: many are drawn (``draws``), and each is run with timers and
without (``tcp_flow``). The difference goes on top of the time without timers, whose distribution is known
better than the draws know it: handshakes that are late without timers get what timers add to draws that are
as late (a control variate by rank).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.models.draws import Draw, draws, extremes
from shakedown.models.path import Path
from shakedown.models.tcp_flow import Flow

DRAWS = 128

Run = Callable[[Draw | None, bool], Flow]
"""Runs the handshake with a draw, or with mean delays; the second argument is whether no timer fires."""


@dataclass(frozen=True, slots=True)
class Needless:
    """What timers add to each of several equally likely handshakes.

    Attributes:
        connected_s: when each client may send, no timer firing; shape ``(draws,)``, as those that follow.
        without_s: when each is ready and done, no timer firing.
        added_s: what timers add to that.
    """

    connected_s: Floats
    without_s: dict[str, Floats]
    added_s: dict[str, Floats]

    def to(self, total: Distribution, what: str) -> Distribution:
        """A time without timers, and what they add to those that are as late."""
        added_s = self.added_s[what][np.argsort(self.without_s[what], kind="stable")]
        count = len(added_s)
        shares = np.cumsum(total.weights) / total.weights.sum()
        edges = np.unique(np.concatenate([[0.0], shares, np.arange(1, count) / count]))
        middles = (edges[1:] + edges[:-1]) / 2.0
        points = np.minimum(np.searchsorted(shares, middles), len(shares) - 1)
        ranks = np.minimum((middles * count).astype(np.int64), count - 1)
        return Distribution.of_samples(total.values_s[points] + added_s[ranks], np.diff(edges))

    def of(self, low: float, high: float, what: str) -> Distribution:
        """What timers add where the connection's round trip lies between two shares of all."""
        count = len(self.connected_s)
        first = min(int(low * count), count - 1)
        chosen = np.argsort(self.connected_s, kind="stable")[first : max(first + 1, round(high * count))]
        return Distribution.of_samples(self.added_s[what][chosen])


def needless(path: Path, mean: Flow, run: Run) -> Needless | None:
    """What timers add over a path; None where delays are always the same, or no timer fires even in extremes.

    Args:
        path: the network.
        mean: the handshake with mean delays, timers firing.
        run: runs it with others.
    """
    if len(path.up.delay.values_s) == 1 and len(path.down.delay.values_s) == 1:
        return None
    if not mean.fired and not any(run(extreme, False).fired for extreme in extremes(path)):
        return None
    connected_s, without_s, added_s = [], [], []
    for draw in draws(path, DRAWS):
        flow = run(draw, False)
        patient = run(draw, True) if flow.fired else flow
        connected_s.append(patient.connected_s)
        without_s.append((patient.ready_s, patient.done_s))
        added_s.append((flow.ready_s - patient.ready_s, flow.done_s - patient.done_s))
    without, added = np.array(without_s), np.array(added_s)
    return Needless(
        np.array(connected_s),
        {"ready_s": without[:, 0], "done_s": without[:, 1]},
        {"ready_s": added[:, 0], "done_s": added[:, 1]},
    )
