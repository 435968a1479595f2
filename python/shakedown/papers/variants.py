"""Variants of the measured figures: halves of the rounds, and costs that another run could give. Two runs on
one machine differ, for example if one of them runs beside other work. Mostly whole kinds of work differ
together, because other work slows multiplications of long numbers less or more than table look-ups in a
cache. So the primitives keep their cost relative to each other within `PRIMITIVE_OFF`, whichever suite they
are in, and what a side does besides within `COMMON_OFF`; a verdict on something measured holds only if it
does for all these variants.

Both figures are the spread between repeated runs, quiet and loaded: the greatest 95th percentile of any two,
the machine's pace taken out, rounded up to whole per cent; no verdict enters them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from hashlib import blake2b

from shakedown.papers.replication import MIN_ROUNDS, Cost, Part, Replication, summary
from shakedown.papers.rows import COMMON_OFF, PRIMITIVE_OFF

PATTERNS = 56
_ALIKE = 24  # of them, patterns in which suites that differ in numbers alone are off alike
_KINDS = ("key", "signature", "common")


def variants(replication: Replication) -> list[Replication]:
    """The variants for which a verdict must also hold; none if there are too few rounds."""
    rounds = replication.rounds
    if len(rounds) < MIN_ROUNDS:
        return []
    halves = [summary(rounds[start::2], replication.missing) for start in (0, 1)]
    return [*halves, *(shifted(replication, pattern) for pattern in range(PATTERNS))]


def shifted(replication: Replication, pattern: int) -> Replication:
    """All costs a little higher or lower, each kind of work by a sign of its own.

    The first patterns are the ways in which classes of work can be off together; the others draw each
    primitive's sign, and that of each suite's and side's other work, from its name: the same in every run. In
    the last of them sizes of keys and sides do not count, for statements about all sizes.
    """
    costs = {suite: _shifted(cost, pattern) for suite, cost in replication.costs.items()}
    bulks = {
        key: replace(
            bulk,
            client_us=bulk.client_us * _factor(pattern, "common", f"{bulk.suite} {bulk.link} client"),
            server_us=bulk.server_us * _factor(pattern, "common", f"{bulk.suite} {bulk.link} server"),
        )
        for key, bulk in replication.bulks.items()
    }
    return Replication(replication.machine, replication.date, costs, replication.missing, bulks)


def _shifted(cost: Cost, pattern: int) -> Cost:
    def off(one: Part) -> float:
        if one.is_public:
            return _factor(pattern, one.kind, f"{one.operation} {one.algorithm} {one.parameters}")
        return _factor(pattern, "common", f"{cost.suite} {one.side}")

    return replace(cost, parts=tuple(replace(one, us=one.us * off(one)) for one in cost.parts))


@cache
def _factor(pattern: int, kind: str, what: str) -> float:
    off = COMMON_OFF if kind == "common" else PRIMITIVE_OFF
    if pattern < 1 << len(_KINDS):
        up = bool(pattern >> _KINDS.index(kind) & 1)
    else:
        if pattern >= PATTERNS - _ALIKE:
            what = re.sub(r"[0-9]+| client$| server$", "", what)
        up = bool(blake2b(f"{pattern} {what}".encode(), digest_size=1).digest()[0] & 1)
    return 1.0 + off if up else 1.0 - off
