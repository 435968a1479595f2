"""`suites`: what can be run, and what cannot and why."""

from __future__ import annotations

import click

from shakedown.cli._output import console, json_option, print_json


@click.command("suites")
@click.option("--all", "show_all", is_flag=True, help="Also those that cannot be run, each with the reason.")
@json_option
@click.argument("words", nargs=-1, metavar="[WORD]…")
def command(show_all: bool, as_json: bool, words: tuple[str, ...]) -> None:
    """List the suites: what a handshake can negotiate here.

    WORDs narrow the list to names that contain every one of them, as in "suites tls1.2 mutual".
    """
    from shakedown import core

    entries = [entry for entry in core.suites(all=show_all) if all(word in entry["suite"] for word in words)]
    if as_json:
        print_json(entries)
        return
    if not show_all:
        for entry in entries:
            click.echo(entry["suite"])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("suite", "stack", "runs", "why not", box=None, pad_edge=False, header_style="bold")
    for entry in entries:
        runs = "yes" if entry["supported"] else "no"
        table.add_row(Text(entry["suite"]), entry["stack"] or "–", runs, Text(entry["reason"] or ""))
    console().print(table)
