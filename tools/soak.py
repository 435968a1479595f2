"""Keep servers busy with honest and hostile clients, and see that their memory and descriptors stay flat.

    python -m tools.soak [SECONDS] [--gap SECONDS]

A TLS and a WTLS server each have honest clients, floods of half-open handshakes, garbage, and clients that
go away in the middle. With a gap each client pauses so long between two connections, and floods are rarer:
`--gap 0.2` takes some per cent of a core. Prints a line every few seconds; exits with 1 where memory grows
after the first tenth of the time, where an honest client is turned away, or where a server does not end in
good order.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from statistics import median

SUITE = "tls1.3/x25519/p256/server/resumed"
DEFAULT_S = 600.0
REPORT_EVERY_S = 5.0
HONEST, HOSTILE = 3, 2
FLOOD = 10_000
"""Half-open clients of a flood, or as many as descriptors allow; it is over before the next begins."""
FLOOD_EVERY_S = 20.0
GENTLE_FLOOD_EVERY_S = 120.0
HOSTILE_GAP_S = 0.002
GROWTH_KIB = 4096
"""How much more memory may be in use in the last third of the readings than in the first, by medians: single
readings go up and down by twice that with the floods; a leak of one connection in a hundred is more."""
WTLS_SUITE = "wtls/rsa/rsa1024/server"
WTLS_RUN_S = 5.0
GENTLE_WTLS_RUN_S = 60.0


def context() -> ssl.SSLContext:
    """A client that takes any certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


class Clients(ABC):
    """Threads that come and go as clients of a server on this machine."""

    suite: str
    options: tuple[str, ...]

    def __init__(self, port: int, gap_s: float) -> None:
        """Of a server at a port; each pauses so long between two connections."""
        self.address, self.gap_s = ("127.0.0.1", port), gap_s
        self.flood_every_s = GENTLE_FLOOD_EVERY_S if gap_s else FLOOD_EVERY_S
        self.stopping = threading.Event()
        self.served, self.refused, self.flooded = 0, 0, 0
        self.threads = [threading.Thread(target=work) for work in self.work()]

    @abstractmethod
    def work(self) -> list[Callable[[], None]]:
        """What each thread does."""

    def paused(self, seconds: float) -> bool:
        """Waits; True where the end has come."""
        return self.stopping.wait(seconds)


class TlsClients(Clients):
    """Over streams."""

    suite = SUITE
    options = ("--payload", "20000", "--handshake-timeout", "2s", "--idle-timeout", "5s")

    def work(self) -> list[Callable[[], None]]:
        """Honest ones, hostile ones, and floods."""
        hostile = [lambda seed=seed: self.hostile(seed) for seed in range(HOSTILE)]
        return [*[self.honest] * HONEST, *hostile, self.flood]

    def honest(self) -> None:
        """Full and resumed handshakes, each with a request."""
        client = context()
        session: ssl.SSLSession | None = None
        while not self.paused(self.gap_s):
            try:
                plain = socket.create_connection(self.address, timeout=20)
                with client.wrap_socket(plain, session=session) as stream:
                    stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    while stream.recv(65536):
                        pass
                    session = None if session else stream.session
                self.served += 1
            except OSError:
                self.refused += 1

    def hostile(self, seed: int) -> None:
        """Half-open connections, garbage, cut handshakes; some go as far as their last flight."""
        generator = random.Random(seed)
        held: list[socket.socket] = []
        while not self.paused(max(HOSTILE_GAP_S, self.gap_s)):
            with contextlib.suppress(OSError):
                stream = socket.create_connection(self.address, timeout=5)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                tls = context().wrap_bio(incoming, outgoing)
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
        while not self.paused(self.flood_every_s):
            with contextlib.ExitStack() as streams, contextlib.suppress(OSError):
                for _ in range(min(FLOOD, soft - 500)):
                    streams.enter_context(socket.create_connection(self.address, timeout=5))
                    self.flooded += 1
                    if self.stopping.is_set():
                        break


class WtlsClients(Clients):
    """Over datagrams."""

    suite = WTLS_SUITE
    options = ("--payload", "500", "--handshake-timeout", "5s", "--idle-timeout", "5s")

    def work(self) -> list[Callable[[], None]]:
        """Honest ones, hostile ones, and floods."""
        self.hello = first_datagram(self.suite)
        hostile = [lambda seed=seed: self.hostile(seed) for seed in range(HOSTILE)]
        return [self.honest, *hostile, self.flood]

    def honest(self) -> None:
        """Clients of this program, each with a request."""
        target = f"wtls://{self.address[0]}:{self.address[1]}"
        loop = ["--arrivals", "closed", "--clients", "2", "--duration", f"{WTLS_RUN_S}s"]
        if self.gap_s:
            loop = ["--rate", f"{1.0 / self.gap_s}/s", "--duration", f"{GENTLE_WTLS_RUN_S}s"]
        options = [*loop, "--http", "/"]
        while not self.stopping.is_set():
            command = [sys.executable, "-m", "shakedown", "load", target, self.suite, *options, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                self.refused += 1
                print(f"wtls: {done.stderr[-200:].strip()}", file=sys.stderr)
                continue
            (run,) = json.loads(done.stdout)
            self.served += run["completed"]
            self.refused += sum(run["failed"].values())

    def hostile(self, seed: int) -> None:
        """A genuine hello whole, cut and spoiled, and bytes that were never any."""
        generator = random.Random(seed)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            while not self.paused(max(HOSTILE_GAP_S / 2, self.gap_s / 2)):
                copy = bytearray(self.hello)
                copy[generator.randrange(len(copy))] ^= 1 << generator.randrange(8)
                cut = self.hello[: generator.randrange(len(self.hello))]
                piece = generator.choice([self.hello, bytes(copy), cut, generator.randbytes(200)])
                with contextlib.suppress(OSError):
                    stranger.sendto(piece, self.address)

    def flood(self) -> None:
        """Hellos of thousands of addresses at once."""
        while not self.paused(self.flood_every_s):
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
        command = [sys.executable, "-m", "shakedown", "load", target, suite, *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            return silent.recv(65536)


def resident_kib(process: int) -> int:
    """Memory that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1])


class Soaked:
    """A server, and its clients."""

    def __init__(self, kind: type[Clients], gap_s: float) -> None:
        """Starts the server, and gets its clients ready."""
        command = [
            sys.executable,
            "-m",
            "shakedown",
            "serve",
            kind.suite,
            "--listen",
            "127.0.0.1:0",
            "--json",
        ]
        self.server = subprocess.Popen(
            [*command, *kind.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.server.stderr is not None
        found = re.search(r"listening on [\d.]+:(\d+)", self.server.stderr.readline())
        assert found is not None, "the server did not start"
        self.clients = kind(int(found[1]), gap_s)
        self.readings_kib: list[int] = []
        self.name = kind.suite.partition("/")[0]

    def look(self, elapsed_s: float, seconds: float) -> None:
        """Prints a line."""
        now_kib = resident_kib(self.server.pid)
        descriptors = len(list(Path(f"/proc/{self.server.pid}/fd").iterdir()))
        # A table is as large as its first floods made it.
        if elapsed_s >= seconds / 10 and self.clients.flooded >= 2 * FLOOD:
            self.readings_kib.append(now_kib)
        one = self.clients
        print(
            f"{elapsed_s:6.0f} s  {self.name:7}{now_kib:8} KiB  {descriptors:5} descriptors  "
            f"{one.served} served, {one.refused} turned away, {one.flooded} in floods",
            flush=True,
        )

    def end(self) -> list[str]:
        """Stops it; what went wrong."""
        for thread in self.clients.threads:
            thread.join()
        self.server.send_signal(signal.SIGTERM)
        output, errors = self.server.communicate(timeout=60)
        problems = []
        if self.server.returncode != 0 or errors:
            problems.append(f"{self.name}: the server ended with {self.server.returncode}: {errors[-200:]}")
        else:
            print(json.dumps(json.loads(output)[0]["handshakes"]))
        if self.clients.refused:
            problems.append(f"{self.name}: {self.clients.refused} honest clients were turned away")
        grown = growth_kib(self.readings_kib)
        if grown is None:
            problems.append(f"{self.name}: {len(self.readings_kib)} readings are too few to see memory grow")
        elif grown > GROWTH_KIB:
            problems.append(f"{self.name}: memory grew by {grown:.0f} KiB")
        return problems


def growth_kib(readings_kib: list[int]) -> float | None:
    """How much more the last third of the readings has than the first; None where there are too few."""
    third = len(readings_kib) // 3
    return median(readings_kib[-third:]) - median(readings_kib[:third]) if third else None


def main(seconds: float, gap_s: float) -> int:
    """Runs it; the exit status."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FLOOD + 1_000 if hard == resource.RLIM_INFINITY else min(FLOOD + 1_000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    soaked = [Soaked(TlsClients, gap_s), Soaked(WtlsClients, gap_s)]
    for one in soaked:
        for thread in one.clients.threads:
            thread.start()
    begun_s = time.monotonic()
    while (elapsed_s := time.monotonic() - begun_s) < seconds:
        time.sleep(min(REPORT_EVERY_S, seconds / 10))
        for one in soaked:
            one.look(elapsed_s, seconds)
    for one in soaked:
        one.clients.stopping.set()
    problems = [problem for one in soaked for problem in one.end()]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="tools.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seconds", nargs="?", type=float, default=DEFAULT_S)
    parser.add_argument("--gap", type=float, default=0.0, metavar="SECONDS")
    given = parser.parse_args()
    sys.exit(main(given.seconds, given.gap))
