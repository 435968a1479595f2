"""Tables for people, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shakedown.measurement import CLASSES, SIDES, time_by_class_us

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from shakedown.measurement import Measurement


def measured_tables(measurements: Sequence[Measurement], width: int) -> list[RenderableType]:
    """Bytes, round trips, and each side's mean time split into key, signature and common.

    On a screen of fewer columns than that takes, suites are numbered and named below.
    """
    if not measurements:
        return []
    table = _measured_table(measurements, [measurement["suite"] for measurement in measurements])
    if _fits(table, width):
        return [table]
    numbers = [str(number) for number, _ in enumerate(measurements, start=1)]
    names = [f"{number:>3}  {one['suite']}" for number, one in zip(numbers, measurements, strict=True)]
    compact = _measured_table(measurements, numbers)
    compact.columns[0].header = "#"
    compact.box, compact.collapse_padding = None, True
    return [compact, "\n".join(names)]


def _fits(table: Table, width: int) -> bool:
    from rich.console import Console

    return Console(width=1000, markup=False, emoji=False).measure(table).maximum <= width


def _measured_table(measurements: Sequence[Measurement], names: Sequence[str]) -> Table:
    repeats = sorted({measurement["repeat"] for measurement in measurements})
    many = " or ".join(str(repeat) for repeat in repeats)
    table = titled_table(
        f"Handshakes measured here, means of {many} (ms of CPU time)",
        "key, sign: public-key operations of key exchange and signatures; rest: all other work",
    )
    table.add_column("suite", no_wrap=True)
    table.add_column("bytes", justify="right")
    table.add_column("round\ntrips", justify="right")
    for side in SIDES:
        table.add_column(f"{side}\nms", justify="right", style="bold")
        for label in ("key", "sign", "rest"):
            table.add_column(f"\n{label}", justify="right")
    for name, measurement in zip(names, measurements, strict=True):
        cells = [name, f"{measurement['bytes']['total']:,.0f}", round_trips(measurement["flights"])]
        for side in SIDES:
            split = time_by_class_us(measurement, side)
            cells.append(milliseconds(sum(split.values())))
            cells += [milliseconds(split[kind]) if split[kind] else "–" for kind in CLASSES]
        table.add_row(*cells)
    return table


def predicted_tables(predictions: Sequence[Mapping[str, Any]], width: int) -> list[RenderableType]:
    """Seconds of a whole handshake by device and bearer at the lowest rate, and the server's load at each.

    One table where the screen has columns for it, else one for each device.
    """
    if not predictions:
        return []
    rates = sorted({row["rate_per_s"] for row in predictions})
    quiet = [row for row in predictions if row["rate_per_s"] == rates[0]]
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in quiet))
    table = _predicted_table(predictions, quiet, places, rates)
    if _fits(table, width):
        return [table]
    tables: list[RenderableType] = []
    for device in dict.fromkeys(device for device, _ in places):
        here = [place for place in places if place[0] == device]
        tables.append(_predicted_table(predictions, quiet, here, []))
    return [*tables, _predicted_table(predictions, quiet, [], rates)]


def _predicted_table(
    predictions: Sequence[Mapping[str, Any]],
    quiet: Sequence[Mapping[str, Any]],
    places: Sequence[tuple[str, str]],
    rates: Sequence[float],
) -> Table:
    lowest, server = quiet[0]["rate_per_s"], quiet[0]["server_device"]
    load = f"{lowest:g} handshakes a second" if lowest else "no other load"
    devices = list(dict.fromkeys(device for device, _ in places))
    where = f" on {devices[0]}" if len(devices) == 1 else ""
    what = f"seconds for a handshake{where} at {load} of {server}" if places else f"load of {server}"
    notes = "busy: share of time that one worker of the server works; 100 % or more: its queue runs away"
    table = titled_table(f"Modelled elsewhere: {what}", notes if any(rates) else "")
    totals = {(row["suite"], row["device"], row["bearer"]): row["total_s"] for row in quiet}
    busy = {(row["suite"], row["rate_per_s"]): row["utilisation"] for row in predictions}
    table.add_column("suite", no_wrap=True)
    for device, bearer in places:
        table.add_column(bearer if where else f"{device}\n{bearer}", justify="right")
    for rate in rates:
        if rate:
            table.add_column(f"busy at\n{rate:g}/s", justify="right")
    for suite in dict.fromkeys(row["suite"] for row in quiet):
        cells = [suite]
        for place in places:
            total = totals.get((suite, *place))
            cells.append("–" if total is None else f"{total:,.2f}" if total < 10 else f"{total:,.0f}")
        cells += [f"{busy[suite, rate]:.1%}" for rate in rates if rate]
        table.add_row(*cells)
    return table


def titled_table(title: str, caption: str = "") -> Table:
    """A table in the program's one shape."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        min_width=60,
        caption=caption or None,
        caption_justify="left",
        pad_edge=False,
    )


def round_trips(flights: int) -> str:
    """Flights as round trips, as people count them: four flights are 2, three are 1.5."""
    return f"{flights / 2:g}"


def milliseconds(microseconds: float) -> str:
    """µs as milliseconds with three significant digits or so: `0.034`, `1.21`, `152`."""
    value = microseconds / 1000
    digits = 3 if value < 0.1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def transfer_table(measurement: Mapping[str, Any]) -> Table:
    """Bulk transfers after the handshake: both sides' time and what travelled."""
    link = measurement["transfers"][0]["link"]
    table = titled_table(f"{measurement['suite']}: transfers, {link} link (medians)", "")
    for heading in ("KiB", "bytes on the link", "frames", "client ms", "server ms"):
        table.add_column(heading, justify="right")
    for transfer in measurement["transfers"]:
        table.add_row(
            f"{transfer['data_bytes'] / 1024:,.0f}",
            f"{transfer['wire_bytes']:,}",
            f"{transfer['frames']:,}",
            f"{transfer['client_us']['median'] / 1000:.3f}",
            f"{transfer['server_us']['median'] / 1000:.3f}",
        )
    return table
