"""Dask's programs, and the experiment that runs on them."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

SPREAD = """
name = "spread"
suites = ["tls1.2/psk", "tls1.3/x25519/p256/server"]
repeat = 2
seed = 3
devices = ["cortex-m4", "phone"]
bearers = ["lte", "nb-iot", "gprs"]
rates = ["10/s", "300/s"]

[simulated]
arrivals = ["storm:2s", "poisson:20/s"]
clients = 400
"""


@contextlib.contextmanager
def start(program: str, *arguments: str, cwd: Path | None = None):
    """Runs one of Dask's programs until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{program}", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=cwd,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process, pattern: str) -> str:
    """The first match of `pattern` in a program's standard error."""
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"ended with {process.wait()}")
