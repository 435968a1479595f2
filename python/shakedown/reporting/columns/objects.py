"""The table of objects of the schema: which columns, rows, title and notes those of each type have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.columns import Column, Row
from shakedown.schema.base import builtins


@dataclass(frozen=True)
class ObjectTable:
    """Rows of objects; `shown` are the columns that say something of them, where not all do."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    notes: Callable[[Set[str]], Iterable[str]] = lambda shown: ()
    shown: Sequence[Column] | None = None


def object_table(objects: Sequence[Any], kind: str = "") -> ObjectTable | None:
    """The table of objects of one type, or of dicts of a named one; None for types without columns."""
    make = _TABLES.get(kind or (type(objects[0]).__name__ if objects else ""))
    return None if make is None else make(objects)


def message_table(measured: Any) -> ObjectTable:  # noqa: ANN401 - a Measurement, whose module is imported late
    """A measurement as the sequence of its messages."""
    from msgspec import UNSET

    from shakedown.reporting.columns.measured import (
        COUNTED_MESSAGES,
        MESSAGES,
        handshake_rows,
        notes,
        sequence,
    )

    title, rows = sequence(measured)
    shown = None if measured.instructions is UNSET else COUNTED_MESSAGES
    return ObjectTable(MESSAGES, rows, title, lambda shown: notes(handshake_rows([measured])), shown)


def _measured(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.measured import HANDSHAKES, handshake_rows, notes, title

    rows = handshake_rows(objects)
    return ObjectTable(HANDSHAKES, rows, title(rows), lambda shown: notes(rows))


def _predictions(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.modelled import PREDICTIONS, notes, prediction_row, prediction_title

    found = builtins(objects)
    return ObjectTable(
        PREDICTIONS,
        [prediction_row(one) for one in found],
        prediction_title(found),
        lambda shown: notes(found, shown),
    )


def _capacities(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns import modelled

    found = builtins(objects)
    return ObjectTable(
        modelled.CAPACITIES,
        [modelled.capacity_row(one) for one in found],
        modelled.capacity_title(found),
        lambda shown: modelled.capacity_notes(found),
        modelled.capacities_shown(found),
    )


def _fleets(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns import simulated

    rows = [simulated.fleet_row(one) for one in objects]
    return ObjectTable(
        simulated.FLEETS,
        rows,
        simulated.title(objects),
        lambda shown: simulated.notes(objects, shown),
        simulated.shown(rows),
    )


def _mixtures(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns import simulated

    return ObjectTable(
        simulated.CLIENTS,
        [row for one in objects for row in simulated.mix_rows(one)],
        "; ".join(map(simulated.mix_title, objects)),
        lambda shown: (
            f"{one.mix}: {note}" if len(objects) > 1 else note
            for one in objects
            for note in simulated.mix_notes(one, shown)
        ),
    )


def _timings(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.primitives import PRIMITIVES, TITLE, rows

    return ObjectTable(PRIMITIVES, list(rows(objects)), TITLE)


def _devices(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.catalogue import DEVICES, device_notes, device_row

    rows = [device_row(one) for one in objects]
    return ObjectTable(DEVICES, rows, notes=lambda shown: device_notes(rows, shown))


def _bearers(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.catalogue import BEARERS, bearer_notes, bearer_row

    rows = [bearer_row(one) for one in objects]
    return ObjectTable(BEARERS, rows, notes=lambda shown: bearer_notes(rows, shown))


def _suites(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.catalogue import SUITES

    return ObjectTable(SUITES, builtins(objects))


def _stacks(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.catalogue import STACKS

    return ObjectTable(STACKS, builtins(objects))


def _diagnoses(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.comparison import DIAGNOSES

    return ObjectTable(DIAGNOSES, builtins(objects))


def _compared(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.comparison import COMPARED, compared_row

    return ObjectTable(COMPARED, [compared_row(one) for one in objects])


def _checked(objects: Sequence[Any]) -> ObjectTable:
    from shakedown.reporting.columns.comparison import CHECKED, check_notes, checked_row

    rows = [checked_row(one) for one in objects]
    return ObjectTable(CHECKED, rows, notes=lambda shown: () if "reason" in shown else check_notes(rows))


_TABLES: dict[str, Callable[[Sequence[Any]], ObjectTable]] = {
    "Measurement": _measured,
    "Prediction": _predictions,
    "Capacity": _capacities,
    "Simulated": _fleets,
    "SimulatedMix": _mixtures,
    "Timing": _timings,
    "Device": _devices,
    "Bearer": _bearers,
    "SuiteEntry": _suites,
    "StackEntry": _stacks,
    "Compared": _compared,
    "CheckedLimit": _checked,
    "Diagnosis": _diagnoses,
}
"""By the name of the type, so that only the columns in use are loaded."""
