"""Measures the figures of the papers' pages in the documentation, and writes the pages.

    .venv/bin/python -m tools.papers               measures, then writes docs/papers
    .venv/bin/python -m tools.papers --minutes 10  the same, with no round that would end later than that
    .venv/bin/python -m tools.papers --keep        writes the pages from the existing figures
    .venv/bin/python -m tools.papers --into FOLDER measures into another folder, to compare runs

Each round is saved when it ends, so an interrupted run keeps all complete rounds, and ``--keep`` makes the
pages from them. The pages depend only on the papers' data and docs/papers/measured.jsonl, so a test can
compare them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shakedown import papers
from shakedown.papers import replication
from shakedown.papers.write import MEASURED, write
from tools import pages

FOLDER = pages.ROOT / "docs" / "papers"
ROUNDS = 20
REPEAT = 10
"""Handshakes of each suite in a round."""


def main() -> None:
    """Measure unless `--keep` is given, and write the pages."""
    parser = pages.options("papers", __doc__)
    parser.add_argument("--keep", action="store_true", help="do not measure")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"rounds of measuring; {ROUNDS} if not given"
    )
    parser.add_argument("--each", type=int, default=REPEAT, help=f"handshakes a round; {REPEAT} if not given")
    parser.add_argument("--minutes", type=float, help="begin no round that would end later")
    parser.add_argument("--into", type=Path, default=FOLDER, help="where to write; docs/papers if not given")
    chosen = parser.parse_args()
    chosen.into.mkdir(parents=True, exist_ok=True)
    record = chosen.into / MEASURED
    if not chosen.keep:

        def on_round(found: replication.Replication) -> None:
            replication.save(found, record)
            print(f"round {len(found.rounds)}, {found.seconds:.0f} s", file=sys.stderr)

        suites = dict.fromkeys(suite for name in papers.MODULES for suite in papers.find(name).suites)
        bulk = dict.fromkeys(bulk for name in papers.MODULES for bulk in papers.find(name).transfers)
        replication.measure(
            suites,
            chosen.rounds * chosen.each,
            bulk,
            rounds=chosen.rounds,
            minutes=chosen.minutes,
            on_round=on_round,
        )
    # From the saved file, so that the pages are the same whenever they are made from it.
    done = papers.reproduce([papers.ALL], measured=replication.load(record))
    write(done, chosen.into, pages_only=True, replace=True)
    print(f"written: {chosen.into}")


if __name__ == "__main__":
    main()
