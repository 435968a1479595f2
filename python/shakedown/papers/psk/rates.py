"""Claims about DHE_PSK compared with RSA at a rate: the slowdown of a machine for the printed order."""

from __future__ import annotations

import math

from shakedown.models.transmission import (
    crossover_rate_bits_per_s,
    transmission_s,
)
from shakedown.papers import verdicts
from shakedown.papers.load import PaperData
from shakedown.papers.psk.inputs import KEY_BITS, processing_s, size_bytes
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import Check


def slowness(data: PaperData, replication: Replication, key_bits: int, rate_bits_per_s: float) -> float:
    """The slowdown of both machines, relative to this one, at which RSA and DHE_PSK take equally long."""
    fewer = size_bytes(data, "rsa", key_bits) - size_bytes(data, "dhe_psk", key_bits)
    more_s = processing_s(replication, "dhe_psk", key_bits) - processing_s(replication, "rsa", key_bits)
    return float(transmission_s(fewer, rate_bits_per_s)) / more_s if more_s > 0 else math.inf


def fast_factor(data: PaperData, replication: Replication) -> float:
    """The assumed slowdown of the report's fast machines, relative to this one.

    The geometric mean of the range in which the report's two orders at 1024 bit (DHE_PSK faster at 10 kbit/s,
    RSA faster at 100 kbit/s) both hold.
    """
    return math.sqrt(slowness(data, replication, 1024, 1e4) * slowness(data, replication, 1024, 1e5))


def at_10k(data: PaperData, replication: Replication) -> Check:
    """DHE_PSK is faster than RSA at 10 kbit/s."""
    factors = [slowness(data, replication, bits, 1e4) for bits in KEY_BITS]
    return verdicts.holds(
        min(factors) > 1,
        "dhe_psk < rsa" if min(factors) > 1 else "rsa < dhe_psk",
        "with this machine's processing and table 4.1's bytes; holds on a machine up to "
        f"{', '.join(f'{factor:.0f}' for factor in factors)} times slower (512, 1024, 2048 bit)",
    )


def above_100k(data: PaperData, replication: Replication) -> Check:
    """RSA is faster than DHE_PSK at 100 kbit/s and 1 Mbit/s."""
    factors = {rate: [slowness(data, replication, bits, rate) for bits in KEY_BITS] for rate in (1e5, 1e6)}
    good = all(factor < 1 for found in factors.values() for factor in found)
    first, second = ("RSA" if factors[rate][1] < 1 else "DHE_PSK" for rate in (1e5, 1e6))
    faster = (
        f"{first} is faster at 100 kbit/s and 1 Mbit/s"
        if first == second
        else f"{first} is faster at 100 kbit/s, {second} at 1 Mbit/s"
    )
    return verdicts.holds(
        good,
        f"{faster}, 1024 bit",
        f"the printed order needs a machine that is slower than this one by more than "
        f"{factors[1e5][1]:.0f} times at "
        f"100 kbit/s and {factors[1e6][1]:.1f} times at 1 Mbit/s (1024 bit), like a Pentium 4 with "
        "full-length exponents; on modern "
        "processors, bytes determine the order up to higher rates",
    )


def crossovers_bits_per_s(data: PaperData, replication: Replication) -> list[float]:
    """Rates below which DHE_PSK is faster than RSA on this machine, by key size."""
    return [
        float(
            crossover_rate_bits_per_s(
                size_bytes(data, "rsa", bits),
                size_bytes(data, "dhe_psk", bits),
                processing_s(replication, "rsa", bits),
                processing_s(replication, "dhe_psk", bits),
            )
        )
        for bits in KEY_BITS
    ]


def small_or_slow(data: PaperData, replication: Replication) -> Check:
    """DHE_PSK is faster than RSA only with small keys or at low rates."""
    rates = crossovers_bits_per_s(data, replication)
    factor = fast_factor(data, replication) * 2530 / 533
    return verdicts.untestable(
        "the slow machines are not available, and their times are not printed; "
        "if all work slows down equally, DHE_PSK is faster below "
        + ", ".join(f"{rate / 1e3:.0f} kbit/s" for rate in rates)
        + " here at 512, 1024, 2048 bit; on a pair "
        f"{factor:.0f} times slower {', '.join(f'{rate / factor / 1e3:.2g}' for rate in rates)} kbit/s",
    )
