"""Keep a server busy with honest and hostile clients, and see that its memory and descriptors stay flat.

    python -m tools.soak [SECONDS]

Prints a line every few seconds; exits with 1 where memory grows after the first tenth of the time, where an
honest client is turned away, or where the server does not end in good order.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

SUITE = "tls1.3/x25519/p256/server/resumed"
DEFAULT_S = 600.0
REPORT_EVERY_S = 5.0
HONEST, HOSTILE = 3, 2
GROWTH_KIB = 4096
"""What an allocator may keep more at the end than after the first tenth: a leak of one connection in a
hundred is more."""


def context() -> ssl.SSLContext:
    """A client that takes any certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


class Clients:
    """Threads that come and go as clients."""

    def __init__(self, port: int) -> None:
        """Of a server on this machine."""
        self.address = ("127.0.0.1", port)
        self.stopping = threading.Event()
        self.served, self.refused = 0, 0
        self.threads = [threading.Thread(target=self.honest) for _ in range(HONEST)]
        self.threads += [threading.Thread(target=self.hostile, args=(seed,)) for seed in range(HOSTILE)]

    def honest(self) -> None:
        """Full and resumed handshakes, each with a request."""
        client = context()
        session: ssl.SSLSession | None = None
        while not self.stopping.is_set():
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
        """Half-open connections, garbage, cut handshakes."""
        generator = random.Random(seed)
        held: list[socket.socket] = []
        while not self.stopping.is_set():
            with contextlib.suppress(OSError):
                stream = socket.create_connection(self.address, timeout=5)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                tls = context().wrap_bio(incoming, outgoing)
                with contextlib.suppress(ssl.SSLWantReadError):
                    tls.do_handshake()
                hello = bytearray(outgoing.read())
                if generator.random() < 0.5:
                    hello[generator.randrange(len(hello))] ^= 1 << generator.randrange(8)
                stream.sendall(hello[: generator.randrange(len(hello) + 1)])
                held.append(stream)
            while len(held) > 100:
                held.pop(generator.randrange(len(held))).close()
            time.sleep(0.002)
        for stream in held:
            stream.close()


def resident_kib(process: int) -> int:
    """Memory that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1])


def main(seconds: float) -> int:
    """Runs it; the exit status."""
    command = [sys.executable, "-m", "shakedown", "serve", SUITE, "--listen", "127.0.0.1:0", "--json"]
    command += [
        "--payload",
        "20000",
        "--handshake-timeout",
        "2s",
        "--idle-timeout",
        "5s",
        "--max-handshakes",
        "150",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r"listening on [\d.]+:(\d+)", server.stderr.readline())
        assert found is not None, "the server did not start"
        clients = Clients(int(found[1]))
        for thread in clients.threads:
            thread.start()
        begun_s, settled_kib = time.monotonic(), 0
        while (elapsed_s := time.monotonic() - begun_s) < seconds:
            time.sleep(min(REPORT_EVERY_S, seconds / 10))
            now_kib = resident_kib(server.pid)
            descriptors = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
            if not settled_kib and elapsed_s >= seconds / 10:
                settled_kib = now_kib
            print(
                f"{elapsed_s:6.0f} s  {now_kib:8} KiB  {descriptors:5} descriptors  {clients.served} served"
            )
        clients.stopping.set()
        for thread in clients.threads:
            thread.join()
        last_kib = resident_kib(server.pid)
        server.send_signal(signal.SIGTERM)
        output, errors = server.communicate(timeout=60)
    counted = json.loads(output)[0]
    print(json.dumps(counted["handshakes"]))
    problems = []
    if server.returncode != 0 or errors:
        problems.append(f"the server ended with {server.returncode}: {errors[-200:]}")
    if clients.refused:
        problems.append(f"{clients.refused} honest clients were turned away")
    if last_kib - settled_kib > GROWTH_KIB:
        problems.append(f"memory grew from {settled_kib} to {last_kib} KiB")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_S))
