"""`stacks`: the implementations that run suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shakedown.cli._output import json_option, print_json, print_objects, rows_options

if TYPE_CHECKING:
    from shakedown.reporting.columns import Selection


@click.command("stacks", epilog="Example: shakedown stacks")
@json_option
@rows_options("catalogue.STACKS")
def command(as_json: bool, selection: Selection) -> None:
    """List the stacks: the TLS and WTLS implementations."""
    from shakedown import native

    found = native.stacks()
    if as_json:
        print_json(found)
    else:
        print_objects(found, selection)
