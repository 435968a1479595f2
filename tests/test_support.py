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


def test_on_the_day_of_its_review_the_list_has_no_violation():
    assert found(REVIEWED) == []


def test_openssl_of_the_lock_file_is_the_one_that_is_built_in():
    assert check_support.in_use()["OpenSSL"] == build().openssl


def test_what_is_past_its_support_is_refused():
    assert any(
        "OpenSSL 3.5.5: support ended on 2030-04-08" in line for line in found(datetime.date(2030, 4, 9))
    )
    assert any("Python 3.11: support ended" in line for line in found(datetime.date(2027, 11, 1)))


def test_a_branch_without_a_date_is_refused():
    lines = found(REVIEWED, {"OpenSSL": "3.6.3", "Python": "3.11"})
    assert any(line.startswith("OpenSSL 3.6.3: its end of support is not listed") for line in lines)


@pytest.mark.parametrize("accepted", [None, "2026-12-31"])
def test_an_advisory_that_concerns_us_is_refused_once_it_is_not_accepted(accepted: str | None):
    row = {"ids": ["CVE-2026-1"], "package": "OpenSSL", "fixed": "3.5.10", "about": "x", "concerns": True}
    row |= {"reason": "y", "source": "z"}
    if accepted is not None:
        row["accepted_until"] = datetime.date.fromisoformat(accepted)
        assert found(datetime.date(2026, 12, 31), advisory=[row]) == []
    (line,) = found(datetime.date(2027, 1, 1), advisory=[row])
    assert "CVE-2026-1" in line
    assert "fixed in 3.5.10" in line


def test_an_advisory_that_is_fixed_is_to_leave_the_list():
    lines = found(REVIEWED, {"OpenSSL": "3.5.99", "Python": "3.11"})
    assert len(lines) == len(LISTED["advisory"])


def test_every_advisory_is_listed_once_with_a_reason():
    names = [name for row in LISTED["advisory"] for name in row["ids"]]
    assert len(names) == len(set(names))
    assert all(row["reason"] and row["source"].startswith("https://") for row in LISTED["advisory"])


def test_the_version_says_until_when_openssl_is_supported(shakedown):
    printed = shakedown("--version").stdout
    assert f"OpenSSL {build().openssl}, supported until 2030-04-08" in printed
