"""Transmission time from bytes, rate and traversal delay, and traversal delay from measurements of a network.

"Thesis" is Bayoglu 2004 (see ``processing``); "Kuo" is F.-C. Kuo, H. Tschofenig, F. Meyer and X. Fu,
"Comparison Studies between Pre-Shared Key and Public Key Exchange Mechanisms for TLS", IFI-TB-2006-001,
Göttingen, 2006.
"""

from __future__ import annotations

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats


def transmission_s(size_bytes: Numbers, rate_bits_per_s: Numbers) -> Floats:
    """Time to send ``size_bytes`` at a rate: D = 8 B / r (thesis, 3.83; Kuo, 4.1; Levi and Savas)."""
    return 8.0 * floats(size_bytes) / floats(rate_bits_per_s)


def traversed_transmission_s(
    size_bytes: Numbers, rate_bits_per_s: Numbers, messages: Numbers, traversal_s: Numbers
) -> Floats:
    """Transmission with traversal delay: D = 8 B / r + 2 n τ (thesis, 3.84).

    Args:
        size_bytes: handshake bytes, acknowledgements included.
        rate_bits_per_s: channel rate.
        messages: n, the client-to-server messages of a handshake; the factor 2 is message and
            acknowledgement.
        traversal_s: τ, one-way delay of the operator's network.
    """
    return transmission_s(size_bytes, rate_bits_per_s) + 2.0 * floats(messages) * floats(traversal_s)


def traversal_from_transmission_s(
    measured_s: Numbers, size_bytes: Numbers, rate_bits_per_s: Numbers, messages: Numbers
) -> Floats:
    """Traversal delay from a measured transmission time: τ = (D - 8 B / r) / (2 n) (thesis, 4.1)."""
    return (floats(measured_s) - transmission_s(size_bytes, rate_bits_per_s)) / (2.0 * floats(messages))


def traversal_from_ping_s(
    round_trip_s: Numbers,
    up_bits_per_s: Numbers,
    down_bits_per_s: Numbers,
    packet_bytes: Numbers = 64,
    *,
    as_computed: bool = False,
) -> Floats:
    """Traversal delay from a ping: τ = (RTT - 8 L / r_down - 8 L / r_up) / 2 (thesis, 4.2).

    Args:
        round_trip_s: ping round trip.
        up_bits_per_s, down_bits_per_s: rates from and to the pinging side.
        packet_bytes: L, 64 in the thesis.
        as_computed: the thesis's figures (table 4.14) omit the factor 8; True repeats that.
    """
    length = floats(packet_bytes) * (1.0 if as_computed else 8.0)
    serialisation = length / floats(down_bits_per_s) + length / floats(up_bits_per_s)
    return (floats(round_trip_s) - serialisation) / 2.0


def crossover_rate_bits_per_s(
    bytes_a: Numbers, bytes_b: Numbers, processing_a_s: Numbers, processing_b_s: Numbers
) -> Floats:
    """Rate at which two suites take equally long: 8 (B_a - B_b) / (P_b - P_a) (from Kuo, 4.1), or NaN."""
    more_bytes = floats(bytes_a) - floats(bytes_b)
    more_processing = floats(processing_b_s) - floats(processing_a_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = 8.0 * more_bytes / more_processing
    return np.where(np.isfinite(rate) & (rate > 0.0), rate, np.nan)


def kuo_anonymous_dh_bytes(key_bits: Numbers) -> Floats:
    """Handshake bytes of anonymous DH: 527 + 3 k / 8, two public values and a prime of k bits (Kuo, table
    4.1).
    """
    return 527.0 + 3.0 * floats(key_bits) / 8.0


def kuo_dhe_psk_bytes(key_bits: Numbers) -> Floats:
    """Handshake bytes of DHE_PSK: 72 more than anonymous DH at every key size (Kuo, table 4.1)."""
    return kuo_anonymous_dh_bytes(key_bits) + 72.0


def scaled_round_trip_s(
    round_trip_s: Numbers, rate_bits_per_s: Numbers, new_rate_bits_per_s: Numbers
) -> Floats:
    """Round trip at another rate if all of it were serialisation: NRT r / r' (Kambourakis et al., section
    5.3).

    That paper does this; a delay that does not depend on the rate would not shrink.
    """
    return floats(round_trip_s) * floats(rate_bits_per_s) / floats(new_rate_bits_per_s)
