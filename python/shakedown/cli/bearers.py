"""`bearers`: the network profiles, shipped and own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shakedown.cli._output import echo, json_option, print_json, print_objects, rows_options

if TYPE_CHECKING:
    from shakedown.reporting.columns import Selection
    from shakedown.schema.profiles import BearerEnergy


@click.command("bearers", epilog="Example: shakedown bearers 'gprs-*'")
@json_option
@rows_options("catalogue.BEARERS")
@click.argument("names", nargs=-1, metavar="[NAME]…")
def command(names: tuple[str, ...], as_json: bool, selection: Selection) -> None:
    """List the bearer profiles; with NAME…, only those, with their sources.

    NAME may be a pattern, as in "bearers 'gprs-*'", or a part of names or titles, as in "bearers satellite".
    """
    from shakedown.api.catalogue import bearers

    found = bearers(*names)
    if as_json:
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
        for aspect, texts in profile.source.items():
            for text in texts:
                echo(f"{profile.name}: {aspect}{': ' if aspect else ''}{text}")
        for aspect, reason in profile.assumed.items():
            echo(f"{profile.name}: {aspect}: assumed: {reason}")


def _power(energy: BearerEnergy) -> str:
    """What the radio draws, by state; one that is not known is left out."""
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
