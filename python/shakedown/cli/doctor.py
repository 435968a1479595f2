"""`doctor`: what the machine lacks, and what that disables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shakedown.cli._output import json_option, print_json, print_objects, rows_options

if TYPE_CHECKING:
    from shakedown.reporting.columns import Selection


@click.command("doctor", epilog="Example: shakedown doctor")
@json_option
@rows_options("comparison.DIAGNOSES")
def command(as_json: bool, selection: Selection) -> None:
    """Check this machine: what is missing, and which features need it."""
    from shakedown.doctor import diagnose

    found = diagnose()
    if as_json:
        print_json(found)
    else:
        print_objects(found, selection)
