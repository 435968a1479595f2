"""A handshake over TCP in which given packets are lost: ``tcp_flow`` with the senders of ``tcp_sender``.

Packets are counted in the order of sending, over both directions. What is lost is a matter of whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from shakedown.models.draws import Draw, Packet
from shakedown.models.path import Path
from shakedown.models.steps import Flight, Side
from shakedown.models.tcp import DELAYED_ACK_S, Tcp
from shakedown.models.tcp_flow import (
    MAX_COPIES,
    CollapseError,
    Flow,
    Host,
    Run,
    Sent,
    other,
)
from shakedown.models.tcp_sender import Acknowledgement, GivenUpError, Sender

Loses = Callable[[int, Sent], bool]
"""Whether a packet is lost: its number in the order of sending, and what it is."""


class _Host(Host):
    """One side: what it receives in any order, and its sender."""

    def __init__(self, side: Side, tcp: Tcp, run: _Run) -> None:
        super().__init__(side, tcp)
        self.sender = Sender(side, tcp.initial_window, run)
        self.beyond: set[int] = set()
        self.again: int | None = None

    def told_now(self, *, carries: bool) -> Acknowledgement:
        """What a packet sent now says of what has arrived."""
        beyond = tuple(sorted(self.beyond)) if self.beyond else ()
        one = Acknowledgement(self.received, beyond, self.again, self.echo_s, carries)
        self.unacknowledged, self.delayed_s, self.again, self.told = 0, None, None, self.received
        return one


class _Run(Run):
    """One run with losses."""

    def __init__(
        self,
        flights: Sequence[Flight],
        path: Path,
        tcp: Tcp,
        ends_s: dict[Side, float],
        setup_s: float,
        draw: Draw | None,
        loses: Loses,
    ) -> None:
        super().__init__(flights, path, tcp, ends_s, setup_s, draw, patient=False)
        self.loses = loses
        self.ends = {"client": _Host("client", tcp, self), "server": _Host("server", tcp, self)}
        self.hosts = cast(dict[Side, Host], self.ends)
        self.heard = 0  # the SYN that was heard first
        self.taken_s = 0.0  # when the SYN-ACK was sent that the client took

    def loses_last(self) -> bool:
        """As whoever asked for the run says."""
        return self.loses(len(self.sent) - 1, self.sent[-1])

    # Connection.

    def syn_arrives(self, number: int, now_s: float) -> None:
        """A SYN arrives, and is answered as long as the client has not been heard."""
        if self.syn_ack_s is None:
            self.heard = number
        super().syn_arrives(number, now_s)

    def syn_ack_arrives(self, sent_s: float, now_s: float) -> None:
        """A SYN-ACK arrives; the first one connects the client."""
        first = self.connected_s is None
        if first:
            self.connected_s, self.taken_s = now_s, sent_s
            sender = self.ends["client"].sender
            # Its answer echoes the SYN that was heard first.
            measured_s = now_s - self.syn_sent[self.heard]
            sender.sample(measured_s, measured_s)
            if len(self.syn_sent) > 2 and self.heard:
                sender.window = 1
        packet = ("acknowledgement", 0) if first else ("copy", 0)
        self.carry("client", now_s, self.ack_bytes, packet, self.accept)
        if first:
            self.start_flight(0, now_s, now_s)

    def accept(self, now_s: float) -> None:
        """The server hears the client's first word after the SYN-ACK."""
        if self.accepted:
            return
        self.accepted = True
        sender = self.ends["server"].sender
        measured_s = now_s - self.taken_s
        sender.sample(measured_s, measured_s)
        needless = self.taken_s == self.syn_ack_s
        if self.syn_ack_timeouts and self.syn_acks > 2 and not needless:
            sender.window = 1

    # Sending, as the senders ask.

    def waiting(self, side: Side) -> int:
        """Segments that the application has handed over."""
        return len(self.ends[side].segments)

    def set_timer(self, side: Side, kind: str, now_s: float, wait_s: float) -> float:
        """Sets a sender's timer."""
        due_s = self.fires_s(side, now_s, wait_s)
        sender = self.ends[side].sender

        def fires(later_s: float) -> None:
            if sender.timer == (kind, due_s):
                sender.fires(later_s)

        self.at(due_s, fires)
        return due_s

    def send_segment(self, side: Side, index: int, now_s: float) -> None:
        """Sends a segment, and with it what has arrived from the other side."""
        host = self.ends[side]
        packet: Packet = ("data", index)
        if index < len(host.sent_s):
            host.copies += 1
            packet = ("copy", host.copies)
            if host.copies > MAX_COPIES * len(host.segments):
                raise CollapseError
        else:
            host.sent_s.append(now_s)
        host.sends_data(now_s)
        news = host.told_now(carries=True)
        self.carry(
            side,
            now_s,
            host.segments[index] + self.ack_bytes,
            packet,
            lambda later_s: self.segment_arrives(side, index, now_s, news, later_s),
        )

    def queue(self, host: Host, number: int, size: float) -> None:
        """As without losses; what is sent is as long as its sender's list."""
        host.next = self.ends[host.side].sender.next
        super().queue(host, number, size)

    def push(self, host: Host, now_s: float) -> None:
        """Sends what the window allows."""
        self.ends[host.side].sender.push(now_s)

    # Receiving.

    def segment_arrives(
        self, side: Side, index: int, sent_s: float, news: Acknowledgement, now_s: float
    ) -> None:
        host = self.ends[other(side)]
        if side == "client":
            self.accept(now_s)
        # What ends before the last acknowledgement is answered, and nothing else of it is looked at.
        if index + 1 >= host.told:
            if index <= host.told:
                host.echo_s = sent_s
            self.hear(host, news, now_s)
        if index < host.received or index in host.beyond:
            host.again = index
            host.answers = False
            self.tell(host, now_s)
            return
        host.unacknowledged += 1
        if index > host.received:
            host.beyond.add(index)
            self.tell(host, now_s)
            return
        host.last_data_s = now_s
        filled = bool(host.beyond)
        sizes = self.ends[side].segments
        while True:
            host.received_bytes += sizes[host.received]
            host.received += 1
            if host.received not in host.beyond:
                break
            host.beyond.discard(host.received)
        if filled or host.acknowledges_at_once():
            host.quick -= 1
            self.tell(host, now_s)
        elif host.delayed_s is None:
            due_s = host.delayed_s = now_s + DELAYED_ACK_S
            self.at(due_s, lambda later_s: self.delayed(host, due_s))
        number = len(self.finished)
        if self.plan[number].sender != host.side and number < len(self.times):
            self.take_in(host, number, now_s)

    def delayed(self, host: Host, due_s: float) -> None:
        """An acknowledgement that has waited for data to go with."""
        if host.delayed_s == due_s and host.unacknowledged:
            host.answers = False
            self.tell(self.ends[host.side], due_s)

    def tell(self, host: _Host, now_s: float) -> None:
        """Sends an acknowledgement."""
        received = host.received
        packet: Packet = ("acknowledgement", received)
        if received <= host.told:
            host.copies += 1
            packet = ("copy", host.copies)
        news = host.told_now(carries=False)
        peer = self.ends[other(host.side)]
        self.carry(host.side, now_s, self.ack_bytes, packet, lambda later_s: self.hear(peer, news, later_s))

    def hear(self, host: _Host, news: Acknowledgement, now_s: float) -> None:
        """What an acknowledgement does to its sender."""
        sender = host.sender
        if news.upto < sender.una:
            return
        sender.acknowledged(news, now_s)
        sender.push(now_s)


def lossy_flow(
    flights: Sequence[Flight],
    path: Path,
    tcp: Tcp,
    loses: Loses,
    *,
    client_end_s: float = 0.0,
    server_end_s: float = 0.0,
    setup_s: float = 0.0,
    draw: Draw | None = None,
) -> Flow | None:
    """Run a handshake of which some packets are lost; None where a side gives up.

    Args:
        flights: from ``steps.written``, alternating between the sides, the client's first.
        path, tcp: of the network and the hosts.
        loses: which packets are lost.
        client_end_s, server_end_s: what each side works after it received the last flight.
        setup_s: until when neither direction carries anything.
        draw: the delays and clocks of one handshake; without, the means.

    Raises:
        CollapseError: where timers send copies without end.
    """
    ends: dict[Side, float] = {"client": client_end_s, "server": server_end_s}
    run = _Run(flights, path, tcp, ends, setup_s, draw, loses)
    try:
        return run.flow() if run.goes_through() else None
    except GivenUpError:
        return None
