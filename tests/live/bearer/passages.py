"""Test datagrams over a bearer, timed at both ends by the kernel's clock.

Both namespaces are on this machine. A packet arrives when it is due, or later if the processors are busy, but
never earlier. So the minimum of many transit times is the bearer's delay, on any machine.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tools.bearer_handshakes import COMMAND, GATEWAY

from shakedown.profiles import load_bearer
from shakedown.profiles.delay import distribution

ATTEMPTS = 6
"""Maximum number of measurements until a time is as expected: a busy machine makes times longer."""
TESTS = Path(__file__).parents[2]
SHORT_BYTES = 52
TRAIN = 40
"""Packets of a train, which fit the queue of a profile without spread."""
HEADERS_BYTES = 28
TIMEOUT_S = 300.0


def send(end: socket.socket, kind: int, payload_bytes: int, to: tuple[str, int] | None = None) -> None:
    """A datagram with the time at which it is sent."""
    data = (bytes([kind]) + time.monotonic_ns().to_bytes(8, "big")).ljust(payload_bytes, b"\0")
    if to is None:
        end.send(data)
    else:
        end.sendto(data, to)


def reflect(end: socket.socket, train_bytes: int) -> None:
    """The gateway's end: answers each packet with a packet, each train with a train, until closed."""
    first_ns, many = 0, 0
    while True:
        try:
            data, client = end.recvfrom(2048)
        except OSError:
            return
        at_ns, sent_ns = time.monotonic_ns(), int.from_bytes(data[1:9], "big")
        if data[0] == ord("p"):
            end.sendto(b"p" + (at_ns - sent_ns).to_bytes(8, "big") + time.monotonic_ns().to_bytes(8, "big")
                       + bytes(SHORT_BYTES - HEADERS_BYTES - 17), client)  # fmt: skip
            continue
        first_ns = sent_ns if many == 0 else first_ns
        many += 1
        if many == TRAIN:
            many = 0
            begun_ns = time.monotonic_ns()
            for number in range(TRAIN):
                head = b"t" + (at_ns - first_ns).to_bytes(8, "big") + begun_ns.to_bytes(8, "big")
                end.sendto((head + bytes([number])).ljust(train_bytes, b"\0"), client)


def probe(port: int, rounds: int, trains: int, train_bytes: int) -> dict[str, list[float]]:
    """The client's end: the times of packets and trains in seconds, by kind and direction."""
    found: dict[str, list[float]] = {"packet up": [], "packet down": [], "train up": [], "train down": []}

    def note(what: str, data: bytes) -> None:
        at_ns = time.monotonic_ns()
        found[f"{what} up"].append(int.from_bytes(data[1:9], "big") * 1e-9)
        found[f"{what} down"].append((at_ns - int.from_bytes(data[9:17], "big")) * 1e-9)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(TIMEOUT_S)
        end.connect((GATEWAY, port))
        for _ in range(rounds):
            send(end, ord("p"), SHORT_BYTES - HEADERS_BYTES)
            note("packet", end.recv(2048))
        for _ in range(trains):
            for _ in range(TRAIN):
                send(end, ord("t"), train_bytes)
            for number in range(TRAIN):
                data = end.recv(2048)
                assert data[17] == number
            note("train", data)
    return found


@dataclass(frozen=True)
class Passages:
    """The shortest times of packets and trains across a bearer, and those of its profile."""

    least_s: dict[str, float]
    profile_s: dict[str, float]


def passages(profile: Path, count: int) -> Passages:
    """Sends `count` packets, then `count` trains, over a profile without spread and loss."""
    bearer = load_bearer(str(profile))
    slowest = min(bearer.up_bits_per_s, bearer.down_bits_per_s)
    # A train of about two seconds, or of full packets.
    train_bytes = round(min(max(2.0 * slowest / 8.0 / TRAIN, SHORT_BYTES), 1500.0))
    said = {}
    for name, way in (("up", bearer.up), ("down", bearer.down)):
        delay_s, rate = distribution(way.delay).mean, way.rate_bits_per_s
        said[f"packet {name}"] = delay_s + 8 * SHORT_BYTES / rate
        said[f"train {name}"] = delay_s + TRAIN * 8 * train_bytes / rate
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gateway:
        gateway.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=reflect, args=(gateway, train_bytes - HEADERS_BYTES), daemon=True)
        thread.start()
        asked = (gateway.getsockname()[1], count, count, train_bytes - HEADERS_BYTES)
        code = f"import json; from live.bearer.passages import probe; print(json.dumps(probe{asked}))"
        done = subprocess.run(
            [*COMMAND, "run", "--linger", "0", str(profile), "--", sys.executable, "-c", code],
            capture_output=True, text=True, check=False, timeout=600,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[float]] = json.loads(done.stdout)
    return Passages({what: min(times) for what, times in found.items()}, said)
