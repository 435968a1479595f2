"""What a TCP connection costs a server and a client here, kernel included: measured over loopback.

The server's process does what a TLS server's does with its socket for one handshake: accept, read, write,
read, write, close. What it costs is the CPU time that the kernel accounts to it; the interpreter's own
time is not
a server's and is left out. On loopback the kernel does part of the receiver's work in the sender's name, as
it does for any server on one machine with its clients.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import statistics
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe

CONNECTIONS = 2000
ROUNDS = 3
FLIGHTS = (250, 1200, 90, 250)
"""Bytes of a usual handshake's flights, from client and server in turn."""
LARGE_FLIGHTS = (1250, 17200, 90, 250)
"""The same with a post-quantum chain: what the kernel's copying adds."""


def connection_cost(
    connections: int = CONNECTIONS, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, float]:
    """Microseconds of kernel time a connection, by side, as the table ``[connection]`` of a profile."""
    small: list[tuple[float, float]] = []
    large: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        progress(number, ROUNDS)
        small.append(_measure(FLIGHTS, connections))
        large.append(_measure(LARGE_FLIGHTS, max(connections // 4, 50)))
    kib = (sum(LARGE_FLIGHTS) - sum(FLIGHTS)) / 1024.0
    server, client = (min(one[side] for one in small) for side in (0, 1))
    per_kib = max(0.0, (min(one[0] for one in large) - server) / kib)
    base_kib = sum(FLIGHTS) / 1024.0
    return {
        "server_us": max(server - per_kib * base_kib, 0.0),
        "client_us": max(client - per_kib * base_kib, 0.0),
        "sd_us": statistics.pstdev(one[0] for one in small),
        "per_kib_us": per_kib,
    }


def _measure(flights: tuple[int, ...], connections: int) -> tuple[float, float]:
    """Kernel microseconds a connection: the server's, the client's."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    process = context.Process(target=_serve, args=(listener, theirs, flights, connections), daemon=True)
    process.start()
    address = listener.getsockname()
    listener.close()
    try:
        client_us = _connect(address, flights, connections)
        server_us = float(ours.recv()) if ours.poll(60) else float("nan")
    finally:
        process.join(5)
        if process.is_alive():
            process.terminate()
    return server_us, client_us


def _serve(listener: socket.socket, pipe: Pipe, flights: tuple[int, ...], connections: int) -> None:
    _pin(0)
    request, reply, confirmation, answer = flights
    chunk, last = bytes(reply), bytes(answer)
    before = _kernel_s()
    for _ in range(connections):
        peer, _ = listener.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _take(peer, request)
            peer.sendall(chunk)
            _take(peer, confirmation)
            peer.sendall(last)
    pipe.send((_kernel_s() - before) / connections * 1e6)


def _connect(address: tuple[str, int], flights: tuple[int, ...], connections: int) -> float:
    request, reply, confirmation, answer = flights
    first, second = bytes(request), bytes(confirmation)
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    _pin(1)
    before = _kernel_s()
    try:
        for _ in range(connections):
            with socket.create_connection(address) as peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer.sendall(first)
                _take(peer, reply)
                peer.sendall(second)
                _take(peer, answer)
        return (_kernel_s() - before) / connections * 1e6
    finally:
        if affinity is not None:
            os.sched_setaffinity(0, affinity)


def _take(peer: socket.socket, size: int) -> None:
    left = size
    while left > 0:
        left -= len(peer.recv(left)) or left


def _kernel_s() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def _pin(core: int) -> None:
    """Server and client on processors of their own, where there are two and it is allowed."""
    with contextlib.suppress(AttributeError, OSError):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) > 1:
            os.sched_setaffinity(0, {allowed[core % len(allowed)]})
