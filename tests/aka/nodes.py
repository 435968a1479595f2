"""SGSNs and HSSs as processes."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path


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
        printed, complaints = self.child.communicate(timeout=60)
        assert (self.child.returncode, complaints) == (0, "")
        return printed

    def kill(self) -> None:
        self.child.kill()
        self.child.communicate()


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
