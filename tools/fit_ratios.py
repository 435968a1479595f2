"""Fits the ranges of scaled figures to the shipped device profiles; writes the data and the page of coverage.

Run after any change of a shipped profile; a test says when it is due.
"""

from __future__ import annotations

import json
from pathlib import Path

from shakedown.prediction.calibration import (
    clock_trials,
    fitted,
    pair_trials,
    reference_builds,
    software_trials,
    trials,
)
from shakedown.prediction.coverage import coverage_tables
from shakedown.prediction.ratios import DATA, Ratios, from_json, to_json

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "extrapolation.md"
BEGIN, END = "<!-- coverage: made by tools/fit_ratios.py -->", "<!-- end of coverage -->"


def data_text(ratios: Ratios) -> str:
    """The file of the package: one line a build."""
    document = to_json(ratios)
    lines = [json.dumps(build, separators=(",", ":")) for build in document["builds"]]
    head = json.dumps({"triples": document["triples"], "fit": document["fit"]}, separators=(",", ":"))
    return f'{head[:-1]},"builds":[\n' + ",\n".join(lines) + "\n]}\n"


def page_text(page: str, tables: str) -> str:
    """The page with its tables replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main() -> None:
    """Fit, write, and say how often the ranges hold."""
    # Through the file's rounding, so that the page says of the package's data what they do.
    ratios = from_json(to_json(fitted(reference_builds())))
    found = [*trials(ratios), *pair_trials(ratios), *software_trials(ratios), *clock_trials(ratios)]
    DATA.write_text(data_text(ratios), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_text(page, coverage_tables(ratios, found)), encoding="utf-8")
    known = [trial for trial in found if trial.known]
    print(f"{DATA}, {PAGE}: {sum(trial.held for trial in known)} of {len(known)} ranges hold")


if __name__ == "__main__":
    main()
