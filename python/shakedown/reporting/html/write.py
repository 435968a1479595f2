"""Writing a report: a page, and its figures beside it; files of other origin are not replaced."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from shakedown.errors import InputError, os_failure, os_reason
from shakedown.files.owned import (
    ACCEPTED,
    FIGURES,
    announce,
    made_for,
    refuse_foreign,
    refuse_special,
    remove_drafts,
    undone_on_failure,
)
from shakedown.files.write import check_free, digest, digest_of, write_durably
from shakedown.results.lock import FolderLock
from shakedown.results.reader import damage_reported, load_manifest

if TYPE_CHECKING:
    from shakedown.results.folder import Results


def write_report(
    results: Results,
    path: str | Path,
    *,
    replace: bool = False,
    lock: FolderLock | None = None,
    accepted: str = ACCEPTED,
) -> Path:
    """Write the page of all kinds of figures, and return its path. Beside it, `figures/` has each figure as
    SVG, PNG and CSV, and timelines as Chrome traces.

    A results folder's own `report.html` and the figures of this page are replaced, unless they were changed
    since; other files only with `replace`. Raises `InputError` if a file is in the way (`accepted` is the
    remedy in the message), `ShakedownError` if a file cannot be written; files that this call made are then
    removed. In a results folder, the report is written under the folder's lock (`lock` if the caller holds
    it), and only while the folder still contains these results.
    """
    path = Path(path)
    folder = results.folder
    if folder is None or path.resolve() != (folder / "report.html").resolve():
        return _write(results, path, replace=replace, its_own=False, accepted=accepted)
    with nullcontext() if lock is not None else _writing_in(folder, results):
        if load_manifest(folder)[0].provenance != results.manifest.provenance:
            raise InputError(
                f"{folder}: another run has replaced these results since they were read; accepted: a report "
                "of what is there now"
            )
        return _write(results, path, replace=replace, its_own=True, accepted=accepted)


def _writing_in(folder: Path, results: Results) -> AbstractContextManager[object]:
    """A results folder's lock. A running run holds it itself, so no other process replaces the folder, and a
    report of the results so far may be written.
    """
    try:
        return FolderLock(folder, "the run's own report, or another page")
    except InputError:
        now = load_manifest(folder)[0]
        if now.ended is None and now.provenance == results.manifest.provenance:
            return nullcontext()
        raise


def _write(
    results: Results,
    path: Path,
    *,
    replace: bool,
    its_own: bool,
    accepted: str,
) -> Path:
    check_free(path, replace=replace or its_own, accepted=accepted)
    refuse_special(path.parent, [path.name])
    made = made_for(path)
    # Drawing the figures takes long, so first check that the page's name is free.
    if not replace:
        refuse_foreign(path.parent, [path.name], made, {}, accepted)
    with damage_reported(results.folder):
        files = _files(results, path)
    digests = {name: digest(content) for name, content in files.items()}
    refuse_special(path.parent, files)
    if not replace:
        refuse_foreign(path.parent, files, made, digests, accepted)
    announced = {name: (*made.get(name, ()), one) for name, one in digests.items()}
    try:
        with undone_on_failure(path, digests):
            (path.parent / FIGURES).mkdir(exist_ok=True)
            remove_drafts(path, announced)
            announce(path, {**made, **announced})
            for name, content in files.items():
                if digest_of(path.parent / name) != digests[name]:
                    write_durably(path.parent / name, content, replace=True)
            announce(path, {**made, **{name: (one,) for name, one in digests.items()}})
    except OSError as error:
        where = error.filename or path
        raise os_failure(f"{where}: the report cannot be written: {os_reason(error)}", error) from error
    return path


def _files(results: Results, path: Path) -> dict[str, bytes]:
    """All files of a report, by their path from the page's folder; the page comes last."""
    from shakedown.reporting.html.page import build, render

    sections = build(results)
    files: dict[str, bytes] = {}
    for section in sections:
        for figure in (block.figure for block in section.blocks if block.figure is not None):
            files |= {f"{FIGURES}/{figure.name}.{end}": content for end, content in figure.files().items()}
    files[path.name] = render(results, sections).encode("utf-8", "surrogatepass")
    return files
