"""What primitives cost, for people, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.profiles.vocabulary import PUBLIC_KEY_OPERATIONS

if TYPE_CHECKING:
    from rich.table import Table

Timing = Mapping[str, Any]


def primitive_tables(timed: Sequence[Timing]) -> list[Table]:
    """Public keys, a line for each key or group; then symmetric work, a line for each algorithm."""
    public = [one for one in timed if "per_call_us" not in one]
    symmetric = [one for one in timed if "per_call_us" in one]
    tables = [_public_key_table(public)] if public else []
    return tables + ([_symmetric_table(symmetric)] if symmetric else [])


def _public_key_table(timed: Sequence[Timing]) -> Table:
    table = _table("µs a call, medians; signing with ML-DSA: mean")
    present = {one["operation"] for one in timed}
    operations = [operation for operation in PUBLIC_KEY_OPERATIONS if operation in present]
    table.add_column("key or group", no_wrap=True)
    for operation in operations:
        table.add_column(_SHORT.get(operation, operation), justify="right")
    lines: dict[str, dict[str, str]] = {}
    for one in timed:
        middle = one["us"]["mean" if (one["operation"], one["algorithm"]) == ("sign", "mldsa") else "median"]
        name = one["parameters"]
        # A curve's key comes in certificates and in shares, which are not read alike.
        cells = lines.setdefault(name, {})
        known = cells.get(one["operation"])
        cells[one["operation"]] = f"{known} / {_us(middle)}" if known else _us(middle)
    for name, cells in lines.items():
        table.add_row(name, *(cells.get(operation, "") for operation in operations))
    return table


def _symmetric_table(timed: Sequence[Timing]) -> Table:
    table = _table("µs, medians")
    table.add_column("algorithm", no_wrap=True)
    for heading in ("a call", "a KiB"):
        table.add_column(heading, justify="right")
    for one in timed:
        table.add_row(one["algorithm"], _us(one["per_call_us"]), _us(one["per_kib_us"]))
    return table


_SHORT = {"encapsulate": "encaps.", "decapsulate": "decaps."}


def _us(microseconds: float) -> str:
    digits = 0 if microseconds >= 1000 else 1 if microseconds >= 10 else 2
    return f"{microseconds:,.{digits}f}"


def _table(caption: str) -> Table:
    from rich.table import Table

    return Table(
        caption=caption, caption_justify="left", box=None, pad_edge=False, header_style="bold", padding=(0, 1)
    )
