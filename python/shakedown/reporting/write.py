"""Writing a report: a page, and its figures beside it, replacing nothing that a report did not make.

`.PAGE.files.json` beside a page lists what its reports have written, page and figures, by digest. It is
written before they are, so that whatever ends a report leaves nothing that the next one does not know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from shakedown.errors import InputError, ShakedownError, os_reason
from shakedown.files.limits import MAX_MANIFEST_BYTES, read_bytes
from shakedown.files.write import check_free, digest, digest_of, write_durably
from shakedown.schema.base import Object, decode, encode_pretty

if TYPE_CHECKING:
    from shakedown.results.folder import Results

FIGURES = "figures"
FORMAT: Literal["shakedown report files"] = "shakedown report files"
ACCEPTED = "another --out, or --force"


Made = Mapping[str, tuple[str, ...]]
"""Files of a page by their path from its folder: digests of what was written, or was about to be."""


class MadeFiles(Object, frozen=True, kw_only=True):
    """The files of a page, itself included."""

    format: Literal["shakedown report files"] = FORMAT
    files: dict[str, tuple[str, ...]]


def write_report(results: Results, path: str | Path, *, replace: bool = False) -> Path:
    """Writes the page, and `figures/` beside it with each figure as SVG, PNG and CSV; returns its path.

    A results folder's own `report.html` is replaced, and figures of this page, as long as nobody changed them
    since; other files only with `replace`. Raises `InputError` where one is in the way, `ShakedownError`
    where something cannot be written.
    """
    path = Path(path)
    its_own = results.folder is not None and path.resolve() == (results.folder / "report.html").resolve()
    check_free(path, replace=replace or its_own, accepted=ACCEPTED)
    made = _made(path)
    # Before the figures are drawn, which takes long: is the page's name free?
    if not replace:
        _refuse_foreign(path.parent, [path.name], made, {})
    files = _files(results, path)
    digests = {name: digest(content) for name, content in files.items()}
    if not replace:
        _refuse_foreign(path.parent, files, made, digests)
    announced = {name: (*made.get(name, ()), one) for name, one in digests.items()}
    try:
        (path.parent / FIGURES).mkdir(exist_ok=True)
        _announce(path, {**made, **announced})
        for name, content in files.items():
            if digest_of(path.parent / name) != digests[name]:
                write_durably(path.parent / name, content, replace=True)
        _announce(path, {**made, **{name: (one,) for name, one in digests.items()}})
    except OSError as error:
        where = error.filename or path
        raise ShakedownError(f"{where}: the report cannot be written: {os_reason(error)}") from error
    return path


def _files(results: Results, path: Path) -> dict[str, bytes]:
    """Everything that a report is, by its path from the page's folder; the page comes last."""
    from shakedown.reporting.page import build, render

    sections = build(results)
    files: dict[str, bytes] = {}
    for section in sections:
        for figure in (block.figure for block in section.blocks if block.figure is not None):
            files[f"{FIGURES}/{figure.name}.svg"] = figure.svg.encode()
            files[f"{FIGURES}/{figure.name}.png"] = figure.png()
            files[f"{FIGURES}/{figure.name}.csv"] = figure.csv.encode()
    files[path.name] = render(results, sections).encode("utf-8", "surrogatepass")
    return files


def remove_report(path: Path) -> None:
    """Removes a page and its figures, as far as a report wrote them and nobody changed them since."""
    made = _made(path)
    for name, digests in made.items():
        if digest_of(path.parent / name) in digests:
            (path.parent / name).unlink()
    if made:
        _ledger(path).unlink()
    folder = path.parent / FIGURES
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def _ledger(path: Path) -> Path:
    return path.with_name(f".{path.name}.files.json")


def _made(path: Path) -> Made:
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


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] not in ("", ".", "..") and (len(parts) == 1 or (len(parts) == 2 and parts[0] == FIGURES))


def _announce(path: Path, files: Made) -> None:
    content = encode_pretty(MadeFiles(files=dict(files))).encode() + b"\n"
    write_durably(_ledger(path), content, replace=True)


def _refuse_foreign(
    folder: Path,
    names: Mapping[str, bytes] | list[str],
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
