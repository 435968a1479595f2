"""A reproduction as a folder: a page for each paper, its figures as SVG, PNG and CSV, and all rows.

README.md            the papers and their verdicts
PAPER.md             one page for each paper
figures/             every figure, as NAME.svg, NAME.png, NAME.csv
rows.json, rows.csv  every comparison
measured.jsonl       the measurements on this machine, for later use
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import structs

from shakedown.files.owned import refuse_special
from shakedown.files.write import check_free, check_writable, made_folders
from shakedown.files.write import write as write_file
from shakedown.papers import replication as measuring
from shakedown.papers.page import index, page
from shakedown.papers.paper import Reproduction

MEASURED = "measured.jsonl"
ACCEPTED = "another --out, or --force"


def check(names: Sequence[str], folder: Path, *, replace: bool) -> None:
    """Refuse a folder that contains files of these papers, unless they may be replaced, a link in place of
    its folder of figures, and a folder that cannot be written, before anything is measured.
    """
    refuse_special(folder, ())
    there = [*(f"{name}.md" for name in names), "rows.json", "rows.csv", MEASURED]
    if len(names) > 1:
        there.append("README.md")
    if folder.is_dir():
        for name in there:
            check_free(folder / name, replace, ACCEPTED)
    with made_folders(folder):
        check_writable(folder / MEASURED, replace, ACCEPTED)


def write(
    reproductions: Sequence[Reproduction],
    folder: Path,
    *,
    pages_only: bool = False,
    replace: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Path]:
    """Write everything.

    Args:
        reproductions: what to write.
        folder: created if it does not exist.
        pages_only: only pages and SVG figures, as in the documentation.
        replace: whether existing files may be replaced.
        progress: called with the figures drawn, their total, and the next one.

    Raises:
        InputError: if files exist that may not be replaced, or the folder cannot be written.
    """
    figures = folder / "figures"
    contents: dict[Path, str | bytes] = {}
    drawn = [
        drawing
        for reproduction in reproductions
        for drawing in reproduction.drawings()
        if drawing.definition is not None
    ]
    for number, drawing in enumerate(drawn):
        if progress:
            progress(number, len(drawn), drawing.name)
        figure = drawing.figure()
        contents[figures / f"{drawing.name}.svg"] = figure.svg
        if not pages_only:
            contents[figures / f"{drawing.name}.png"] = figure.png()
            contents[figures / f"{drawing.name}.csv"] = figure.csv
    for reproduction in reproductions:
        contents[folder / f"{reproduction.paper.slug}.md"] = page(reproduction)
    if len(reproductions) > 1:
        contents[folder / "README.md"] = index(reproductions)
    if not pages_only:
        rows = [structs.asdict(row) for reproduction in reproductions for row in reproduction.rows]
        contents[folder / "rows.json"] = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        contents[folder / "rows.csv"] = text.getvalue()
        contents[folder / MEASURED] = measuring.saved(reproductions[0].replication)
    _put(contents, folder, replace)
    return list(contents)


def _put(contents: Mapping[Path, str | bytes], folder: Path, replace: bool) -> None:
    """Write all files, or none: new ones are removed after an error."""
    refuse_special(folder, ())
    with made_folders(folder / "figures"):
        for path in contents:
            check_free(path, replace, ACCEPTED)
        new = [path for path in contents if not os.path.lexists(path)]
        try:
            for path, content in contents.items():
                write_file(path, content, replace=replace, accepted=ACCEPTED)
        except BaseException:
            for path in new:
                path.unlink(missing_ok=True)
            raise
