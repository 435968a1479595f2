"""What primitives cost, for people, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from shakedown.profiles.vocabulary import PUBLIC_KEY_OPERATIONS
from shakedown.reporting.terminal.figures import number
from shakedown.reporting.terminal.tables import plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from shakedown.schema.primitives import Timing


def primitive_tables(timed: Sequence[Timing]) -> list[Table]:
    """Public keys, a line for each key or group; then symmetric work, a line for each algorithm."""
    public = [one for one in timed if one.per_call_us is UNSET]
    symmetric = [one for one in timed if one.per_call_us is not UNSET]
    tables = [_public_key_table(public)] if public else []
    return tables + ([_symmetric_table(symmetric)] if symmetric else [])


def _public_key_table(timed: Sequence[Timing]) -> Table:
    present = {one.operation for one in timed}
    operations = [operation for operation in PUBLIC_KEY_OPERATIONS if operation in present]
    headings = [_SHORT.get(operation, operation) for operation in operations]
    table = plain_table(["key or group"], headings, "µs a call, medians; signing with ML-DSA: mean")
    lines: dict[str, dict[str, str]] = {}
    for one in timed:
        middle = one.us.mean if (one.operation, one.algorithm) == ("sign", "mldsa") else one.us.median
        name = one.parameters
        # A curve's key comes in certificates and in shares, which are not read alike.
        cells = lines.setdefault(name, {})
        known = cells.get(one.operation)
        cells[one.operation] = f"{known} / {number(middle)}" if known else number(middle)
    for name, cells in lines.items():
        table.add_row(name, *(cells.get(operation, "") for operation in operations))
    return table


def _symmetric_table(timed: Sequence[Timing]) -> Table:
    table = plain_table(["algorithm"], ["a call", "a KiB"], "µs, medians")
    for one in timed:
        assert one.per_call_us is not UNSET
        assert one.per_kib_us is not UNSET
        table.add_row(one.algorithm, number(one.per_call_us), number(one.per_kib_us))
    return table


_SHORT = {"encapsulate": "encaps.", "decapsulate": "decaps."}
