"""`primitives`: what each cryptographic operation costs on this machine."""

from __future__ import annotations

import click

from shakedown.cli._output import console, json_option, print_json, progress_bar


@click.command("primitives")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True, max=60),
    default=0.5,
    show_default=True,
    help="Time spent on each primitive.",
)
@json_option
def command(words: tuple[str, ...], seconds: float, as_json: bool) -> None:
    """Time every primitive that the suites use, on this machine.

    WORDs narrow the list to primitives whose name contains every one of them, as in "primitives sign rsa".
    """
    from shakedown import core

    with progress_bar(100, "primitives") as update:
        timed = core.primitives(
            filter=list(words) or None, seconds=seconds, progress=lambda done: update(done, "primitives")
        )
    if as_json:
        print_json(timed)
        return
    from shakedown.tables import primitive_table

    console().print(primitive_table(timed))
