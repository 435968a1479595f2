"""Files that a page is made of, and which of them are still as they were written.

`.PAGE.files.json` beside a page lists what was written for it, the page and its figures, by digest. It is
written before they are, so that whatever ends a report leaves nothing that the next one does not know, and
nothing that somebody else wrote or changed is ever replaced or removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from shakedown.errors import InputError
from shakedown.files.drafts import remove_left_over_of
from shakedown.files.limits import MAX_MANIFEST_BYTES, read_bytes
from shakedown.files.write import digest_of, write_durably
from shakedown.schema.base import Object, decode, encode_pretty

FIGURES = "figures"
FORMAT: Literal["shakedown report files"] = "shakedown report files"
ACCEPTED = "another --out, or --force"

Made = Mapping[str, tuple[str, ...]]
"""Files of a page by their path from its folder: digests of what was written, or was about to be."""


class MadeFiles(Object, frozen=True, kw_only=True):
    """The files of a page, itself included."""

    format: Literal["shakedown report files"] = FORMAT
    files: dict[str, tuple[str, ...]]


def made_for(path: Path) -> Made:
    """What reports wrote for a page; nothing where that cannot be told."""
    there = _ledger(path)
    if not there.is_file() or there.is_symlink() or (path.parent / FIGURES).is_symlink():
        return {}
    try:
        found = decode(read_bytes(there, MAX_MANIFEST_BYTES), MadeFiles, str(there))
    except InputError:
        return {}
    # Nothing outside of the folder is a report's.
    return {name: one for name, one in found.files.items() if _is_inside(name)}


def announce(path: Path, files: Made) -> None:
    """Notes what is about to be written for a page, or has been. Raises `OSError`."""
    content = encode_pretty(MadeFiles(files=dict(files))).encode() + b"\n"
    write_durably(_ledger(path), content, replace=True)


def refuse_foreign(
    folder: Path,
    names: Iterable[str],
    made: Made,
    digests: Mapping[str, str],
) -> None:
    """Refuses where a file is in the way that no report wrote, or that was changed since."""
    if (folder / FIGURES).is_symlink():
        raise InputError(f"{folder / FIGURES}: a symbolic link; accepted: {ACCEPTED}")
    for name in names:
        path = folder / name
        if not os.path.lexists(path):
            continue
        there = digest_of(path)
        if there is None or there not in (*made.get(name, ()), digests.get(name)):
            raise InputError(f"{path}: exists already; accepted: {ACCEPTED}")


def remove_page(path: Path) -> None:
    """Removes a page and its figures, as far as a report wrote them and nobody changed them since."""
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
    """Removes what killed reports left of a page and these files of it; nothing behind a link."""
    kept = [name for name in names if "/" not in name or not (path.parent / FIGURES).is_symlink()]
    remove_left_over_of([path, _ledger(path), *(path.parent / name for name in kept)])


def _ledger(path: Path) -> Path:
    return path.with_name(f".{path.name}.files.json")


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] not in ("", ".", "..") and (len(parts) == 1 or (len(parts) == 2 and parts[0] == FIGURES))
