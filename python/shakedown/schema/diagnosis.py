"""What `doctor --json` prints: what the machine has, and what is disabled without it."""

from __future__ import annotations

from typing import Literal

import msgspec

from shakedown.schema.base import Object, Text

State = Literal["ok", "degraded", "missing", "unknown"]


class Diagnosis(Object, frozen=True, kw_only=True):
    """A thing that was looked at. `disables` says what goes without it, null where it is there."""

    name: Text
    state: State
    found: str
    disables: str | None


PRINTED: dict[str, tuple[type[msgspec.Struct], str]] = {
    "diagnosis": (Diagnosis, "An object of doctor --json."),
}
