"""When a handshake is ready and done over a network, as distributions.

``exchange`` is the one function for any transport. It runs the handshake once with mean delays and without
loss, exactly (``tcp_flow``, ``datagrams.flow``), and adds what varies: each crossing of the network on the
critical path draws its delay; lost packets cost what ``tcp_loss`` and ``datagrams.extras`` enumerate.
Crossings and losses of different flights are independent; a timer is as long as the round trip that it was
derived from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shakedown.models import datagrams, tcp_flow, tcp_loss
from shakedown.models.arrays import Floats
from shakedown.models.datagrams import Datagrams
from shakedown.models.distribution import Distribution
from shakedown.models.path import Direction, Path
from shakedown.models.steps import Step, packed, written
from shakedown.models.tcp import ACK_BYTES, SYN_BYTES, RoundTrips, Tcp

__all__ = ["DTLS", "TCP", "WTLS", "Datagrams", "Exchange", "Path", "Step", "Tcp", "exchange", "transport"]

TCP = Tcp()
DTLS = Datagrams()
WTLS = Datagrams(timeout_s=3.0, max_timeout_s=48.0, sends=5, client_repeats=True)

_NODES = 6  # round trips for which timers are worked out
_RARE = 0.02  # less probable states take the mean round trip
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Exchange:
    """Times of a handshake over a network, from its first packet.

    Attributes:
        ready: until the client may send application data, connection set-up included.
        done: until the last flight was received and taken in.
        setup: what the radio's set-up from idle takes; in ready and done only if that was asked for.
        failed: probability that a side gives up; the times are those of the others.
    """

    ready: Distribution
    done: Distribution
    setup: Distribution
    failed: float


def transport(protocol: str) -> Tcp | Datagrams:
    """What carries a protocol, by the first part of a suite's name."""
    return WTLS if protocol == "wtls" else DTLS if protocol.startswith("dtls") else TCP


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
        ValueError: without steps, or where the server speaks first.
    """
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
        total = total.plus(part)
    return total


class _Datagrams:
    """A handshake in datagrams."""

    def __init__(
        self, steps: Sequence[Step], path: Path, way: Datagrams, client_end_s: float, server_end_s: float,
        from_idle: bool,
    ) -> None:
        room = float(path.mtu_bytes - datagrams.HEADER_BYTES)
        self.path, self.way, self.from_idle = path, way, from_idle
        self.flights = packed(steps, room)
        setup_s = path.setup.mean if from_idle else 0.0
        self.times = datagrams.flow(self.flights, path, setup_s=setup_s)
        self.client_end_s, self.server_end_s = client_end_s, server_end_s

    def exchange(self) -> Exchange:
        last = self.times[-1]
        ends_s = self.server_end_s if last.sender == "client" else self.client_end_s
        done, failed = self.total(len(self.times), last.arrived_s + ends_s)
        if last.sender == "server":
            return Exchange(done, done, self.path.setup, failed)
        handed_s = last.handed_s + self.flights[-1].writes[-1][0]
        ready, _ = self.total(len(self.times) - 1, handed_s)
        return Exchange(ready, done, self.path.setup, failed)

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


class _Stream:
    """A handshake over TCP."""

    def __init__(
        self, steps: Sequence[Step], path: Path, tcp: Tcp, client_end_s: float, server_end_s: float,
        from_idle: bool,
    ) -> None:
        self.path, self.tcp, self.from_idle = path, tcp, from_idle
        self.flights = written(steps, tcp.write_bytes)
        self.ends = {"client_end_s": client_end_s, "server_end_s": server_end_s}
        self.setup_s = path.setup.mean if from_idle else 0.0
        self.flow = self.run(path.up.delay.mean, path.down.delay.mean)
        up, down = path.up, path.down
        self.syn_trip_s = (
            8.0 * (SYN_BYTES + path.link_bytes) * (1.0 / up.rate_bits_per_s + 1.0 / down.rate_bits_per_s)
            + up.delay.mean + down.delay.mean
        )

    def run(self, up_s: float, down_s: float, **windows: int) -> tcp_flow.Flow:
        path = self.path.with_delays(up_s, down_s)
        return tcp_flow.flow(self.flights, path, self.tcp, setup_s=self.setup_s, **self.ends, **windows)

    def exchange(self) -> Exchange:
        count = len(self.flights)
        last = self.flights[-1].sender
        lost = self.late()
        done, failed = self.total("done_s", count, lost)
        if last == "server":
            return Exchange(done, done, self.path.setup, failed)
        ready, _ = self.total("ready_s", count - 1, lost)
        return Exchange(ready, done, self.path.setup, failed)

    # What varies.

    def crossings(self, what: str, until: int) -> list[Distribution]:
        """Deviations of the crossings on the critical path: connection, flights, and windows that wait."""
        up, down = self.path.up, self.path.down
        parts: list[Distribution] = []
        for direction, name in ((up, "client"), (down, "server")):
            if len(direction.delay.values_s) == 1:
                continue
            single = direction.delay.shifted(-direction.delay.mean)
            # How often this delay lies on the critical path: the answer's slope over it.
            step_s = max(1e-6, 0.05 * direction.delay.mean)
            delays = [up.delay.mean, down.delay.mean]
            delays[name == "server"] += step_s
            longer = self.run(*delays)
            slope = (getattr(longer, what) - getattr(self.flow, what)) / step_s
            flights = [times for times in self.flow.flights[:until] if times.sender == name]
            parts.append(single)  # the connection's
            parts += [_deviation(direction, times.left_s, self.path.delay_holds_s) for times in flights]
            parts += [single] * max(0, round(slope) - 1 - len(flights))
        if self.from_idle:
            parts.append(self.path.setup.shifted(-self.path.setup.mean))
        return parts

    def nodes(self) -> list[_Node]:
        """Round trips of the connection by which timers are set."""
        trip = self.path.up.delay.plus(self.path.down.delay)
        if len(trip.values_s) == 1:
            return [_Node(1.0, 0.0)]
        shares = np.cumsum(trip.weights)
        shares /= shares[-1]
        cuts = np.searchsorted(shares, [0.3, 0.6, 0.8, 0.93, 0.985])
        nodes = []
        for values, weights in zip(
            np.split(trip.values_s, cuts), np.split(trip.weights, cuts), strict=True
        ):
            share = float(weights.sum())
            if share > 0.0:
                nodes.append(_Node(share, float(values @ weights) / share - trip.mean))
        return nodes

    # What is lost.

    def late(self) -> list[tuple[_Node, list[tuple[float, list[Floats]]]]]:
        """For each node and each way to connect: its weight, and per flight (weights, seconds late)."""
        dropped = any(times.dropped for times in self.flow.flights)
        if not self.path.loses and not dropped:
            return []
        trip_s = self.syn_trip_s + self.setup_s
        ways = tcp_loss.connections(self.path.up, self.path.down, trip_s, self.tcp)
        found = []
        mean = _Node(1.0, 0.0)
        for node in self.nodes():
            cases = []
            for way in ways:
                if way.weight < _RARE and node.share < 1.0:
                    continue
                cases.append(self.case(way, node))
            found.append((node, cases))
        rare = [way for way in ways if way.weight < _RARE]
        if rare and found[0][0].share < 1.0:
            found.append((mean, [self.case(way, mean) for way in rare]))
        return found

    def case(self, way: tcp_loss.Connected, node: _Node) -> tuple[float, list[Floats]]:
        """One way to connect, then each flight's lateness as an array of (weight, seconds)."""
        parts: list[Floats] = [np.array([[1.0, way.extra_s + node.off_s]])]
        shrunk = {"client": 0.0, "server": 0.0}
        for times in self.flow.flights:
            late = tcp_loss.extras(
                self.sending(times, way, node), self.path.direction(times.sender),
                self.path.up if times.sender == "server" else self.path.down, self.tcp,
            )
            rounds = self.extra_rounds(times, way, shrunk[times.sender])
            rows = [(one.weight, one.extra_s + rounds) for one in late]
            timed_out = sum(one.weight for one in late if one.timed_out)
            shrunk[times.sender] = max(shrunk[times.sender], timed_out)
            parts.append(np.array(rows))
        return way.weight, parts

    def extra_rounds(self, times: tcp_flow.FlightTimes, way: tcp_loss.Connected, shrunk: float) -> float:
        """Mean time that a window smaller than the usual costs a flight."""
        first = all(other.sender != times.sender for other in self.flow.flights[: self.flow.flights.index(times)])
        count = len(times.sent_s)
        if first:
            small = (
                way.client_timeouts >= 2 and not way.first_syn_heard
                if times.sender == "client"
                else way.server_timeouts >= 2
            )
            return self.rounds_s(count, 1, times) if small else 0.0
        return shrunk * self.rounds_s(count, 2, times) if shrunk > 0.0 else 0.0

    def rounds_s(self, count: int, window: int, times: tcp_flow.FlightTimes) -> float:
        """Waiting of a flight that starts with a small window, beyond that with its own."""

        def waits(start: float) -> float:
            left, size, total = float(count), start, 0.0
            while left > size:
                total += max(0.0, self.syn_trip_s - size * self.segment_s(times))
                left -= size
                size *= 2.0
            return total

        return max(0.0, waits(float(window)) - waits(times.window))

    def segment_s(self, times: tcp_flow.FlightTimes) -> float:
        rate = self.path.direction(times.sender).rate_bits_per_s
        return 8.0 * (max(times.sizes_bytes) + self.path.link_bytes) / rate

    def sending(
        self, times: tcp_flow.FlightTimes, way: tcp_loss.Connected, node: _Node
    ) -> tcp_loss.Sending:
        forward = self.path.direction(times.sender)
        backward = self.path.down if times.sender == "client" else self.path.up
        ack_s = 8.0 * (ACK_BYTES + self.path.link_bytes) / backward.rate_bits_per_s
        trip_s = self.syn_trip_s + node.off_s
        round_trips = RoundTrips()
        samples = times.round_trips.samples
        if times.sender == "client":
            round_trips.sample(trip_s + self.setup_s + way.sampled_s)
        elif not way.server_timeouts:
            round_trips.sample(trip_s)
        for _ in range(1, samples):
            round_trips.sample(self.syn_trip_s)
        begin_s = times.sent_s[0]
        first = [sent for sent in times.sent_s if sent <= begin_s + 1e-9 or sent - begin_s < forward.delay.mean]
        return tcp_loss.Sending(
            left_s=tuple(left - begin_s for left in times.left_s),
            sent_at_once=max(len(first), 1),
            segment_s=self.segment_s(times),
            forth_s=forward.delay.mean,
            back_s=backward.delay.mean + ack_s,
            round_trips=round_trips,
            known_s=trip_s,
            dropped=tuple(times.dropped),
        )

    # All together.

    def total(
        self, what: str, until: int, lost: list[tuple[_Node, list[tuple[float, list[Floats]]]]]
    ) -> tuple[Distribution, float]:
        mean_s = getattr(self.flow, what)
        parts = self.crossings(what, until)
        clean = _sum(parts).shifted(mean_s)
        if not lost:
            return clean, 0.0
        # Timers depend on the round trip of the connection: its crossings are in the nodes.
        varying = len(self.path.up.delay.values_s) > 1 or len(self.path.down.delay.values_s) > 1
        whole, mixed, kept = 0.0, [], 0.0
        for node, cases in lost:
            for weight, flights in cases:
                good = weight * node.share
                for rows in flights[1 : until + 1]:
                    good *= float(rows[0, 0]) if rows[0, 1] == 0.0 else 0.0
                clear = flights[0][0, 1] == node.off_s
                total = Distribution.exactly(mean_s)
                for rows in flights[: until + 1]:
                    total = total.plus(_rows(rows))
                share = weight * node.share * float(np.prod([rows[:, 0].sum() for rows in flights[: until + 1]]))
                kept += share
                if clear and good > 0.0 and varying:
                    whole += good
                    total = _without(total, mean_s + node.off_s, good / share)
                    share -= good
                if share > 0.0:
                    mixed.append((share, total))
        rest = self.rest(what, until)
        late = Distribution.mixture(mixed).plus(rest) if mixed else clean
        if whole > 0.0:
            late = Distribution.mixture([(whole, clean), (sum(share for share, _ in mixed), late)])
        return late, max(0.0, 1.0 - kept)

    def rest(self, what: str, until: int) -> Distribution:
        """Deviations of all crossings but the connection's."""
        parts = self.crossings(what, until)
        for direction in (self.path.up, self.path.down):
            if len(direction.delay.values_s) > 1:
                for number, part in enumerate(parts):
                    if part.values_s is not None and np.array_equal(
                        part.values_s, direction.delay.values_s - direction.delay.mean
                    ):
                        del parts[number]
                        break
        return _sum(parts)


def _rows(rows: Floats) -> Distribution:
    if len(rows) == 1:
        return Distribution.exactly(float(rows[0, 1]))
    return Distribution.of_samples(rows[:, 1], rows[:, 0])


def _without(total: Distribution, value_s: float, share: float) -> Distribution:
    """The distribution without the share of one of its values, scaled to sum to 1."""
    weights = total.weights.copy()
    index = int(np.argmin(np.abs(total.values_s - value_s)))
    weights[index] = max(0.0, weights[index] - share)
    kept = weights > 0.0
    if not kept.any():
        return total
    return replace(total, values_s=total.values_s[kept], weights=weights[kept] / weights[kept].sum())
