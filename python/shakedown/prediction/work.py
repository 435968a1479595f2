"""The cost of one side's work on a device, and of both sides' work: sums, ranges and bases of their parts.

The basis of each part is the device's own figure, a figure scaled from its others, or an assumption. A part
without any of these is listed in `without_cost`, and the sum is a lower bound. Nothing unknown counts as
zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shakedown.models.ranges import Range, combined, exactly, merged
from shakedown.prediction.figures import weakest
from shakedown.prediction.symmetric import Part
from shakedown.schema.base import Basis
from shakedown.schema.predictions import NEGLIGIBLE_SHARE


@dataclass
class SideCost:
    """The cost of one side's work on a device.

    Attributes:
        parts: seconds with their range by cause; parts with the same cause share their error.
        sd_s: standard deviation of a single handshake, operations taken as independent.
        message_s: mean seconds by index of the message the work belongs to; None for work outside any.
        message_sd_s: standard deviations, by the same index; only of messages whose work varies.
        bases: seconds by basis.
        figures: rows naming every figure that is not the device's own.
        without_cost: rows for the work without a figure; if there are any, the total is a lower bound.
        without_cost_high_s: upper bound of that work, infinite if there is none.
        connection: seconds of a TCP connection, kernel included; not in the total.
        connection_cause: its cause, as for parts.
        connection_sd_s: its standard deviation from connection to connection.
        primitive_energy_j: the sum of the primitives' own energies, or None if any is missing.
    """

    parts: dict[str, Range] = field(default_factory=dict)
    sd_s: float = 0.0
    message_s: dict[int | None, float] = field(default_factory=dict)
    message_sd_s: dict[int | None, float] = field(default_factory=dict)
    bases: dict[Basis, Range] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)
    without_cost: list[dict[str, Any]] = field(default_factory=list)
    without_cost_high_s: float = 0.0
    connection: Range | None = None
    connection_cause: str = "connection"
    connection_sd_s: float = 0.0
    primitive_energy_j: float | None = None

    @property
    def total(self) -> Range:
        """Seconds, with the 90 % range: causes combine as independent."""
        return combined(self.parts)

    @property
    def whole(self) -> Range:
        """The same; its upper end includes the work without a cost figure."""
        total = self.total
        return total._replace(high=total.high + self.without_cost_high_s)

    @property
    def parts_with_connection(self) -> dict[str, Range]:
        if self.connection is None:
            return self.parts
        return merged((self.parts, {self.connection_cause: self.connection}))

    @property
    def with_connection(self) -> Range:
        return combined(self.parts_with_connection)

    @property
    def connection_s(self) -> float:
        """Mean seconds of a TCP connection."""
        return 0.0 if self.connection is None else self.connection.mean

    @property
    def sd_with_connection_s(self) -> float:
        """Standard deviation of a single handshake with its TCP connection."""
        return math.hypot(self.sd_s, self.connection_sd_s)

    @property
    def basis(self) -> Basis:
        """The basis of the total: the weakest that matters, `unknown` if any cost is missing."""
        return basis_of([self])

    @property
    def missing(self) -> tuple[str, ...]:
        """The work without a cost figure, in words: `server verify ecdsa p256`."""
        return tuple(
            dict.fromkeys(
                " ".join(filter(None, (one["side"], one["operation"], one["algorithm"], one["parameters"])))
                for one in self.without_cost
            )
        )

    def at_low(self) -> SideCost:
        """The same work at the low end of its range, without a range."""
        whole = self.with_connection
        share = whole.low / whole.mean if whole.mean > 0.0 else 1.0
        return replace(
            self,
            parts={"least": exactly(self.total.mean * share)},
            **self._scaled(share),
            connection=None if self.connection is None else exactly(self.connection.mean * share),
            connection_sd_s=self.connection_sd_s * share,
        )

    def repeated(self, count: int) -> SideCost:
        """N times the same work; the parts without a cost figure stay the same."""
        return replace(
            self,
            parts={cause: part.times(count) for cause, part in self.parts.items()},
            bases={basis: part.times(count) for basis, part in self.bases.items()},
        )

    def measured(self, whole: Range) -> SideCost:
        """The same work with a measured total, connection included; the model only divides it into parts."""
        modelled_s = self.with_connection.mean
        share = self.connection_s / modelled_s if modelled_s > 0.0 else 0.0
        scale = whole.mean / modelled_s if modelled_s > 0.0 else 0.0
        cause = "calibration"
        return replace(
            self,
            parts={cause: whole.times(1.0 - share)},
            **self._scaled(scale),
            bases={"own": whole},
            figures=[],
            without_cost=[],
            without_cost_high_s=0.0,
            connection=whole.times(share),
            connection_cause=cause,
            connection_sd_s=self.connection_sd_s * scale,
        )

    def _scaled(self, times: float) -> dict[str, Any]:
        """Deviations, and the work of each message, multiplied by a factor."""
        return {
            "sd_s": self.sd_s * times,
            "message_s": {at: seconds * times for at, seconds in self.message_s.items()},
            "message_sd_s": {at: seconds * times for at, seconds in self.message_sd_s.items()},
        }

    def _add(self, part: Part, at: int | None) -> None:
        none = exactly(0.0)
        self.parts[part.cause] = self.parts.get(part.cause, none).plus(part.time)
        self.bases[part.basis] = self.bases.get(part.basis, none).plus(part.time)
        self.message_s[at] = self.message_s.get(at, 0.0) + part.time.mean


@dataclass(frozen=True)
class Work:
    """The costs of both sides' work; on one device a cause has the same error on both sides."""

    client: SideCost
    server: SideCost
    one_device: bool

    def __iter__(self) -> Iterator[SideCost]:
        return iter((self.client, self.server))

    @property
    def parts(self) -> dict[str, Range]:
        """Seconds by cause, without TCP connections."""
        return self._merged(self.client.parts, self.server.parts)

    @property
    def with_connection(self) -> Range:
        """Seconds, TCP connections included."""
        return combined(self._merged(*(side.parts_with_connection for side in self)))

    @property
    def missing(self) -> tuple[str, ...]:
        return (*self.client.missing, *self.server.missing)

    def at_low(self) -> Work:
        """Both sides at the low ends of their ranges, without a range."""
        return Work(self.client.at_low(), self.server.at_low(), self.one_device)

    def _merged(self, client: Mapping[str, Range], server: Mapping[str, Range]) -> dict[str, Range]:
        prefix = "" if self.one_device else "server "
        return merged((client, {f"{prefix}{cause}": part for cause, part in server.items()}))


def basis_of(costs: Sequence[SideCost]) -> Basis:
    """The basis of a sum of costs: the weakest that matters, `unknown` if any cost is missing."""
    return "unknown" if any(one.without_cost for one in costs) else known_basis(costs)


def known_basis(costs: Sequence[SideCost]) -> Basis:
    """The basis of the estimated part of a sum: the weakest that matters."""
    whole = math.fsum(part.mean for one in costs for part in one.bases.values())
    upper: dict[Basis, float] = {}
    for one in costs:
        for basis, part in one.bases.items():
            upper[basis] = upper.get(basis, 0.0) + part.high
    return weakest(basis for basis, seconds in upper.items() if seconds > NEGLIGIBLE_SHARE * whole)
