"""`inspect`: what handshakes a capture holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shakedown.cli._output import console, json_option, print_json


@click.command("inspect")
@click.argument("capture", type=click.Path(path_type=Path), metavar="FILE.pcap")
@click.option("--keylog", type=click.Path(path_type=Path), help="Key log that unlocks what is encrypted.")
@click.option(
    "--traces",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write what predict --traces takes: the connections whose suite is fully visible.",
)
@json_option
def command(capture: Path, keylog: Path | None, traces: Path | None, as_json: bool) -> None:
    """Read a capture: its connections, their handshake messages and bytes.

    Without a key log, what is readable on the wire.
    """
    from shakedown import core
    from shakedown.errors import InputError

    found = core.inspect(capture, keylog)
    connections = found["connections"]
    if traces is not None:
        _write_traces(traces, found)
    if as_json:
        print_json(connections)
    elif not connections:
        click.echo(f"{capture}: no handshake in it")
    else:
        from shakedown.tables import connection_table

        for number, connection in enumerate(connections, start=1):
            console().print(connection_table(number, connection))
    if found["problem"] is not None:
        # What could be read has been shown; that it is not all must not be overlooked.
        raise InputError(f"{capture}: {found['problem']}; the connections before that are complete")


def _write_traces(path: Path, found: dict[str, Any]) -> None:
    """One JSON array, whole or not at all; says which connections are left out."""
    import json

    if not found["traces"]:
        from shakedown.errors import InputError

        raise InputError(f"no connection of the capture makes a trace: {'; '.join(found['refused'][:3])}")
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(found["traces"], indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
    for reason in found["refused"]:
        click.echo(f"left out: {reason}", err=True)
