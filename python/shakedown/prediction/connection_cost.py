"""The CPU time of a connection beyond the handshake in memory, for server and client, measured over loopback.

Shakedown's server runs on one processor and its load generator on another, with `CLIENTS` connections in
progress. Other processes keep the server's processor from sleeping: a server that has to be woken for every
message needs half as much CPU time again.

For each side, the CPU time of its threads per connection (by the kernel's scheduler) less the CPU time of
the same handshake in memory has two parts. A fixed part: accept, read, write and close, the kernel's TCP,
the TLS library's connection object, and the event loop. And a part proportional to the handshake, which is
slower than in memory because the kernel and other connections evict its code and data from the caches.
Handshakes of different lengths separate the two parts. On loopback the kernel accounts part of the
receiver's work to the sender, as for any server on the same machine as its clients.

The cost of a KiB (the kernel's copying) is measured separately, with sockets without TLS.
"""

from __future__ import annotations

import resource
import socket
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe

from shakedown.native.processors import pin, placed, processors, ran_s, threads
from shakedown.prediction.cpu_contention import beside_clients, busy_neighbours, shared
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.schema.base import SIDES, Side


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite to serve, its number of tickets, and the stack of its clients."""

    suite: str
    tickets: int = 0
    client_stack: str = "openssl"


PLANS = (
    Plan("tls1.2/ecdhe_ecdsa/p384/server/resumed", client_stack="rustls"),
    Plan("tls1.3/x25519/ed25519/server", client_stack="rustls"),
    Plan("tls1.3/x25519/ed25519/server", 2, client_stack="rustls"),
    Plan("tls1.3/x25519/rsa3072/server", 2, client_stack="rustls"),
)
"""Short handshakes, of which the connection is a large part, and a long one. Their clients use the faster
stack.
"""
CLIENTS = 16
"""Connections in progress."""
SECONDS = 0.3
BEGINNING_S = 0.02
ENOUGH, LIMIT = 6, 30
"""Rounds that count, of each suite, and the number after which measuring ends without them."""
COPIES = 8
REPEAT = 40
CONNECTIONS = 500
FLIGHTS = (250, 1200, 90, 250)
"""Bytes of a typical handshake's flights, from client and server alternately."""
LARGE_FLIGHTS = (1250, 65200, 90, 250)
"""The same with 64 KiB more of certificates, to measure the kernel's copying."""
MIN_RANGE = 1.5
"""The slope is computed from pairs of handshakes whose times differ by at least this factor."""


@dataclass(frozen=True, slots=True)
class Served:
    """Measured CPU times of a suite, in microseconds, by side.

    Attributes:
        kib: size of a handshake.
        took_us: a connection with its handshake, and the loop's time on the side's processor.
        alone_us: the handshake in memory, likewise.
    """

    kib: float
    took_us: dict[Side, Timed[float]]
    alone_us: dict[Side, Timed[float]]


@dataclass(slots=True)
class Speeds:
    """Of the server's processor, by itself and beside the server, and of the client's."""

    alone: Speed = field(default_factory=Speed)
    server: Speed = field(default_factory=Speed)
    client: Speed = field(default_factory=Speed)

    def of(self, side: Side) -> Speed:
        """Of a side's processor while it is served."""
        return self.server if side == "server" else self.client

    def are_enough(self, rounds: Sequence[Served]) -> bool:
        """Whether so many rounds count that more need not be measured."""
        return all(
            speed.has(ENOUGH, some)
            for speed, some in (
                (self.alone, [one.alone_us["server"] for one in rounds]),
                *((self.of(side), [one.took_us[side] for one in rounds]) for side in SIDES),
            )
        )


def connection_cost(
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    plans: Sequence[Plan] = PLANS,
    speeds: Speeds | None = None,
) -> dict[str, float]:
    """Measures the table ``[connection]`` of a profile: microseconds per connection, by side.

    Args:
        seconds: duration for each suite in each round.
        progress: called with the number of completed steps, and of all steps.
        plans: the suites to serve.
        speeds: given the loops' times.
    """
    found: list[list[Served]] = [[] for _ in plans]
    speeds = speeds or Speeds()
    progress(0, 1 + LIMIT)
    copying_us = per_kib_us()
    for number in range(LIMIT):
        progress(1 + number, 1 + LIMIT)
        left = [at for at in range(len(plans)) if not speeds.are_enough(found[at])]
        if not left:
            break
        for at in left:
            found[at].append(served(plans[at], seconds, speeds))
    return fitted(found, copying_us, speeds)


def fitted(found: Sequence[Sequence[Served]], copying_us: float, speeds: Speeds) -> dict[str, float]:
    """The table ``[connection]`` from the measured times, by suite and round, and from the cost of a KiB."""
    cost = {"per_kib_us": copying_us}
    left_us: list[float] = []
    for side in SIDES:
        points, servings = [], []
        for rounds in found:
            alone_us = statistics.median(speeds.alone.at_full([one.alone_us[side] for one in rounds], ENOUGH))
            took_us = speeds.of(side).at_full([one.took_us[side] for one in rounds], ENOUGH)
            kib = statistics.median(one.kib for one in rounds)
            points.append((alone_us, statistics.median(took_us) - alone_us - copying_us * kib))
            servings.append((alone_us, took_us, kib))
        fixed_us, cold = _line(points)
        cost |= {f"{side}_us": fixed_us, f"{side}_cold": cold}
        if side == "server":
            left_us = [
                one_us - (1.0 + cold) * alone_us - copying_us * kib
                for alone_us, took_us, kib in servings
                for one_us in took_us
            ]
    return {**cost, "sd_us": statistics.pstdev(left_us)}


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope, neither below zero, as medians over pairs of points (Theil and Sen)."""
    slopes = [
        (more - other_more) / (alone - other)
        for index, (alone, more) in enumerate(points)
        for other, other_more in points[:index]
        if max(alone, other) > MIN_RANGE * min(alone, other)
    ]
    slope = max(statistics.median(slopes), 0.0) if slopes else 0.0
    return max(statistics.median(more - slope * alone for alone, more in points), 0.0), slope


def served(plan: Plan, seconds: float, speeds: Speeds) -> Served:
    """Serves a suite and measures the CPU time of each side, over loopback and in memory."""
    from shakedown import native
    from shakedown.native import load_generator, serving
    from shakedown.native.scenario import HandshakeId, Options

    name = native.canonical(plan.suite)
    options = Options(repeat=REPEAT, tickets=plan.tickets)
    # The other processor is busy while the handshake runs in memory, as it is with the client over loopback.
    with busy_neighbours():
        timed = speeds.alone.flanked(
            lambda: native.measure(HandshakeId(suite=name, client_stack=plan.client_stack), options)
        )
    alone = timed.found
    others, there = threads(), processors()
    with (
        serving.start([name], "127.0.0.1:0", workers=1, options=options) as server,
        shared(there[0]) as meter,
        beside_clients(there[1:]),
        placed(there[-1:]),
    ):
        workers = threads() - others
        for worker in workers:
            pin(there[0], worker)

        def load(duration_s: float) -> tuple[int, float, float]:
            """Number of connections, and the server's and the client's CPU time for them, in microseconds."""
            before_s = ran_s(workers)
            outcome = load_generator.load(
                {
                    "target": server.address,
                    "arrivals": "closed",
                    "clients": CLIENTS,
                    "duration_s": duration_s,
                    "check": True,
                },
                name,
                {"client_stack": plan.client_stack},
            )
            return outcome.completed, 1e6 * (ran_s(workers) - before_s), 1e6 * outcome.generator_cpu_s

        # Both runs include the work before the first counted connection, such as getting sessions to resume.
        first = load(BEGINNING_S)
        loaded = speeds.client.flanked(
            lambda: meter.timed(lambda: load(BEGINNING_S + seconds), speeds.server)
        )
    whole = loaded.found.found
    completed = max(whole[0] - first[0], 1)
    server_us, client_us = ((whole[at] - first[at]) / completed for at in (1, 2))
    return Served(
        kib=alone.bytes.total / 1024.0,
        took_us={
            "server": Timed(server_us, loaded.found.loop_s),
            "client": Timed(client_us, loaded.loop_s),
        },
        alone_us={
            "client": Timed(alone.handshake.client_us.median, timed.loop_s),
            "server": Timed(alone.handshake.server_us.median, timed.loop_s),
        },
    )


def per_kib_us() -> float:
    """Microseconds per KiB of the server, from small and large flights over sockets."""
    small = min(_kernel_us(FLIGHTS, CONNECTIONS) for _ in range(COPIES))
    large = min(_kernel_us(LARGE_FLIGHTS, CONNECTIONS // 2) for _ in range(COPIES))
    kib = (sum(LARGE_FLIGHTS) - sum(FLIGHTS)) / 1024.0
    return max(0.0, (large - small) / kib)


def _kernel_us(flights: tuple[int, ...], connections: int) -> float:
    """The server's kernel time per connection in microseconds, without TLS."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    there = processors()
    process = context.Process(
        target=_serve, args=(listener, theirs, flights, connections, there[0]), daemon=True
    )
    process.start()
    address = listener.getsockname()
    listener.close()
    try:
        with placed(there[-1:]):
            _connect(address, flights, connections)
        return float(ours.recv()) if ours.poll(60) else float("nan")
    finally:
        process.join(5)
        if process.is_alive():
            process.terminate()


def _serve(
    listener: socket.socket, pipe: Pipe, flights: tuple[int, ...], connections: int, processor: int
) -> None:
    pin(processor)
    request, reply, confirmation, answer = flights
    chunk, last = bytes(reply), bytes(answer)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    for _ in range(connections):
        peer, _ = listener.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _take(peer, request)
            peer.sendall(chunk)
            _take(peer, confirmation)
            peer.sendall(last)
    pipe.send((resource.getrusage(resource.RUSAGE_SELF).ru_stime - before) / connections * 1e6)


def _connect(address: tuple[str, int], flights: tuple[int, ...], connections: int) -> None:
    request, reply, confirmation, answer = flights
    first, second = bytes(request), bytes(confirmation)
    for _ in range(connections):
        with socket.create_connection(address) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(first)
            _take(peer, reply)
            peer.sendall(second)
            _take(peer, answer)


def _take(peer: socket.socket, size: int) -> None:
    left = size
    while left > 0:
        left -= len(peer.recv(left)) or left
