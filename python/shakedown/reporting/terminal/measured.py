"""Measured handshakes on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shakedown.reporting.terminal.figures import NOTHING, milliseconds, round_trips, whole
from shakedown.reporting.terminal.tables import fits, titled_table
from shakedown.schema.base import CLASSES, SIDES

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from shakedown.results.folder import Results
    from shakedown.schema.measured import Measurement

Row = dict[str, Any]


def measured_tables(results: Results, width: int) -> list[RenderableType]:
    """Bytes, round trips, and each side's mean time split into key exchange, signatures and other work.

    On a screen of fewer columns than that takes, handshakes are numbered and named below.
    """
    rows = results.handshakes.to_dicts()
    if not rows:
        return []
    table = _table(rows, [row["label"] for row in rows])
    if fits(table, width):
        return [table]
    numbers = [str(number) for number, _ in enumerate(rows, start=1)]
    names = [f"{number:>3}  {row['label']}" for number, row in zip(numbers, rows, strict=True)]
    compact = _table(rows, numbers)
    compact.columns[0].header = "#"
    compact.box, compact.collapse_padding = None, True
    return [compact, "\n".join(names)]


def _table(rows: Sequence[Row], names: Sequence[str]) -> Table:
    many = " or ".join(whole(repeat) for repeat in sorted({row["repeat"] for row in rows}))
    table = titled_table(
        f"Handshakes measured here, means of {many} (ms of CPU time)",
        "other: all work besides the public-key operations of key exchange and signatures",
    )
    table.add_column("suite", no_wrap=True)
    table.add_column("bytes", justify="right")
    table.add_column("round\ntrips", justify="right")
    for side in SIDES:
        table.add_column(f"{side}\nms", justify="right", style="bold")
        for label in ("key\nexchange", "signa-\ntures", "\nother"):
            table.add_column(label, justify="right")
    for name, row in zip(names, rows, strict=True):
        cells = [name, whole(row["bytes"]), round_trips(row["flights"])]
        for side in SIDES:
            cells.append(milliseconds(row[f"{side}_us"]))
            spent = (row[f"{side}_{kind}_us"] for kind in CLASSES)
            cells += [milliseconds(one) if one else NOTHING for one in spent]
        table.add_row(*cells)
    return table


def transfer_table(measurement: Measurement) -> Table:
    """Bulk transfers after the handshake: both sides' time and bytes on the link."""
    from msgspec import UNSET

    transfers = () if measurement.transfers is UNSET else measurement.transfers
    link = transfers[0].link if transfers else ""
    table = titled_table(f"{measurement.suite}: transfers, {link} link (medians)")
    for heading in ("KiB", "bytes on the link", "frames", "client ms", "server ms"):
        table.add_column(heading, justify="right")
    for one in transfers:
        table.add_row(
            whole(one.data_bytes / 1024),
            whole(one.wire_bytes),
            whole(one.frames),
            milliseconds(one.client_us.median),
            milliseconds(one.server_us.median),
        )
    return table
