"""Saved results as one page for people, readable offline, with its figures beside it: a function of the
table.
"""

from __future__ import annotations

from shakedown.reporting.html.write import write_report

__all__ = ["write_report"]
