"""The table of objects of the schema, by their type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shakedown.reporting.columns import ObjectTable, loaded
from shakedown.schema.base import builtins

_TABLES = {
    "Measurement": "measured.table",
    "Prediction": "modelled.predictions",
    "Capacity": "capacity.capacities",
    "Simulated": "simulated.fleets",
    "SimulatedMix": "simulated.mixtures",
    "Timing": "primitives.table",
    "Device": "catalogue.devices",
    "Bearer": "catalogue.bearers",
    "SuiteEntry": "catalogue.SUITES",
    "StackEntry": "catalogue.STACKS",
    "Compared": "comparison.compared",
    "CheckedLimit": "comparison.checked",
    "Diagnosis": "comparison.DIAGNOSES",
}
"""The columns of objects of each type, or the function that makes their table; loaded when used."""


def object_table(objects: Sequence[Any], kind: str = "") -> ObjectTable | None:
    """The table of objects of one type, or of dicts of a named one; None for types without columns."""
    name = _TABLES.get(kind or (type(objects[0]).__name__ if objects else ""))
    if name is None:
        return None
    found = loaded(name)
    table: ObjectTable = found(objects) if callable(found) else ObjectTable(found, builtins(objects))
    return table
