"""Options and tables of the commands that price recorded handshakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shakedown.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from shakedown.pricing.predict import Capacity, Prediction

F = TypeVar("F", bound=Callable[..., Any])


class Rate(click.ParamType[float]):
    """Handshakes per second, with a unit or without."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `300/s`, `20/min`, `300`."""
        from shakedown.units import parse_rate_per_s

        return _converted(self, parse_rate_per_s, value, param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, with a unit or without."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads `2s`, `250ms`, `2`."""
        from shakedown.units import parse_duration_s

        return _converted(self, parse_duration_s, value, param, ctx)


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


def scenario_options(command: F) -> F:
    """Adds the options that say where a handshake runs: devices, bearer, workers, traces."""
    for option in (
        click.option(
            "--traces",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Recorded handshakes, as measure --json prints them; left out, the library shipped.",
        ),
        click.option(
            "--scale-from", metavar="DEVICE", help="Stands in, by the clock, for a device without figures."
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Workers of the server.",
        ),
        click.option(
            "--bearer", default="lte", show_default=True, help="Network: a name, or a profile's path."
        ),
        click.option("--server-device", default="server", show_default=True, help="Where the server runs."),
        click.option("--device", default="phone", show_default=True, help="Where the client runs."),
    ):
        command = option(command)
    return command


def prediction_table(rows: Sequence[Prediction]) -> Table:
    """Predictions for people."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("suite", no_wrap=True)
    for heading in ("client", "server", "transmission", "queue", "total", "from", "to", "load", "figures"):
        table.add_column(heading, justify="right")
    for row in rows:
        guessed = sum(1 for figure in row["extrapolated"] if figure["time_s"] > 0.0)
        table.add_row(
            Text(row["suite"]),
            seconds(row["client_s"]),
            seconds(row["server_s"]),
            seconds(row["transmission_s"]),
            seconds(row["queue_s"]),
            seconds(row["total_s"]),
            *(seconds(end) for end in row["range_s"]),
            f"{row['utilisation']:.0%}",
            f"{guessed} extrapolated" if guessed else "own",
        )
    return table


def capacity_table(rows: Sequence[Capacity]) -> Table:
    """Capacities for people."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("suite", no_wrap=True)
    table.add_column("handshakes/s", justify="right")
    table.add_column("load", justify="right")
    for row in rows:
        rate, load = row["rate_per_s"], row["utilisation"]
        shown = "no limit known" if rate is None else "unreachable" if rate == 0.0 else figure(rate)
        table.add_row(Text(row["suite"]), shown, "–" if load is None else f"{load:.0%}")
    return table


def figure(rate_per_s: float) -> str:
    """A rate for people: whole above a hundred, three figures below."""
    return f"{rate_per_s:,.0f}" if rate_per_s >= 100.0 else f"{rate_per_s:.3g}"


def seconds(value: float | None) -> str:
    """A time for people: three figures and a unit, or what a missing one means."""
    if value is None:
        return "no steady state"
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return "0" if value == 0.0 else f"{value / 1e-9:.3g} ns"
