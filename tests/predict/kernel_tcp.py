"""Creates kernel_tcp.json and kernel_grid.json: handshakes over the kernel's TCP.

A TUN device loses packets on their way.

    unshare -n python tests/predict/kernel_tcp.py 0.1957 1e9 0.05 2000 "[4096,1248]" [reno]
    chrt --fifo 10 python tests/predict/kernel_tcp.py grid tests/predict/kernel_grid.json [bbr|host]

Client and server are in one network namespace. The TUN device returns each packet with source and destination
exchanged, after the time for rate and delay, unless it is lost. Needs root, or a user namespace that may open
/dev/net/tun. Not run by the tests.
"""

from __future__ import annotations

import ast
import fcntl
import heapq
import json
import os
import random
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

TUNSETIFF, TUN_NO_HEADER = 0x400454CA, 0x1001
ADDRESS, PEER, PORT = "10.0.0.1", "10.0.0.2", 443
CLIENT_BYTES = (230, 80)


@dataclass
class Link:
    """A separate network for each connection: rate, one-way delay and loss."""

    rate_bits_per_s: float
    one_way_s: float
    loss: float
    draws: random.Random
    free: dict[tuple[int, bool], float] = field(default_factory=dict)
    queue: list[tuple[float, int, bytes]] = field(default_factory=list)
    count: int = 0

    def packet(self, now_s: float, packet: bytes) -> None:
        """Accepts a packet from the device; it returns later or is lost."""
        header = (packet[0] & 15) * 4
        source, destination = struct.unpack("!HH", packet[header : header + 4])
        up = destination == PORT
        key = (source if up else destination, up)
        left_s = max(self.free.get(key, 0.0), now_s) + 8 * len(packet) / self.rate_bits_per_s
        self.free[key] = left_s
        if self.draws.random() < self.loss:
            return
        self.count += 1
        swapped = packet[:12] + packet[16:20] + packet[12:16] + packet[20:]
        heapq.heappush(self.queue, (left_s + self.one_way_s, self.count, swapped))


@dataclass
class End:
    """One side of a connection: its place in the handshake."""

    socket: socket.socket
    side: str
    begun_s: float
    step: int = 0
    got: int = 0
    connected: bool = False
    ready_s: float | None = None
    done_s: float | None = None


ROUTES = {"initial_window": "initcwnd", "quick_ack": "quickack"}
"""Settings of `HostTcp` that belong to the route; the others are the kernel's (``net.ipv4.tcp_…``)."""


def set_host(host: dict[str, int]) -> None:
    """Sets both hosts' TCP, by the names of `HostTcp`."""
    for name, value in host.items():
        if name in ROUTES:
            route = f"ip route change 10.0.0.0/24 dev tun0 src {ADDRESS} {ROUTES[name]} {value}"
            subprocess.run(route.split(), check=True)
        else:
            Path(f"/proc/sys/net/ipv4/tcp_{name}").write_text(str(value))


def device() -> int:
    """A TUN device with an address, without pacing and without remembered metrics."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", b"tun0", TUN_NO_HEADER))
    for command in (
        "ip link set lo up",
        f"ip addr add {ADDRESS}/24 dev tun0",
        "ip link set tun0 mtu 1500 up txqueuelen 5000",
        "tc qdisc replace dev tun0 root pfifo limit 5000",
    ):
        subprocess.run(command.split(), check=False)
    for name, value in (("tcp_no_metrics_save", "1"), ("conf/all/rp_filter", "0")):
        Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
    return fd


def advance(end: End, flights: list[tuple[str, list[int]]]) -> None:
    """Sends and reads as far as the handshake goes."""
    while end.step < len(flights):
        sender, writes = flights[end.step]
        if sender == end.side:
            for size in writes:
                end.socket.send(b"x" * size)
            end.step += 1
            if end.side == "client" and end.step == len(flights):
                end.ready_s = time.monotonic() - end.begun_s
        elif end.got >= sum(writes):
            end.got -= sum(writes)
            end.step += 1
        else:
            return
    end.done_s = end.done_s or time.monotonic()


def tcp(congestion: str) -> socket.socket:
    """A socket that sends at once, with a buffer for a whole flight."""
    one = socket.socket()
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
    return one


def run(
    link: Link,
    server_writes: list[int],
    count: int,
    stagger_s: float,
    limit_s: float,
    congestion: str,
    host: dict[str, int],
) -> list[dict]:
    """Runs `count` handshakes, one every ``stagger_s``; returns the ready and done times of each."""
    flights = [("client", [CLIENT_BYTES[0]]), ("server", server_writes), ("client", [CLIENT_BYTES[1]])]
    fd, selector = device(), selectors.DefaultSelector()
    # A server's connection inherits its listener's settings, which are set when the listener is made.
    set_host(host)
    listener = tcp(congestion)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ADDRESS, PORT))
    listener.listen(4096)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(fd, selectors.EVENT_READ)
    clients: dict[int, End] = {}
    servers: dict[int, End] = {}
    begun_s, left = time.monotonic(), count
    while left and time.monotonic() - begun_s < limit_s:
        if len(clients) < count and time.monotonic() - begun_s >= len(clients) * stagger_s:
            one, port = tcp(congestion), 20_000 + len(clients)
            one.bind((ADDRESS, port))
            clients[port] = End(one, "client", time.monotonic())
            one.connect_ex((PEER, PORT))
            selector.register(one, selectors.EVENT_WRITE, clients[port])
        due_s = link.queue[0][0] - time.monotonic() if link.queue else 0.05
        for key, _ in selector.select(max(0.0, min(due_s, 0.002 if len(clients) < count else 0.05))):
            if key.fd == fd:
                try:
                    while packet := os.read(fd, 2000):
                        if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
                            link.packet(time.monotonic(), packet)
                except BlockingIOError:
                    pass
            elif key.fileobj is listener:
                accepted, (_, port) = listener.accept()
                accepted.setblocking(False)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                servers[port] = End(accepted, "server", 0.0)
                selector.register(accepted, selectors.EVENT_READ, servers[port])
            else:
                end = key.data
                if end.side == "client" and not end.connected:
                    if end.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        selector.unregister(end.socket)
                        left -= 1
                        continue
                    end.connected = True
                    selector.modify(end.socket, selectors.EVENT_READ, end)
                else:
                    try:
                        data = end.socket.recv(65_536)
                    except ConnectionResetError:
                        # The server has dropped a connection that the client considers established.
                        data = b""
                        left -= end.side == "client"
                    if not data:
                        selector.unregister(end.socket)
                        continue
                    end.got += len(data)
                advance(end, flights)
                left -= end.side == "server" and end.done_s is not None
        while link.queue and link.queue[0][0] <= time.monotonic():
            os.write(fd, heapq.heappop(link.queue)[2])
    return [
        {"ready_s": end.ready_s, "done_s": servers[port].done_s - end.begun_s}
        for port, end in clients.items()
        if port in servers and servers[port].done_s and end.ready_s
    ]


SEGMENT_BYTES = 1448
HANDSHAKES, AT_ONCE, LIMIT_S = 2000, 4, 150.0


def cells() -> list[dict]:
    """Every level of segments, round trips, rates, losses and congestion control; not every combination."""
    found = [
        *(  # flights and round trips
            (trip, 1e6, loss, segments, "cubic")
            for loss in (0.0, 0.05)
            for trip in (0.02, 0.1, 0.3, 0.6)
            for segments in (1, 2, 4, 8, 10, 16, 30)
        ),
        *(  # rates
            (0.3, rate, loss, segments, "cubic")
            for rate in (9_600.0, 40_000.0, 60_000.0, 1e8)
            for loss in (0.0, 0.01, 0.1)
            for segments in (4, 16)
        ),
        *(  # losses and congestion control
            (0.1, 1e8, loss, segments, congestion)
            for congestion in ("cubic", "reno")
            for loss in (0.01, 0.05, 0.1, 0.2)
            for segments in (4, 16, 30)
        ),
        *(  # BBR without losses: its pace
            (trip, rate, 0.0, segments, "bbr")
            for rate in (1e6, 1e8)
            for trip in (0.02, 0.1, 0.3, 0.6)
            for segments in (4, 12, 16, 25)
        ),
        *(  # BBR's repairs
            (trip, rate, loss, segments, "bbr")
            for trip, rate in ((0.1, 1e8), (0.3, 1e6))
            for loss in (0.01, 0.05, 0.1, 0.2)
            for segments in (4, 16, 25)
        ),
    ]
    hosts = [
        *(  # the first window
            (0.3, 1e8, loss, segments, {"initial_window": window})
            for window in (2, 4, 20)
            for loss in (0.0, 0.05)
            for segments in (8, 25)
        ),
        *(  # acknowledgements without delay
            (0.1, 1e6, loss, segments, {"quick_ack": 1}) for loss in (0.0, 0.05) for segments in (2, 8, 16)
        ),
        *(  # packets that are considered reordered
            (0.3, 1e8, loss, segments, {"reordering": 10}) for loss in (0.02, 0.1) for segments in (8, 25)
        ),
        *(  # when a SYN is sent again, and how often
            (0.1, 1e8, loss, 1, host)
            for loss in (0.05, 0.2)
            for host in (
                {"syn_linear_timeouts": 0},
                {"syn_linear_timeouts": 0, "syn_retries": 1},
                {"synack_retries": 1},
            )
        ),
    ]
    found = [(*one, {}) for one in found] + [(*one, "cubic", host) for *one, host in hosts]
    names = ("round_trip_s", "rate_bits_per_s", "loss", "segments", "congestion", "host")
    return [dict(zip(names, one, strict=True)) for one in found]


def cell_times(cell: dict) -> dict:
    """A cell with the times until its flight was read; handshakes beyond the limit are counted as late."""
    flight_bytes = SEGMENT_BYTES * cell["segments"] - 100
    lossy = cell["loss"] > 0.0
    count = HANDSHAKES if lossy else 40
    # Apart enough that this process keeps up with all packets.
    stagger_s = 0.004 + 0.0008 * cell["segments"]
    arguments = [cell["round_trip_s"], cell["rate_bits_per_s"], cell["loss"], count, [flight_bytes]]
    words = [*arguments, cell["congestion"], stagger_s, cell["host"]]
    command = ["unshare", "-n", sys.executable, __file__, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ready = sorted(one["ready_s"] for one in json.loads(done.stdout))
    # Percentiles of all: those that are late are later than these.
    places = {"p50_s": 0.5, "p90_s": 0.9, "p95_s": 0.95, "p99_s": 0.99}
    at = {name: ready[int(share * count)] for name, share in places.items() if share * count < len(ready)}
    return {
        **cell,
        "flight_bytes": flight_bytes,
        "handshakes": count,
        "late": count - len(ready),
        "min_s": round(ready[0], 4),
        "mean_s": round(statistics.fmean(ready), 4),
        "standard_error_s": round(statistics.stdev(ready) / len(ready) ** 0.5, 4),
        **{name: round(value, 4) for name, value in at.items()},
    }


def record(out: Path, part: str | None) -> None:
    """Records the grid, or only its cells of one congestion control, or those with changed hosts
    (``host``); writes the results so far after each cell.
    """

    def is_wanted(cell: dict) -> bool:
        return part in (None, "host" if cell["host"] else cell["congestion"])

    document = {
        "what": f"Linux {os.uname().release.partition('-')[0]}, both ends in one network namespace behind a "
        "TUN device whose reader delays, serialises and loses packets (kernel_tcp.py grid, seed 1), at "
        "real-time priority on a busy machine; times from connect until the flight is read",
        "rows": [],
    }
    if part and out.exists():
        document["rows"] = [row for row in json.loads(out.read_text())["rows"] if not is_wanted(row)]
    wanted = [cell for cell in cells() if is_wanted(cell)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for row in pool.map(cell_times, wanted):
            document["rows"].append(row)
            sys.stderr.write(f"{row}\n")
            lines = ",\n".join(json.dumps(one) for one in document["rows"])
            out.write_text(f'{{"what": {json.dumps(document["what"])}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    if sys.argv[1] == "grid":
        record(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
    else:
        trip_s, rate, loss, handshakes = (float(one) for one in sys.argv[1:5])
        network = Link(rate, trip_s / 2, loss, random.Random(1))
        congestion = sys.argv[6] if len(sys.argv) > 6 else "cubic"
        stagger_s = float(sys.argv[7]) if len(sys.argv) > 7 else 0.004
        host = ast.literal_eval(sys.argv[8]) if len(sys.argv) > 8 else {}
        writes = ast.literal_eval(sys.argv[5])
        found = run(network, writes, int(handshakes), stagger_s, LIMIT_S, congestion, host)
        json.dump(found, sys.stdout)
