"""`bearers`: the network profiles of the package and of the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._output import echo, print_json, print_objects, rows_options
from shakedown.cli._types import BEARER
from shakedown.reporting.columns import Selection

if TYPE_CHECKING:
    from shakedown.schema.profiles import BearerEnergy, Cell


@click.command("bearers", epilog="Example: shakedown bearers 'gprs-*'")
@rows_options("catalogue.BEARERS")
@click.argument("names", nargs=-1, metavar="[NAME]…", type=BEARER)
def command(names: tuple[str, ...], selection: Selection) -> None:
    """List the bearer profiles; with NAME…, only those, with their sources.

    NAME may be a pattern, as in "bearers 'gprs-*'", or a part of names or titles, as in "bearers satellite".
    """
    from shakedown.api.catalogue import bearers

    found = bearers(*names)
    if selection.json:
        print_json([profile.as_json() for profile in found])
        return
    print_objects(found, selection)
    if selection.csv:
        return
    for profile in found if set(names) >= {one.name for one in found} else ():
        echo(f"{profile.name}: {profile.title}")
        if profile.note:
            echo(f"{profile.name}: {profile.note}")
        if profile.energy.send_w is not None or profile.energy.send_j_per_byte is not None:
            echo(f"{profile.name}: radio: {_power(profile.energy)}")
        for line in () if profile.cell is None else _shared(profile.cell):
            echo(f"{profile.name}: {line}")
        for aspect, texts in profile.source.items():
            for text in texts:
                echo(f"{profile.name}: {aspect}{': ' if aspect else ''}{text}")
        for aspect, reason in profile.assumed.items():
            echo(f"{profile.name}: {aspect}: assumed: {reason}")


def _power(energy: BearerEnergy) -> str:
    """The radio's power by state, without unknown ones, and its energies."""
    from shakedown.reporting.figures import energy as joules
    from shakedown.reporting.figures import power

    said = []
    for watts, state in (
        (energy.send_w, "sending"),
        (energy.receive_w, "receiving"),
        (energy.idle_w, "connected"),
    ):
        if watts is not None:
            said.append(f"{power(watts)} {state}")
    if energy.send_j_per_byte is not None and energy.receive_j_per_byte is not None:
        sent, received = joules(energy.send_j_per_byte, 3), joules(energy.receive_j_per_byte, 3)
        said.append(f"{sent} a byte sent, {received} received")
    if energy.setup_j is not None:
        said.append(f"{joules(energy.setup_j, 3)} from idle")
    if energy.tail_w is not None and energy.tail_s is not None:
        said.append(f"tail of {energy.tail_s:g} s at {power(energy.tail_w)}" if energy.tail_s else "no tail")
    return ", ".join(said) + f"; ×/÷ {energy.spread:g}"


def _shared(cell: Cell) -> Iterator[str]:
    """The resources that the clients of a cell share, and how they get access to them."""
    from shakedown.reporting.columns.catalogue import bit_rate
    from shakedown.schema.base import builtins

    up, down = cell.up_bits_per_s, cell.down_bits_per_s
    rates = (
        "rates of one client" if up is None or down is None else f"{bit_rate(up)} up, {bit_rate(down)} down"
    )
    scheduled = up is not None and cell.contention is None
    duplex = ", half duplex" if cell.half_duplex else ""
    yield f"cell: {rates}{duplex}{f', scheduler: {cell.scheduler}' if scheduled else ''}"
    for access in (cell.entry, cell.contention):
        if access is not None:
            settings = builtins(access)
            yield f"access: {settings.pop('kind')}: {_settings(settings)}"


def _settings(table: Mapping[str, Any]) -> str:
    """The keys of a table of `[cell]` as in the profile, without those that are 0 or null."""
    shown = []
    for key, value in table.items():
        if isinstance(value, dict):
            shown.append(f"{key}: {_settings(value)}")
        elif value and key.endswith("_s"):
            shown.append(f"{key.removesuffix('_s')}_ms {value * 1e3:g}")
        elif value:
            shown.append(f"{key} {value}")
    return ", ".join(shown)
