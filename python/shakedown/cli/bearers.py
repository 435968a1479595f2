"""`bearers`: the network profiles, shipped and own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shakedown.cli._output import console, echo_folded, json_option, print_json

if TYPE_CHECKING:
    from shakedown.profiles.bearer import BearerEnergy


@click.command("bearers")
@json_option
@click.argument("names", nargs=-1, metavar="[NAME]…")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the bearer profiles; with NAME…, only those, with their sources."""
    from shakedown.profiles import bearer_names, load_bearer

    profiles = [load_bearer(name) for name in names or bearer_names()]
    if as_json:
        print_json([profile.as_json() for profile in profiles])
        return
    from rich.table import Table
    from rich.text import Text

    from shakedown.reporting.terminal.figures import time

    screen = console()
    # Beside figures that are never folded a title needs this much; narrower screens go without.
    titled = screen.width >= MIN_WIDTH_WITH_TITLES
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("bearer", no_wrap=True)
    if titled:
        table.add_column("title")
    for heading in ("up", "down", "one way", "95 %", "loss", "from idle"):
        table.add_column(heading, justify="right", no_wrap=True)
    for profile in profiles:
        up, down = profile.up.delay, profile.down.delay
        table.add_row(
            profile.name,
            *([Text(profile.title)] if titled else []),
            _rate(profile.up_bits_per_s),
            _rate(profile.down_bits_per_s),
            time((up.quantile_s(0.5) + down.quantile_s(0.5)) / 2.0),
            time((up.quantile_s(0.95) + down.quantile_s(0.95)) / 2.0),
            f"{100.0 * profile.loss:.2g}%" if profile.loss else "–",
            time(profile.setup.quantile_s(0.5)) if profile.setup else "–",
        )
    screen.print(table)
    if names:
        for profile in profiles:
            if not titled:
                echo_folded(f"{profile.name}: {profile.title}")
            if profile.note:
                echo_folded(f"{profile.name}: {profile.note}")
            if profile.energy.known:
                echo_folded(f"{profile.name}: radio: {_power(profile.energy)}")
            for aspect, texts in profile.source.items():
                for text in texts:
                    echo_folded(f"{profile.name}: {aspect}{': ' if aspect else ''}{text}")
            for aspect, reason in profile.assumed.items():
                echo_folded(f"{profile.name}: {aspect}: assumed: {reason}")


MIN_WIDTH_WITH_TITLES = 110
"""Columns of a screen on which titles have a column of their own."""


def _power(energy: BearerEnergy) -> str:
    """What the radio draws, by state; one that is not known is left out."""
    said = []
    for watts, state in (
        (energy.send_w, "sending"),
        (energy.receive_w, "receiving"),
        (energy.idle_w, "connected"),
    ):
        if watts is not None:
            said.append(f"{watts:g} W {state}")
    if energy.send_j_per_byte is not None and energy.receive_j_per_byte is not None:
        said.append(f"{energy.send_j_per_byte:g} J a byte sent, {energy.receive_j_per_byte:g} J received")
    if energy.setup_j is not None:
        said.append(f"{energy.setup_j:g} J from idle")
    if energy.tail_w is not None and energy.tail_s is not None:
        said.append(f"tail of {energy.tail_s:g} s at {energy.tail_w:g} W" if energy.tail_s else "no tail")
    return ", ".join(said) + f"; ×/÷ {energy.spread:g}"


def _rate(bits_per_s: float) -> str:
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= size:
            return f"{bits_per_s / size:g} {unit}"
    return f"{bits_per_s:g} bit/s"
