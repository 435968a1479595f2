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


def predicted_table(predictions: Sequence[Mapping[str, Any]]) -> Table:
    """Seconds of a whole handshake by device and bearer at the lowest rate, and the server's load at each."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rates = sorted({row["rate_per_s"] for row in predictions})
    quiet = [row for row in predictions if row["rate_per_s"] == rates[0]]
    server = quiet[0]["server_device"]
    load = f"{rates[0]:g} handshakes a second" if rates[0] else "no other load"
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in quiet))
    totals = {(row["suite"], row["device"], row["bearer"]): row["total_s"] for row in quiet}
    busy = {(row["suite"], row["rate_per_s"]): row["utilisation"] for row in predictions}
    table = Table(
        box=SIMPLE_HEAD,
        title=f"Modelled elsewhere: seconds for a handshake at {load} of {server}",
        title_justify="left",
        title_style="bold",
        caption="busy: share of time that one worker of the server works; 100 % or more: its queue runs away",
        caption_justify="left",
        pad_edge=False,
    )
    table.add_column("suite", no_wrap=True)
    for device, bearer in places:
        table.add_column(f"{device}\n{bearer}", justify="right")
    for rate in rates:
        if rate:
            table.add_column(f"busy at\n{rate:g}/s", justify="right")
    for suite in dict.fromkeys(row["suite"] for row in quiet):
        cells: list[Text | str] = [Text(suite)]
        for place in places:
            total = totals.get((suite, *place))
            cells.append("–" if total is None else f"{total:,.2f}" if total < 10 else f"{total:,.0f}")
        cells += [f"{busy[suite, rate]:.1%}" for rate in rates if rate]
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
