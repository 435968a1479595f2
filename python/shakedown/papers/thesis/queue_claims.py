"""The thesis's claims about its queue (sections 4.2, 4.4, 5), whose rates count messages."""

from __future__ import annotations

import math
from collections.abc import Mapping

from shakedown.papers import verdicts
from shakedown.papers.thesis.inputs import Case, Thesis
from shakedown.papers.thesis.queue import RATES_PER_S, Point, Queue, points, queue, span_words
from shakedown.papers.verdicts import Check, published_values

_LIMITS = ("wn-043", "wn-046")
"""Claims with both a practical limit and the wait at it: 150 to 160 ms, and 146 ms."""


def limit_waits_s(thesis: Thesis) -> tuple[float, float]:
    """The smallest and largest wait that the thesis prints for a practical limit of about 70/s."""
    ends = [
        end for claim in _LIMITS for span in published_values(thesis.data.claims[claim].value) for end in span
    ]
    return min(ends) / 1e3, max(ends) / 1e3


def checks(thesis: Thesis) -> Mapping[str, Check]:
    found = {point.claim_id: _point(point) for point in points(thesis)}
    found.update(_bottlenecks(thesis))
    found.update(_limits(thesis))
    return found


def capacity_words(*queues: Queue) -> str:
    """The true capacity, for a published limit."""
    capacities = [one.capacity_per_s for one in queues]
    return f"the server's true capacity is {span_words(min(capacities), max(capacities))} handshakes/s"


def _point(point: Point) -> Check:
    waits, (low, high) = point.waits_here_ms(), point.rates_here_per_s()
    story = f"the printed wait occurs at {span_words(low, high, '.1f')} messages/s, not {point.rate_per_s:g}"
    if any(math.isnan(wait) for wait in waits):
        load = max(one.load(point.rate_per_s) for one in point.queues)
        return verdicts.holds(
            False,
            "no steady state",
            f"load {load:.3f} at {point.rate_per_s:g} messages/s: the queue is unstable; {story}; "
            f"{capacity_words(*point.queues)}",
        )
    capacity = capacity_words(*point.queues)
    reason = f"rates count messages; {story}: an error in reading the steep end of the curve; {capacity}"
    if len(waits) == 1:
        return verdicts.number(waits[0], reason)
    return verdicts.spans([(min(waits), max(waits))], reason)


def _mutual(thesis: Thesis, *names: str) -> list[Queue]:
    return [queue(thesis, "mutual", [thesis.case(name)]) for name in names]


def _bottlenecks(thesis: Thesis) -> dict[str, Check]:
    ecc = [case for case in thesis.cases if case.family == "ecc"]
    top = float(RATES_PER_S[-1])
    primes = [queue(thesis, "mutual", [case]) for case in ecc if case.group == 1]
    servers = [queue(thesis, "serverauth", [case]) for case in ecc]
    first = _mutual(thesis, "256p/160p", "256p/224p", "256p/256p")
    waits = [1e3 * one.wait_s(RATES_PER_S[1:]) for one in first]
    longest = bool((waits[0] > waits[1]).all() and (waits[0] > waits[2]).all())
    at_top = ", ".join(
        f"{name.name} {float(wait[-1]):.2f} ms" for name, wait in zip(first, waits, strict=True)
    )
    totals = {one.name: 1e3 * thesis.time_s(thesis.case(one.name), "mutual", "server") for one in first}
    server_waits = [1e3 * float(one.wait_s(rate)) for one in servers for rate in (1.0, top)]
    light = queue(thesis, "serverauth", [thesis.case("rsa3072/rsa1024")])
    return {
        "wn-002": _never_full(primes, top),
        "wn-003": _never_full(servers, top),
        "wn-039": verdicts.untestable(f"the axis of the curves, 0 to {top:g}/s: an input"),
        "wn-040": _never_full(first, top),
        "wn-041": verdicts.holds(
            longest,
            "256p/160p > 256p/224p, 256p/256p" if longest else at_top,
            f"at 100 messages/s: {at_top}; only because the model omits ECDH, which no mutual message "
            "includes",
        ),
        "wn-042": verdicts.holds(
            max(totals, key=lambda name: totals[name]) == "256p/160p",
            "256p/160p lowest",
            "table 4.1, server: "
            + ", ".join(f"{name} {ms:.2f} ms" for name, ms in totals.items())
            + "; its certificate check is the longest, and only that is queued",
        ),
        "wn-051": verdicts.holds(
            min(server_waits) >= 1e-6 and max(server_waits) <= 1e-4,
            f"{min(server_waits):.1g}..{max(server_waits):.2g}",
            "from 1 to 100 messages/s over the 18 ECDH cases; 1e-5 would be right in seconds",
        ),
        "wn-055": verdicts.holds(
            float(light.wait_s(top)) < 0.060,
            1e3 * float(light.wait_s(top)),
            f"wait at 100 messages/s; {capacity_words(light)}",
        ),
    }


def _never_full(queues: list[Queue], top_per_s: float) -> Check:
    load = max(one.load(top_per_s) for one in queues)
    return verdicts.holds(
        load < 1,
        f"rho {load:.2f}",
        f"highest utilisation at {top_per_s:g} messages/s over {len(queues)} curves; "
        f"{capacity_words(*queues)}",
    )


def _limits(thesis: Thesis) -> dict[str, Check]:
    def ends(group: int, level: int) -> Case:
        return thesis.select(3, level)[group - 1]

    group_2 = _mutual(thesis, *(ends(2, level).name for level in (1, 2, 3)))
    group_3 = _mutual(thesis, *(ends(3, level).name for level in (1, 2, 3)))
    poles = [one.pole_per_s for one in group_2]
    first = _mutual(thesis, *(ends(group, 1).name for group in (2, 3, 4)))
    waits_s = limit_waits_s(thesis)
    limits = [(one.rate_at_per_s(waits_s[0]), one.rate_at_per_s(waits_s[1])) for one in first]
    (prime,) = _mutual(thesis, "256p/160p")
    prime_ms = 1e3 * float(prime.wait_s(RATES_PER_S[-1]))
    k233, r233, rsa2048, rsa3072 = _mutual(
        thesis, ends(2, 2).name, ends(3, 2).name, "rsa3072/rsa2048", "rsa3072/rsa3072"
    )
    server = queue(thesis, "serverauth", [thesis.case("rsa3072/rsa3072")])
    spread = max(
        max(one.pole_per_s for one in group) / min(one.pole_per_s for one in group)
        for group in (group_2, group_3)
    )
    near = all(abs(end - 70) <= 0.08 * 70 for limit in limits for end in limit)
    limit_words = "; ".join(
        f"{one.name} {low:.1f} to {high:.1f}" for one, (low, high) in zip(first, limits, strict=True)
    )
    at_waits = (
        f"messages/s at waits of {1e3 * waits_s[0]:.0f} to {1e3 * waits_s[1]:.0f} ms, which the thesis "
        "prints at its limits"
    )
    return {
        "wn-044": verdicts.spans(
            [(min(poles), max(poles))],
            f"saturation rate of the formula; section 4.4 states 80; {capacity_words(*group_2)}",
        ),
        "wn-048": verdicts.holds(
            rsa3072.pole_per_s <= 1.5,
            rsa3072.pole_per_s,
            "saturation rate of the formula in messages/s, the unit of all rates of the section, to the one "
            "digit that is printed; in handshakes/s, which the section does not use, it is "
            f"{rsa3072.capacity_per_s:.2f}",
        ),
        "wn-049": verdicts.holds(
            near and prime_ms < 1e3 * waits_s[0],
            limit_words,
            f"{at_waits}; 256p/160p waits {prime_ms:.1f} ms at 100/s; {capacity_words(*first)}",
        ),
        "wn-078": verdicts.holds(
            near,
            limit_words,
            f"{at_waits}; end certificates 163k, 163r and rsa1024 under the keys of category 3; "
            f"{capacity_words(*first)}",
        ),
        "wn-079": verdicts.number(k233.pole_per_s, f"saturation rate of {k233.name}; {capacity_words(k233)}"),
        "wn-080": verdicts.number(r233.pole_per_s, f"saturation rate of {r233.name}; {capacity_words(r233)}"),
        "wn-081": verdicts.number(
            rsa2048.pole_per_s, f"saturation rate of {rsa2048.name}; {capacity_words(rsa2048)}"
        ),
        "wn-082": verdicts.untestable(
            "'unacceptable' has no bound; in messages/s, like the "
            f"neighbouring figures, the wait at two per second is {1e3 * float(rsa3072.wait_s(2.0)):.0f} "
            "ms; in handshakes/s, two per second are "
            f"{2 / rsa3072.capacity_per_s:.2f} times the server's capacity"
        ),
        "wn-091": verdicts.holds(
            server.pole_per_s <= 6,
            server.pole_per_s,
            f"saturation rate of the formula; {capacity_words(server)}",
        ),
        "wn-092": verdicts.holds(
            spread <= 1.05,
            spread,
            "highest over lowest saturation rate within group 2, and within group 3: "
            + ", ".join(f"{one.pole_per_s:.1f}" for one in (*group_2, *group_3)),
        ),
    }
