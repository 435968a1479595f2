"""`inspect`: what handshakes a capture holds."""

from __future__ import annotations

from pathlib import Path

import click

from shakedown.cli._output import console, json_option, print_json


@click.command("inspect")
@click.argument("capture", type=click.Path(path_type=Path), metavar="FILE.pcap")
@click.option("--keylog", type=click.Path(path_type=Path), help="Key log that unlocks what is encrypted.")
@json_option
def command(capture: Path, keylog: Path | None, as_json: bool) -> None:
    """Read a capture: its connections, their handshake messages and bytes.

    Without a key log, what is readable on the wire.
    """
    from shakedown import core

    connections = core.inspect(capture, keylog)
    if as_json:
        print_json(connections)
        return
    if not connections:
        click.echo(f"{capture}: no handshake in it")
        return
    from shakedown.tables import connection_table

    for number, connection in enumerate(connections, start=1):
        console().print(connection_table(number, connection))
