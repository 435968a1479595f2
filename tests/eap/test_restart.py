"""A RADIUS server that shuts down gracefully and starts again at its address."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import shakedown

SUITE = "tls1.3/x25519/p256"
COMMON = ("--secret", "rehearsal", "--suite", SUITE)
COUNT = 120


def server(port: int) -> subprocess.Popen[str]:
    """Starts `eap serve` on a port and waits until it listens."""
    started = subprocess.Popen(
        [sys.executable, "-m", "shakedown", "eap", "serve", "--listen", f"127.0.0.1:{port}", *COMMON],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline().startswith("serving ")
    return started


def stopped(running: subprocess.Popen[str]) -> int:
    """Sends SIGTERM and returns the number of accepted authentications."""
    running.send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=300)
    assert running.returncode == 0
    return int(out.split()[0])


def test_no_authentication_is_lost_over_a_restart():
    """Peers retransmit unanswered requests, and the server completes the authentications in progress."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before = server(port)
    well_begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            shakedown.authenticate,
            f"127.0.0.1:{port}",
            "rehearsal",
            SUITE,
            shakedown.EapOptions(count=COUNT, rate_per_s=30.0, timeout_s=60.0),
            progress=lambda done: well_begun.set() if done >= COUNT // 12 else None,
        )
        assert well_begun.wait(300)
        first = stopped(before)
        after = server(port)
        run = running.result(300)
    second = stopped(after)
    assert run.failed == {}
    assert run.completed == COUNT
    assert first + second == COUNT
    assert first > 0
    assert second > 0
