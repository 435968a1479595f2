"""The work of a stack besides the primitives, assumed for devices on which it was not measured.

It was measured with OpenSSL on one machine (the profile that `data/overhead.json` names): the work on every
kind of message, the cost of a symmetric call beyond its blocks, decoding of peers' keys, a TCP connection. On
another device this work is scaled by the speed of plain software there, and by the share of OpenSSL's work
that leaner libraries need. All these figures are `assumed`, and those of one device share their error.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from shakedown.models.ranges import Range, within
from shakedown.profiles.costs import Triple
from shakedown.profiles.device import Device
from shakedown.profiles.overhead import MessageWork, Overhead

DATA = Path(__file__).parent.parent / "data" / "overhead.json"
SOFTWARE_SPREAD = 1.5
"""The uncertainty of a device's stack work, estimated from its SHA-256 in software."""
SMALL_NETWORK, SMALL_NETWORK_SPREAD = 0.1, 8.0
"""Work of a microcontroller's network stack on a connection, as a share of a server kernel's, and its
uncertainty (×/÷); no measurement of it was published.
"""
NEAREST_PROTOCOL = {"dtls1.2": "tls1.2", "dtls1.3": "tls1.3", "tls1.1": "tls1.0", "ssl3": "tls1.0"}
"""For a protocol that was not measured: the one with the most similar messages."""


@dataclass(frozen=True)
class Reference:
    """The measured stack's work, in seconds, and how its machine and other libraries compare.

    `plain` are its figures for lattice schemes in C. `plain_cycles` is the clock rate, in Hz, at which 64-bit
    cores are as fast, on the geometric mean, and the factor within which 90 % of them lie.
    """

    device: str
    software_s_per_kib: float
    cycles_per_byte: dict[str, tuple[float, float]]
    overhead: Overhead
    calls: dict[str, float]
    imports: dict[tuple[str, str], float]
    connection: dict[str, float]
    plain: dict[Triple, float]
    plain_cycles: tuple[float, float]
    lineages: dict[str, tuple[float, float]]

    def message(self, protocol: str, kind: str, work: str, *, public_keys: bool = True) -> MessageWork | None:
        """The work on a kind of message, of the nearest protocol that was measured."""
        near = (protocol, NEAREST_PROTOCOL.get(protocol, protocol))
        found = (self.overhead.of(one, kind, work, public_keys=public_keys) for one in near)
        return next(filter(None, found), None)

    def handshake(self, protocol: str, side: str, *, public_keys: bool = True) -> MessageWork | None:
        """The work outside any message."""
        near = (protocol, NEAREST_PROTOCOL.get(protocol, protocol))
        found = (self.overhead.outside(one, side, public_keys=public_keys) for one in near)
        return next(filter(None, found), None)


@lru_cache(maxsize=1)
def reference() -> Reference:
    """The measured stack that the package ships."""
    document: dict[str, Any] = json.loads(DATA.read_bytes())
    return Reference(
        document["from"],
        document["software_s_per_kib"],
        {bits: (one[0], one[1]) for bits, one in document["cycles_per_byte"].items()},
        Overhead(
            messages={
                (p, name, work, ""): MessageWork(*rest) for p, name, work, *rest in document["messages"]
            },
            handshakes={(p, side): MessageWork(*rest) for p, side, *rest in document["handshakes"]},
        ),
        document["calls"],
        {(algorithm, parameters): value for algorithm, parameters, value in document["imports"]},
        document["connection"],
        {(one[0], one[1], one[2]): one[3] for one in document["plain"]},
        (document["plain_cycles"][0], document["plain_cycles"][1]),
        {name: (one[0], one[1]) for name, one in document["lineages"].items()},
    )


@dataclass(frozen=True)
class Speed:
    """The time of work relative to the reference machine, and its uncertainty (×/÷)."""

    factor: float
    spread: float
    method: str

    def of(self, seconds: float) -> Range:
        """The reference's seconds on this device."""
        return within(seconds * self.factor, self.spread)


@dataclass(frozen=True)
class StackWork:
    """A device's speed at a stack's work; `cause` names the assumption."""

    device: Device

    @property
    def cause(self) -> str:
        """The cause: figures with the same cause share their error."""
        return f"{self.device.name}: assumed stack work"

    @cached_property
    def software(self) -> Speed:
        """The device's speed for plain software, relative to the reference machine.

        From its own figures for code that is plain software on both: lattice schemes in C with OpenSSL, else
        SHA-256 in software; without these, from its clock and the cycles of such code on similar cores.
        """
        shown = reference()
        device = self.device
        if device.board == shown.device:
            return Speed(1.0, 1.05, "measured there")
        lattices = [
            device.costs[triple].mean_s / seconds
            for triple, seconds in shown.plain.items()
            if device.implementation.lattices == "c"
            and triple in device.costs
            and device.lineage == "openssl"
        ]
        if lattices:
            factor = math.exp(math.fsum(math.log(one) for one in lattices) / len(lattices))
            return Speed(factor, SOFTWARE_SPREAD, "by its lattice schemes in C")
        own = device.costs.get(("digest", "sha256", ""))
        if own is not None and own.per_kib_s > 0.0 and device.implementation.symmetric in ("c", "assembler"):
            return Speed(
                own.per_kib_s / shown.software_s_per_kib, SOFTWARE_SPREAD, "by its SHA-256 in software"
            )
        bits = device.core.word_bits or 32
        if bits == 64 and device.core.vector not in ("", "none"):
            cycles, spread = shown.plain_cycles
            factor, what = cycles / device.clock_hz, "lattice schemes in C take"
        else:
            cycles, spread = shown.cycles_per_byte[str(bits)]
            factor, what = cycles * 1024.0 / device.clock_hz / shown.software_s_per_kib, "SHA-256 takes"
        together = math.exp(math.hypot(math.log(spread), math.log(SOFTWARE_SPREAD)))
        return Speed(factor, together, f"by its clock and what {what} on {bits}-bit cores")

    @cached_property
    def network(self) -> Speed:
        """The device's speed for its network stack's work; microcontrollers have a small stack."""
        speed = self.software
        if self.device.core.word_bits == 64:
            return Speed(speed.factor, 2.0 * speed.spread, speed.method)
        return Speed(
            speed.factor * SMALL_NETWORK, SMALL_NETWORK_SPREAD, f"a small network stack's, {speed.method}"
        )

    @cached_property
    def stack(self) -> Speed:
        """The device's speed for its library's work on messages."""
        lean, spread = reference().lineages.get(self.device.lineage) or reference().lineages[""]
        speed = self.software
        together = math.exp(math.hypot(math.log(spread), math.log(speed.spread)))
        method = f"OpenSSL's work on {reference().device} × {speed.factor * lean:.3g}, {speed.method}"
        return Speed(speed.factor * lean, together, method)
