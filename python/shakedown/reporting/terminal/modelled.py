"""Predictions of an experiment on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.columns import ALWAYS, Column, Row, Selection, label
from shakedown.reporting.columns.flat import energy_text, marked_figure, parted
from shakedown.reporting.columns.modelled import failing, saved_prediction
from shakedown.reporting.columns.notes import ENERGIES, key_shares, no_energies, not_estimated
from shakedown.reporting.figures import NOTHING, bounded, marked, number, rounded_down, share
from shakedown.reporting.terminal.listing import layout, listing
from shakedown.results import queries

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_PLACES = 40
"""Pairs of device and bearer that are printed; the report and the table have the others."""

MAX_RATES = 8
"""Rates that are printed; the report and the table have the others."""


def predicted_tables(results: Results, width: int) -> Iterator[str]:
    """Handshake time and energy by device and bearer at the lowest rate, and the server's load at some rates;
    captured handshakes separately; then the suites that could not be estimated.
    """
    view = results.predictions
    for captured in (False, True):
        rows = view.filter(pl.col("capture").is_not_null() == captured)
        if rows.height:
            lowest = rows["rate_per_s"].min()
            quiet = rows.filter(pl.col("rate_per_s") == lowest).to_dicts()
            yield from _times(quiet, "modelled from captured handshakes" if captured else "modelled", width)
            yield from failing(list(map(saved_prediction, quiet)))
            yield from key_shares(quiet)
            if not captured:
                yield from _loads(rows, width)
                yield from _energies(quiet, width)
    yield from not_estimated(queries.without_cost(results).to_dicts())


def _times(rows: Sequence[Row], what: str, width: int) -> Iterator[str]:
    lowest, server = rows[0]["rate_per_s"], rows[0]["server_device"]
    load = f"{lowest:g} handshakes/s" if lowest else "no other load"
    yield from _by_place(f"{what}: handshake time (s), {load} at {server}", rows, _ready, width)


def _ready(row: Row) -> str:
    value = row["ready_mean_s"]
    if value is None:
        return NOTHING
    return marked(_seconds(rounded_down(value) if row["missing"] else value), row["basis"])


def _by_place(title: str, rows: Sequence[Row], cell: Callable[[Row], str], width: int) -> Iterator[str]:
    """One line per handshake, one column per device and bearer."""
    places = list(dict.fromkeys((row["device"], row["bearer"]) for row in rows))
    lines: dict[object, dict[str, Any]] = {}
    for row in rows:
        line = lines.setdefault((row["capture"], row["label"]), {"label": row["label"]})
        line[f"{row['device']} {row['bearer']}"] = cell(row)
    yield from _tables(title, list(lines.values()), [" ".join(place) for place in places[:MAX_PLACES]], width)
    if len(places) > MAX_PLACES:
        yield f"{len(places) - MAX_PLACES:,} more pairs of device and bearer are in the report and the table"


def _tables(title: str, lines: Sequence[Row], names: Sequence[str], width: int) -> Iterator[str]:
    """As many tables as the screen needs for these columns."""
    suite = label("label", "suite", path=True)
    rest = [Column(key=name, name=name, show=lambda value: value or NOTHING) for name in names]
    while rest:
        first = Column(key=rest[0].key, name=rest[0].name, rank=ALWAYS, show=rest[0].show)
        shown = layout((suite, first, *rest[1:]), lines, Selection(), width).columns
        yield from listing(shown, lines, Selection(), title=title, width=width)
        kept = {one.key for one in shown}
        rest = [one for one in rest[1:] if one.key not in kept]


def _loads(view: pl.DataFrame, width: int) -> Iterator[str]:
    """The server's offered load at some of the rates."""
    rates = [rate for rate in view["rate_per_s"].unique().sort().to_list() if rate]
    lines: dict[str, dict[str, Any]] = {}
    for row in view.unique(["label", "rate_per_s"], keep="first", maintain_order=True).to_dicts():
        found = saved_prediction(row)
        shown = bounded(lambda part: share(part, 1), found["offered"], found["offered_low"], None)
        shown = marked_figure(found, "offered", shown)
        lines.setdefault(row["label"], {"label": row["label"]})[f"at {row['rate_per_s']:g}/s"] = shown
    some = _spread(rates, MAX_RATES)
    if not some:
        return
    server, workers = view["server_device"][0], view["workers"][0]
    each = "one worker" if workers == 1 else f"each of {workers:,} workers"
    title = f"modelled: offered load of {each} of {server}; at 100% or more its queue is unstable"
    yield from _tables(title, list(lines.values()), [f"at {rate:g}/s" for rate in some], width)
    if len(some) < len(rates):
        yield f"{len(rates) - len(some):,} more rates are in the report and the table"


def _spread(rates: Sequence[float], most: int) -> list[float]:
    """The first and the last rate, and evenly spaced ones between them; at most `most`."""
    if len(rates) <= most:
        return list(rates)
    return [rates[round(number * (len(rates) - 1) / (most - 1))] for number in range(most)]


def _seconds(value: float) -> str:
    """Seconds to hundredths; shorter times have two digits."""
    return number(value, 2) if value < 0.1 else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _energies(rows: Sequence[Row], width: int) -> Iterator[str]:
    """The client's energy by device and bearer; then the missing parts, and the terms of set-up and tail."""
    known = [row for row in rows if row["energy_high_j"] is not None]
    if known:
        title = "modelled: energy of the client for one handshake"
        yield from _by_place(title, known, energy_text, width)
    shown = list(dict.fromkeys((row["device"], row["bearer"]) for row in rows))[:MAX_PLACES]
    yield from no_energies(
        (key, parts, row["label"], row["device"], row["bearer"])
        for row in rows
        for key in ENERGIES
        if row[key] is None
        and (parts := row[f"{parted(key)[0]}_missing"])
        and (row["device"], row["bearer"]) in shown
    )
    added = {
        f"wake and tail add {energy_text(row, 'wake_tail_j')} {row['energy_terms']}": None
        for row in known
        if row["wake_tail_j"]
    }
    yield from added
