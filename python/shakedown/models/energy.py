"""Energy per handshake, and battery life in the four situations of Kambourakis et al. (section 6)."""

from __future__ import annotations

from typing import NamedTuple

from shakedown.models.arrays import Floats, Numbers, floats


class LinkBytes(NamedTuple):
    """Bytes from and to the client."""

    up: float
    down: float


def byte_energy_j(
    sent_bytes: Numbers, send_j_per_byte: Numbers, received_bytes: Numbers, receive_j_per_byte: Numbers
) -> Floats:
    """Energy of a handshake's messages, from energies per byte."""
    return floats(sent_bytes) * floats(send_j_per_byte) + floats(received_bytes) * floats(receive_j_per_byte)


def lifetime_h(capacity_mah: Numbers, mean_current_ma: Numbers, initial_charge: Numbers = 1.0) -> Floats:
    """Battery life: charge over mean current, in hours (situation (a): idle; (b): connected and idle).

    Args:
        capacity_mah: capacity of the full battery.
        mean_current_ma: device and radio together.
        initial_charge: share of the capacity at the start (0.8 in the paper).
    """
    return floats(capacity_mah) * floats(initial_charge) / floats(mean_current_ma)


def mean_current_ma(base_ma: Numbers, active_ma: Numbers, active_s: Numbers, period_s: Numbers) -> Floats:
    """Mean current if something that draws ``active_ma`` in addition to ``base_ma`` runs ``active_s`` per
    period.

    Situation (c), a handshake every period (10 s in the paper); situation (d), continuous transfer, is
    ``active_s`` = ``period_s``. Work that is longer than the period fills it.
    """
    share = floats(active_s).clip(max=floats(period_s)) / floats(period_s)
    return floats(base_ma) + share * floats(active_ma)


def radio_energy_j(
    sent: LinkBytes,
    elapsed_s: float | None,
    *,
    up_bits_per_s: float,
    down_bits_per_s: float,
    send_w: float | None = None,
    receive_w: float | None = None,
    idle_w: float | None = None,
    send_j_per_byte: float | None = None,
    receive_j_per_byte: float | None = None,
) -> float | None:
    """The radio's energy during a handshake: from energies per byte, or from sending, receiving, idle power.

    Energies per byte are added to an idle power over the whole time (as phones are measured).

    Returns:
        Joules; None if neither powers nor energies per byte are known.
    """
    sending_s, receiving_s = 8.0 * sent.up / up_bits_per_s, 8.0 * sent.down / down_bits_per_s
    waiting_s = max(0.0, (elapsed_s or 0.0) - sending_s - receiving_s)
    base_j = waiting_s * (idle_w or 0.0)
    if send_j_per_byte is not None and receive_j_per_byte is not None:
        connected_s = max(elapsed_s or 0.0, sending_s + receiving_s)
        by_byte = float(byte_energy_j(sent.up, send_j_per_byte, sent.down, receive_j_per_byte))
        return by_byte + connected_s * (idle_w or 0.0)
    if send_w is None or receive_w is None:
        return None
    return sending_s * send_w + receiving_s * receive_w + base_j
