"""Which share of returning clients resumes: `lifetime=2h,interval=1h,away=30min`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shakedown.errors import InputError
from shakedown.simulation.arrivals import Arrivals
from shakedown.simulation.keyed import duration, read_keyed

ACCEPTED = "accepted: lifetime=2h,interval=1h,away=30min; away in a storm only"
MAX_S = 1e9


@dataclass(frozen=True)
class Sessions:
    """Sessions of returning clients.

    Attributes:
        lifetime_s: for how long after its handshake a session can be resumed.
        interval_s: time between two connections of a client: the mean at a Poisson rate, else always.
        away_s: how long before a storm clients could not connect.
    """

    lifetime_s: float
    interval_s: float
    away_s: float = 0.0

    def share(self, arrivals: Arrivals) -> float:
        """The share of arriving clients whose session is younger than its lifetime. Raises `InputError`.

        Handshakes that fail are not counted out.
        """
        if arrivals.kind == "storm":
            # Clients come at equal intervals, and the last of these began at any time before the outage.
            return min(1.0, max(0.0, (self.lifetime_s - self.away_s) / self.interval_s))
        if self.away_s:
            raise InputError(
                f'sessions has away and arrivals are "{arrivals.text}"; accepted with it: a storm'
            )
        if arrivals.kind == "poisson":
            return -math.expm1(-self.lifetime_s / self.interval_s)
        if arrivals.kind == "deterministic":
            return 1.0 if self.interval_s <= self.lifetime_s else 0.0
        raise InputError(
            f'sessions is given and arrivals are "{arrivals.text}"; accepted with it: storm, poisson, '
            "deterministic"
        )


def parse_sessions(text: str) -> Sessions:
    """Reads what an option says. Raises `InputError`."""
    found = read_keyed("sessions", text, _READERS, ACCEPTED)
    for name in ("lifetime", "interval"):
        if name not in found:
            raise InputError(f'sessions "{text:.60}": {name} is missing; {ACCEPTED}')
    return Sessions(found["lifetime"], found["interval"], found.get("away", 0.0))


_READERS = {
    "lifetime": duration(0.0, MAX_S),
    "interval": duration(1e-3, MAX_S),
    "away": duration(0.0, MAX_S),
}
