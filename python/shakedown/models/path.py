"""What the network model knows of a network: two directions, and what they share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from shakedown.models.distribution import Distribution


class LinkBytes(NamedTuple):
    """Bytes from and to the client."""

    up: float
    down: float


@dataclass(frozen=True, slots=True)
class Direction:
    """One way through a network.

    Attributes:
        rate_bits_per_s: rate at which packets leave the sender, bit/s.
        delay: from a packet's last bit sent to its arrival.
        loss: probability that a packet is lost.
        loss_burst_packets: mean number of packets lost in a row; 0 where each is lost by itself.
        queue_bytes: what waits for the rate, in bytes; more is dropped. None: no limit is known.
        duty_cycle: share of the time that may be spent sending.
        pause_s: silence after each packet.
    """

    rate_bits_per_s: float
    delay: Distribution
    loss: float = 0.0
    loss_burst_packets: float = 0.0
    queue_bytes: int | None = None
    duty_cycle: float = 1.0
    pause_s: float = 0.0

    def silence_s(self, sending_s: float) -> float:
        """How long nothing may be sent after a packet that took so long."""
        return self.pause_s + sending_s * (1.0 / self.duty_cycle - 1.0)

    @property
    def loss_after_loss(self) -> float:
        """Probability that the packet after a lost one is lost: 1 - 1 / burst, at least ``loss``."""
        if self.loss <= 0.0 or self.loss_burst_packets <= 1.0:
            return self.loss
        return max(self.loss, 1.0 - 1.0 / self.loss_burst_packets)


@dataclass(frozen=True, slots=True)
class Path:
    """A network between client and server.

    Attributes:
        up: from the client.
        down: to the client.
        setup: what the first packet after silence waits for the radio.
        mtu_bytes: largest network-layer packet.
        link_bytes: added to each packet below the network layer, link encryption included.
        delay_holds_s: for how long a drawn delay holds: packets of one direction sent meanwhile have it.
        half_duplex: both directions share one rate's time.
        ip_bytes, udp_bytes: headers of a packet and of a datagram, as compressed.
    """

    up: Direction
    down: Direction
    setup: Distribution
    mtu_bytes: int = 1500
    link_bytes: int = 0
    delay_holds_s: float = 0.0
    half_duplex: bool = False
    ip_bytes: int = 20
    udp_bytes: int = 8

    def direction(self, sender: str) -> Direction:
        """The direction in which a side sends."""
        return self.up if sender == "client" else self.down

    @property
    def datagram_bytes(self) -> float:
        """What a datagram that is one packet holds."""
        return float(self.mtu_bytes - self.ip_bytes - self.udp_bytes)

    @property
    def loses(self) -> bool:
        """Whether any packet is ever lost."""
        return self.up.loss > 0.0 or self.down.loss > 0.0

    def with_delays(self, up_s: float, down_s: float) -> Path:
        """The same path with delays that do not vary."""
        return replace(
            self,
            up=replace(self.up, delay=Distribution.exactly(up_s)),
            down=replace(self.down, delay=Distribution.exactly(down_s)),
        )
