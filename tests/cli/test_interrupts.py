"""Ctrl-C is heard while the core works, whatever it works on: none of these would soon end by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SUITE = "tls1.3/x25519/p256/server"
BEGUN = "begun"

WORK = {
    "measure": f"core.measure({SUITE!r}, 1_000_000, options={{'tickets': 16}})",
    "measure post-quantum": "core.measure('tls1.3/mlkem1024/mldsa87/mutual', 1_000_000)",
    "measure WTLS": "core.measure('wtls/rsa/rsa2048/mutual', 1_000_000)",
    "transfers": f"core.transfers({SUITE!r}, [1 << 32], repeat=1000)",
    "transfers over WEP": "core.transfers('tls1.2/psk', [1] * 1_000_000, link='wep', repeat=1_000_000)",
    "capture": f"core.capture([{SUITE!r}] * 2_000_000, 'c.pcap')",
    "primitives": "core.primitives(seconds=3600.0)",
}


WELL_BEGUN_S = 2.0
"""CPU time after which a simulation is under way: several times what the program takes to start."""


def worked_s(process: subprocess.Popen[str]) -> float:
    """CPU time of a process that runs."""
    assert process.poll() is None, process.communicate()
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("work", WORK)
def test_the_core_hears_ctrl_c(tmp_path, work):
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from shakedown import core as wrapped\n"
        f"core = wrapped if {work == 'primitives'} else wrapped.native()\n"
        "try:\n"
        f"    print({BEGUN!r}, flush=True)\n"
        f"    {WORK[work]}\n"
        "except KeyboardInterrupt:\n"
        "    print('heard', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == BEGUN
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (0, "heard\n", "")
    assert os.listdir(tmp_path) in ([], ["c.pcap"])  # noqa: PTH208 - names alone


def test_tickets_are_bounded(shakedown):
    done = shakedown("measure", SUITE, "--tickets", "100000000")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: invalid value for '--tickets': 100000000")


@pytest.mark.parametrize("rates", ["--arrivals=poisson:1000/s", "--arrivals=storm:10s"])
def test_a_simulation_hears_ctrl_c(rates):
    command = [sys.executable, "-m", "shakedown", "simulate", SUITE, rates, "--clients", "10000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # By the processor's time, for on a busy machine a program may take long to begin.
        while worked_s(process) < WELL_BEGUN_S:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (130, "error: interrupted\n")
