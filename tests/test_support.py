"""Ends of support and advisories: errors of the check, and the output of `--version`."""

from __future__ import annotations

import datetime
import tomllib
from typing import Any

import pytest
from tools import check_support

from shakedown.native import build

LISTED = tomllib.loads(check_support.LIST.read_text())
REVIEWED: datetime.date = LISTED["reviewed"]


def found(today: datetime.date, used: dict[str, str] | None = None, **replaced: Any) -> list[str]:
    return list(check_support.violations({**LISTED, **replaced}, used or check_support.in_use(), today))


def test_list_has_no_violation_at_its_review_date():
    assert found(REVIEWED) == []


def test_openssl_version_of_the_lock_file_is_built_in():
    assert check_support.in_use()["OpenSSL"] == build().openssl


def test_versions_past_their_support_are_refused():
    assert any(
        "OpenSSL 3.5.5: support ended on 2030-04-08" in line for line in found(datetime.date(2030, 4, 9))
    )
    assert any("Python 3.11: support ended" in line for line in found(datetime.date(2027, 11, 1)))


def test_a_branch_without_a_date_is_refused():
    lines = found(REVIEWED, {"OpenSSL": "3.6.3", "Python": "3.11"})
    assert any(line.startswith("OpenSSL 3.6.3: its end of support is not listed") for line in lines)


@pytest.mark.parametrize("accepted", [None, "2026-12-31"])
def test_relevant_advisory_is_refused_after_its_acceptance_ends(accepted: str | None):
    row = {"ids": ["CVE-2026-1"], "package": "OpenSSL", "fixed": "3.5.10", "about": "x", "concerns": True}
    row |= {"reason": "y", "source": "z"}
    if accepted is not None:
        row["accepted_until"] = datetime.date.fromisoformat(accepted)
        assert found(datetime.date(2026, 12, 31), advisory=[row]) == []
    (line,) = found(datetime.date(2027, 1, 1), advisory=[row])
    assert "CVE-2026-1" in line
    assert "fixed in 3.5.10" in line


def test_fixed_advisories_must_leave_the_list():
    lines = found(REVIEWED, {"OpenSSL": "3.5.99", "Python": "3.11"})
    assert len(lines) == len(LISTED["advisory"])


def test_every_advisory_is_listed_once_with_a_reason():
    names = [name for row in LISTED["advisory"] for name in row["ids"]]
    assert len(names) == len(set(names))
    assert all(row["reason"] and row["source"].startswith("https://") for row in LISTED["advisory"])


def test_version_prints_the_support_end_of_openssl(shakedown):
    printed = shakedown("--version").stdout
    assert f"OpenSSL {build().openssl}, supported until 2030-04-08" in printed
