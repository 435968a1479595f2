"""What today's hardware says to the claims, over the study's networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shakedown.models import access
from shakedown.models.transport import flight_s
from shakedown.papers import judge
from shakedown.papers.aka.inputs import FULL, RESUMED, SUITES
from shakedown.papers.here import Here
from shakedown.papers.judge import Check
from shakedown.papers.load import PaperData
from shakedown.papers.paper import Today


def handshake_here_s(here: Here, suite: str, bearer: str) -> float:
    """Our handshake over a bearer: flights at the bearer's rates and delay, and our processing."""
    from shakedown.profiles import load_bearer

    network, cost = load_bearer(bearer), here.costs[suite]
    transmission = sum(
        float(
            flight_s(
                size,
                network.up_bits_per_s if side == "client" else network.down_bits_per_s,
                network.traversal_s,
            )
        )
        for side, size in cost.flight_bytes()
    )
    return transmission + (cost.client_us + cost.server_us) / 1e6


def today(data: PaperData, here: Here) -> Sequence[Today]:
    """What today's stack says, over the paper's own bearer."""

    def number(value: Callable[[], float], reason: str) -> Callable[[], Check]:
        return lambda: judge.number(value(), reason, "measured")

    def tht(suite: str) -> float:
        return 1e3 * handshake_here_s(here, suite, "gprs-cs1")

    bearer = "our bytes, flights and processing over the bearer gprs-cs1"
    return [
        Today(
            "ak-005",
            "round trips: flights over two",
            (FULL,),
            number(lambda: here.costs[FULL].flights / 2, "the ten messages travel in four flights"),
        ),
        Today(
            "ak-015",
            "resumed handshake's THT",
            SUITES,
            number(
                lambda: tht(RESUMED),
                f"{bearer}: {here.costs[RESUMED].size_bytes:.0f} bytes" if here.cost(RESUMED) else "",
            ),
        ),
        Today(
            "ak-016",
            "resumption's gain",
            SUITES,
            number(
                lambda: 100 * float(access.resumption_gain(tht(FULL), tht(RESUMED))),
                f"{bearer}; full {tht(FULL):.0f} ms, resumed {tht(RESUMED):.0f} ms"
                if here.all(SUITES)
                else "",
            ),
        ),
        Today(
            "ak-022",
            "full handshake's THT on GPRS",
            (FULL,),
            number(
                lambda: tht(FULL),
                f"{bearer}: two round trips and {here.costs[FULL].size_bytes:.0f} bytes"
                if here.cost(FULL)
                else "",
            ),
        ),
    ]
