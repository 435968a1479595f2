"""Kuo et al. 2006: bytes over throughput (4.1), no latency, no queue."""

from __future__ import annotations

import numpy as np

from shakedown.models import transmission as equations
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.prediction.literature import Handshake


def transmission(one: Handshake) -> Distribution:
    """All bytes over the bearer's rates."""
    return Distribution.exactly(
        float(
            equations.transmission_s(one.trace.size_bytes("client"), one.bearer.up_bits_per_s)
            + equations.transmission_s(one.trace.size_bytes("server"), one.bearer.down_bits_per_s)
        )
    )


def wait_s(one: Handshake, rates_per_s: Floats, factor: float) -> Floats:
    return np.zeros(rates_per_s.shape)
