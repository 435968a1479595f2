"""The pauses of clients before they try again: `base=1s,factor=2,max=60s,jitter=full`."""

from __future__ import annotations

from dataclasses import dataclass

from shakedown.errors import InputError
from shakedown.simulation.keyed import duration, number, read_keyed

ACCEPTED = "accepted: base=1s,factor=2,max=60s,jitter=full, each of them optional"
MAX_PAUSE_S = 1e7
MAX_FACTOR = 1000.0
JITTER = {"none": 0.0, "half": 0.5, "full": 1.0}


@dataclass(frozen=True)
class Backoff:
    """Pauses between attempts.

    Attributes:
        base_s: the first pause.
        factor: ratio of each pause to the previous one.
        max_s: the longest pause, 60 s or `base_s` if that is longer.
        jitter: the random share of a pause: 0 for none, 1 for a uniform draw from 0 to the pause.
    """

    base_s: float = 1.0
    factor: float = 2.0
    max_s: float = 60.0
    jitter: float = 1.0


CONSTANT = Backoff(factor=1.0, jitter=0.0)
"""Pauses of clients that try again without a given backoff."""


def parse_backoff(text: str) -> Backoff:
    """Read the option. Raises `InputError`."""
    found = read_keyed("retry", text, _READERS, ACCEPTED)
    base_s = found.get("base", Backoff.base_s)
    max_s = found.get("max", max(base_s, Backoff.max_s))
    if max_s < base_s:
        raise InputError(f'retry "{text:.60}": max is below base; accepted: {base_s:g} s at least')
    return Backoff(
        base_s=base_s,
        factor=found.get("factor", Backoff.factor),
        max_s=max_s,
        jitter=found.get("jitter", Backoff.jitter),
    )


_READERS = {
    "base": duration(0.0, MAX_PAUSE_S),
    "factor": number(1.0, MAX_FACTOR, f"a factor from 1 to {MAX_FACTOR:,.0f}"),
    "max": duration(0.0, MAX_PAUSE_S),
    "jitter": number(0.0, 1.0, "none, half, full, or a share from 0 to 1", JITTER),
}
