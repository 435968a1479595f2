"""Saved results as one page for people, readable offline, with its figures beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shakedown.errors import ShakedownError, os_reason

if TYPE_CHECKING:
    from shakedown.results.folder import Results


def write_report(results: Results, path: str | Path) -> Path:
    """Writes the page, and `figures/` beside it with each figure as SVG, PNG and CSV; returns its path.

    Raises `ShakedownError` where something cannot be written.
    """
    from shakedown.report.page import build, render

    path = Path(path)
    sections = build(results)
    page = render(results, sections)
    folder = path.parent / "figures"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for section in sections:
            for block in section.blocks:
                if block.figure is not None:
                    (folder / f"{block.figure.name}.svg").write_text(block.figure.svg, encoding="utf-8")
                    (folder / f"{block.figure.name}.png").write_bytes(block.figure.png())
                    (folder / f"{block.figure.name}.csv").write_text(block.figure.csv, encoding="utf-8")
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        where = error.filename or path
        raise ShakedownError(f"{where}: the report cannot be written: {os_reason(error)}") from error
    return path
