"""The output of `doctor --json`: checks of the machine, and the features that they disable."""

from __future__ import annotations

from typing import Literal

import msgspec

from shakedown.schema.base import Object, Text

State = Literal["ok", "degraded", "missing", "unknown"]


class Diagnosis(Object, frozen=True, kw_only=True):
    """A check of the machine. `disables` lists the features that do not work; null if the state is `ok`."""

    name: Text
    state: State
    found: str
    disables: str | None


PRINTED: dict[str, tuple[type[msgspec.Struct], str]] = {
    "diagnosis": (Diagnosis, "An object of doctor --json."),
}
