"""`doctor`: what is missing on this machine, and which features that disables."""

from __future__ import annotations

import click

from shakedown.cli._output import print_objects, rows_options
from shakedown.reporting.columns import Selection


@click.command("doctor", epilog="Example: shakedown doctor")
@rows_options("comparison.DIAGNOSES")
def command(selection: Selection) -> None:
    """Check this machine: what is missing, and which features need it."""
    from shakedown.doctor import diagnose

    print_objects(diagnose(), selection)
