"""The share of returning clients that resume: `lifetime=2h,interval=1h,away=30min`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shakedown.errors import InputError
from shakedown.simulation.arrivals import Arrivals
from shakedown.simulation.keyed import duration, read_keyed

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.float64]]

ACCEPTED = "accepted: lifetime=2h,interval=1h,away=30min; away in a storm only, no interval with a log"
MAX_S = 1e9

STEPS = 1000
"""Number of equal intervals for which the share is computed if arrivals are not steady."""

Steps = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Resuming:
    """The share of clients that resume: of all, and by time of arrival in s; no steps if it is constant."""

    share: float
    steps: Steps = ()


@dataclass(frozen=True)
class Sessions:
    """Sessions of returning clients.

    Attributes:
        lifetime_s: time after its handshake during which a session can be resumed.
        interval_s: mean time between two connections of a client; constant for deterministic arrivals and
            before a storm. None for a log, whose hosts are the clients.
        away_s: time before a storm during which clients could not connect.
    """

    lifetime_s: float
    interval_s: float | None = None
    away_s: float = 0.0

    def resuming(self, arrivals: Arrivals) -> Resuming:
        """The share of arriving clients whose session is younger than its lifetime. Raises `InputError`.

        Failed handshakes, which leave no session, are counted as well.
        """
        if self.away_s and arrivals.kind != "storm":
            raise InputError(
                f'sessions has away and arrivals are "{arrivals.text}"; accepted with it: a storm'
            )
        if arrivals.since_s:
            if self.interval_s is not None:
                raise InputError(
                    f'sessions has interval and arrivals are "{arrivals.text}", a log, which determines '
                    "the intervals; accepted: only lifetime"
                )
            return _of_hosts(arrivals, self.lifetime_s)
        if self.interval_s is None:
            raise InputError(f"sessions: interval is missing; {ACCEPTED}")
        if arrivals.kind == "storm":
            # Clients connect at equal intervals; the phase of the last one before the outage is uniform.
            return Resuming(min(1.0, max(0.0, (self.lifetime_s - self.away_s) / self.interval_s)))
        if arrivals.kind == "deterministic":
            return Resuming(1.0 if self.interval_s <= self.lifetime_s else 0.0)
        if arrivals.kind in ("poisson", "bursts"):
            # The clients of each burst are drawn from all, so a client's connections are nearly Poisson.
            return Resuming(-math.expm1(-self.lifetime_s / self.interval_s))
        return _of_fleet(arrivals, self.lifetime_s, self.interval_s)


def _of_hosts(arrivals: Arrivals, lifetime_s: float) -> Resuming:
    """Hosts resume if their previous connection is no older than the lifetime."""
    import numpy as np

    resumes = np.asarray(arrivals.since_s) <= lifetime_s
    at_s = np.asarray(arrivals.at_s)
    edges_s = _edges(arrivals)
    all_of_them, _ = np.histogram(at_s, edges_s)
    those, _ = np.histogram(at_s[resumes], edges_s)
    shares = np.divide(those, all_of_them, out=np.zeros(len(those)), where=all_of_them > 0)
    return Resuming(float(resumes.mean()), _steps(edges_s, shares))


def _of_fleet(arrivals: Arrivals, lifetime_s: float, interval_s: float) -> Resuming:
    """The fleet has as many clients as arrive in an interval on average, and each connection is that of a
    random client. A client resumes unless all connections within the lifetime were those of others.
    """
    import numpy as np

    edges_s = _edges(arrivals)
    middles_s = (edges_s[:-1] + edges_s[1:]) / 2.0
    span_s = float(edges_s[-1] - edges_s[0])
    so_far = _counted(arrivals)
    within = np.maximum(so_far(edges_s[1:]) - so_far(edges_s[:-1]), 0.0)
    fleet = float(within.sum()) / span_s * interval_s
    shares = -np.expm1(-(so_far(middles_s) - so_far(middles_s - lifetime_s)) / fleet)
    return Resuming(float(np.average(shares, weights=within)), _steps(edges_s, shares))


def _edges(arrivals: Arrivals) -> Numbers:
    import numpy as np

    first_s, last_s = (arrivals.at_s[0], arrivals.at_s[-1]) if arrivals.at_s else (0.0, arrivals.span_s)
    if last_s <= first_s:
        raise InputError(
            f'sessions is given and all arrivals of "{arrivals.text}" are at one time; accepted: a storm'
        )
    return np.linspace(first_s, last_s, STEPS + 1)


def _counted(arrivals: Arrivals) -> Any:  # noqa: ANN401 - a function of an array
    """The number of connections up to given times. Before the start, a day repeats; other curves continue
    with their first rate, and files with their mean rate.
    """
    import numpy as np

    if not arrivals.points:
        at_s = np.asarray(arrivals.at_s)
        per_s = len(at_s) / (at_s[-1] - at_s[0])
        return lambda times_s: (
            np.searchsorted(at_s, times_s, side="right") - per_s * np.maximum(at_s[0] - times_s, 0.0)
        )
    at_s, per_s = np.asarray(arrivals.points).T
    areas = np.concatenate([[0.0], np.cumsum(np.diff(at_s) * (per_s[1:] + per_s[:-1]) / 2.0)])

    def until(times_s: Numbers) -> Numbers:
        days = np.floor(times_s / at_s[-1]) if arrivals.is_daily else np.zeros(len(times_s))
        times_s = times_s - days * at_s[-1]
        before = np.minimum(times_s, 0.0) * per_s[0]
        times_s = np.clip(times_s, 0.0, at_s[-1])
        line = np.clip(np.searchsorted(at_s, times_s, side="right") - 1, 0, len(at_s) - 2)
        rates = np.interp(times_s, at_s, per_s)
        part = (times_s - at_s[line]) * (per_s[line] + rates) / 2.0
        counted: Numbers = days * areas[-1] + before + areas[line] + part
        return counted

    return until


def _steps(edges_s: Numbers, shares: Numbers) -> Steps:
    """The times at which the share changes, each with the new share."""
    steps: list[tuple[float, float]] = []
    for from_s, share in zip(edges_s[:-1].tolist(), shares.tolist(), strict=True):
        if not steps or share != steps[-1][1]:
            steps.append((from_s, share))
    return tuple(steps)


def parse_sessions(text: str) -> Sessions:
    """Read the option. Raises `InputError`."""
    found = read_keyed("sessions", text, _READERS, ACCEPTED, needed=["lifetime"])
    return Sessions(found["lifetime"], found.get("interval"), found.get("away", 0.0))


_READERS = {
    "lifetime": duration(0.0, MAX_S),
    "interval": duration(1e-3, MAX_S),
    "away": duration(0.0, MAX_S),
}
