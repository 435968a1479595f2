"""`stacks`: the implementations that run suites."""

from __future__ import annotations

import click

from shakedown.cli._output import console, json_option, print_json


@click.command("stacks")
@json_option
def command(as_json: bool) -> None:
    """List the stacks: the implementations that run handshakes here."""
    from shakedown import native

    found = native.stacks()
    if as_json:
        print_json(found)
        return
    from shakedown.reporting.terminal.tables import plain_table

    table = plain_table(["stack", "version", "as a client", "as a server"])
    for one in found:
        table.add_row(one.name, one.version, " ".join(one.client), " ".join(one.server))
    console().print(table)
