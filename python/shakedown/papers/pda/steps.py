"""The study's six steps of a handshake, from measured costs."""

from __future__ import annotations

from shakedown.models.transport import flight_s, wep_wire_bytes
from shakedown.papers.load import PaperData
from shakedown.papers.pda.inputs import NETWORK_BITS_PER_S, Study
from shakedown.papers.replication import Cost, Replication
from shakedown.schema.base import Side

_TO_SERVER = ("ServerHello", "Certificate", "ServerKeyExchange", "ServerHelloDone")


def steps_us(cost: Cost, side: Side) -> dict[int, float]:
    """One side's work in the study's six steps, without waits; step 3 is the client's, 5 the server's."""
    exchange_us = cost.at(side, "ClientKeyExchange")
    return {
        1: cost.at(side, "ClientHello"),
        2: sum(cost.at(side, name, "server") for name in _TO_SERVER),
        3: exchange_us if side == "client" else 0.0,
        4: cost.at(side, "ChangeCipherSpec", "client") + cost.at(side, "Finished", "client"),
        5: exchange_us if side == "server" else 0.0,
        6: cost.at(side, "ChangeCipherSpec", "server") + cost.at(side, "Finished", "server"),
    }


def with_network_us(cost: Cost, one_way_s: float, *, wep: bool) -> dict[int, float]:
    """The client's steps as in the study: waits for the server's flights are part of steps 2 and 6.

    WEP adds its bytes on the air; the processing of its cipher is not included.
    """
    own, server = steps_us(cost, "client"), steps_us(cost, "server")
    flights_us = [
        1e6
        * float(flight_s(size + (float(wep_wire_bytes(size)) if wep else 0.0), NETWORK_BITS_PER_S, one_way_s))
        for _, size in cost.flight_bytes()
    ]
    own[2] += flights_us[0] + flights_us[1] + server[1] + server[2]
    own[6] += flights_us[2] + flights_us[3] + server[4] + server[5] + server[6]
    return own


def one_way_s(data: PaperData) -> float:
    """One-way delay of the study's network: half of the laptop's resumed handshake, which is one round trip
    without public-key operations.
    """
    return Study(data)["laptop_resumption_time"] / 2e3


def time_ratio(replication: Replication, side: Side, above: str, below: str) -> float:
    """The ratio of one side's times with two suites."""
    return replication.costs[above].us(side) / replication.costs[below].us(side)
