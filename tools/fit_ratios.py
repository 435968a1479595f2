"""Fits the ranges of scaled figures to the shipped device profiles; writes the data and the page of coverage.

`make fit`, for a release: a device that is added later is estimated from the builds that are there, and no
other device's answer changes. A correction of a profile that others are scaled from needs it at once; a test
fails until it is made.
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
from shakedown.profiles.registry import shipped_names

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "extrapolation.md"
BEGIN, END = "<!-- coverage: made by make fit -->", "<!-- end of coverage -->"


def data_text(ratios: Ratios) -> str:
    """The file of the package: one line a build."""
    document = to_json(ratios)
    builds = document.pop("builds")
    head = json.dumps(document, separators=(",", ":"))
    lines = [json.dumps(build, separators=(",", ":")) for build in builds]
    return f'{head[:-1]},"builds":[\n' + ",\n".join(lines) + "\n]}\n"


def page_text(page: str, tables: str) -> str:
    """The page with its tables replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main() -> None:
    """Fit, write, and say how often the ranges hold."""
    # Through the file's rounding, so that the page says of the package's data what they do.
    devices = shipped_names("devices")
    builds = reference_builds(devices)
    ratios = from_json(to_json(Ratios(builds, fitted(builds).fit, devices)))
    found = [*trials(ratios), *pair_trials(ratios), *software_trials(ratios), *clock_trials(ratios)]
    DATA.write_text(data_text(ratios), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_text(page, coverage_tables(ratios, found)), encoding="utf-8")
    known = [trial for trial in found if trial.known]
    print(f"{DATA}, {PAGE}: {sum(trial.held for trial in known)} of {len(known)} ranges hold")


if __name__ == "__main__":
    main()
