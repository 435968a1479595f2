"""Variants of the measured figures: halves of the rounds, and costs that another run could give.

Two runs on one machine differ, for example if one of them runs beside other work. Mostly whole kinds of work
differ together, because other work slows multiplications of long numbers by another factor than table
look-ups in a cache. In a variant, primitives therefore keep their relative costs within `PRIMITIVE_OFF`, in
all suites, and a side's other work within `COMMON_OFF`. A verdict on a measurement is given only if it holds
for all variants.

Both figures are the spread between repeated runs, quiet and loaded: the largest 95th percentile of any two,
corrected for the machine's speed, rounded up to whole per cent. They do not depend on any verdict.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from hashlib import blake2b

from shakedown.papers.replication import MIN_ROUNDS, Cost, Part, Replication, summary
from shakedown.papers.rows import COMMON_OFF, PRIMITIVE_OFF

PATTERNS = 56
_ALIKE = 24  # of them, patterns in which suites that differ only in numbers have the same sign
_KINDS = ("key", "signature", "common")


def variants(replication: Replication) -> list[Replication]:
    """The variants for which a verdict must also hold; none if there are too few rounds."""
    rounds = replication.rounds
    if len(rounds) < MIN_ROUNDS:
        return []
    halves = [summary(rounds[start::2], replication.missing) for start in (0, 1)]
    return [*halves, *(shifted(replication, pattern) for pattern in range(PATTERNS))]


def shifted(replication: Replication, pattern: int) -> Replication:
    """All costs a little higher or lower, with a sign for each kind of work.

    The first patterns are the combinations of signs of the classes of work. The others derive the sign of
    each primitive, and of each suite's and side's other work, from its name, so it is the same in every run.
    The last of them ignore sizes of keys and sides, for statements about all sizes.
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
