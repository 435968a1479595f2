"""Captures of an experiment on a terminal: what connections there were, what they would cost elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.terminal.tables import titled_table
from shakedown.units import seconds

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from shakedown.results.captures import Capture, Kind

MOST_KINDS_SHOWN = 12


def kind_name(kind: Mapping[str, Any]) -> str:
    """What connections of a kind spoke: suite, else protocol and cipher as far as they were visible."""
    if kind["suite"]:
        return str(kind["suite"])
    return " ".join(str(kind[name]) for name in ("protocol", "cipher") if kind[name]) or "not told"


def captures_tables(captures: Sequence[Capture]) -> Iterator[RenderableType]:
    """A table for each capture: its connections by kind."""
    for capture in captures:
        if not capture["kinds"]:
            continue
        table = titled_table(f"Captured in {capture['capture']}: {_many(capture)}")
        for heading in ("connections of", "number", "complete", "resumed", "bytes", "handshake takes"):
            left = heading == "connections of"
            table.add_column(heading, justify="left" if left else "right", no_wrap=left)
        for kind in capture["kinds"][:MOST_KINDS_SHOWN]:
            table.add_row(*kind_cells(kind))
        rest = len(capture["kinds"]) - MOST_KINDS_SHOWN
        if rest > 0:
            table.caption = f"{rest} more kinds are in the report"
        yield table


def kind_cells(kind: Kind) -> list[str]:
    """One kind as cells: name, number, complete, resumed, bytes, time."""
    resumed = {True: "yes", False: "no", None: "–"}[kind["resumed"]]
    return [
        kind_name(kind),
        f"{kind['count']:,}",
        "yes" if kind["complete"] else "no",
        resumed,
        span(kind["bytes"], lambda value: f"{value:,.0f}"),
        "–" if kind["handshake_s"] is None else span(kind["handshake_s"], seconds),
    ]


def span(spread: Sequence[float], show: Any) -> str:  # noqa: ANN401 - a function of a figure
    """`lowest to highest`, or the one figure where both read the same."""
    low, high = show(spread[0]), show(spread[-1])
    return low if low == high else f"{low} to {high}"


def captured_predictions_table(predictions: Sequence[Mapping[str, Any]]) -> Table:
    """Seconds of the captured handshakes by device and bearer, at the lowest rate."""
    lowest = min(row["rate_per_s"] for row in predictions)
    rows = [row for row in predictions if row["rate_per_s"] == lowest]
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in rows))
    totals = {(row["capture"], row["suite"], row["device"], row["bearer"]): row["total_s"] for row in rows}
    table = titled_table(f"Modelled from captured handshakes: seconds to {rows[0]['server_device']}")
    table.add_column("captured", no_wrap=True)
    for device, bearer in places:
        table.add_column(f"{device}\n{bearer}", justify="right")
    for capture, suite in dict.fromkeys((row["capture"], row["suite"]) for row in rows):
        cells = [suite]
        for place in places:
            total = totals.get((capture, suite, *place))
            cells.append("–" if total is None else seconds(total))
        table.add_row(*cells)
    return table


def _many(capture: Capture) -> str:
    number = sum(kind["count"] for kind in capture["kinds"]) + capture["uncounted"]
    return f"{number:,} connection{'' if number == 1 else 's'}"
