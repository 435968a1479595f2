"""What of a results folder the page shows first."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from shakedown.explorer.question import MAX_SUITES


def first_view(results: Path) -> tuple[str, Path | None]:
    """The query of a folder's suites, first device and first bearer, and its report where it has one.

    Raises:
        InputError: where it is no results folder.
    """
    from shakedown.results.folder import load_results

    table = load_results(results).table
    view: list[tuple[str, str]] = []
    for column, name, most in (
        ("suite", "suites", MAX_SUITES),
        ("device", "device", 1),
        ("bearer", "bearer", 1),
    ):
        values = [value for value in table[column].unique(maintain_order=True) if value]
        view += [(name, value) for value in values[:most]]
    report = results / "report.html"
    return urlencode(view), report if report.is_file() else None
