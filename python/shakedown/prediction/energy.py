"""The client's energy for one handshake: processor and radio, by state, with ranges.

Bytes are those on the link, headers and acknowledgements included. Parts that the profiles do not give are
named: the sum is then a lower bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shakedown.models.energy import LinkBytes, radio_energy_j
from shakedown.models.ranges import Range, combined, exactly, within
from shakedown.prediction.prices import Price
from shakedown.profiles import Bearer, Device

UNPRICED_WORK = "the processor's work that has no figure"
"""What an energy lacks where a part of the client's work is unpriced."""


@dataclass(frozen=True)
class Energy:
    """Joules by part, None where unknown; `missing` says what is not in them, `tail_text` whether the radio's
    inactivity tail is: None where that is missing.
    """

    processor: Range | None
    radio: Range | None
    setup: Range | None
    tail: Range | None
    missing: tuple[str, ...]
    tail_text: str | None = None

    @property
    def known(self) -> bool:
        """Whether any part is known."""
        return self.processor is not None or self.radio is not None

    @property
    def total(self) -> Range | None:
        """The sum of the known parts, None where there is none."""
        parts = {"processor": self.processor, "radio": self.radio, "setup": self.setup, "tail": self.tail}
        found = {name: part for name, part in parts.items() if part is not None}
        if not self.known:
            return None
        # Set-up, sending and tail are one radio's: wrong together.
        radio = [part for name, part in found.items() if name != "processor"]
        causes = {"processor": found["processor"]} if "processor" in found else {}
        if radio:
            whole = radio[0]
            for part in radio[1:]:
                whole = whole.plus(part)
            causes["radio"] = whole
        return combined(causes)


def client_energy(
    sent: LinkBytes | None,
    device: Device,
    bearer: Bearer,
    client: Price,
    elapsed_s: float | None,
    *,
    from_idle: bool = False,
) -> Energy:
    """Energy of one handshake at the client.

    Args:
        sent: what the handshake puts on the link, None where unknown.
        device, bearer: whose power.
        client: the client's price.
        elapsed_s: how long the handshake takes, None where there is no steady state.
        from_idle: the radio is set up first, which takes energy as it takes time.
    """
    missing: list[str] = []
    if elapsed_s is None:
        missing.append("waiting in a queue that has no steady state")
    processor = _processor(device, client, elapsed_s, missing)
    radio, setup, tail = _radio(sent, bearer, elapsed_s, from_idle, missing)
    return Energy(processor, radio, setup, tail, tuple(missing), _tail_text(bearer, radio))


def _processor(device: Device, client: Price, elapsed_s: float | None, missing: list[str]) -> Range | None:
    power = device.energy
    computing = client.with_connection
    if power.active_w is None:
        if client.primitive_energy_j is not None:
            missing.append("the processor's work outside primitives")
            return within(client.primitive_energy_j, device.spread)
        missing.append("the processor: its power is not known")
        return None
    if client.unpriced:
        missing.append(UNPRICED_WORK)
    busy = computing.times(power.active_w)
    waiting_s = max(0.0, (elapsed_s or computing.mean) - computing.mean)
    if power.idle_w is None:
        missing.append("the processor while it waits")
        idle_j = 0.0
    else:
        idle_j = waiting_s * power.idle_w
    spread = math.log(power.spread)
    low = (
        math.exp(-math.hypot(spread, math.log(computing.mean / computing.low)))
        if computing.low > 0.0
        else 0.0
    )
    high = (
        math.exp(math.hypot(spread, math.log(computing.high / computing.mean)))
        if computing.mean > 0.0
        else 1.0
    )
    mean = busy.mean + idle_j
    return Range(mean * low, mean, mean * high)


def _radio(
    sent: LinkBytes | None, bearer: Bearer, elapsed_s: float | None, from_idle: bool, missing: list[str]
) -> tuple[Range | None, Range | None, Range | None]:
    power = bearer.energy
    # What the radio spends while it is set up is its set-up's energy.
    setup_s = bearer.setup_s if from_idle else 0.0
    found = sent and radio_energy_j(
        sent,
        None if elapsed_s is None else max(0.0, elapsed_s - setup_s),
        up_bits_per_s=bearer.up_bits_per_s,
        down_bits_per_s=bearer.down_bits_per_s,
        send_w=power.send_w,
        receive_w=power.receive_w,
        idle_w=power.idle_w,
        send_j_per_byte=power.send_j_per_byte,
        receive_j_per_byte=power.receive_j_per_byte,
    )
    if found is None:
        unknown = "no handshake gets through there"
        why = bearer.assumed.get("energy", "its profile gives no power") if sent else unknown
        missing.append(f"sending and receiving over {bearer.name} ({why})")
        return None, None, None
    if power.idle_w is None and power.send_j_per_byte is None:
        missing.append("the radio while it waits")
    setup: Range | None = exactly(0.0)
    if from_idle and bearer.setup_s > 0.0:
        setup = None if power.setup_j is None else within(power.setup_j, power.spread)
        if setup is None:
            missing.append("the radio's set-up")
    tail = None
    if power.tail_w is None or power.tail_s is None:
        missing.append("the radio's inactivity tail")
    else:
        tail = within(power.tail_w * power.tail_s, power.spread)
    return within(found, power.spread), setup, tail


def _tail_text(bearer: Bearer, radio: Range | None) -> str | None:
    """Whether the inactivity tail is in the radio's energy: `with …`, `without …`; None where
    unknown.
    """
    power = bearer.energy
    if radio is None or power.tail_w is None or power.tail_s is None:
        return None
    why = bearer.assumed.get("energy.tail_s")
    because = f" ({why})" if why else ""
    if power.tail_w * power.tail_s == 0.0:
        return f"without an inactivity tail over {bearer.name}{because}"
    return f"with the inactivity tail over {bearer.name}: {power.tail_s:g} s at {power.tail_w:g} W{because}"
