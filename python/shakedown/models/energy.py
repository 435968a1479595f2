"""Energy per handshake, and how long a battery lasts in the four situations of Kambourakis et al. (section
6).
"""

from __future__ import annotations

from shakedown.models.arrays import Floats, Numbers, floats


def handshake_energy_j(
    computing_s: Numbers,
    active_w: Numbers,
    sending_s: Numbers = 0.0,
    send_w: Numbers = 0.0,
    receiving_s: Numbers = 0.0,
    receive_w: Numbers = 0.0,
    waiting_s: Numbers = 0.0,
    idle_w: Numbers = 0.0,
) -> Floats:
    """Energy of one handshake at one side: each state's power times its time, E = Σ P t."""
    return (
        floats(computing_s) * floats(active_w)
        + floats(sending_s) * floats(send_w)
        + floats(receiving_s) * floats(receive_w)
        + floats(waiting_s) * floats(idle_w)
    )


def byte_energy_j(
    sent_bytes: Numbers, send_j_per_byte: Numbers, received_bytes: Numbers, receive_j_per_byte: Numbers
) -> Floats:
    """Energy of a handshake's messages by bytes."""
    return floats(sent_bytes) * floats(send_j_per_byte) + floats(received_bytes) * floats(receive_j_per_byte)


def split_energy_j(total_j: Numbers, cryptography_share: Numbers) -> tuple[Floats, Floats]:
    """Energy of cryptography and of messages, E = E_crypto + E_messages (the cited work: 7 % and 93 % of
    1062 mJ).
    """
    cryptography = floats(total_j) * floats(cryptography_share)
    return cryptography, floats(total_j) - cryptography


def lifetime_h(capacity_mah: Numbers, mean_current_ma: Numbers, initial_charge: Numbers = 1.0) -> Floats:
    """Battery life: charge over mean current, in hours (situation (a): idle; (b): connected and idle).

    Args:
        capacity_mah: capacity of the full battery.
        mean_current_ma: device and radio together.
        initial_charge: share of the capacity at the start (0.8 in the paper).
    """
    return floats(capacity_mah) * floats(initial_charge) / floats(mean_current_ma)


def mean_current_ma(base_ma: Numbers, active_ma: Numbers, active_s: Numbers, period_s: Numbers) -> Floats:
    """Mean current when something drawing ``active_ma`` on top of ``base_ma`` runs ``active_s`` of every
    period.

    Situation (c), a handshake every period (10 s in the paper); situation (d), continuous transfer, is
    ``active_s`` = ``period_s``. Work that does not fit its period fills it.
    """
    share = floats(active_s).clip(max=floats(period_s)) / floats(period_s)
    return floats(base_ma) + share * floats(active_ma)


def handshakes_per_charge(battery_j: Numbers, handshake_j: Numbers) -> Floats:
    """How many handshakes one battery charge pays for, nothing else drawing."""
    return floats(battery_j) / floats(handshake_j)
