"""`suites`: suites that can run, and those that cannot, with reasons."""

from __future__ import annotations

import click

from shakedown.cli._output import echo, print_objects, rows_options
from shakedown.errors import InputError, did_you_mean
from shakedown.reporting.columns import Selection


@click.command("suites", epilog="Example: shakedown suites 'tls1.3/*/mldsa65/server'")
@click.option(
    "--all", "show_all", is_flag=True, help="Also list suites that cannot run, each with the reason."
)
@rows_options("catalogue.SUITES")
@click.argument("words", nargs=-1, metavar="[WORD]…")
def command(show_all: bool, words: tuple[str, ...], selection: Selection) -> None:
    """List suites that can run on this machine.

    The list has all combinations of protocol, key exchange, authentication and mode, with
    the default group, key and cipher. It also has suites in which one of these three parts
    has another value. Other combinations run too.

    WORDs select names that contain all of them, as in "suites tls1.2 mutual", or that a
    pattern matches, as in "suites 'tls1.3/*/mldsa*/server'".
    """
    from shakedown.api import catalogue

    entries = catalogue.suites(*words, all=show_all)
    if not entries:
        raise InputError(_no_suite(words))
    if show_all or selection != Selection():
        print_objects(entries, selection, "SuiteEntry")
        return
    for entry in entries:
        echo(entry.suite)


def _no_suite(words: tuple[str, ...]) -> str:
    """The error if no suite matches, with the accepted words."""
    from shakedown.api import catalogue

    runs = [entry.suite for entry in catalogue.suites()]
    here = dict.fromkeys(suite.partition("/")[0] for suite in runs)
    others = {entry.suite.partition("/")[0] for entry in catalogue.suites(all=True)} - here.keys()
    protocols = f"protocols that run here: {', '.join(here)}"
    for word in words:
        absent = sorted(other for other in others if other.startswith(word.partition("/")[0].lower()))
        if absent:
            some = " or ".join(absent)
            return f'no stack here runs {some}; {protocols}; "shakedown suites --all" lists all with reasons'
    known = sorted({part for suite in runs for part in suite.split("/")})
    strange = [word for word in words if not any(word in part for part in known)]
    hint = next(filter(None, (did_you_mean(word, known) for word in strange)), "")
    return (
        f'no suite matches "{" ".join(words)[:60]}"{hint or ";"} accepted: parts of names, as in "suites '
        f'tls1.3 mutual", or patterns; {protocols}; "shakedown suites" lists all'
    )
