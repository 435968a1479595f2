"""Load servers with honest and hostile clients, and check that their memory and descriptors do not grow.

    python -m tools.soak [SECONDS] [--gap SECONDS]

A TLS and a WTLS server each have honest clients, floods of half-open handshakes, garbage, and clients that
disconnect in the middle. With a gap each client pauses that long between two connections, and floods are
rarer: `--gap 0.2` takes a few per cent of a core. Prints a line every few seconds; exits with 1 if memory
grows after the first tenth of the time, if an honest client is refused, or if a server does not end normally.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from live.serve.serving import Running, client_context, read_all, serving
from tools import pages

DEFAULT_S = 600.0
REPORT_EVERY_S = 5.0
HOSTILE_CLIENTS = 2
FLOOD = 10_000
"""Half-open clients of a flood, limited by the number of descriptors; a flood ends before the next begins."""
FLOOD_EVERY_S = 20.0
GENTLE_FLOOD_EVERY_S = 120.0
HOSTILE_GAP_S = 0.002
GROWTH_KIB = 4096
"""Allowed growth of memory between the medians of the first and the last third of the readings: single
readings vary by twice that with the floods; a leak of one connection in a hundred is more."""
WTLS_RUN_S = 5.0
GENTLE_WTLS_RUN_S = 60.0


class Clients:
    """A server on this machine, and the threads of its clients: `honest`, `hostile`, `flood`."""

    suite: str
    options: tuple[str, ...]
    honest_clients: int
    honest: Callable[[], None]
    hostile: Callable[[int], None]
    flood: Callable[[], None]

    def __init__(self, server: Running, gap_s: float) -> None:
        """Each client pauses for `gap_s` between two connections."""
        self.server, self.address, self.gap_s = server, server.address, gap_s
        self.flood_every_s = GENTLE_FLOOD_EVERY_S if gap_s else FLOOD_EVERY_S
        self.stopping = threading.Event()
        self.served, self.refused, self.flooded = 0, 0, 0
        self.readings_kib: list[int] = []
        self.name = self.suite.partition("/")[0]
        self.threads = [
            *(threading.Thread(target=self.honest) for _ in range(self.honest_clients)),
            *(threading.Thread(target=self.hostile, args=(seed,)) for seed in range(HOSTILE_CLIENTS)),
            threading.Thread(target=self.flood),
        ]

    def look(self, elapsed_s: float, seconds: float) -> None:
        """Print a line."""
        now_kib = self.server.resident_kib()
        descriptors = len(list(Path(f"/proc/{self.server.process.pid}/fd").iterdir()))
        # Tables have their full size only after the first floods.
        if elapsed_s >= seconds / 10 and self.flooded >= 2 * FLOOD:
            self.readings_kib.append(now_kib)
        print(
            f"{elapsed_s:6.0f} s  {self.name:7}{now_kib:8} KiB  {descriptors:5} descriptors  "
            f"{self.served} served, {self.refused} turned away, {self.flooded} in floods",
            flush=True,
        )

    def end(self) -> list[str]:
        """Stop the server; return the problems."""
        for thread in self.threads:
            thread.join()
        problems = []
        try:
            print(json.dumps(self.server.stop()["handshakes"]))
        except AssertionError as error:
            problems.append(f"{self.name}: the server did not end in good order: {error}")
        if self.refused:
            problems.append(f"{self.name}: {self.refused} honest clients were turned away")
        grown = growth_kib(self.readings_kib)
        if grown is None:
            problems.append(f"{self.name}: {len(self.readings_kib)} readings are too few to see memory grow")
        elif grown > GROWTH_KIB:
            problems.append(f"{self.name}: memory grew by {grown:.0f} KiB")
        return problems


class TlsClients(Clients):
    """Clients over streams."""

    suite = "tls1.3/x25519/p256/server/resumed"
    options = ("--payload", "20000", "--handshake-timeout", "2s", "--idle-timeout", "5s")
    honest_clients = 3

    def honest(self) -> None:
        """Full and resumed handshakes, each with a request."""
        client = client_context()
        session: ssl.SSLSession | None = None
        while not self.stopping.wait(self.gap_s):
            try:
                plain = socket.create_connection(self.address, timeout=20)
                with client.wrap_socket(plain, session=session) as stream:
                    stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    read_all(stream)
                    session = None if session else stream.session
                self.served += 1
            except OSError:
                self.refused += 1

    def hostile(self, seed: int) -> None:
        """Half-open connections, garbage, cut handshakes; some reach their last flight."""
        generator = random.Random(seed)
        held: list[socket.socket] = []
        while not self.stopping.wait(max(HOSTILE_GAP_S, self.gap_s)):
            with contextlib.suppress(OSError):
                stream = socket.create_connection(self.address, timeout=5)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                tls = client_context().wrap_bio(incoming, outgoing)
                with contextlib.suppress(ssl.SSLWantReadError):
                    tls.do_handshake()
                flight = bytearray(outgoing.read())
                if generator.random() < 0.3:
                    stream.sendall(flight)
                    with contextlib.suppress(ssl.SSLError):
                        while not (last := outgoing.read()):
                            incoming.write(stream.recv(65536))
                            with contextlib.suppress(ssl.SSLWantReadError):
                                tls.do_handshake()
                        flight = bytearray(last)
                if flight and generator.random() < 0.5:
                    flight[generator.randrange(len(flight))] ^= 1 << generator.randrange(8)
                stream.sendall(flight[: generator.randrange(len(flight) + 1)])
                held.append(stream)
            while len(held) > 100:
                held.pop(generator.randrange(len(held))).close()
        for stream in held:
            stream.close()

    def flood(self) -> None:
        """Half-open clients, thousands at once."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        while not self.stopping.wait(self.flood_every_s):
            with contextlib.ExitStack() as streams, contextlib.suppress(OSError):
                for _ in range(min(FLOOD, soft - 500)):
                    streams.enter_context(socket.create_connection(self.address, timeout=5))
                    self.flooded += 1
                    if self.stopping.is_set():
                        break


class WtlsClients(Clients):
    """Clients over datagrams."""

    suite = "wtls/rsa/rsa1024/server"
    options = ("--payload", "500", "--handshake-timeout", "5s", "--idle-timeout", "5s")
    honest_clients = 1

    def __init__(self, server: Running, gap_s: float) -> None:
        """Hostile clients use the first datagram of an honest one."""
        super().__init__(server, gap_s)
        self.hello = first_datagram(self.suite)

    def honest(self) -> None:
        """Clients of this program, each with a request."""
        target = f"wtls://{self.address[0]}:{self.address[1]}"
        loop = ["--arrivals", "closed", "--clients", "2", "--duration", f"{WTLS_RUN_S}s"]
        if self.gap_s:
            loop = ["--rate", f"{1.0 / self.gap_s}/s", "--duration", f"{GENTLE_WTLS_RUN_S}s"]
        options = [*loop, "--http", "/"]
        while not self.stopping.is_set():
            command = [*pages.SHAKEDOWN, "load", target, self.suite, *options, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                self.refused += 1
                print(f"wtls: {done.stderr[-200:].strip()}", file=sys.stderr)
                continue
            (run,) = json.loads(done.stdout)
            self.served += run["completed"]
            self.refused += sum(run["failed"].values())

    def hostile(self, seed: int) -> None:
        """A genuine hello unchanged, cut and corrupted, and random bytes."""
        generator = random.Random(seed)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            while not self.stopping.wait(max(HOSTILE_GAP_S / 2, self.gap_s / 2)):
                copy = bytearray(self.hello)
                copy[generator.randrange(len(copy))] ^= 1 << generator.randrange(8)
                cut = self.hello[: generator.randrange(len(self.hello))]
                piece = generator.choice([self.hello, bytes(copy), cut, generator.randbytes(200)])
                with contextlib.suppress(OSError):
                    stranger.sendto(piece, self.address)

    def flood(self) -> None:
        """Hellos from thousands of addresses at once."""
        while not self.stopping.wait(self.flood_every_s):
            for number in range(FLOOD):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                    stranger.bind((f"127.0.{1 + number // 250}.{1 + number % 250}", 0))
                    stranger.sendto(self.hello, self.address)
                self.flooded += 1
                if self.stopping.is_set():
                    return


def first_datagram(suite: str) -> bytes:
    """A client's first datagram, sent to a socket that only records it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.settimeout(30)
        target = f"wtls://127.0.0.1:{silent.getsockname()[1]}"
        options = ["--arrivals", "closed", "--clients", "1", "--count", "1", "--timeout", "1s"]
        command = [*pages.SHAKEDOWN, "load", target, suite, *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            return silent.recv(65536)


def growth_kib(readings_kib: list[int]) -> float | None:
    """The growth from the first to the last third of the readings; None if there are too few."""
    third = len(readings_kib) // 3
    return median(readings_kib[-third:]) - median(readings_kib[:third]) if third else None


def main(seconds: float, gap_s: float) -> int:
    """Run the tool; return the exit status."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FLOOD + 1_000 if hard == resource.RLIM_INFINITY else min(FLOOD + 1_000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with contextlib.ExitStack() as held:
        soaked = [
            kind(held.enter_context(serving(kind.suite, *kind.options)), gap_s)
            for kind in (TlsClients, WtlsClients)
        ]
        for one in soaked:
            for thread in one.threads:
                thread.start()
        begun_s = time.monotonic()
        while (elapsed_s := time.monotonic() - begun_s) < seconds:
            time.sleep(min(REPORT_EVERY_S, seconds / 10))
            for one in soaked:
                one.look(elapsed_s, seconds)
        for one in soaked:
            one.stopping.set()
        problems = [problem for one in soaked for problem in one.end()]
    return pages.status(f"error: {problem}" for problem in problems)


if __name__ == "__main__":
    parser = pages.options("soak", __doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=DEFAULT_S)
    parser.add_argument("--gap", type=float, default=0.0, metavar="SECONDS")
    given = parser.parse_args()
    sys.exit(main(given.seconds, given.gap))
