"""When servers start and stop: `max=10,up=80%,down=30%,interval=15s,startup=60s,cooldown=5min`."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Thresholds and times, with the core's names.

    Attributes:
        max_servers: maximum number of servers; the minimum is the initial number.
        up, down: utilisation of an interval from which servers start, and below which they stop.
        up_waiting: waiting flights per server from which servers start; None: no such threshold.
        step: servers that start or stop at once.
    """

    max_servers: int
    up: float = 0.8
    down: float = 0.3
    up_waiting: float | None = None
    step: int = 1
    interval_s: float = 15.0
    startup_s: float = 60.0
    cooldown_s: float = 300.0


def parse_autoscaling(text: str, servers: int) -> Autoscaling:
    """Read the option; `servers` is the initial number. Raises `InputError`."""
    found = read_keyed("autoscale", text, _READERS, ACCEPTED, needed=["max"])
    one = Autoscaling(**{_FIELDS.get(name, name): value for name, value in found.items()})
    if one.max_servers < servers:
        raise InputError(
            f"autoscale has max={one.max_servers} and servers is {servers}; accepted: as many or more"
        )
    if not one.down < one.up:
        raise InputError(f'autoscale "{text:.60}": down is not below up; {ACCEPTED}')
    return one


_FIELDS = {
    "max": "max_servers",
    "queue": "up_waiting",
    **{time: f"{time}_s" for time in ("interval", "startup", "cooldown")},
}

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
