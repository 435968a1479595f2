"""Tables for people, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.measurement import CLASSES, SIDES, time_by_class_us

if TYPE_CHECKING:
    from rich.table import Table

    from shakedown.measurement import Measurement


def measured_table(measurements: Sequence[Measurement]) -> Table:
    """Bytes, round trips, and each side's mean time split into key, signature and common."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    repeats = sorted({measurement["repeat"] for measurement in measurements})
    many = " or ".join(str(repeat) for repeat in repeats)
    table = Table(
        box=SIMPLE_HEAD,
        title=f"Handshakes measured here, means of {many} (ms of CPU time)",
        title_justify="left",
        title_style="bold",
        caption="key, sign: public-key operations of key exchange and signatures; rest: all other work",
        caption_justify="left",
        pad_edge=False,
    )
    table.add_column("suite", no_wrap=True)
    table.add_column("bytes", justify="right")
    table.add_column("round\ntrips", justify="right")
    for side in SIDES:
        table.add_column(f"{side}\nms", justify="right", style="bold")
        for label in ("key", "sign", "rest"):
            table.add_column(f"\n{label}", justify="right")
    for measurement in measurements:
        cells: list[Text | str] = [
            Text(measurement["suite"]),
            f"{measurement['bytes']['total']:,.0f}",
            round_trips(measurement["flights"]),
        ]
        for side in SIDES:
            split = time_by_class_us(measurement, side)
            cells.append(milliseconds(sum(split.values())))
            cells += [milliseconds(split[kind]) if split[kind] else "–" for kind in CLASSES]
        table.add_row(*cells)
    return table


def round_trips(flights: int) -> str:
    """Flights as round trips, as people count them: four flights are 2, three are 1.5."""
    return f"{flights / 2:g}"


def milliseconds(microseconds: float) -> str:
    """µs as milliseconds with three significant digits or so: `0.034`, `1.21`, `152`."""
    value = microseconds / 1000
    digits = 3 if value < 0.1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def connection_table(number: int, connection: Mapping[str, Any]) -> Table:
    """One connection of a capture, message by message."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    size = connection["bytes"]
    table = Table(
        box=SIMPLE_HEAD,
        title=f"Connection {number}: {size['total']:,} bytes, {connection['flights']} flights",
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    table.add_column("#", justify="right")
    table.add_column("from")
    table.add_column("message")
    table.add_column("flight", justify="right")
    table.add_column("bytes", justify="right")
    for message in connection["messages"]:
        flight = message["flight"]
        table.add_row(
            str(message["index"] + 1),
            message["from"],
            message["name"],
            "–" if flight is None else str(flight),
            f"{message['bytes']:,}",
        )
    return table


def primitive_table(timed: Sequence[Mapping[str, Any]]) -> Table:
    """Primitives with what one call takes."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    columns = [key for key in (timed[0] if timed else {}) if not isinstance(timed[0][key], list | dict)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        numeric = isinstance(timed[0][column], int | float)
        table.add_column(
            column.replace("_us", ", µs").replace("_", " "), justify="right" if numeric else "left"
        )
    for one in timed:
        table.add_row(
            *(f"{one[c]:,.4g}" if isinstance(one[c], float) else str(one[c] or "") for c in columns)
        )
    return table
