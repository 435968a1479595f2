"""Budgets of handshakes, and the output of `check --json`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from shakedown.schema.base import Amount, Object, Text
from shakedown.schema.predictions import MAX_WITHIN_S

Limit = Amount | None


class Budget(Object, frozen=True, kw_only=True):
    """A table of a budget's file: a suite, its devices and bearer, and its limits.

    Bytes, instructions, memory (peak) and times (median) are measured on this machine; `ready_s` (mean),
    `energy_j` and `capacity_per_s` are predicted for `device`, `bearer`, `server_device`. `capacity_per_s` is
    a lower limit, for handshakes that are ready `within_s`; all others are upper limits. If more than 1 % of
    the handshakes fail, `ready_s` is unknown and the capacity is 0.
    """

    suite: Text
    client_stack: Text | None = None
    server_stack: Text | None = None
    bytes: Limit = None
    client_instructions: Limit = None
    server_instructions: Limit = None
    client_memory_bytes: Limit = None
    server_memory_bytes: Limit = None
    client_time_us: Limit = None
    server_time_us: Limit = None
    device: Text | None = None
    server_device: Text | None = None
    bearer: Text | None = None
    ready_s: Limit = None
    energy_j: Limit = None
    capacity_per_s: Limit = None
    within_s: Annotated[float, msgspec.Meta(gt=0, le=MAX_WITHIN_S)] | None = None


class BudgetFile(Object, frozen=True, kw_only=True):
    """A budget's file."""

    budget: Annotated[tuple[Budget, ...], msgspec.Meta(min_length=1)]


class CheckedLimit(Object, frozen=True, kw_only=True):
    """A limit and its figure. `gated`: exceeding it fails the check; times are gated only on request."""

    suite: Text
    stacks: str
    place: str
    quantity: Text
    unit: str
    limit: Amount
    found: Amount | None
    gated: bool
    verdict: Literal["kept", "exceeded", "unknown"]
    reason: str | None = None

    @property
    def fails(self) -> bool:
        """Whether the limit fails the check; an unknown figure does."""
        return self.gated and self.verdict != "kept"


PRINTED: dict[str, tuple[type[msgspec.Struct], str]] = {
    "checked-limit": (CheckedLimit, "A limit of check --json."),
    "budget": (BudgetFile, "A budget's file, as check reads it."),
}
