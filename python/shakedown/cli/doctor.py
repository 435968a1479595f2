"""`doctor`: what the machine lacks, and what that disables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._output import json_option, print_json, print_rows, rows_options

if TYPE_CHECKING:
    from shakedown.reporting.columns import Column, Selection


def _columns(_given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns.comparison import DIAGNOSES

    return DIAGNOSES


@click.command("doctor", epilog="Example: shakedown doctor")
@json_option
@rows_options(_columns)
def command(as_json: bool, selection: Selection) -> None:
    """Check this machine: what is missing, and which features need it."""
    from shakedown.doctor import diagnose
    from shakedown.schema.base import builtins

    found = diagnose()
    if as_json:
        print_json(found)
    else:
        print_rows(_columns({}), map(builtins, found), selection)
