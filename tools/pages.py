"""Generated parts of pages, between `<!-- NAME -->` and `<!-- end -->`."""

from __future__ import annotations

from pathlib import Path


def between(page: str, name: str, text: str) -> str:
    """The page with this text in the part. Raises `SystemExit` if it has no such part."""
    before, begin, rest = page.partition(f"<!-- {name} -->")
    _, end, after = rest.partition("<!-- end -->")
    if not begin or not end:
        raise SystemExit(f"the page has no part {name}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write(page: Path, name: str, text: str) -> None:
    page.write_text(between(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
