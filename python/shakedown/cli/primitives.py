"""`primitives`: the cost of each cryptographic operation on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._output import (
    counted,
    force_option,
    note,
    print_objects,
    rows_options,
)
from shakedown.cli._types import FILE, Duration
from shakedown.reporting.columns import Selection

if TYPE_CHECKING:
    from shakedown.schema.primitives import Timing


@click.command("primitives", epilog="Example: shakedown primitives sign p256 --seconds 100ms")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option(
    "--filter", "filters", multiple=True, metavar="WORDS", help="The same as WORDs; may be repeated."
)
@click.option(
    "--seconds",
    type=Duration(),
    default="1s",
    show_default=True,
    help="Limit of time for each key, group or algorithm.",
)
@click.option(
    "--out",
    type=FILE,
    help="Write the device profile to FILE; the profile gets the file's name.  [default: as this-machine, "
    "unless WORDs are given]",
)
@force_option
@rows_options("primitives.PRIMITIVES")
def command(
    words: tuple[str, ...],
    filters: tuple[str, ...],
    seconds: float,
    out: Path | None,
    force: bool,
    selection: Selection,
) -> None:
    """Time every primitive that the suites use, on this machine.

    Writes the device profile this-machine, which "predict --device this-machine" reads.

    WORDs select primitives: each WORD must be the beginning of the operation, algorithm or parameters, as
    in "primitives sign rsa" or "primitives ecdh p256".
    """
    from shakedown.api import in_memory
    from shakedown.files.write import check_free
    from shakedown.profiles import this_machine_path

    chosen = [*words, *filters]
    if out is not None:
        check_free(out, force)
    with counted("primitives") as update:
        timed = in_memory.primitives(*chosen, seconds=seconds, progress=update)
    path = out or (None if chosen else this_machine_path())
    if path is not None:
        # The profile of this machine is always replaced.
        _write_profile(timed, path, replace=force or out is None)
    print_objects(timed, selection)
    if path is not None:
        note(f"{len(timed)} primitives written to {path}")


def _write_profile(timed: Sequence[Timing], path: Path, *, replace: bool) -> None:
    from shakedown import native
    from shakedown.profiles.importers import write_profile

    date = datetime.now(tz=UTC).date().isoformat()
    write_profile(path, native.device_profile(timed, name=path.stem, date=date), replace=replace)
