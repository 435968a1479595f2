"""`primitives`: what each cryptographic operation costs on this machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from shakedown.cli._output import console, json_option, note, print_json, progress_bar
from shakedown.cli._scenario import Duration


@click.command("primitives")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option(
    "--filter", "filters", multiple=True, metavar="WORDS", help="The same as WORDs; may be given again."
)
@click.option(
    "--seconds",
    type=Duration(),
    default="1s",
    show_default=True,
    help="Longest time for each key, group or algorithm; all take under three minutes.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the device profile there, under the file's own name.  [default: this-machine's place, "
    "unless WORDs leave some out]",
)
@json_option
def command(
    words: tuple[str, ...], filters: tuple[str, ...], seconds: float, out: Path | None, as_json: bool
) -> None:
    """Time every primitive that the suites use, on this machine.

    Writes the device profile this-machine, which "predict --device this-machine" reads.

    WORDs narrow the list to primitives of which each word begins the operation, algorithm or parameters,
    as in "primitives sign rsa" or "primitives ecdh p256".
    """
    from shakedown import core
    from shakedown.profiles import this_machine_path

    chosen = [*words, *filters]
    with progress_bar(1000, "primitives") as update:
        timed = core.primitives(
            filter=chosen,
            seconds=seconds,
            progress=lambda done, total, name: update(1000 * done // total, name),
        )
    path = out or (None if chosen else this_machine_path())
    if path is not None:
        _write_profile(timed, path)
    if as_json:
        print_json(timed)
    else:
        from shakedown.terminal.primitive_tables import primitive_tables

        for table in primitive_tables(timed):
            console().print(table, "")
    if path is not None:
        note(f"{len(timed)} primitives written to {path}")


def _write_profile(timed: list[dict[str, object]], path: Path) -> None:
    """Writes beside the file first, so that a full disk leaves no half of a profile."""
    import tomllib

    from shakedown import core
    from shakedown.errors import InputError, os_reason
    from shakedown.profiles.device import parse_device

    date = datetime.now(tz=UTC).date().isoformat()
    text = core.device_profile(timed, name=path.stem, date=date)
    parse_device(tomllib.loads(text), str(path))
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: {os_reason(error)}; accepted: a file that can be written") from None
