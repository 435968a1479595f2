"""The modern rerun of the claims, over the study's networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shakedown.models import access
from shakedown.models.transport import flight_s
from shakedown.papers import verdicts
from shakedown.papers.aka.inputs import FULL, RESUMED, SUITES
from shakedown.papers.load import PaperData
from shakedown.papers.paper import ModernRerun
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def handshake_here_s(replication: Replication, suite: str, bearer: str) -> float:
    """The handshake's time on this machine over a bearer: its flights at rates and delay, and processing."""
    from shakedown.profiles import load_bearer

    network, cost = load_bearer(bearer), replication.costs[suite]
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


def modern_rerun(data: PaperData, replication: Replication) -> Sequence[ModernRerun]:
    def number(value: Callable[[], float], reason: str) -> Callable[[], Check]:
        return lambda: verdicts.number(value(), reason)

    def tht(suite: str) -> float:
        return 1e3 * handshake_here_s(replication, suite, "gprs-cs1")

    bearer = "our bytes, flights and processing over the bearer gprs-cs1"
    return [
        ModernRerun(
            "ak-005",
            "round trips: flights over two",
            (FULL,),
            number(lambda: replication.costs[FULL].flights / 2, "the ten messages are sent in four flights"),
        ),
        ModernRerun(
            "ak-015",
            "resumed handshake's THT",
            SUITES,
            number(
                lambda: tht(RESUMED),
                f"{bearer}: {replication.costs[RESUMED].size_bytes:.0f} bytes"
                if RESUMED in replication.costs
                else "",
            ),
        ),
        ModernRerun(
            "ak-016",
            "resumption's gain",
            SUITES,
            number(
                lambda: 100 * float(access.resumption_gain(tht(FULL), tht(RESUMED))),
                f"{bearer}; full {tht(FULL):.0f} ms, resumed {tht(RESUMED):.0f} ms"
                if replication.all(SUITES)
                else "",
            ),
        ),
        ModernRerun(
            "ak-022",
            "full handshake's THT on GPRS",
            (FULL,),
            number(
                lambda: tht(FULL),
                f"{bearer}: two round trips and {replication.costs[FULL].size_bytes:.0f} bytes"
                if FULL in replication.costs
                else "",
            ),
        ),
    ]
