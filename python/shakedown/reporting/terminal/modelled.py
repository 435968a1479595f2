"""Predictions of an experiment on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from shakedown.reporting.terminal.figures import NOTHING, energy, legend, marked, number, share, time
from shakedown.reporting.terminal.tables import fits, titled_table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from shakedown.results.folder import Results

MAX_PLACES = 40
"""Pairs of device and bearer shown; the report and the table have the others."""

MAX_RATES = 8
"""Rates shown; the report and the table have the others."""

Row = dict[str, Any]
Place = tuple[str, str]
Column = TypeVar("Column", Place, float)


def predicted_tables(results: Results, width: int) -> Iterator[RenderableType]:
    """Handshake time by device and bearer at the lowest rate, and the server's load at some of the rates.

    One table where the screen has columns for it, else one or more a device; captured handshakes apart.
    """
    view = results.predictions
    own = view.filter(pl.col("capture").is_null())
    yield from _measured(own, width)
    if own.height:
        quiet = own.filter(pl.col("rate_per_s") == pl.col("rate_per_s").min())
        yield from _energies(quiet.to_dicts(), width)
    captured = view.filter(pl.col("capture").is_not_null())
    if captured.height:
        yield _captured(captured)


def _measured(view: pl.DataFrame, width: int) -> Iterator[RenderableType]:
    if not view.height:
        return
    rates = view["rate_per_s"].unique().sort().to_list()
    quiet = view.filter(pl.col("rate_per_s") == rates[0]).to_dicts()
    busy = view.unique(["label", "rate_per_s"], keep="first", maintain_order=True).to_dicts()
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in quiet))
    shown, left_out = places[:MAX_PLACES], max(0, len(places) - MAX_PLACES)
    listed = _spread([rate for rate in rates if rate], MAX_RATES)
    table = _table(busy, quiet, shown, listed)
    if fits(table, width):
        yield table
    else:
        for device in dict.fromkeys(device for device, _ in shown):
            yield from _that_fit(
                lambda some: _table(busy, quiet, some, []),
                [place for place in shown if place[0] == device],
                width,
            )
        yield from _that_fit(lambda some: _table(busy, quiet, [], some), listed, width)
    if left_out:
        yield f"{left_out:,} more pairs of device and bearer are in the report and the table"
    if len(listed) < sum(rate > 0 for rate in rates):
        yield f"{sum(rate > 0 for rate in rates) - len(listed):,} more rates are in the report and the table"


def _spread(rates: Sequence[float], most: int) -> list[float]:
    """The first, the last, and rates evenly between them: `most` at most."""
    if len(rates) <= most:
        return list(rates)
    return [rates[round(number * (len(rates) - 1) / (most - 1))] for number in range(most)]


def _that_fit(
    table: Callable[[Sequence[Column]], Table], columns: Sequence[Column], width: int
) -> Iterator[Table]:
    """As many tables as the screen needs for these columns."""
    rest = list(columns)
    while rest:
        count = 1
        while count < len(rest) and fits(table(rest[: count + 1]), width):
            count += 1
        yield table(rest[:count])
        rest = rest[count:]


def _table(
    busy: Sequence[Row], quiet: Sequence[Row], places: Sequence[Place], rates: Sequence[float]
) -> Table:
    lowest, server = quiet[0]["rate_per_s"], quiet[0]["server_device"]
    load = f"{lowest:g} handshakes/s" if lowest else "no other load"
    devices = list(dict.fromkeys(device for device, _ in places))
    where = f" on {devices[0]}" if len(devices) == 1 else ""
    what = f"handshake time (s){where}, {load} at {server}" if places else f"load of {server}"
    workers = quiet[0]["workers"]
    notes = []
    if any(rates):
        each = "one worker" if workers == 1 else f"each of {workers:,} workers"
        notes.append(f"busy: utilisation of {each} of the server; 100 % or more: its queue is unstable")
    listed = [row for row in quiet if (row["device"], row["bearer"]) in set(places)]
    if legend(row["basis"] for row in listed):
        notes.append(legend(row["basis"] for row in listed))
    table = titled_table(f"Modelled: {what}", "\n".join(notes))
    totals = {(row["label"], row["device"], row["bearer"]): row for row in quiet}
    loads = {(row["label"], row["rate_per_s"]): row["utilisation"] for row in busy}
    table.add_column("suite", no_wrap=True)
    for device, bearer in places:
        table.add_column(bearer if where else f"{device}\n{bearer}", justify="right")
    for rate in rates:
        if rate:
            table.add_column(f"busy at\n{rate:g}/s", justify="right")
    for suite in dict.fromkeys(row["label"] for row in quiet):
        cells = [suite]
        for place in places:
            row = totals.get((suite, *place))
            total = None if row is None else row["ready_mean_s"]
            cells.append(NOTHING if row is None or total is None else marked(_seconds(total), row["basis"]))
        cells += [share(loads[suite, rate], 1) for rate in rates if rate]
        table.add_row(*cells)
    return table


def _seconds(value: float) -> str:
    """Seconds to hundredths; what is shorter keeps two digits."""
    return number(value, 2) if value < 0.1 else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _energies(rows: Sequence[Row], width: int) -> Iterator[RenderableType]:
    """The client's energy by device and bearer; below it, what is missing and whether the tail is in it."""
    known = [row for row in rows if row["energy_j"] is not None]
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in known))
    yield from _that_fit(lambda some: _energy_table(known, some), places[:MAX_PLACES], width)
    shown = set(list(dict.fromkeys((row["device"], row["bearer"]) for row in rows))[:MAX_PLACES] + places)
    lacking: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        if row["energy_missing"] and (row["device"], row["bearer"]) in shown:
            none = row["energy_j"] is None
            where = f"{row['device']} over {row['bearer']}" if none else row["device"]
            lacking.setdefault(("no energy" if none else "energy", row["energy_missing"]), {})[where] = None
    for (what, missing), some in lacking.items():
        link = "without" if what == "energy" else "for want of"
        yield f"{what} of {', '.join(some)} {link} {missing}"
    tails = dict.fromkeys(row["energy_tail"] for row in rows if row["energy_tail"])
    yield from (f"energy {tail}" for tail in tails)


def _energy_table(rows: Sequence[Row], places: Sequence[Place]) -> Table:
    table = titled_table("Modelled: energy of the client for one handshake")
    found = {(row["label"], row["device"], row["bearer"]): row for row in rows}
    table.add_column("suite", no_wrap=True)
    for device, bearer in places:
        table.add_column(f"{device}\n{bearer}", justify="right")
    for suite in dict.fromkeys(row["label"] for row in rows):
        table.add_row(suite, *(_energy_cell(found.get((suite, *place))) for place in places))
    return table


def _energy_cell(row: Row | None) -> str:
    """A lower bound where a part is missing; else with its range, as `predict` prints it."""
    if row is None:
        return NOTHING
    low, high = row["energy_low_j"], row["energy_high_j"]
    if row["energy_missing"] or row["missing"] or high is None:
        return f"≥ {energy(row['energy_j'])}"
    return f"{energy(row['energy_j'])}\n({energy(low)} – {energy(high)})"


def _captured(view: pl.DataFrame) -> Table:
    """Seconds of the captured handshakes by device and bearer, at the lowest rate."""
    rows = view.filter(pl.col("rate_per_s") == pl.col("rate_per_s").min()).to_dicts()
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in rows))[:MAX_PLACES]
    totals = {
        (row["capture"], row["label"], row["device"], row["bearer"]): marked(
            time(row["ready_mean_s"], 2), row["basis"]
        )
        for row in rows
    }
    table = titled_table(
        f"Modelled from captured handshakes: time to {rows[0]['server_device']}",
        legend(row["basis"] for row in rows),
    )
    table.add_column("captured", no_wrap=True)
    for device, bearer in places:
        table.add_column(f"{device}\n{bearer}", justify="right")
    for capture, suite in dict.fromkeys((row["capture"], row["label"]) for row in rows):
        table.add_row(suite, *(totals.get((capture, suite, *place), NOTHING) for place in places))
    return table
