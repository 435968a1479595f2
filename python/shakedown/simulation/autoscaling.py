"""When servers start and stop: `max=10,up=80%,down=30%,interval=15s,startup=60s,cooldown=5min`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shakedown.errors import InputError
from shakedown.schema.units import parse_share
from shakedown.simulation.keyed import duration, number, read_keyed, whole

ACCEPTED = (
    "accepted: max=10,up=80%,down=30%,queue=5,step=1,interval=15s,startup=60s,cooldown=5min, "
    "only max is needed"
)
MAX_SERVERS = 10_000
MAX_S = 1e7


@dataclass(frozen=True)
class Autoscaling:
    """Thresholds and times.

    Attributes:
        most: servers at most; the fleet's number is there at first, and at least.
        up, down: utilisations over an interval from which on servers start, and below which they stop.
        queue: flights that wait for each server from which on servers start; None: however many.
        step: servers that start or stop at once.
    """

    most: int
    up: float = 0.8
    down: float = 0.3
    queue: float | None = None
    step: int = 1
    interval_s: float = 15.0
    startup_s: float = 60.0
    cooldown_s: float = 300.0

    def spec(self) -> dict[str, Any]:
        """As the core reads it."""
        return {
            "max_servers": self.most,
            "interval_s": self.interval_s,
            "up": self.up,
            "up_waiting": self.queue,
            "step": self.step,
            "startup_s": self.startup_s,
            "down": self.down,
            "cooldown_s": self.cooldown_s,
        }


def parse_autoscaling(text: str, servers: int) -> Autoscaling:
    """Reads the option, for this initial number of servers. Raises `InputError`."""
    found = read_keyed("autoscale", text, _READERS, ACCEPTED)
    if "max" not in found:
        raise InputError(f'autoscale "{text:.60}": max is missing; {ACCEPTED}')
    one = Autoscaling(found.pop("max"), **{_FIELDS.get(name, name): value for name, value in found.items()})
    if one.most < servers:
        raise InputError(f"autoscale has max={one.most} and servers is {servers}; accepted: as many or more")
    if not one.down < one.up:
        raise InputError(f'autoscale "{text:.60}": down is not below up; {ACCEPTED}')
    return one


_FIELDS = {"interval": "interval_s", "startup": "startup_s", "cooldown": "cooldown_s"}


_READERS = {
    "max": whole(1, MAX_SERVERS),
    "up": parse_share,
    "down": parse_share,
    "queue": number(1e-3, 1e9, "flights for each server, above 0"),
    "step": whole(1, MAX_SERVERS),
    "interval": duration(1e-3, MAX_S),
    "startup": duration(0.0, MAX_S),
    "cooldown": duration(0.0, MAX_S),
}
