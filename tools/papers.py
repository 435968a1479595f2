"""Writes the papers' pages in the documentation anew, with the figures measured here that stand in them.

    .venv/bin/python -m tools.papers            measures, then writes docs/papers
    .venv/bin/python -m tools.papers --keep     writes the pages from the figures that are there

The pages follow from the papers' data and docs/papers/measured.jsonl alone, so that a test can hold them to
both.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shakedown import papers
from shakedown.papers import here
from shakedown.papers.write import MEASURED, write

FOLDER = Path(__file__).parent.parent / "docs" / "papers"


def main(arguments: list[str]) -> None:
    """Measures unless told to keep, and writes."""
    record = FOLDER / MEASURED
    known = here.load(record) if "--keep" in arguments else None
    done = papers.reproduce([papers.ALL], measured=known)
    write(done, FOLDER, pages_only=True)
    if known is None:
        here.save(done[0].here, record)
    print(f"written: {FOLDER}")


if __name__ == "__main__":
    main(sys.argv[1:])
