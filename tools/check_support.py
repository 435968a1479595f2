"""Checks that dependencies are still supported, and that every published advisory has been assessed.

Run as `python -m tools.check_support`, by `make lint`. It compares `python/shakedown/data/support.toml`, a
list that is maintained by hand, with Cargo.lock, pyproject.toml and today's date, and needs no network.
Advisories published after the list's review, or on Rust crates and Python packages, are not checked here:
`make audit` queries RustSec and PyPI.
"""

from __future__ import annotations

import datetime
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from tools.pages import ROOT, status

LIST = ROOT / "python" / "shakedown" / "data" / "support.toml"


def in_use() -> dict[str, str]:
    """The versions that are built in, and the minimum versions that are required."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    (source,) = [package for package in lock["package"] if package["name"] == "openssl-src"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # The crate's version is its own and, after a plus sign, OpenSSL's.
    return {
        "OpenSSL": source["version"].split("+")[1],
        "Python": project["requires-python"].removeprefix(">="),
    }


def numbers(version: str) -> list[int]:
    """A version's parts, for comparisons."""
    return [int(part) for part in re.findall(r"\d+", version)]


def violations(listed: Mapping[str, Any], used: Mapping[str, str], today: datetime.date) -> Iterator[str]:
    """Versions that are no longer supported or have an advisory, one line each."""
    for name, version in used.items():
        branches = [row for row in listed["branch"] if row["name"] == name and is_of(version, row["branch"])]
        if not branches:
            yield f"{name} {version}: its end of support is not listed; add its branch with a source"
        for row in branches:
            if today > row["until"]:
                ended = f"support ended on {row['until']} ({row['source']})"
                yield f"{name} {version}: {ended}; use a supported branch"
    for row in listed.get("advisory", []):
        names, current = ", ".join(row["ids"]), used.get(row["package"])
        if current is None:
            yield f"{names}: no {row['package']} is in use; remove the entry"
        elif numbers(current) >= numbers(row["fixed"]):
            yield f"{names}: fixed in the {row['package']} {current} in use; remove the entry"
        elif row["concerns"] and today > row.get("accepted_until", datetime.date.min):
            yield (
                f"{names}: {row['package']} {current} has this defect, fixed in {row['fixed']}: "
                f"{row['about']} ({row['source']}); update, or accept it until a later date for a reason"
            )


def is_of(version: str, branch: str) -> bool:
    """Whether a version belongs to a branch."""
    return numbers(version)[: len(numbers(branch))] == numbers(branch)


def main() -> int:
    """Print the violations; the exit status is 1 if there are any."""
    listed, used = tomllib.loads(LIST.read_text()), in_use()
    found = violations(listed, used, datetime.datetime.now(datetime.UTC).date())
    failed = status(f"error: {line}; the list: {LIST.relative_to(ROOT)}" for line in found)
    count = sum(len(row["ids"]) for row in listed["advisory"])
    versions = ", ".join(f"{name} {version}" for name, version in used.items())
    print(f"support: {versions}; {count} advisories judged, review of {listed['reviewed']}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
