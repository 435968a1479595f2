"""`bearers`: the network profiles, shipped and own."""

from __future__ import annotations

import click

from shakedown.cli._output import console, json_option, print_json


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

    table = Table("bearer", "title", box=None, pad_edge=False, header_style="bold")
    for heading in ("up", "down", "one way", "spread", "loss"):
        table.add_column(heading, justify="right")
    for profile in profiles:
        table.add_row(
            profile.name,
            Text(profile.title),
            _rate(profile.up_bits_per_s),
            _rate(profile.down_bits_per_s),
            f"{profile.traversal_s * 1e3:g} ms",
            f"{profile.traversal_sd_s * 1e3:g} ms" if profile.traversal_sd_s else "–",
            f"{profile.loss:.0%}" if profile.loss else "–",
        )
    console().print(table)
    if names:
        for profile in profiles:
            for line in (*profile.source, profile.note):
                if line:
                    click.echo(f"{profile.name}: {line}")
            for key, reason in profile.assumed.items():
                click.echo(f"{profile.name}: assumed: {key}: {reason}")


def _rate(bits_per_s: float) -> str:
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= size:
            return f"{bits_per_s / size:g} {unit}"
    return f"{bits_per_s:g} bit/s"
