"""Levi and Savas 2003, as the thesis cites them: key material over the rate, M/M/1."""

from __future__ import annotations

from shakedown.models import queueing
from shakedown.models import transmission as equations
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.prediction.literature import Handshake
from shakedown.schema.base import Side

_KEY_MATERIAL = ("Certificate", "ServerKeyExchange", "ClientKeyExchange", "CertificateVerify")


def transmission(one: Handshake) -> Distribution:
    """Certificates and key material over the bearer's rates."""
    return Distribution.exactly(
        float(
            equations.transmission_s(_key_material_bytes(one, "client"), one.bearer.up_bits_per_s)
            + equations.transmission_s(_key_material_bytes(one, "server"), one.bearer.down_bits_per_s)
        )
    )


def wait_s(one: Handshake, rates_per_s: Floats, factor: float) -> Floats:
    """M/M/1 of whole handshakes."""
    return queueing.mm1_wait_s(rates_per_s, one.served.total.mean * factor)


def _key_material_bytes(one: Handshake, sender: Side) -> float:
    return sum(
        message.size_bytes
        for message in one.trace.messages
        if message.sender == sender and message.name in _KEY_MATERIAL and message.flight is not None
    )
