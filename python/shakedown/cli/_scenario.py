"""Options and tables of the commands that price recorded handshakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shakedown.cli._options import FILE
from shakedown.errors import InputError
from shakedown.files.limits import MAX_WORKERS
from shakedown.reporting.terminal.figures import BASIS_MARKS, LEGEND, no_figure, rough, share, time
from shakedown.reporting.terminal.tables import figures_table, fitted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

F = TypeVar("F", bound=Callable[..., Any])
Row = Mapping[str, Any]


class Rate(click.ParamType[float]):
    """Handshakes per second, with a unit or without."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `300/s`, `20/min`, `300`."""
        from shakedown.schema.units import parse_rate_per_s

        return _converted(self, parse_rate_per_s, value, param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, with a unit or without."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `2s`, `250ms`, `2`."""
        from shakedown.schema.units import parse_duration_s

        return _converted(self, parse_duration_s, value, param, ctx)


class PromisedTime(Duration):
    """A duration whose unit must be written: 200 may be meant as seconds or milliseconds."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `2s`, `250ms`."""
        try:
            float(str(value))
        except ValueError:
            return super().convert(value, param, ctx)
        if isinstance(value, str):
            self.fail(f'"{value}" has no unit; accepted: {value}ms, {value}s', param, ctx)
        return super().convert(value, param, ctx)


class Charge(click.ParamType[float]):
    """What a battery holds, in joules."""

    name = "charge"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `9000J`, `2.5Wh`, `230mAh@3V`."""
        from shakedown.schema.units import parse_charge_j

        return _converted(self, parse_charge_j, value, param, ctx)


def _converted(
    kind: click.ParamType[float],
    parse: Callable[[str | float], float],
    value: object,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> float:
    try:
        return parse(value if isinstance(value, (int, float)) else str(value))
    except InputError as error:
        kind.fail(str(error), param, ctx)


traces_option = click.option(
    "--traces",
    type=FILE,
    help="Recorded handshakes, as measure --json prints them.  [default: the shipped library]",
)
scale_from_option = click.option(
    "--scale-from", metavar="DEVICE", help="Stands in, by the clock, for a device without figures."
)
bearer_option = click.option(
    "--bearer", default="lte", show_default=True, help="Network: a name, or a profile's path."
)
_workers_option = click.option(
    "--server-workers",
    "workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=1,
    show_default=True,
    help="Workers of the server.",
)
_server_device_option = click.option(
    "--server-device", default="server", show_default=True, help="Where the server runs."
)
_device_option = click.option(
    "--device", default="phone", show_default=True, help="Where the client runs: NAME or NAME:VARIANT."
)


def scenario_options(command: F) -> F:
    """Adds the options that say where a handshake runs: devices, bearer, workers, traces."""
    for option in (
        traces_option, scale_from_option, _workers_option,
        bearer_option, _server_device_option, _device_option,
    ):  # fmt: skip
        command = option(command)
    return command


def prediction_tables(rows: Sequence[Row], width: int) -> list[RenderableType]:
    """Predictions for people: one table where the screen has columns for it, else suites numbered and named
    below; then what is guessed, and what cannot be priced.
    """
    good = [row for row in rows if "error" not in row]
    tables: list[RenderableType] = []
    if good:
        whole, short = _prediction_columns(good)
        names = [row["suite"] for row in good]
        tables = fitted(lambda *labels: _prediction_table(good, *labels), names, whole, short, width)
        tables += _legend(good)
    return [*tables, *_failures(rows)]


def _prediction_columns(rows: Sequence[Row]) -> tuple[Sequence[str], Sequence[str]]:
    """All columns that have figures, and those that come first."""
    whole: tuple[str, ...] = _PREDICTED
    short: tuple[str, ...] = _PREDICTED_SHORT
    if not any(row.get("energy_j") for row in rows):
        whole, short = whole[:-1], short[:-1]
    elif any(row.get("handshakes_per_charge") for row in rows):
        whole, short = (*whole, "per charge"), _PREDICTED_BATTERY
    if any(row.get("eap") for row in rows):
        whole, short = (_EAP_COLUMN, *whole), (_EAP_COLUMN, *short)
    return whole, short


def _prediction_table(rows: Sequence[Row], names: Sequence[str], columns: Sequence[str]) -> Table:
    table = figures_table(["suite"], columns)
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *(_prediction_cell(row, heading) for heading in columns))
    return table


_EAP_COLUMN = "round trips"
_PREDICTED = (
    "client",
    "server",
    "transmission",
    "queue wait",
    "ready",
    "90 % interval",
    "done",
    "p99",
    "utilisation",
    "energy",
)
_PREDICTED_SHORT = ("client", "server", "transmission", "ready", "90 % interval", "energy")
_PREDICTED_BATTERY = ("client", "server", "ready", "energy", "per charge")


def _prediction_cell(row: Row, heading: str) -> str:
    unknown = "≥ " if row["unpriced"] else ""
    ready, done = row["ready_s"], row["done_s"]
    steady = ready is not None
    if heading in ("client", "server"):
        low, high = row[f"{heading}_range_s"]
        return _mark(row, heading) + ranged(row[f"{heading}_s"], low, high)
    if heading == _EAP_COLUMN:
        return "–" if row.get("eap") is None else f"{row['eap']['round_trips']:,}"
    if heading == "transmission":
        return seconds(row["transmission_s"], 2)
    if heading == "queue wait":
        return seconds(row["queue_s"], 2) if steady else "unstable"
    if heading == "ready":
        return unknown + ranged(ready["mean"], *row["range_s"]) if steady else "no steady state"
    if heading == "done":
        if not steady:
            return "–"
        later_s = done["mean"] - ready["mean"]
        return unknown + ranged(
            done["mean"], *(None if end is None else end + later_s for end in row["range_s"])
        )
    if heading == "90 % interval":
        low, high = row["range_s"]
        if low is None:
            return "–"
        digits = max(2, digits_of(ready["mean"], low, high))
        return f"{seconds(low, digits)} – {'?' if high is None else seconds(high, digits)}"
    if heading == "p99":
        return unknown + seconds(ready["p99"], 2) if steady else "–"
    if heading == "utilisation":
        least = any(one["side"] == "server" for one in row["unpriced"])
        return ("≥ " if least else "") + load(row["utilisation"])
    if heading == "per charge":
        return _per_charge(row)
    return joules(row["energy_j"], row["energy_missing"])


def _per_charge(row: Row) -> str:
    """How many handshakes a charge lasts for, with its range; ≤ where a part of the energy is missing."""
    count, energy = row["handshakes_per_charge"], row["energy_j"]
    if count is None:
        return "–"
    if row["energy_missing"]:
        return f"≤ {rough(count, 2)}"
    least, most = (count * energy["mean"] / energy[end] for end in ("high", "low"))
    digits = digits_of(count, least, most)
    return f"{rough(count, digits)} ({rough(least, 2)} – {rough(most, 2)})"


def _mark(row: Row, side: str) -> str:
    from shakedown.prediction.prices import MATTERS

    if any(one["side"] == side for one in row["unpriced"]):
        return "≥ "
    whole = row[f"{side}_s"]
    guessed: dict[str, float] = {}
    for one in row["extrapolated"]:
        if one["side"] in (side, ""):
            guessed[one["basis"]] = guessed.get(one["basis"], 0.0) + one["range_s"][1]
    for basis in ("assumed", "scaled"):
        if guessed.get(basis, 0.0) > MATTERS * whole:
            return BASIS_MARKS[basis] + " "
    return ""


def _legend(rows: Sequence[Row]) -> list[str]:
    lines = []
    marks = {_mark(row, side).strip() for row in rows for side in ("client", "server")}
    shown = [text for mark, text in LEGEND.items() if mark in marks]
    if shown:
        lines.append("; ".join(shown))
    lines += _missing(rows)
    without = dict.fromkeys(part for row in rows for part in row.get("energy_missing", ()))
    inside = next((row["eap"] for row in rows if row.get("eap")), None)
    if inside is not None:
        lines.append(
            f"inside EAP: round trips are Access-Requests, each {seconds(inside['radius_hop_s'], 2)} between "
            "access point and RADIUS server (assumed unless given); fragments hold "
            f"{inside['fragment_bytes']:,} bytes, the server's {inside['server_fragment_bytes']:,}"
        )
    if without:
        some = any(row.get("energy_j") for row in rows)
        lines.append(("energy without " if some else "no energy for want of ") + ", ".join(without))
    if any(row.get("energy_j") for row in rows):
        tails = {row["energy_tail"]: None for row in rows if row["energy_tail"]}
        lines += [f"energy {tail}" for tail in tails]
    return lines + _other_builds(rows)


def _missing(rows: Sequence[Row]) -> Iterable[str]:
    return dict.fromkeys(
        no_figure(*(one[key] for key in ("side", "operation", "algorithm", "parameters", "reason")))
        for row in rows
        for one in row["unpriced"]
    )


def _other_builds(rows: Sequence[Row]) -> list[str]:
    """The other builds of boards of which something has no figure."""
    from shakedown.profiles import load_device

    keys = {"client": "device", "server": "server_device"}
    names = {row[keys[one["side"]]]: None for row in rows for one in row["unpriced"]}
    found = []
    for name in names:
        try:
            others = [one.name for one in load_device(name.partition(":")[0]).variants if one.name != name]
        except InputError:
            continue
        if others:
            found.append(f"other builds of {name.partition(':')[0]}: {', '.join(others)}")
    return found


def capacity_tables(rows: Sequence[Row], width: int) -> list[RenderableType]:
    """Capacities for people."""
    good = [row for row in rows if "error" not in row]
    tables: list[RenderableType] = []
    if good:
        asked = "workers_needed" in good[0]
        whole, short = (columns if asked else columns[:-1] for columns in (_CAPACITY, _CAPACITY_SHORT))
        names = [row["suite"] for row in good]
        tables = fitted(lambda *labels: _capacity_table(good, *labels), names, whole, short, width)
        tables += _unreachable(good)
        tables += _legend_of_capacity(good)
    return [*tables, *_failures(rows)]


_CAPACITY = ("handshakes/s", "90 % interval", "utilisation", "workers")
_CAPACITY_SHORT = ("handshakes/s", "workers")


def _capacity_table(rows: Sequence[Row], names: Sequence[str], columns: Sequence[str]) -> Table:
    headings = [
        f"workers for {per_second(rows[0]['asked_rate_per_s'])}/s" if one == "workers" else one
        for one in columns
    ]
    table = figures_table(["suite"], headings)
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *(_capacity_cell(row, heading) for heading in columns))
    return table


def _capacity_cell(row: Row, heading: str) -> str:
    rate = row["rate_per_s"]
    low, high = row["rate_range_per_s"]
    if heading == "handshakes/s":
        if rate is None:
            return "no server cost is known"
        most = (
            "≤ " if row["unpriced"] else BASIS_MARKS[row["basis"]] + " " if BASIS_MARKS[row["basis"]] else ""
        )
        return "unreachable" if rate == 0.0 else most + per_second(rate, digits_of(rate, low, high))
    if heading == "90 % interval":
        if not rate:
            return "–"
        return f"{per_second(low, 2)} – {'?' if high is None else per_second(high, 2)}"
    if heading == "utilisation":
        return "–" if row["utilisation"] is None else load(row["utilisation"])
    needed, (least, most_workers) = row["workers_needed"], row["workers_range"]
    if needed is None:
        return "none is enough"
    ends = f" ({many_workers(least)} – {'?' if most_workers is None else many_workers(most_workers)})"
    return f"{'≥ ' if row['unpriced'] else ''}{many_workers(needed)}{ends if least != most_workers else ''}"


def many_workers(count: int) -> str:
    """A number of workers: beyond a hundred two digits, rounded up."""
    step = 10 ** max(0, len(str(count)) - 2) if count > 100 else 1
    return f"{-(-count // step) * step:,}"


def _unreachable(rows: Sequence[Row]) -> list[str]:
    """What keeps a promise from being kept at any rate."""
    return [
        f"{row['suite']}: {seconds(row['unloaded_s'])} without any load"
        for row in rows
        if row["rate_per_s"] == 0.0
    ]


def _legend_of_capacity(rows: Sequence[Row]) -> list[str]:
    lines = []
    # What is unreachable has no figure to mark.
    bases = {row["basis"] for row in rows if row["rate_per_s"] != 0.0}
    texts = {**LEGEND, "≥": "≤ an upper bound: a part of the work has no figure"}
    shown = [texts[mark] for basis, mark in BASIS_MARKS.items() if basis in bases and mark in texts]
    if shown:
        lines.append("; ".join(shown))
    return [*lines, *_missing(rows), *_other_builds(rows)]


def _failures(rows: Sequence[Row]) -> list[str]:
    return [f"{row['suite']}: {row['error']}" for row in rows if "error" in row]


def digits_of(value: float | None, low: float | None, high: float | None) -> int:
    """How many significant digits a figure's range carries: three within 2 %, else two, one beyond a
    factor of 2.
    """
    if value is None or low is None or high is None or value <= 0.0:
        return 2
    relative = max(high - value, value - low) / value
    return 3 if relative < 0.02 else 2 if relative < 1.0 else 1


def ranged(value: float | None, low: float | None, high: float | None) -> str:
    """A time with the digits that its range carries."""
    return seconds(value, digits_of(value, low, high))


def per_second(rate: float, digits: int = 3) -> str:
    """A rate with N significant digits."""
    return rough(rate, digits)


def load(used: float) -> str:
    """A utilisation in per cent; what is below 1 is never shown as 100 %."""
    if 0.995 <= used < 1.0:
        return "> 99%"
    return f"{rough(used, 2)} times" if used >= 10.0 else share(used)


def joules(energy: Mapping[str, float | None] | None, missing: Sequence[str] = ()) -> str:
    """An energy with its range, or a dash; ≥ where a part is missing."""
    if energy is None:
        return "–"
    mean, low, high = energy["mean"], energy["low"], energy["high"]
    assert mean is not None
    assert low is not None
    # Never one digit: a sum would be below a part of it that is shown beside.
    digits = max(2, digits_of(mean, low, high))
    for size, unit in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")):
        if mean >= size or unit == "µJ":
            ends = f" ({rough(low / size, 2)} – {rough(high / size, 2)})" if high is not None else ""
            return f"{'≥ ' if missing else ''}{rough(mean / size, digits)} {unit}{ends}"
    return "–"


def seconds(value: float | None, digits: int = 3) -> str:
    """A time for people: so many figures and a unit, or what a missing one means."""
    return "no steady state" if value is None else time(float(f"{value:.{digits}g}"), digits)
