"""Combines times of primitives measured alone with times measured inside handshakes."""

from __future__ import annotations

import statistics

from shakedown.profiles.importers.common import Primitives
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS

LONG_US = 40.0
"""Cold caches hardly affect longer calls."""


def joined(apart: Primitives, inside: Primitives) -> Primitives:
    """The figures inside handshakes if available; otherwise figures measured alone, corrected for handshakes.

    Inside a handshake, caches are colder than in a loop of one primitive. This costs every call about the
    same time, so it matters only for short ones. The machine's speed may differ between the measurements.
    """
    both = [
        (apart[triple]["time_us"], inside[triple]["time_us"])
        for triple in inside
        if triple in apart
        and triple[0] != "import"
        and "time_us" in inside[triple]
        and apart[triple].get("time_us", 0.0) > 0.0
    ]
    ratios = [within / alone for alone, within in both if alone >= LONG_US]
    speed = statistics.median(ratios) if ratios else 1.0
    short = [within - speed * alone for alone, within in both if alone < LONG_US]
    colder_us = max(0.0, statistics.median(short)) if short else 0.0
    found: Primitives = {}
    for triple, cost in apart.items():
        more_us = 0.0 if triple[0] == "import" else colder_us
        found[triple] = (
            {key: us * speed + (0.0 if key == "sd_us" else more_us) for key, us in cost.items()}
            if triple[0] not in SYMMETRIC_OPERATIONS
            else cost
        )
    for triple, cost in inside.items():
        if "mean_us" in cost and triple in apart:
            # The variation of a rejection loop is known from many calls measured alone.
            factor = cost["mean_us"] / apart[triple]["mean_us"]
            found[triple] = {key: us * factor for key, us in apart[triple].items()}
        elif triple[0] not in SYMMETRIC_OPERATIONS or triple not in apart or cost.get("per_call_us"):
            found[triple] = cost
    return found
