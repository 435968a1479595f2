"""When a handshake is ready and done over a network, as distributions.

``exchange`` is the one function for any transport. It runs the handshake once with mean delays and without
loss, exactly (``tcp_flow``, ``datagrams.flow``), and adds what varies: each crossing of the network on the
critical path draws its delay; where timers fire although nothing is lost, ``tcp_drawn`` says what they add;
lost packets cost what ``tcp_loss`` and ``datagrams.extras`` enumerate.
Crossings and losses of different flights are independent; a timer is as long as the round trip that it was
derived from.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from shakedown.models import datagrams, tcp_connection, tcp_flow, tcp_loss
from shakedown.models.datagrams import Datagrams
from shakedown.models.distribution import Distribution
from shakedown.models.draws import Draw, draws
from shakedown.models.path import Direction, LinkBytes, Path
from shakedown.models.steps import Step, packed, written
from shakedown.models.tcp import SYN_ACK_TIMEOUT_S, SYN_OPTION_BYTES, TCP_BYTES, RoundTrips, Tcp
from shakedown.models.tcp_drawn import drawn

if TYPE_CHECKING:
    from shakedown.models import tcp_lost
    from shakedown.models.tcp_lossy_flow import Loses

__all__ = ["DTLS", "TCP", "WTLS", "Datagrams", "Exchange", "Path", "Step", "Tcp", "exchange", "transport"]

TCP = Tcp()
DTLS = Datagrams()
WTLS = Datagrams(timeout_s=3.0, max_timeout_s=48.0, sends=5, client_repeats=True)

_LEAST = 1e-6
_MAX_KEPT = 256


@dataclass(frozen=True, slots=True)
class Exchange:
    """Times of a handshake over a network, from its first packet.

    Attributes:
        ready: until the client may send application data, connection set-up included.
        done: until the last flight was received and taken in.
        setup: what the radio's set-up from idle takes; in ready and done only if that was asked for.
        failed: probability that a side gives up; the times are those of the others.
        link_bytes: what it puts on the link where nothing is lost: headers, acknowledgements, and what
            timers send again.
    """

    ready: Distribution
    done: Distribution
    setup: Distribution
    failed: float
    link_bytes: LinkBytes


def transport(protocol: str) -> Tcp | Datagrams:
    """What carries a protocol, by the first part of a suite's name."""
    return WTLS if protocol == "wtls" else DTLS if protocol.startswith("dtls") else TCP


def header_bytes(path: Path, transport: Tcp | Datagrams) -> int:
    """Bytes of a packet that are not the handshake's: IP and the transport."""
    return int(path.ip_bytes + (path.udp_bytes if isinstance(transport, Datagrams) else TCP_BYTES))


def timers(steps: Sequence[Step], path: Path, way: Datagrams) -> Datagrams:
    """Those that hosts have for a handshake's datagrams on a path, see ``datagrams.timers``."""
    return datagrams.timers(packed(steps, path.datagram_bytes), path, way)


def exchange(
    steps: Sequence[Step],
    path: Path,
    transport: Tcp | Datagrams = TCP,
    *,
    client_end_s: float = 0.0,
    server_end_s: float = 0.0,
    from_idle: bool = False,
) -> Exchange:
    """Times of one handshake.

    Args:
        steps: its messages in order, those after the last flight left out; the client's first.
        path: the network.
        transport: ``TCP``, ``DTLS``, ``WTLS``, or one with other parameters.
        client_end_s, server_end_s: what each side works after it received its last.
        from_idle: the radio is set up first.

    Raises:
        ValueError: without steps, where the server speaks first, or where a packet has no room for payload.
    """
    headers_bytes = header_bytes(path, transport)
    if path.mtu_bytes <= headers_bytes:
        raise ValueError(
            f"packets of {path.mtu_bytes} bytes; accepted: more than the headers' {headers_bytes}"
        )
    if not steps or steps[0].sender != "client":
        raise ValueError("no handshake: accepted are messages that begin with the client's")
    if isinstance(transport, Datagrams):
        times = _Datagrams(steps, path, transport, client_end_s, server_end_s, from_idle)
        return times.exchange()
    return _Stream(steps, path, transport, client_end_s, server_end_s, from_idle).exchange()


def _deviation(direction: Direction, left_s: Sequence[float], holds_s: float) -> Distribution:
    """How much later than the mean delay the last packet of a run arrives.

    Packets that leave while a drawn delay holds share it; later ones draw their own, and none overtakes, so
    the last arrives when the latest of all does.
    """
    delay = direction.delay
    if len(delay.values_s) == 1:
        return Distribution.exactly(0.0)
    ends: list[float] = []
    begin_s = left_s[0]
    for left, following in zip(left_s, [*left_s[1:], None], strict=True):
        if following is None or following >= begin_s + holds_s:
            ends.append(left)
            begin_s = following if following is not None else begin_s
    spread_s = float(delay.values_s[-1] - delay.values_s[0])
    gaps = [left_s[-1] - end for end in ends if left_s[-1] - end < spread_s]
    below = np.cumsum(delay.weights)
    below = below / below[-1]
    together = np.ones(len(below))
    for gap in gaps:
        together *= below if gap == 0.0 else np.interp(delay.values_s + gap, delay.values_s, below)
    weights = np.diff(together, prepend=0.0)
    kept = weights > 0.0
    return Distribution(delay.values_s[kept] - delay.mean, weights[kept])


def _sum(parts: Sequence[Distribution]) -> Distribution:
    total = Distribution.exactly(0.0)
    for part in parts:
        total = total.plus(part.compact()).compact()
    return total


class _Datagrams:
    """A handshake in datagrams."""

    def __init__(
        self,
        steps: Sequence[Step],
        path: Path,
        way: Datagrams,
        client_end_s: float,
        server_end_s: float,
        from_idle: bool,
    ) -> None:
        self.path, self.from_idle = path, from_idle
        self.flights = packed(steps, path.datagram_bytes)
        self.way = datagrams.timers(self.flights, path, way)
        setup_s = path.setup.mean if from_idle else 0.0
        self.times = datagrams.flow(self.flights, path, self.way, setup_s=setup_s)
        up, down = (
            sum(one.link_bytes for one in self.times if one.sender == side) for side in ("client", "server")
        )
        self.link_bytes = LinkBytes(up, down)
        self.client_end_s, self.server_end_s = client_end_s, server_end_s

    def exchange(self) -> Exchange:
        last = self.times[-1]
        ends_s = self.server_end_s if last.sender == "client" else self.client_end_s
        done, failed = self.total(len(self.times), last.arrived_s + self.flights[-1].taken_s + ends_s)
        if last.sender == "server":
            return Exchange(done, done, self.path.setup, failed, self.link_bytes)
        handed_s = last.handed_s + self.flights[-1].writes[-1][0]
        ready, _ = self.total(len(self.times) - 1, handed_s)
        return Exchange(ready, done, self.path.setup, failed, self.link_bytes)

    def total(self, until: int, mean_s: float) -> tuple[Distribution, float]:
        parts = [
            _deviation(self.path.direction(times.sender), times.left_s, self.path.delay_holds_s)
            for times in self.times[:until]
        ]
        if self.from_idle:
            parts.append(self.path.setup.shifted(-self.path.setup.mean))
        late, failed = datagrams.extras(self.times, self.path, self.way, until)
        total = Distribution.exactly(mean_s)
        for part in late:
            total = total.plus(Distribution.of_samples([s for _, s in part], [w for w, _ in part]))
        return total.plus(_sum(parts)), failed


@dataclass(frozen=True, slots=True)
class _Node:
    """One value of the round trip by which timers are set: its probability, and its distance to the mean."""

    share: float
    off_s: float


def _both(share: float) -> dict[str, float]:
    return {"client": share, "server": share}


@dataclass(frozen=True, slots=True)
class _Hosts:
    """What has become of both hosts' TCP.

    Attributes:
        sampled_s: what the client's first round trip counted beyond a round trip.
        slow: probability of each side that it begins its next flight with a small window.
        window: that window, in segments.
        probed: probability that the client's next flight has no probe.
        unheard: probability that the server's first round trip counted more than one.
        unheard_s: how much more; of a flight's own hosts, what it did count.
        begins_with: a flight's own window, 0 for the usual one.
        probes: whether a flight has probes.
    """

    sampled_s: float = 0.0
    slow: Mapping[str, float] = field(default_factory=lambda: _both(0.0))
    window: Mapping[str, int] = field(default_factory=lambda: {"client": 1, "server": 1})
    probed: float = 0.0
    unheard: float = 0.0
    unheard_s: float = 0.0
    begins_with: int = 0
    probes: bool = True

    def after(self, side: str, timed_out: float) -> _Hosts:
        """After a flight of a side: a timeout leaves its next one a window of two segments."""
        slow = {**self.slow, side: max(self.slow[side], timed_out)}
        return replace(self, slow=slow, window={**self.window, side: 2})

    def told(self, probed: float, unheard: float, unheard_s: float) -> _Hosts:
        """After a late first flight."""
        return replace(self, probed=probed, unheard=unheard if unheard_s else 0.0, unheard_s=unheard_s)

    def plain(self, side: str) -> _Hosts:
        """Of a flight of a side to which nothing has happened."""
        return _Hosts(sampled_s=self.sampled_s if side == "client" else 0.0)

    def unheard_of(self) -> _Hosts:
        """Of the server's flight after a first round trip that counted more. Where its SYN-ACK had been
        repeated before, it has been so more than once by then, and the window is one segment.
        """
        begins_with = 1 if self.sampled_s else 0
        return _Hosts(unheard_s=self.unheard_s, begins_with=begins_with)

    def with_window(self, side: str, window: int) -> _Hosts:
        """Of a flight of a side that begins with a small window."""
        return replace(self.plain(side), begins_with=window)

    def without_probe(self) -> _Hosts:
        """Of a client's flight without a probe."""
        return replace(self.plain("client"), probes=False)


@dataclass(frozen=True, slots=True)
class _Losses:
    """What losses do to a handshake.

    Attributes:
        late: for each round trip of the connection its probability, and how late the handshake is.
        clear: probability that nothing is lost that matters.
    """

    late: list[tuple[_Node, float, Distribution]]
    clear: float


_KEPT: dict[Hashable, dict[int, _Losses]] = {}
"""Those found last, the oldest first: a handshake has the same on many devices."""


def _within(times: tcp_flow.FlightTimes) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """When a flight's segments were sent and left, from its first, to the nanosecond: what is nearer is
    rounding.
    """
    begin_s = times.sent_s[0]
    sent_s, left_s = (tuple(round(at - begin_s, 9) for at in all_s) for all_s in (times.sent_s, times.left_s))
    return sent_s, left_s


class _Stream:
    """A handshake over TCP."""

    def __init__(
        self,
        steps: Sequence[Step],
        path: Path,
        tcp: Tcp,
        client_end_s: float,
        server_end_s: float,
        from_idle: bool,
    ) -> None:
        self.path, self.tcp, self.from_idle = path, tcp, from_idle
        self.flights = written(steps, tcp.write_bytes)
        count = len(self.flights)
        # Flights until the handshake is done, and until it is ready where that is before.
        self.untils = (count,) if self.flights[-1].sender == "server" else (count, count - 1)
        self.client_end_s, self.server_end_s = client_end_s, server_end_s
        self.setup_s = path.setup.mean if from_idle else 0.0
        self.flow = self.run(path)
        self.drawn = drawn(path, self.flow, lambda draw, patient: self.run(path, draw, patient))
        flows = self.drawn.flows if self.drawn else [self.flow]
        self.link_bytes = LinkBytes(*np.mean([flow.link_bytes for flow in flows], axis=0).tolist())
        # What timers add is added to a handshake without: what varies is that one's crossings.
        self.base = self.flow if self.drawn is None else self.run(path, patient=True)
        self.lost = self.drawn_losses() if self.needs_runs() else None
        self.kept: dict[tuple[int, int, float, float, bool], tcp_loss.Extras] = {}
        self.repeated_s: float | None = None
        up, down = path.up, path.down
        self.syn_trip_s = (
            8.0
            * (path.ip_bytes + SYN_OPTION_BYTES + path.link_bytes)
            * (1.0 / up.rate_bits_per_s + 1.0 / down.rate_bits_per_s)
            + up.delay.mean
            + down.delay.mean
        )

    def run(self, path: Path, draw: Draw | None = None, patient: bool = False) -> tcp_flow.Flow:
        return tcp_flow.flow(
            self.flights,
            path,
            self.tcp,
            setup_s=self.setup_s,
            client_end_s=self.client_end_s,
            server_end_s=self.server_end_s,
            draw=draw,
            patient=patient,
        )

    def exchange(self) -> Exchange:
        done, failed = self.total("done_s", self.untils[0])
        if len(self.untils) == 1:
            return Exchange(done, done, self.path.setup, failed, self.link_bytes)
        ready, _ = self.total("ready_s", self.untils[1])
        return Exchange(ready, done.no_earlier_than(ready), self.path.setup, failed, self.link_bytes)

    # What varies.

    def crossings(self, what: str, until: int) -> tuple[list[Distribution], list[Distribution]]:
        """Deviations of the crossings on the critical path: the connection's, and all others'."""
        up, down = self.path.up, self.path.down
        connection: list[Distribution] = []
        parts: list[Distribution] = []
        for direction, name in ((up, "client"), (down, "server")):
            if len(direction.delay.values_s) == 1:
                continue
            single = direction.delay.shifted(-direction.delay.mean)
            # How often this delay lies on the critical path: the answer's slope over it.
            step_s = max(1e-6, 0.05 * direction.delay.mean)
            delays = [up.delay.mean, down.delay.mean]
            delays[name == "server"] += step_s
            longer = self.run(self.path.with_delays(*delays), patient=self.drawn is not None)
            slope = (getattr(longer, what) - getattr(self.base, what)) / step_s
            flights = [times for times in self.base.flights[:until] if times.sender == name]
            connection.append(single)
            # Before each mostly goes a bare acknowledgement, which it does not overtake either.
            told_s = 8.0 * (self.path.ip_bytes + TCP_BYTES + self.path.link_bytes) / direction.rate_bits_per_s
            parts += [
                _deviation(direction, [times.asked_s + told_s, *times.left_s], self.path.delay_holds_s)
                for times in flights
            ]
            parts += [single] * max(0, round(slope) - 1 - len(flights))
        if self.from_idle:
            parts.append(self.path.setup.shifted(-self.path.setup.mean))
        return connection, parts

    def nodes(self) -> list[_Node]:
        """Round trips of the connection by which timers are set."""
        trip = self.path.up.delay.plus(self.path.down.delay)
        if len(trip.values_s) == 1:
            return [_Node(1.0, 0.0)]
        shares = np.cumsum(trip.weights)
        shares /= shares[-1]
        cuts = np.searchsorted(shares, [0.3, 0.6, 0.8, 0.93, 0.985])
        nodes = []
        for values, weights in zip(np.split(trip.values_s, cuts), np.split(trip.weights, cuts), strict=True):
            share = float(weights.sum())
            if share > 0.0:
                nodes.append(_Node(share, float(values @ weights) / share - trip.mean))
        return nodes

    # What is lost.

    def needs_runs(self) -> bool:
        """Whether what losses do is found by running handshakes: ``tcp_loss`` takes it that little waits for
        the link while a flight of several segments is repaired, and that a packet sent again is lost as if
        nothing had been before it.
        """
        flow, path = self.flow, self.path
        if not path.loses or any(times.dropped for times in flow.flights):
            return False
        if any(way.loss_after_loss > way.loss for way in (path.up, path.down)):
            return True
        fires = flow.fired or (self.drawn is not None and any(one.fired for one in self.drawn.flows))
        return bool(fires) and any(len(times.sent_s) > 1 for times in flow.flights)

    def drawn_losses(self) -> dict[str, tcp_lost.Lost]:
        """What losses do, by handshakes that are run."""
        from shakedown.models import tcp_lost  # few need it, and it takes a while to load

        if self.drawn is not None:
            return tcp_lost.lost(self.drawn.draws, self.drawn.flows, self.path, self.lossy)
        chosen = draws(self.path, tcp_lost.DRAWS)
        return tcp_lost.lost(chosen, [self.run(self.path, draw) for draw in chosen], self.path, self.lossy)

    def lossy(self, draw: Draw, loses: Loses) -> tcp_flow.Flow | None:
        """The handshake with a draw and with losses; None where a side gives up, or timers fill the path."""
        from shakedown.models.tcp_lossy_flow import lossy_flow

        try:
            return lossy_flow(
                self.flights,
                self.path,
                self.tcp,
                loses,
                setup_s=self.setup_s,
                client_end_s=self.client_end_s,
                server_end_s=self.server_end_s,
                draw=draw,
            )
        except tcp_flow.CollapseError:
            return None

    def losses(self) -> dict[int, _Losses]:
        """What losses do up to each flight that is asked for, kept for handshakes whose flights are alike,
        whatever work lies between them.
        """
        flights = tuple(
            (
                times.sender,
                self.at_once(times),
                _within(times)[1],
                max(times.sizes_bytes),
                times.round_trips.samples,
                tuple(times.dropped),
            )
            for times in self.flow.flights
        )
        key = (self.path, self.tcp, self.setup_s, flights)
        found = _KEPT.pop(key, None)
        if found is None:
            found = {
                until: _Losses(late, self.clear(until) if late else 1.0)
                for until, late in self.late(self.untils).items()
            }
        while len(_KEPT) >= _MAX_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = found
        return found

    def late(self, untils: Sequence[int]) -> dict[int, list[tuple[_Node, float, Distribution]]]:
        """Weights and lateness of a handshake that loses something, beyond the connection's crossings, for
        each round trip of the connection, up to each of some flights.

        The lateness includes by how much the connection's round trip differs from its mean, for timers are
        as long as it makes them. Empty where nothing is ever lost.
        """
        found: dict[int, list[tuple[_Node, float, Distribution]]] = {until: [] for until in untils}
        if not self.path.loses and not any(times.dropped for times in self.flow.flights):
            return found
        ways = tcp_connection.connections(
            self.path.up, self.path.down, self.syn_trip_s + self.setup_s, self.tcp
        )
        for node in self.nodes():
            cases = [
                self.case(group, node, untils)
                for group in _grouped(ways)
                if node.share * sum(way.weight for way in group) >= _LEAST
            ]
            if cases:
                whole = sum(weight for weight, _ in cases)
                for number, until in enumerate(untils):
                    late = Distribution.mixture([(weight, lates[number]) for weight, lates in cases])
                    found[until].append((node, whole, late))
        return found

    def case(
        self, group: list[tcp_connection.Connected], node: _Node, untils: Sequence[int]
    ) -> tuple[float, list[Distribution]]:
        """Ways to connect that leave the hosts alike, then the flights' lateness up to each of some."""
        weights = np.array([way.weight for way in group])
        total = float(weights.sum())
        shares = weights / total
        connected = Distribution.of_samples([way.extra_s for way in group], weights)
        hosts = _Hosts(
            sampled_s=round(float(shares @ [way.sampled_s for way in group]), 3),
            slow={
                "client": float(shares @ [way.client_slow for way in group]),
                "server": float(shares @ [way.server_slow for way in group]),
            },
        )
        ways = [
            (weight, hello, self.after_hello(after, max(untils), node, total * weight))
            for weight, hello, after in self.hellos(hosts, node, total)
        ]
        lates = [
            Distribution.mixture([(weight, hello.plus(after[until - 1])) for weight, hello, after in ways])
            for until in untils
        ]
        return node.share * total, [connected.plus(late).shifted(node.off_s) for late in lates]

    def hellos(
        self, hosts: _Hosts, node: _Node, share: float
    ) -> Iterator[tuple[float, Distribution, _Hosts]]:
        """What may become of the first flight: probability, lateness, and the hosts after it.

        A server that heard neither the connection's last acknowledgement nor anything of the flight counts
        its first round trip until it does, or until the client answers its SYN-ACK's repetition.
        """
        flight = self.extras(0, hosts, node, share)
        slow = hosts.slow["client"]
        times, loss = self.flow.flights[0], self.path.up.loss
        after = hosts.after("client", flight.timed_out)
        if slow > 0.0 and len(times.sent_s) > 1:
            # Some of them with a window of one segment.
            slowly = self.extras(0, hosts.with_window("client", 1), node, share * slow)
            usual = Distribution.mixture([(1.0 - slow, flight.late), (slow, slowly.late)])
            yield 1.0, usual, after
            return
        if len(times.sent_s) > 1:
            yield 1.0, flight.late, after.told(flight.probed, loss ** (1 + len(times.sent_s)), 0.0)
            return
        on_time, probed = float(flight.weights[0]), flight.probed
        yield on_time, Distribution.exactly(0.0), after
        late_s, weights = flight.extra_s[1:], flight.weights[1:].copy()
        classes: list[tuple[float, float, Distribution, float]] = []  # share, mean, all of it, probed
        if probed > 0.0:
            first = int(np.argmin(np.where(weights > 0.0, late_s, np.inf)))
            probed = min(probed, float(weights[first]))
            weights[first] -= probed
            waited_s = float(late_s[first])
            classes.append((probed, waited_s, Distribution.exactly(waited_s), 1.0))
        left = float(weights.sum())
        if left > 1e-9:
            later = Distribution.of_samples(late_s, weights)
            classes.append((left, later.mean, later, 0.0))
        whole = sum(weight for weight, *_ in classes)
        # Where the SYN-ACK was sent twice, the second is acknowledged too.
        second = hosts.slow["server"] * (1.0 - loss) * (1.0 - self.path.down.loss)
        unheard = loss * (1.0 - second)
        for weight, waited_s, later, probes in classes:
            if hosts.sampled_s:
                # Few, and alike: their server's flight is followed once.
                waited_s = sum(weight * mean_s for weight, mean_s, *_ in classes) / whole
            unheard_s = self.until_answer_s(waited_s, hosts)
            if hosts.sampled_s:
                unheard_s = self.repeated_s = self.repeated_s or unheard_s
            yield weight, later, after.told(probes, unheard, unheard_s)

    def until_answer_s(self, waited_s: float, hosts: _Hosts) -> float:
        """How much longer than a round trip a server waits for a client's first word, while it repeats its
        SYN-ACK.
        """
        repeated_s = self.tcp.timer_s(SYN_ACK_TIMEOUT_S)
        if hosts.sampled_s:
            # Its timer, or a SYN that came again, has repeated the SYN-ACK before; the timer's next wait is
            # twice as long.
            repeated_s = (repeated_s + self.tcp.timer_s(2.0 * SYN_ACK_TIMEOUT_S)) / 2.0
        if waited_s <= repeated_s:
            return round(waited_s, 3)
        answered = (1.0 - self.path.up.loss) * (1.0 - self.path.down.loss)
        return round(answered * repeated_s + (1.0 - answered) * waited_s, 3)

    def after_hello(self, hosts: _Hosts, until: int, node: _Node, share: float) -> list[Distribution]:
        """The lateness of the flights after the first, up to each of them."""
        late = [Distribution.exactly(0.0)]
        for number, times in enumerate(self.flow.flights[1:until], start=1):
            side = times.sender
            parts: list[tuple[float, Distribution]] = []
            rest = 1.0
            flight = self.extras(number, hosts.plain(side), node, share)
            if number == 1 and hosts.unheard >= _LEAST:
                slower = self.extras(number, hosts.unheard_of(), node, share * hosts.unheard)
                parts.append((hosts.unheard, slower.late))
                rest -= hosts.unheard
            slow = hosts.slow[side] * rest
            if slow > 0.0 and len(times.sent_s) > hosts.window[side]:
                slowly = self.extras(number, hosts.with_window(side, hosts.window[side]), node, share * slow)
                parts.append((slow, slowly.late))
                rest -= slow
            if side == "client" and number == 2 and hosts.probed > 0.0:
                silent = self.extras(number, hosts.without_probe(), node, share * hosts.probed)
                parts.append((rest * hosts.probed, silent.late))
                rest *= 1.0 - hosts.probed
            parts.append((rest, flight.late))
            late.append(late[-1].plus(Distribution.mixture(parts)))
            hosts = hosts.after(side, flight.timed_out)
        return late

    def extras(self, number: int, hosts: _Hosts, node: _Node, share: float = 1.0) -> tcp_loss.Extras:
        """A flight's lateness, kept, for many ways need it."""
        times = self.flow.flights[number]
        client = times.sender == "client"
        sampled_s = hosts.sampled_s if client else hosts.unheard_s
        window = hosts.begins_with
        key = (number, window, sampled_s, node.off_s, hosts.probes)
        if key not in self.kept:
            forward, backward = (self.path.up, self.path.down) if client else (self.path.down, self.path.up)
            sending = self.sending(times, sampled_s, node)
            if window:
                self.kept[key] = tcp_loss.slowly(sending, window, forward, backward, self.tcp, share)
            else:
                varies = len(forward.delay.values_s) > 1 or len(backward.delay.values_s) > 1
                self.kept[key] = tcp_loss.extras(
                    sending, forward, backward, self.tcp, varies=varies, probes=hosts.probes, share=share
                )
        return self.kept[key]

    def at_once(self, times: tcp_flow.FlightTimes) -> int:
        """Segments of the flight that were sent before the first had arrived."""
        delay_s = self.path.direction(times.sender).delay.mean
        return max(1, sum(sent < delay_s for sent in _within(times)[0]))

    def segment_s(self, times: tcp_flow.FlightTimes) -> float:
        """Time to serialise the flight's largest segment."""
        rate = self.path.direction(times.sender).rate_bits_per_s
        return 8.0 * (max(times.sizes_bytes) + self.path.link_bytes) / rate

    def sending(self, times: tcp_flow.FlightTimes, sampled_s: float, node: _Node) -> tcp_loss.Sending:
        """A flight as its loss sees it."""
        forward = self.path.direction(times.sender)
        backward = self.path.down if times.sender == "client" else self.path.up
        ack_s = 8.0 * (self.path.ip_bytes + TCP_BYTES + self.path.link_bytes) / backward.rate_bits_per_s
        trip_s = self.syn_trip_s + node.off_s
        round_trips = RoundTrips()
        round_trips.sample(trip_s + sampled_s + (self.setup_s if times.sender == "client" else 0.0))
        for _ in range(1, times.round_trips.samples):
            round_trips.sample(self.syn_trip_s)
        return tcp_loss.Sending(
            left_s=_within(times)[1],
            sent_at_once=self.at_once(times),
            segment_s=self.segment_s(times),
            forth_s=forward.delay.mean,
            back_s=backward.delay.mean + ack_s,
            round_trips=round_trips,
            dropped=tuple(times.dropped),
        )

    # All together.

    def total(self, what: str, until: int) -> tuple[Distribution, float]:
        """A time of the flow with all that varies and gets lost, and the probability that it never comes."""
        mean_s = float(getattr(self.base, what))
        connection, others = self.crossings(what, until)
        rest = _sum(others)
        whole = rest.plus(_sum(connection)).shifted(mean_s)
        if self.drawn is not None:
            whole = self.drawn.whole(whole, what)
        if self.lost is not None:
            lost = self.lost[what]
            return lost.added_to(whole), lost.failed
        found = self.losses()[until]
        if not found.late:
            return whole, 0.0
        # Without loss no timer matters but as ``whole`` has it: the connection's crossings vary as they do.
        clear = found.clear if connection else 0.0
        parts = []
        below = 0.0
        for node, weight, unshifted in found.late:
            late = unshifted.shifted(mean_s)
            if clear:
                late = _without(late, mean_s + node.off_s, clear)
            if self.drawn is not None:
                late = late.plus(self.drawn.rest(below, below + node.share, what, rest, self.base).compact())
            parts.append((weight, late))
            below += node.share
        late = Distribution.mixture(parts)
        if self.drawn is None:
            late = late.plus(rest)
        late = late.at_least(float(whole.values_s[0]))
        arrives = sum(weight for weight, _ in parts)
        return Distribution.mixture([(clear, whole), (1.0 - clear, late)]), max(0.0, 1.0 - arrives)

    def clear(self, until: int) -> float:
        """Probability that nothing is lost that matters."""
        up, down = self.path.up.loss, self.path.down.loss
        clear = (1.0 - up) * (1.0 - down)
        for number in range(until):
            clear *= float(self.extras(number, _Hosts(), _Node(1.0, 0.0)).weights[0])
        return clear


def _grouped(ways: list[tcp_connection.Connected]) -> list[list[tcp_connection.Connected]]:
    """Ways to connect by what the client's first round trip counted: nothing, about a second, more; the most
    probable first.
    """
    groups: dict[int, list[tcp_connection.Connected]] = {}
    for way in ways:
        groups.setdefault(0 if way.sampled_s == 0.0 else 1 if way.sampled_s < 1.5 else 2, []).append(way)
    return sorted(groups.values(), key=lambda group: -sum(way.weight for way in group))


def _without(total: Distribution, value_s: float, share: float) -> Distribution:
    """The distribution without ``share`` of its probability near a value, scaled to sum to 1."""
    weights = total.weights.copy()
    left = share
    near = np.argsort(np.abs(total.values_s - value_s))[:3]
    for index in near[np.abs(total.values_s[near] - value_s) <= 1e-3 * abs(value_s)]:
        taken = min(left, float(weights[index]))
        weights[index] -= taken
        left -= taken
    filled = weights > 0.0
    if not filled.any():
        return total
    return Distribution(total.values_s[filled], weights[filled] / weights[filled].sum())
