"""Writes results as a report page."""

from __future__ import annotations

from pathlib import Path

from shakedown.errors import InputError
from shakedown.experiments.figure_kinds.in_memory_results import results_of_json
from shakedown.reporting.html.write import write_report
from shakedown.results.folder import Results, load_results
from shakedown.schema.arguments import checked


@checked
def report(results: Results | str | Path, path: str | Path | None = None, *, replace: bool = False) -> Path:
    """Writes results, or those of a folder, as a page with its figures; returns the page's path.

    `path` is by default `report.html` in the folder. Raises `InputError`.
    """
    loaded = load_any(results) if isinstance(results, (str, Path)) else results
    if path is None:
        if loaded.folder is None:
            raise InputError("results that are in no folder need a path for their page")
        path = loaded.folder / "report.html"
    return write_report(loaded, path, replace=replace)


def load_any(path: str | Path) -> Results:
    """A results folder, or a file of `measure --json` or `inspect --traces-out`. Raises `InputError`."""
    return load_results(path) if not Path(path).exists() or Path(path).is_dir() else results_of_json(path)
