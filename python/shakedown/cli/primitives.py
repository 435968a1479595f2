"""`primitives`: the cost of each cryptographic operation on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._output import (
    counted,
    force_option,
    note,
    print_objects,
    results_so_far,
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

    Writes the device profile this-machine, which "predict --device this-machine" reads, unless "devices
    measure" wrote one. Ctrl-C prints the primitives so far, and writes them to FILE if that is new.

    WORDs select primitives: each WORD must be the beginning of the operation, algorithm or parameters, as
    in "primitives sign rsa" or "primitives ecdh p256".
    """
    from shakedown import native
    from shakedown.errors import InputError
    from shakedown.files.write import check_writable, made_folders
    from shakedown.native.core import extension
    from shakedown.profiles import this_machine_path

    chosen = [*words, *filters]
    path = out or (None if chosen else this_machine_path())
    # The profile of this machine is replaced, unless "devices measure" wrote it.
    replace = force or out is None
    if path is not None:
        if out is None and not force and _is_of_devices_measure(path):
            raise InputError(
                f'{path}: contains measurements of "devices measure", which would be lost; '
                "accepted: --out FILE, or --force to replace it"
            )
        with made_folders(path.parent) if out is None else nullcontext():
            check_writable(path, replace)
    timed: list[Timing] = []

    def write_and_show(path: Path | None) -> None:
        try:
            if timed and path is not None:
                _write_profile(timed, path, replace=replace)
        finally:
            if timed or selection.json:
                print_objects(timed, selection)
        if timed and path is not None:
            note(f"{len(timed)} primitives written to {path}")

    native.check_text("filter", chosen)
    total = len(extension().primitive_names(chosen))
    # A profile with some of the primitives replaces nothing.
    new = None if out is None or os.path.lexists(out) else out
    with (
        results_so_far(timed, partial(write_and_show, new), total, "primitives timed"),
        counted("primitives") as update,
    ):
        complete = native.primitives(filter=chosen, seconds=seconds, progress=update, on_timed=timed.extend)
    timed[:] = complete
    write_and_show(path)


def _is_of_devices_measure(path: Path) -> bool:
    """Whether a profile has the stack's work, which only `devices measure` measures."""
    from shakedown.errors import InputError
    from shakedown.profiles import load_device

    try:
        return path.exists() and load_device(str(path)).overhead.known
    except InputError:
        # A profile that cannot be read is of no use.
        return False


def _write_profile(timed: Sequence[Timing], path: Path, *, replace: bool) -> None:
    from shakedown import native
    from shakedown.profiles.importers import write_profile

    date = datetime.now(tz=UTC).date().isoformat()
    write_profile(path, native.device_profile(timed, name=path.stem, date=date), replace=replace)
