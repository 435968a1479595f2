"""Handshakes over TCP run with delays that are drawn, nothing lost: where their sum does not say it all.

* A timer is as long as the round trips before it made it. A packet that meets a longer delay, or waits behind
  others, is then sent again while it is still on its way, and its copy delays what follows. Whether that
  happens depends on each handshake's own delays. Many are drawn (``draws``), each is run with timers and
  without (``tcp_flow``), and the difference goes on top of the time without timers, whose distribution is
  known better than the draws know it: handshakes that are late without timers get what timers add to draws
  that are about as late (a control variate by rank).
* Where a delay holds for longer than a round trip, several crossings share it, and more of them the shorter
  it is. The draws then say it all themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shakedown.models.arrays import Floats, distinct
from shakedown.models.distribution import Distribution
from shakedown.models.draws import Draw, draws, extremes
from shakedown.models.path import Path
from shakedown.models.tcp_flow import Flow

_DRAWS = 128
_DRAWS_ALONE = 512  # where there is no better distribution to go by
_ALIKE = 3  # ranks either way whose draws are about as late

Run = Callable[[Draw | None, bool], Flow]
"""Runs the handshake with a draw, or with mean delays; the second argument is whether no timer fires."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Several equally likely handshakes, nothing lost.

    Attributes:
        alone: whether they are all that is known of the time without timers.
        connected_s: when each client may send, no timer firing; shape ``(draws,)``, as those that follow.
        without_s: when each is ready and done, no timer firing.
        added_s: what timers add to that.
        draws, flows: each draw, and its handshake with timers.
    """

    alone: bool
    connected_s: Floats
    without_s: dict[str, Floats]
    added_s: dict[str, Floats]
    draws: list[Draw]
    flows: list[Flow]

    def whole(self, total: Distribution, what: str) -> Distribution:
        """The time of a handshake.

        Args:
            total: the time without timers, as the sum of its crossings.
            what: ``ready_s`` or ``done_s``.
        """
        if self.alone:
            return Distribution.of_samples(self.without_s[what] + self.added_s[what])
        added_s = self.added_s[what][np.argsort(self.without_s[what], kind="stable")]
        count = len(added_s)
        shares = np.cumsum(total.weights) / total.weights.sum()
        edges = distinct(np.concatenate([[0.0], shares, np.arange(1, count) / count]))
        middles = (edges[1:] + edges[:-1]) / 2.0
        points = np.minimum(np.searchsorted(shares, middles), len(shares) - 1)
        ranks = np.minimum((middles * count).astype(np.int64), count - 1)
        first = np.clip(ranks - _ALIKE, 0, count - 1 - 2 * _ALIKE)
        alike = added_s[np.add.outer(first, np.arange(1 + 2 * _ALIKE))]
        weights = np.broadcast_to(np.diff(edges)[:, None], alike.shape)
        return Distribution.of_samples(total.values_s[points][:, None] + alike, weights)

    def rest(self, low: float, high: float, what: str, others: Distribution, mean: Flow) -> Distribution:
        """What varies beside the connection's round trip where that lies between two shares of all.

        Args:
            low, high: the shares.
            what: ``ready_s`` or ``done_s``.
            others: the other crossings' deviations, as a sum.
            mean: the handshake with mean delays, no timer firing.
        """
        count = len(self.connected_s)
        first = min(int(low * count), count - 1)
        chosen = np.argsort(self.connected_s, kind="stable")[first : max(first + 1, round(high * count))]
        added_s = self.added_s[what][chosen]
        if not self.alone:
            return Distribution.of_samples(added_s).compact().plus(others)
        connected_s = self.connected_s[chosen] - mean.connected_s
        mean_s: float = getattr(mean, what)
        return Distribution.of_samples(self.without_s[what][chosen] + added_s - mean_s - connected_s)


def drawn(path: Path, mean: Flow, run: Run) -> Drawn | None:
    """Handshakes over a path; None where the sum of their crossings says it all.

    Args:
        path: the network.
        mean: the handshake with mean delays, timers firing.
        run: runs it with others.
    """
    up, down = path.up.delay, path.down.delay
    if len(up.values_s) == 1 and len(down.values_s) == 1:
        return None
    alone = path.delay_holds_s > up.p50 + down.p50
    if not (alone or mean.fired or any(run(extreme, False).fired for extreme in extremes(path))):
        return None
    connected_s, without_s, added_s, flows = [], [], [], []
    chosen = draws(path, _DRAWS_ALONE if alone else _DRAWS)
    for draw in chosen:
        flow = run(draw, False)
        flows.append(flow)
        patient = run(draw, True) if flow.fired else flow
        connected_s.append(patient.connected_s)
        without_s.append((patient.ready_s, patient.done_s))
        added_s.append((flow.ready_s - patient.ready_s, flow.done_s - patient.done_s))
    without, added = np.array(without_s), np.array(added_s)
    return Drawn(
        alone,
        np.array(connected_s),
        {"ready_s": without[:, 0], "done_s": without[:, 1]},
        {"ready_s": added[:, 0], "done_s": added[:, 1]},
        chosen,
        flows,
    )
