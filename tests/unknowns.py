"""Unknowns for tests: work without a cost, powers missing in profiles; and their true values."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec

from shakedown.models.ranges import exactly

POWERS = {
    "device": ("active_w", "idle_w"),
    "bearer": ("send_w", "receive_w", "idle_w", "tail_w", "setup_j"),
}


def hidden_work(cost, side, message, seconds=None):
    """The cost with one more piece of work, of `seconds` or without a cost figure (None)."""
    if seconds is None:
        row = {"side": side, "operation": "sign", "algorithm": "hidden", "parameters": "", "count": 1,
               "reason": "hidden"}  # fmt: skip
        return replace(cost, without_cost=[*cost.without_cost, row], without_cost_high_s=math.inf)
    at = {**cost.message_s, message: cost.message_s.get(message, 0.0) + seconds}
    return replace(cost, parts={**cost.parts, "hidden": exactly(seconds)}, message_s=at)


def without_cost(one, side, message, seconds=None):
    """The scenario with such work on one side."""
    return replace(one, **{side: hidden_work(getattr(one, side), side, message, seconds)})


def with_power(profile, key, watts):
    """A device or a bearer with another power, None: unknown."""
    energy = msgspec.structs.replace(profile.energy, **{key: watts})
    change = msgspec.structs.replace if isinstance(profile, msgspec.Struct) else replace
    return change(profile, energy=energy)


def powered(one, what, key, watts):
    """The scenario with another power of its device or its bearer."""
    return replace(one, **{what: with_power(getattr(one, what), key, watts)})
