"""`stacks`: the implementations that run suites."""

from __future__ import annotations

import click

from shakedown.cli._output import print_objects, rows_options
from shakedown.reporting.columns import Selection


@click.command("stacks", epilog="Example: shakedown stacks")
@rows_options("catalogue.STACKS")
def command(selection: Selection) -> None:
    """List the stacks: the TLS and WTLS implementations."""
    from shakedown import native

    print_objects(native.stacks(), selection)
