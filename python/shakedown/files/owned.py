"""The files of a report's page, and whether they are unchanged.

`.PAGE.files.json` next to a page lists the digests of the page and its figures. It is written before these
files. So after an interrupted report, the next one knows all files that the report wrote, and never replaces
or removes files that others wrote or changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from shakedown.errors import InputError
from shakedown.files.limits import MAX_MANIFEST_BYTES, read_bytes
from shakedown.files.write import SPECIAL, digest_of, is_special, remove_left_over, write_durably
from shakedown.schema.base import Object, decode, encode_pretty

FIGURES = "figures"
FORMAT: Literal["shakedown report files"] = "shakedown report files"
ACCEPTED = "another --out, or --force"
ACCEPTED_OF_RUN = 'another folder, or first "shakedown report FOLDER --force"'
"""For commands whose --force replaces only results."""

Made = Mapping[str, tuple[str, ...]]
"""By a file's path from the page's folder: digests of the contents that were written or about to be."""


class MadeFiles(Object, frozen=True, kw_only=True):
    """The files of a page, including the page itself."""

    format: Literal["shakedown report files"] = FORMAT
    files: dict[str, tuple[str, ...]]


def made_for(path: Path) -> Made:
    """The files that reports wrote for a page; empty if their list cannot be read."""
    there = _ledger(path)
    if not there.is_file() or there.is_symlink() or (path.parent / FIGURES).is_symlink():
        return {}
    try:
        found = decode(read_bytes(there, MAX_MANIFEST_BYTES), MadeFiles, str(there))
    except InputError:
        return {}
    # A report writes only into its folder.
    return {name: one for name, one in found.files.items() if _is_inside(name)}


def announce(path: Path, files: Made) -> None:
    """Records the files that were or will be written for a page. Raises `OSError`."""
    content = encode_pretty(MadeFiles(files=dict(files))).encode() + b"\n"
    write_durably(_ledger(path), content, replace=True)


def refuse_foreign(
    folder: Path,
    names: Iterable[str],
    made: Made,
    digests: Mapping[str, str],
    accepted: str = ACCEPTED,
) -> None:
    """Raises `InputError` if one of the files exists and no report wrote it, or it was changed since."""
    for name in names:
        path = folder / name
        if not os.path.lexists(path):
            continue
        there = digest_of(path)
        if there is None or there not in (*made.get(name, ()), digests.get(name)):
            raise InputError(f"{path}: exists already; accepted: {accepted}")


def refuse_special(folder: Path, names: Iterable[str]) -> None:
    """Refuses devices, pipes and sockets, because a page with its figures consists of several files, and a
    link to another folder in place of the figures' folder.
    """
    if (folder / FIGURES).is_symlink():
        raise InputError(f"{folder / FIGURES}: is a symbolic link; accepted: another --out")
    for name in names:
        if is_special(folder / name):
            raise InputError(f"{folder / name}: {SPECIAL}; accepted: another --out")


@contextmanager
def undone_on_failure(path: Path, digests: Mapping[str, str]) -> Iterator[None]:
    """After a failure, removes the files of a page that are new and still have the given digests.

    `digests` are by the files' paths from the page's folder.
    """
    folder, ledger, figures = path.parent, _ledger(path), path.parent / FIGURES
    new = [name for name in digests if not os.path.lexists(folder / name)]
    is_ledger_new, is_folder_new = not os.path.lexists(ledger), not os.path.lexists(figures)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for name in new:
                if digest_of(folder / name) == digests[name]:
                    (folder / name).unlink()
            if is_ledger_new:
                ledger.unlink(missing_ok=True)
            if is_folder_new:
                figures.rmdir()
        raise


def remove_page(path: Path) -> None:
    """Removes those files of a page that a report wrote and that were not changed since."""
    made = made_for(path)
    remove_drafts(path, made)
    for name, digests in made.items():
        if digest_of(path.parent / name) in digests:
            (path.parent / name).unlink()
    if made:
        _ledger(path).unlink()
    folder = path.parent / FIGURES
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def remove_drafts(path: Path, names: Iterable[str]) -> None:
    """Removes the drafts of a page and of these files that killed reports left; does not follow links."""
    remove_left_over(_ledger(path))
    for name in (path.name, *names):
        if "/" not in name or not (path.parent / FIGURES).is_symlink():
            remove_left_over(path.parent / name)


def _ledger(path: Path) -> Path:
    return path.with_name(f".{path.name}.files.json")


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] not in ("", ".", "..") and (len(parts) == 1 or (len(parts) == 2 and parts[0] == FIGURES))
