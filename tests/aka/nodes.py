"""SGSNs and HSSs as processes."""

from __future__ import annotations

import contextlib
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

TIMEOUT_S = 300.0
"""A longer wait means a hang; a busy machine makes everything many times slower."""


class Process:
    """A command that runs until it is stopped, and what it printed."""

    def __init__(self, *arguments: str) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", "shakedown", "aka", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.line = self.child.stdout.readline()
        self.addresses = re.findall(r"127\.0\.0\.1:\d+", self.line)
        assert self.addresses, self.line + self.child.stderr.read()

    def stop(self) -> str:
        self.child.send_signal(signal.SIGTERM)
        printed, complaints = self.child.communicate(timeout=TIMEOUT_S)
        assert (self.child.returncode, complaints) == (0, "")
        return printed

    def kill(self) -> None:
        self.child.kill()
        self.child.communicate()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.kill()


def sgsn(site: Path, hss: str, name: str, *options: str, listen: str = "127.0.0.1:0") -> Process:
    return Process(
        "sgsn",
        *("--listen", listen, "--node", str(site / f"{name}.json"), "--hss", f"20201={hss}", "--json"),
        *options,
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Access:
    """A relay between a mobile and its SGSN: a new connection waits until the SGSN runs.

    A test can thus restart the SGSN between two attaches.
    """

    def __init__(self, sgsn: str) -> None:
        self.front = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.front.getsockname())
        self.sgsn = sgsn
        self.is_there = threading.Event()
        self.is_there.set()
        self.over = threading.Event()
        self.ended = threading.Semaphore(0)
        self.thread = threading.Thread(target=self.relay, daemon=True)

    def relay(self) -> None:
        while True:
            try:
                mobile, _ = self.front.accept()
            except OSError:
                return
            self.is_there.wait()
            if self.over.is_set():
                mobile.close()
                return
            host, port = self.sgsn.rsplit(":", 1)
            with mobile, socket.create_connection((host, int(port))) as node, contextlib.suppress(OSError):
                other = {mobile: node, node: mobile}
                while other and not self.over.is_set():
                    for ready in select.select(list(other), [], [], 0.05)[0]:
                        sink = other[ready]
                        if data := ready.recv(65_536):
                            sink.sendall(data)
                        else:
                            del other[ready]
                            sink.shutdown(socket.SHUT_WR)
            # Cleared before the next connection is accepted, because the caller now restarts the server.
            self.is_there.clear()
            self.ended.release()

    def attach_ended(self) -> None:
        """Waits until both sides have ended an attach; the next attach waits for `go_on`."""
        assert self.ended.acquire(timeout=TIMEOUT_S)

    def go_on(self) -> None:
        """Lets the next connection through to the SGSN."""
        self.is_there.set()

    def __enter__(self) -> Access:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.is_there.set()
        self.front.shutdown(socket.SHUT_RDWR)
        self.front.close()
        self.thread.join()
