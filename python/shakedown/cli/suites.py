"""`suites`: what can be run, and what cannot and why."""

from __future__ import annotations

import click

from shakedown.cli._output import console, echo, json_option, print_json


@click.command("suites")
@click.option("--all", "show_all", is_flag=True, help="Also those that cannot be run, each with the reason.")
@json_option
@click.argument("words", nargs=-1, metavar="[WORD]…")
def command(show_all: bool, as_json: bool, words: tuple[str, ...]) -> None:
    """List the suites: what a handshake can negotiate here.

    WORDs narrow the list to names that contain every one of them, as in "suites tls1.2 mutual".
    """
    from shakedown import api

    entries = api.suites(*words, all=show_all)
    if as_json:
        print_json(entries)
        return
    if not show_all:
        for entry in entries:
            echo(entry.suite)
        return
    from shakedown.reporting.terminal.figures import NOTHING, yes_no
    from shakedown.reporting.terminal.tables import plain_table

    table = plain_table(["suite", "stack", "runs", "why not"])
    for entry in entries:
        table.add_row(entry.suite, entry.stack or NOTHING, yes_no(entry.supported), entry.reason or "")
    console().print(table)
