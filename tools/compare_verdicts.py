"""Which verdicts of two reproductions are not the same.

    .venv/bin/python -m tools.compare_verdicts A B [C …]

Each is what ``reproduce all --json`` printed, or the measured.jsonl of a run; those of docs/papers are the
shipped ones. Prints each row whose verdict is not the same in all, with figures and intervals, and counts; of
records also by what share costs differ between the first and each other, the machine's pace taken out.
Exit status 0 where all verdicts are the same, else 1; 2 for files that cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from shakedown import papers
from shakedown.errors import InputError
from shakedown.papers import replication
from shakedown.papers.rows import COMMON_OFF, PRIMITIVE_OFF, UNDECIDED
from shakedown.schema.base import SIDES

Rows = dict[tuple[str, str, str], dict[str, Any]]


KINDS = {"primitive": PRIMITIVE_OFF, "common": COMMON_OFF}


def rows(path: Path) -> Rows:
    """A reproduction's rows, by paper, item and quantity. Raises `InputError`."""
    try:
        objects = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except ValueError:
        done = papers.reproduce([papers.ALL], measured=replication.load(path))
        objects = [row.as_object() for one in done for row in one.rows]
    try:
        return {(row["paper"], row["item"], row["quantity"]): row for row in objects if row["verdict"]}
    except (TypeError, KeyError) as error:
        raise InputError(
            f"{path}: no rows; accepted: what reproduce --json prints, or measured.jsonl"
        ) from error


def differing(runs: list[Rows]) -> list[tuple[tuple[str, str, str], list[dict[str, Any]]]]:
    """Rows that are in all runs and have not the same verdict in each."""
    shared = [key for key in runs[0] if all(key in run for run in runs)]
    found = [(key, [run[key] for run in runs]) for key in shared]
    return [(key, same) for key, same in found if len({row["verdict"] for row in same}) > 1]


def costs_us(record: replication.Replication) -> dict[tuple[str, ...], float]:
    """What was measured: each primitive, the least over the suites, and each side's other work in each
    suite.
    """
    found: dict[tuple[str, ...], float] = {}
    for suite, cost in record.costs.items():
        for one in cost.operations:
            if one.kind != "common":
                key = ("primitive", one.operation, one.algorithm, one.parameters)
                found[key] = min(found.get(key, math.inf), one.us)
        for side in SIDES:
            found["common", suite, side] = cost.class_us(side, "common")
    return {key: us for key, us in found.items() if us > 0.0}


def spread(first: replication.Replication, second: replication.Replication) -> dict[str, list[float]]:
    """By what share each cost differs, by kind, ascending; the pace is the median of the primitives'
    ratios.
    """
    before, after = costs_us(first), costs_us(second)
    ratios = {key: after[key] / before[key] for key in before if key in after}
    pace = median(ratio for key, ratio in ratios.items() if key[0] == "primitive")
    return {
        kind: sorted(abs(ratio / pace - 1.0) for key, ratio in ratios.items() if key[0] == kind)
        for kind in KINDS
    }


def print_spreads(paths: list[Path]) -> None:
    """The spread of each record to the first."""
    records = [(path, replication.load(path)) for path in paths if path.suffix == ".jsonl"]
    for path, record in records[1:]:
        for kind, shares in spread(records[0][1], record).items():
            quantiles = [shares[int(share * (len(shares) - 1))] for share in (0.5, 0.95, 1.0)]
            half, most, all_of_them = (f"{100.0 * share:.1f} %" for share in quantiles)
            print(
                f"{path}: {kind} costs, {len(shares)}: half differ by up to {half}, 95 % by {most}, all by "
                f"{all_of_them}; verdicts allow {KINDS[kind]:.0%}"
            )


def shown(row: dict[str, Any]) -> str:
    """A verdict with its figure and interval."""
    interval = row["interval"]
    span = f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval else ""
    return f"{row['verdict']} {row['replication']}{span}"


def main() -> int:
    """Compares; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    if len(chosen.runs) < 2:
        parser.error("one file; accepted: two or more")
    try:
        runs = [rows(path) for path in chosen.runs]
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    found = differing(runs)
    for (paper, item, quantity), same in found:
        published, tolerance = same[0]["published"], same[0]["tolerance"]
        print(f"{paper}, {item}: {quantity}; published {published}, tolerance {tolerance}")
        for path, row in zip(chosen.runs, same, strict=True):
            print(f"    {path}: {shown(row)}")
    opposed = sum(
        {row["verdict"] for row in same} - {UNDECIDED} != set()
        and len({row["verdict"] for row in same} - {UNDECIDED}) > 1
        for _, same in found
    )
    for path, run in zip(chosen.runs, runs, strict=True):
        counts = Counter(row["verdict"] for row in run.values())
        print(f"{path}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    print_spreads(chosen.runs)
    claims = sum(bool(same[0]["claim_id"]) for _, same in found)
    print(
        f"{len(found)} of {len(runs[0])} rows have not the same verdict, {claims} of them claims; "
        f"{opposed} are opposed, the others undecided in some"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
