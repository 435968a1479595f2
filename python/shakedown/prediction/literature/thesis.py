"""Bayoglu 2004: D = 8 B / r + 2 n τ (3.84), Pollaczek-Khinchine per message (3.12-3.18)."""

from __future__ import annotations

import numpy as np

from shakedown.models import queueing
from shakedown.models import transmission as equations
from shakedown.models.arrays import Floats
from shakedown.models.distribution import Distribution
from shakedown.prediction.literature import Handshake


def transmission(one: Handshake) -> Distribution:
    """All bytes over the bearer's rates, and two traversals for each applicable message."""
    bearer = one.bearer
    sent_s = float(
        equations.transmission_s(one.trace.size_bytes("client"), bearer.up_bits_per_s)
        + equations.transmission_s(one.trace.size_bytes("server"), bearer.down_bits_per_s)
    )
    if bearer.thesis is not None:
        sent_s += float(equations.transmission_s(bearer.thesis.overhead_bytes, bearer.up_bits_per_s))
    crossings = 2.0 * applicable_messages(one)
    return Distribution.normal(sent_s + crossings * bearer.traversal_s, crossings * bearer.traversal_sd_s)


def wait_s(one: Handshake, rates_per_s: Floats, factor: float) -> Floats:
    """Each message of the client waits on its own."""
    return queueing.message_wait_s(rates_per_s, np.array(queued_message_s(one) or [0.0]) * factor)


def applicable_messages(one: Handshake) -> int:
    """The thesis's n: messages from client to server, unless the bearer fixes it."""
    if one.bearer.applicable_messages is not None:
        return one.bearer.applicable_messages
    return sum(message.sender == "client" for message in one.trace.messages)


def queued_message_s(one: Handshake) -> list[float]:
    """Server time of each message from the client (3.15 and 3.18).

    The server's work on its own messages counts for the client's message that they answer; the thesis's
    suites have no such work.
    """
    times: list[float] = []
    pending = one.served.message_s.get(None, 0.0)
    for message in one.trace.messages:
        work_s = one.served.message_s.get(message.index, 0.0)
        if message.sender == "client":
            times.append(work_s + pending)
            pending = 0.0
        elif times:
            times[-1] += work_s
        else:
            pending += work_s
    return times
