"""A reproduction as a folder: a page for each paper, its figures as SVG, PNG and CSV, and all rows.

README.md            the papers and their verdicts
PAPER.md             one page for each paper
figures/             every figure, as NAME.svg, NAME.png, NAME.csv
rows.json, rows.csv  every comparison
measured.jsonl       what was measured here, to be used again
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from shakedown.errors import os_failure, os_reason
from shakedown.papers import replication as measuring
from shakedown.papers.page import index, page
from shakedown.papers.paper import Reproduction

MEASURED = "measured.jsonl"


def write(
    reproductions: Sequence[Reproduction],
    folder: Path,
    *,
    pages_only: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Path]:
    """Writes everything; what is there already under the same names is replaced.

    Args:
        reproductions: what to write.
        folder: made where it does not exist.
        pages_only: pages and SVG figures alone, as the documentation has them.
        progress: told how many figures are drawn, of how many, and which is next.

    Raises:
        InputError: where the folder cannot be written.
    """
    figures = folder / "figures"
    written: list[Path] = []

    def put(path: Path, content: str | bytes) -> None:
        try:
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise os_failure(f"{path}: cannot be written: {os_reason(error)}", error) from error
        written.append(path)

    try:
        figures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise os_failure(f"{folder}: cannot be written: {os_reason(error)}", error) from error
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
        put(figures / f"{drawing.name}.svg", figure.svg)
        if not pages_only:
            put(figures / f"{drawing.name}.png", figure.png())
            put(figures / f"{drawing.name}.csv", figure.csv)
    for reproduction in reproductions:
        put(folder / f"{reproduction.paper.slug}.md", page(reproduction))
    if len(reproductions) > 1:
        put(folder / "README.md", index(reproductions))
    if not pages_only:
        rows = [row.as_object() for reproduction in reproductions for row in reproduction.rows]
        put(folder / "rows.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        put(folder / "rows.csv", text.getvalue())
        measuring.save(reproductions[0].replication, folder / MEASURED)
        written.append(folder / MEASURED)
    return written
