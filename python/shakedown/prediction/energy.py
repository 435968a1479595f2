"""The client's energy for one handshake: for the handshake itself, for waking the radio and for its tail.

Bytes are those on the link, headers and acknowledgements included. Parts that the profiles lack are named; a
sum without one of them has no estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from shakedown.models.energy import LinkBytes, radio_energy_j
from shakedown.models.ranges import Range, combined, exactly, within
from shakedown.prediction.figures import weakest
from shakedown.prediction.work import SideCost, Work, known_basis
from shakedown.profiles import Bearer, Device
from shakedown.schema.base import Basis
from shakedown.schema.predictions import NEGLIGIBLE_SHARE

WORK_WITHOUT_COST = "a part of the processor's work"
"""The name of the missing energy if a part of the client's work has no cost."""


@dataclass(frozen=True)
class Energy:
    """Joules by part, None where unknown.

    Attributes:
        processor, radio: of the handshake itself: computing, sending, receiving, waiting.
        setup: of the radio before the first byte, and of the processor that waits for it.
        tail: of the radio after the last byte.
        missing, wake_tail_missing: parts missing from the first two, and from the last two.
        at_most_j: upper bound of the missing parts of the first two.
        terms: the assumptions about set-up and tail, in words.
        basis, wake_tail_basis: the weakest basis of the known parts.
    """

    processor: Range | None
    radio: Range | None
    setup: Range | None
    tail: Range | None
    missing: tuple[str, ...]
    wake_tail_missing: tuple[str, ...]
    terms: str
    basis: Basis
    wake_tail_basis: Basis
    at_most_j: float = 0.0

    @property
    def handshake(self) -> Range:
        """The known energy of the handshake itself; its high end includes the bound of the missing parts."""
        known = _sum({"processor": self.processor, "radio": self.radio})
        return known._replace(high=known.high + self.at_most_j)

    @property
    def known(self) -> bool:
        """Whether the missing part of the handshake itself is negligible."""
        return (
            self.at_most_j <= NEGLIGIBLE_SHARE * _sum({"processor": self.processor, "radio": self.radio}).mean
        )

    @property
    def wake_tail(self) -> Range:
        """The known energy of waking the radio and of its inactivity tail."""
        known = _plus([self.setup, self.tail]) or exactly(0.0)
        return known._replace(high=math.inf) if self.wake_tail_missing else known

    @property
    def total(self) -> Range:
        """The sum of the known parts. The errors of the radio's three parts are fully correlated."""
        whole = _sum({"processor": self.processor, "radio": _plus([self.radio, self.setup, self.tail])})
        return whole._replace(high=whole.high + self.at_most_j)


def _sum(parts: dict[str, Range | None]) -> Range:
    return combined({name: part for name, part in parts.items() if part is not None})


def _plus(parts: Sequence[Range | None]) -> Range | None:
    known = [part for part in parts if part is not None]
    return reduce(Range.plus, known) if known else None


def client_energy(
    sent: LinkBytes | None,
    device: Device,
    bearer: Bearer,
    work: Work,
    elapsed_s: float | None,
    setup_s: float = 0.0,
    longer_s: float = 0.0,
    *,
    from_idle: bool = False,
) -> Energy:
    """Energy of one handshake at the client.

    Args:
        sent: the handshake's bytes on the link; None if unknown.
        work: both sides' work.
        elapsed_s: duration of the handshake; None without a steady state. It does not contain work without a
            cost.
        setup_s: the part of this duration in which the radio is set up.
        longer_s: by how much the wait for the server may be longer.
        from_idle: the radio is set up first, which takes time and energy.
    """
    client, server = work
    missing: list[str] = []
    if elapsed_s is None:
        missing.append("the wait in an unstable queue")
    connected_s = None if elapsed_s is None else max(0.0, elapsed_s - setup_s)
    processor = _processor(device, client, connected_s, missing)
    radio = _radio(sent, bearer, connected_s, _worked(work), missing)
    around: list[str] = []
    setup, tail = _around(device, bearer, around, from_idle=from_idle)
    at_most_j = math.inf if missing else 0.0
    listening_w = (bearer.energy.idle_w or 0.0) * bearer.energy.spread
    power = device.power
    waiting_w = (power.idle_w or 0.0) * power.spread + listening_w
    if longer_s > 0.0:
        at_most_j += longer_s * waiting_w
    if client.without_cost:
        missing.append(WORK_WITHOUT_COST)
        at_most_j += client.without_cost_high_s * ((power.active_w or 0.0) * power.spread + listening_w)
    if server.without_cost:
        missing.append("the wait for a part of the server's work")
        at_most_j += server.without_cost_high_s * waiting_w
    return Energy(
        processor=processor,
        radio=radio,
        setup=setup,
        tail=tail,
        missing=tuple(missing),
        wake_tail_missing=tuple(around),
        terms=terms(bearer, from_idle=from_idle),
        basis=weakest([known_basis([client]), _power_basis(device), _power_basis(bearer)]),
        wake_tail_basis=_around_basis(device, bearer, setup, tail, from_idle=from_idle),
        at_most_j=at_most_j,
    )


def _power_basis(profile: Device | Bearer) -> Basis:
    usual = isinstance(profile, Device) and profile.power is not profile.energy
    assumed = usual or any(key.partition(".")[0] == "energy" for key in profile.assumed)
    return "assumed" if assumed else "measured"


def _processor(device: Device, client: SideCost, elapsed_s: float | None, missing: list[str]) -> Range | None:
    power = device.power
    computing = client.with_connection
    if device.energy.active_w is None and client.primitive_energy_j is not None:
        missing.append("the processor's work outside primitives")
        return within(client.primitive_energy_j, device.spread)
    if power.active_w is None:
        missing.append("the processor's power")
        return None
    idle_j = 0.0
    if power.idle_w is None:
        missing.append("the processor while it waits")
    else:
        idle_j = power.idle_w * max(0.0, (elapsed_s or computing.mean) - computing.mean)
    # The errors of both powers are fully correlated.
    return computing.times(power.active_w).plus(exactly(idle_j)).scaled(1.0, power.spread)


def _worked(work: Work) -> Range:
    """Both sides' work during which the radio listens. Its mean is that in the default model's duration."""
    whole = work.with_connection
    if not work.missing:
        return whole
    least_s = work.at_low().with_connection.mean
    return Range(least_s, least_s, whole.high)


def _radio(
    sent: LinkBytes | None, bearer: Bearer, connected_s: float | None, worked: Range, missing: list[str]
) -> Range | None:
    power = bearer.energy
    found = sent and radio_energy_j(
        sent,
        connected_s,
        up_bits_per_s=bearer.up_bits_per_s,
        down_bits_per_s=bearer.down_bits_per_s,
        send_w=power.send_w,
        receive_w=power.receive_w,
        idle_w=power.idle_w,
        send_j_per_byte=power.send_j_per_byte,
        receive_j_per_byte=power.receive_j_per_byte,
    )
    if found is None:
        unknown = "no handshake completes there"
        why = bearer.assumed.get("energy", "its profile gives no power") if sent else unknown
        missing.append(f"sending and receiving over {bearer.name} ({why})")
        return None
    if power.idle_w is None:
        missing.append("the radio while it waits")
        return within(found, power.spread)
    less, more = (power.idle_w * abs(end - worked.mean) for end in (worked.low, worked.high))
    return Range(max(0.0, found - less), found, found + more).scaled(1.0, power.spread)


def _around(
    device: Device, bearer: Bearer, missing: list[str], *, from_idle: bool
) -> tuple[Range | None, Range | None]:
    power = bearer.energy
    setup: Range | None = exactly(0.0)
    if from_idle and bearer.setup_s > 0.0:
        setup = None if power.setup_j is None else within(power.setup_j, power.spread)
        if setup is None:
            missing.append(f"the radio's set-up over {bearer.name}")
        waiting_w = device.power.idle_w
        if waiting_w is None:
            missing.append("the processor while the radio is set up")
        elif setup is not None:
            setup = setup.plus(within(waiting_w * bearer.setup_s, device.power.spread))
    if 0.0 in (power.tail_w, power.tail_s):
        return setup, exactly(0.0)
    if power.tail_w is None or power.tail_s is None:
        missing.append(f"the radio's inactivity tail over {bearer.name}")
        return setup, None
    return setup, within(power.tail_w * power.tail_s, power.spread)


def _around_basis(
    device: Device, bearer: Bearer, setup: Range | None, tail: Range | None, *, from_idle: bool
) -> Basis:
    """The basis of set-up and tail; it includes the processor's power if its wait for the set-up matters."""
    known, waiting_j = _plus([setup, tail]), (device.power.idle_w or 0.0) * bearer.setup_s
    matters = from_idle and known is not None and waiting_j > NEGLIGIBLE_SHARE * known.mean
    return weakest([_power_basis(bearer), *([_power_basis(device)] if matters else [])])


def terms(bearer: Bearer, *, from_idle: bool) -> str:
    """The assumptions about waking the radio and about its tail: `over lte-m: …`."""
    power = bearer.energy
    assumed = {key.removeprefix("energy.") for key in bearer.assumed if key.partition(".")[0] == "energy"}
    if from_idle:
        waking = f"the radio wakes from idle ({bearer.setup_s:.2g} s on average)"
        unknown = bearer.assumed.get("setup", "its profile gives no set-up")
        first = waking if bearer.setup_s else f"idle makes no difference ({unknown})"
    else:
        joules = "" if power.setup_j is None else f" and use {_stated(power.setup_j, bool(assumed))} J"
        waking = f"waking the radio would take {bearer.setup_s:.2g} s on average{joules}"
        first = "the client is already connected"
        first += f" ({waking})" if bearer.setup_s else ""
    if power.tail_w is None or power.tail_s is None:
        last = "the tail is unknown"
    elif power.tail_w * power.tail_s == 0.0:
        last = "there is no tail"
    else:
        tail_s, tail_w = (
            _stated(value, not assumed.isdisjoint(("energy", key)))
            for key, value in (("tail_s", power.tail_s), ("tail_w", power.tail_w))
        )
        last = f"the tail is {tail_s} s at {tail_w} W"
    why = bearer.assumed.get("energy.tail_s")
    return f"over {bearer.name}: {first}, {last}{f' ({why})' if why else ''}"


def _stated(value: float, assumed: bool) -> str:
    """A value as given by its source; an assumed value has two digits and the mark ≈."""
    return f"≈ {float(f'{value:.2g}'):g}" if assumed else f"{value:g}"
