"""A handshake over TCP when nothing is lost: every packet in order, from SYN to the last flight.

An exact recursion over events, with mean delays or with those of a draw (``draws``): links that serialise one
packet after another, Linux' windows, quick acknowledgements, timers that fire although nothing was lost. What
varies or gets lost is added by ``tcp_drawn``, ``tcp_loss`` and ``network``.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from shakedown.models.draws import Draw, Packet
from shakedown.models.path import LinkBytes, Path
from shakedown.models.steps import Flight, Side
from shakedown.models.tcp import (
    DELAYED_ACK_S,
    MAX_RTO_S,
    SYN_ACK_RETRIES,
    SYN_ACK_TIMEOUT_S,
    SYN_OPTION_BYTES,
    TCP_BYTES,
    RoundTrips,
    Tcp,
)

SOON_S = 1e-6
"""The shortest time that a timer is set to."""

ROUNDING_BYTES = 1e-3
"""Sizes are means, and no whole numbers."""
MAX_COPIES = 100
"""Times that a segment may be sent again, on average, although nothing is lost. Timers that a bearer is
merely slow for send a few; where they send copies faster than it carries them, ever more wait before each.
"""


def other(side: Side) -> Side:
    """The other side."""
    return "server" if side == "client" else "client"


class CollapseError(ValueError):
    """TCP's timers fill the path with copies of what is still under way: it has no answer in useful time."""

    def __init__(self) -> None:
        """Every sender's timer ends at `MAX_RTO_S`."""
        super().__init__(
            f"TCP's timers, of {MAX_RTO_S:g} s at most, send segments again faster than the path carries them"
        )


Sent = tuple[Side, bool, int]
"""A packet: who sent it, whether it is more than an acknowledgement, and the handshake's stage then: 0 until
the client is connected, then 1, and one more for each flight that has arrived."""


@dataclass(slots=True)
class FlightTimes:
    """What one flight did.

    Attributes:
        sender: who sent it.
        asked_s: when all was there that it answers.
        handed_s: when its first bytes could be handed over, but for the sender's work on them.
        sent_s: when each segment was given to the link for the first time.
        left_s: when each segment's last bit left the sender.
        arrived_s: when the last segment arrived.
        round_trips: the sender's estimator when the flight was handed over.
        dropped: indexes of segments for which the queue had no room.
    """

    sender: Side
    asked_s: float
    handed_s: float
    round_trips: RoundTrips
    sent_s: list[float] = field(default_factory=list)
    left_s: list[float] = field(default_factory=list)
    sizes_bytes: list[float] = field(default_factory=list)
    arrived_s: float = 0.0
    dropped: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Flow:
    """Times of a whole handshake, from the first SYN.

    Attributes:
        connected_s: when the client may send.
        ready_s: when the client may send application data.
        done_s: when the last flight was received and taken in.
        flights: each flight's times.
        fired: timers that fired, although nothing was lost.
        sent: every packet in the order of sending.
        link_bytes: what they put on the link, headers included.
    """

    connected_s: float
    ready_s: float
    done_s: float
    flights: list[FlightTimes]
    fired: int
    sent: list[Sent]
    link_bytes: LinkBytes


@dataclass(slots=True)
class _Held:
    """A drawn delay, and until when it holds."""

    delay_s: float = 0.0
    until_s: float = 0.0


class Link:
    """One direction: packets leave one after another and arrive after a fixed delay."""

    def __init__(self, path: Path, sender: Side, shared: list[float], draw: Draw | None) -> None:
        direction = path.direction(sender)
        self.s_per_byte = 8.0 / direction.rate_bits_per_s
        self.delay_s = direction.delay.mean
        self.side, self.draw = sender, draw
        self.holds_s = path.delay_holds_s
        self.held = (_Held(), _Held())
        self.latest_s = 0.0
        self.direction = direction
        self.link_bytes = path.link_bytes
        self.queue_bytes = direction.queue_bytes
        self.queue: deque[tuple[float, float]] = deque()
        self.queued_bytes = 0.0
        self.free = shared
        self.sent_bytes = 0.0

    def send(self, now_s: float, size_bytes: float) -> tuple[float, bool]:
        """When the last bit leaves, and whether the queue had room."""
        size = size_bytes + self.link_bytes
        self.sent_bytes += size
        left_s = max(self.free[0], now_s) + size * self.s_per_byte
        room = True
        if self.queue_bytes is not None:
            # What has not left yet, whatever silence keeps it waiting.
            while self.queue and self.queue[0][0] <= now_s:
                self.queued_bytes -= self.queue.popleft()[1]
            room = not self.queue or self.queued_bytes + size <= self.queue_bytes
            self.queue.append((left_s, size))
            self.queued_bytes += size
        self.free[0] = left_s + self.direction.silence_s(size * self.s_per_byte)
        return left_s, room

    def due_s(self, left_s: float, packet: Packet) -> float:
        """When a packet arrives that left then. A drawn delay holds for a while, and none overtakes.

        What timers and duplicates send has delays of its own: so the others meet those that they would have
        met without, and what timers do is seen by itself.
        """
        if self.draw is None:
            return left_s + self.delay_s
        held = self.held[packet[0] == "copy"]
        if left_s >= held.until_s:
            held.delay_s = self.draw.delay_s(self.side, packet)
            held.until_s = left_s + self.holds_s
        self.latest_s = max(self.latest_s, left_s + held.delay_s)
        return self.latest_s


class Host:
    """One side's TCP and its place in the handshake."""

    def __init__(self, side: Side, tcp: Tcp) -> None:
        self.side: Side = side
        self.window = float(tcp.initial_window)
        self.round_trips = RoundTrips()
        self.segments: list[float] = []  # sizes, in order of sending
        self.flight_of: list[int] = []
        self.sent_s: list[float] = []
        self.copies = 0  # of segments sent before
        self.next = 0
        self.acknowledged = 0
        self.sample_from = 0
        self.timer_s: float | None = None
        self.probe = False
        self.probe_end = 0  # the end of what was sent when a probe was, until its answer
        self.probe_resent = False
        self.backoff = 0
        self.kept_window: float | None = None
        self.received = 0
        self.told = 0  # of them acknowledged
        self.received_bytes = 0.0
        self.quick = tcp.quick_acks
        self.unacknowledged = 0  # segments received of which the peer knows nothing yet
        self.echo_s = 0.0
        self.delayed_s: float | None = None
        self.last_data_s: float | None = None  # when data arrived last
        self.answers = False  # soon after data arrive: acknowledgements wait for that (ping-pong mode)

    def sends_data(self, now_s: float) -> None:
        """Data carry the acknowledgement of what has arrived."""
        if self.last_data_s is not None and now_s - self.last_data_s < DELAYED_ACK_S:
            self.answers = True
        if self.unacknowledged:
            self.quick -= 1
            self.unacknowledged, self.delayed_s = 0, None
        self.told = max(self.told, self.received)

    def acknowledges_at_once(self) -> bool:
        """Whether what has just arrived is."""
        return (self.quick > 0 and not self.answers) or self.unacknowledged >= 2


class Run:
    """One run of the recursion."""

    def __init__(
        self,
        flights: Sequence[Flight],
        path: Path,
        tcp: Tcp,
        ends_s: dict[Side, float],
        setup_s: float,
        draw: Draw | None,
        patient: bool,
    ) -> None:
        self.patient, self.fired = patient, 0
        self.path, self.tcp, self.plan, self.ends_s, self.draw = path, tcp, flights, ends_s, draw
        free_up = [setup_s]
        free_down = free_up if path.half_duplex else [setup_s]
        self.links = {
            "client": Link(path, "client", free_up, draw),
            "server": Link(path, "server", free_down, draw),
        }
        self.hosts: dict[Side, Host] = {
            "client": Host("client", tcp),
            "server": Host("server", tcp),
        }
        self.ack_bytes = path.ip_bytes + TCP_BYTES
        self.syn_bytes = path.ip_bytes + SYN_OPTION_BYTES
        self.segment_bytes = path.mtu_bytes - self.ack_bytes
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.count = 0
        self.times: list[FlightTimes] = []
        self.syn_sent: list[float] = []
        self.syn_ack_s: float | None = None
        self.syn_acks = 0
        self.syn_ack_timeouts = 0
        self.syn_ack_due_s = 0.0
        self.connected_s: float | None = None
        self.accepted = False
        self.expected_bytes: dict[Side, float] = {"client": 0.0, "server": 0.0}  # all that is awaited so far
        self.finished: dict[int, float] = {}
        self.taken, self.taken_in_s = 0, 0.0  # works on the flight that arrives, and when they are done
        self.sent: list[Sent] = []

    def at(self, when_s: float, act: Callable[[float], None]) -> None:
        """Does something then."""
        self.count += 1
        heapq.heappush(self.events, (when_s, self.count, act))

    def carry(
        self, side: Side, now_s: float, size_bytes: float, packet: Packet, act: Callable[[float], None]
    ) -> tuple[float, bool]:
        """Puts a packet on its way: when its last bit leaves, and whether the queue had room."""
        link = self.links[side]
        left_s, room = link.send(now_s, size_bytes)
        stage = 0 if self.connected_s is None else 1 + len(self.finished)
        self.sent.append((side, size_bytes > self.ack_bytes, stage))
        if not self.loses_last():
            self.at(link.due_s(left_s, packet), act)
        return left_s, room

    def loses_last(self) -> bool:
        """Whether the packet sent last is lost."""
        return False

    def fires_s(self, side: Side, now_s: float, wait_s: float) -> float:
        """When a timer fires that is set now: half a slot late on average, else by the host's clock."""
        if self.draw is None:
            return now_s + self.tcp.timer_s(wait_s)
        return self.draw.fires_s(side, now_s, wait_s, self.tcp.tick_s)

    def goes_through(self) -> bool:
        """Runs it: whether the handshake comes to its end."""
        self.send_syn(0.0)
        last = len(self.plan) - 1
        while self.events and last not in self.finished:
            now_s, _, act = heapq.heappop(self.events)
            act(now_s)
        return last in self.finished

    def flow(self) -> Flow:
        """Times of a handshake that came to its end."""
        last = len(self.plan) - 1
        final: Side = self.plan[last].sender
        done_s = max(self.finished[last], self.taken_in_s) + self.ends_s[other(final)]
        ready_s = done_s if final == "server" else self.times[last].handed_s + self.plan[last].writes[-1][0]
        link_bytes = LinkBytes(self.links["client"].sent_bytes, self.links["server"].sent_bytes)
        return Flow(self.connected_s or 0.0, ready_s, done_s, self.times, self.fired, self.sent, link_bytes)

    # Connection.

    def send_syn(self, now_s: float) -> None:
        """Sends a SYN, the first or one more, and sets the timer for the next."""
        packet = ("copy", -len(self.syn_sent)) if self.syn_sent else ("SYN", 0)
        self.syn_sent.append(now_s)
        self.carry("client", now_s, self.syn_bytes, packet, partial(self.syn_arrives, len(self.syn_sent) - 1))
        count = len(self.syn_sent)
        if not self.patient and count <= self.tcp.syn_retries + self.tcp.linear_syn_timeouts:
            doublings = max(0, count - 1 - self.tcp.linear_syn_timeouts)
            wait_s = self.tcp.syn_timeout_s * 2.0**doublings
            self.at(self.fires_s("client", now_s, wait_s), self.syn_timeout)

    def syn_timeout(self, now_s: float) -> None:
        """No answer has come in time."""
        if self.connected_s is None:
            self.fired += 1
            self.send_syn(now_s)

    def syn_arrives(self, _number: int, now_s: float) -> None:
        """A SYN is answered as long as the client has not been heard."""
        if not self.accepted:
            self.send_syn_ack(now_s)

    def send_syn_ack(self, now_s: float) -> None:
        """The answer to a SYN, the first or one more; the timer goes from here, by its present step."""
        if self.syn_ack_s is None:
            self.syn_ack_s = now_s
        packet = ("copy", -self.syn_acks) if self.syn_acks else ("SYN", 0)
        self.syn_acks += 1
        self.carry("server", now_s, self.syn_bytes, packet, partial(self.syn_ack_arrives, now_s))
        if not self.patient:
            wait_s = SYN_ACK_TIMEOUT_S * 2.0**self.syn_ack_timeouts
            self.syn_ack_due_s = self.fires_s("server", now_s, wait_s)
            self.at(self.syn_ack_due_s, self.syn_ack_timeout)

    def syn_ack_timeout(self, now_s: float) -> None:
        """Nothing was heard of the client in time."""
        if self.accepted or now_s != self.syn_ack_due_s or self.syn_ack_timeouts >= SYN_ACK_RETRIES:
            return
        self.fired += 1
        self.syn_ack_timeouts += 1
        self.send_syn_ack(now_s)

    def syn_ack_arrives(self, _sent_s: float, now_s: float) -> None:
        """A SYN-ACK is acknowledged; the first one connects the client."""
        client = self.hosts["client"]
        first = self.connected_s is None
        if first:
            self.connected_s = now_s
            client.round_trips.sample(now_s)
        packet = ("acknowledgement", 0) if first else ("copy", 0)
        self.carry("client", now_s, self.ack_bytes, packet, self.accept)
        if first:
            self.start_flight(0, now_s, now_s)

    def accept(self, now_s: float) -> None:
        """The client's first word after the SYN-ACK arrives."""
        if not self.accepted:
            self.accepted = True
            self.hosts["server"].round_trips.sample(now_s - (self.syn_ack_s or 0.0))

    # Application.

    def take_in(self, host: Host, number: int, now_s: float) -> None:
        """The application works on each message as soon as it is there, and answers a whole flight."""
        flight = self.plan[number]
        missing = self.expected_bytes[host.side] - ROUNDING_BYTES - host.received_bytes
        there = flight.size_bytes - missing
        while self.taken < len(flight.taken) and flight.taken[self.taken][0] <= there:
            self.taken_in_s = max(self.taken_in_s, now_s) + flight.taken[self.taken][1]
            self.taken += 1
        if missing > 0.0 or number in self.finished:
            return
        self.times[number].arrived_s = now_s
        self.finished[number] = now_s
        self.taken = 0
        if number + 1 < len(self.plan):
            if self.taken_in_s > now_s:
                self.at(self.taken_in_s, partial(self.start_flight, number + 1, now_s))
            else:
                self.start_flight(number + 1, now_s, now_s)

    def start_flight(self, number: int, asked_s: float, now_s: float) -> None:
        """The application writes a flight, piece by piece."""
        flight = self.plan[number]
        host = self.hosts[flight.sender]
        receiver = other(flight.sender)
        for offset_s, size in flight.writes:

            def write(later_s: float, size: float = size) -> None:
                if len(self.times) == number:
                    self.times.append(FlightTimes(flight.sender, asked_s, now_s, host.round_trips.copy()))
                self.queue(host, number, size)
                self.push(host, later_s)

            self.at(now_s + offset_s, write)
        self.expected_bytes[receiver] += flight.size_bytes

    def queue(self, host: Host, number: int, size: float) -> None:
        """Cut what is written into segments; a segment that still waits for the window is filled up first."""
        if host.next < len(host.segments):
            taken = min(size, self.segment_bytes - host.segments[-1])
            host.segments[-1] += taken
            size -= taken
        while size > 0.0:
            host.segments.append(min(size, self.segment_bytes))
            host.flight_of.append(number)
            size -= host.segments[-1]

    # Stream.

    def push(self, host: Host, now_s: float) -> None:
        """Sends what the window allows."""
        sent = False
        while host.next < len(host.segments) and host.next - host.acknowledged < int(host.window):
            self.transmit(host, host.next, now_s)
            host.next += 1
            sent = True
        if sent:
            self.arm_probe(host, now_s)

    def transmit(self, host: Host, index: int, now_s: float) -> None:
        """Sends a segment, for the first time or again."""
        size = host.segments[index] + self.ack_bytes
        packet: Packet = ("data", index)
        first = index == len(host.sent_s)
        if not first:
            host.copies += 1
            packet = ("copy", host.copies)
            if host.copies > MAX_COPIES * len(host.segments):
                raise CollapseError
        host.sends_data(now_s)
        news = (host.received, host.echo_s)
        left_s, room = self.carry(
            host.side,
            now_s,
            size,
            packet,
            lambda later_s: self.data_arrives(host, index, now_s, news, later_s),
        )
        if not first:
            host.sent_s[index] = now_s
        else:
            host.sent_s.append(now_s)
            times = self.times[host.flight_of[index]]
            if not room:
                times.dropped.append(len(times.sent_s))
            times.sent_s.append(now_s)
            times.left_s.append(left_s)
            times.sizes_bytes.append(size)

    def arm_probe(self, host: Host, now_s: float, *, acknowledged: bool = False) -> None:
        """Sets the timer for the tail loss probe."""
        out = host.next - host.acknowledged
        if not out or self.patient:
            host.timer_s = None
            return
        host.probe = True
        wait_s = host.round_trips.probe_s(out)
        if not acknowledged:
            # No later than the timeout of the oldest, which an acknowledgement begins anew.
            rest_s = host.sent_s[host.acknowledged] + host.round_trips.rto_s - now_s
            if rest_s > 0.0:
                wait_s = min(wait_s, rest_s)
        self.arm(host, self.fires_s(host.side, now_s, wait_s))

    def arm(self, host: Host, when_s: float) -> None:
        """Sets a sender's timer."""
        host.timer_s = when_s
        self.at(when_s, lambda now_s: self.timer_fires(host, when_s))

    def timer_fires(self, host: Host, now_s: float) -> None:
        """A sender's timer fires: the probe, or the timeout."""
        if host.timer_s != now_s or host.next == host.acknowledged:
            return
        if host.probe and host.probe_end:
            # One at a time: the timeout of the oldest takes its place.
            host.probe = False
            rest_s = host.sent_s[host.acknowledged] + host.round_trips.rto_s - now_s
            self.arm(host, self.fires_s(host.side, now_s, max(rest_s, SOON_S)))
            return
        self.fired += 1
        if host.probe:
            host.probe_resent = host.next == len(host.segments)
            if host.next < len(host.segments):
                self.transmit(host, host.next, now_s)
                host.next += 1
            else:
                self.transmit(host, host.next - 1, now_s)
            host.probe = False
            host.probe_end = host.next
        else:
            host.probe_end = 0
            # Nothing was lost, so the next acknowledgement undoes what the timeout did to the window.
            self.transmit(host, host.acknowledged, now_s)
            host.kept_window = host.kept_window or host.window
            host.window = 1.0
            host.backoff = min(host.backoff + 1, 15)
        wait_s = min(host.round_trips.rto_s * 2.0**host.backoff, MAX_RTO_S)
        self.arm(host, self.fires_s(host.side, now_s, wait_s))

    def data_arrives(
        self, sender: Host, index: int, sent_s: float, news: tuple[int, float], now_s: float
    ) -> None:
        """A segment arrives, and what it says of segments that went the other way; a flight that is whole is
        answered.
        """
        host = self.hosts[other(sender.side)]
        if sender.side == "client":
            self.accept(now_s)
        upto, echo_s = news
        if upto > host.acknowledged:
            self.acknowledged(host, upto, echo_s, now_s)
        if index < host.received:  # again: acknowledged at once
            host.answers = False
            self.acknowledge(host, sent_s, now_s)
            return
        host.last_data_s = now_s
        host.received = index + 1
        host.received_bytes += sender.segments[index]
        number = sender.flight_of[index]
        host.unacknowledged += 1
        if host.unacknowledged == 1:
            host.echo_s = sent_s
        if host.acknowledges_at_once():
            host.quick -= 1
            self.acknowledge(host, host.echo_s, now_s)
        else:
            due_s = now_s + DELAYED_ACK_S
            host.delayed_s = due_s
            self.at(due_s, lambda later_s: self.delayed(host, due_s))
        self.take_in(host, number, now_s)

    def delayed(self, host: Host, due_s: float) -> None:
        """An acknowledgement that has waited for a second segment."""
        if host.delayed_s == due_s and host.unacknowledged:
            host.answers = False
            self.acknowledge(host, host.echo_s, due_s)

    def acknowledge(self, host: Host, echo_s: float, now_s: float) -> None:
        """Sends an acknowledgement."""
        host.unacknowledged, host.delayed_s = 0, None
        received = host.received
        packet: Packet = ("acknowledgement", received)
        if received <= host.told:  # once more
            host.copies += 1
            packet = ("copy", host.copies)
        host.told = max(host.told, received)
        peer = self.hosts[other(host.side)]
        self.carry(
            host.side,
            now_s,
            self.ack_bytes,
            packet,
            lambda later_s: self.acknowledged(peer, received, echo_s, later_s),
        )

    def acknowledged(self, host: Host, upto: int, echo_s: float, now_s: float) -> None:
        """An acknowledgement arrives."""
        fresh = upto - host.acknowledged
        if upto >= host.probe_end and (fresh <= 0 or not host.probe_resent):
            host.probe_end = 0  # the probe was new, or its copy is reported as a duplicate
        if fresh <= 0:
            return
        host.round_trips.sample(now_s - echo_s, new_window=upto > host.sample_from)
        if upto > host.sample_from:
            host.sample_from = host.next
        if host.kept_window is not None:
            host.window, host.kept_window = host.kept_window, None
        host.backoff = 0
        out = host.next - host.acknowledged
        host.acknowledged = upto
        if host.window < 2 * out:  # the window grows only where it limits
            host.window += fresh
        self.push(host, now_s)
        self.arm_probe(host, now_s, acknowledged=True)


def flow(
    flights: Sequence[Flight],
    path: Path,
    tcp: Tcp,
    *,
    client_end_s: float = 0.0,
    server_end_s: float = 0.0,
    setup_s: float = 0.0,
    draw: Draw | None = None,
    patient: bool = False,
) -> Flow:
    """Run a handshake in which nothing is lost.

    Args:
        flights: from ``steps.written``, alternating between the sides, the client's first.
        path, tcp: of the network and the hosts.
        client_end_s, server_end_s: what each side works after it received the last flight.
        setup_s: until when neither direction carries anything.
        draw: the delays and clocks of one handshake; without, delays are the means of the path's, and
            timers as late as they are on average.
        patient: no timer ever fires.

    Raises:
        CollapseError: where timers send copies without end.
    """
    ends: dict[Side, float] = {"client": client_end_s, "server": server_end_s}
    run = Run(flights, path, tcp, ends, setup_s, draw, patient)
    run.goes_through()
    return run.flow()
