"""The study's six steps of a handshake, in what was measured here."""

from __future__ import annotations

from shakedown.models.transport import flight_s, wep_wire_bytes
from shakedown.papers.load import PaperData
from shakedown.papers.pda.inputs import NETWORK_BITS_PER_S, Study
from shakedown.papers.replication import Cost, Replication
from shakedown.schema.base import Side

_TO_SERVER = ("ServerHello", "Certificate", "ServerKeyExchange", "ServerHelloDone")


def client_steps_us(cost: Cost) -> dict[int, float]:
    """The client's own work in the study's six steps, without waiting; step 5 is the server's."""
    return {
        1: cost.at("client", "ClientHello"),
        2: sum(cost.at("client", name, "server") for name in _TO_SERVER),
        3: cost.at("client", "ClientKeyExchange"),
        4: cost.at("client", "ChangeCipherSpec", "client") + cost.at("client", "Finished", "client"),
        5: 0.0,
        6: cost.at("client", "ChangeCipherSpec", "server") + cost.at("client", "Finished", "server"),
    }


def server_steps_us(cost: Cost) -> dict[int, float]:
    """The server's own work in the same steps; step 3 is the client's."""
    return {
        1: cost.at("server", "ClientHello"),
        2: sum(cost.at("server", name, "server") for name in _TO_SERVER),
        3: 0.0,
        4: cost.at("server", "ChangeCipherSpec", "client") + cost.at("server", "Finished", "client"),
        5: cost.at("server", "ClientKeyExchange"),
        6: cost.at("server", "ChangeCipherSpec", "server") + cost.at("server", "Finished", "server"),
    }


def with_network_us(cost: Cost, one_way_s: float, *, wep: bool) -> dict[int, float]:
    """The client's steps as the study timed them: waits for the server's flights are in steps 2 and 6.

    WEP adds its bytes on the air; what its cipher costs is not in here.
    """
    own, server = client_steps_us(cost), server_steps_us(cost)
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
    and no public-key work.
    """
    return Study(data)["laptop_resumption_time"] / 2e3


def time_ratio(replication: Replication, side: Side, above: str, below: str) -> float:
    """One side's time with one suite over that with another."""
    return replication.costs[above].us(side) / replication.costs[below].us(side)
