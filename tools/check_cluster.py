"""Five hundred fleets on a local cluster of two processes, one of them killed in the middle.

.venv/bin/python -m tools.check_cluster    takes some minutes; exit status 0 where the figures are those of
                                           the serial run, byte for byte
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from shakedown.experiments import cluster
from shakedown.experiments.figure_kinds import load_experiment
from shakedown.experiments.runner import run_experiment
from shakedown.results.folder import load_results

FLEETS = 500
EXPERIMENT = """
name = "spread"
suites = [
    "tls1.2/psk",
    "tls1.2/rsa/rsa2048/server",
    "tls1.2/ecdhe_ecdsa/p256/mutual",
    "tls1.3/x25519/p256/server",
    "tls1.3/x25519/p256/mutual",
]
repeat = 2
seed = 3
devices = ["cortex-m4", "phone", "esp32", "cortex-m33", "raspberry-pi-5"]
bearers = ["lte", "nb-iot", "gprs", "geo", "wifi"]

[simulated]
arrivals = ["storm:2s", "poisson:20/s", "deterministic:50/s", "bursts:20@30/min"]
clients = 400
"""


def figures(folder: Path) -> bytes:
    """All that may be made elsewhere, as it would stand in a file."""
    table = load_results(folder).table.filter(pl.col("kind").is_in(["modelled", "simulated"]))
    return table.drop("provenance").write_ndjson().encode()


def main() -> int:
    """Runs it twice and compares."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spread.toml").write_text(EXPERIMENT)
        experiment = load_experiment(folder / "spread.toml")
        begun = time.monotonic()
        run_experiment(experiment, folder / "serial")
        serial = figures(folder / "serial")
        print(f"serial: {time.monotonic() - begun:.0f} s, {len(serial):,} bytes of figures")
        with cluster.local(2) as client:
            victim = next(iter(client.run(os.getpid).values()))
            fleets = 0

            def kill_one(found: object) -> None:
                nonlocal fleets
                fleets += getattr(found, "kind", None) == "simulated"
                if fleets == FLEETS // 2:
                    os.kill(victim, signal.SIGKILL)

            begun = time.monotonic()
            outcome = run_experiment(experiment, folder / "spread", client=client, printed=kill_one)
            took_s = time.monotonic() - begun
            client.wait_for_workers(2, timeout=60)
            lost = victim not in client.run(os.getpid).values()
        equal = figures(folder / "spread") == serial
        print(
            f"two processes: {took_s:.0f} s, {fleets} fleets, worker {victim} "
            f"{'killed' if lost else 'still there'}, {len(outcome.failures)} failures; "
            f"{'equal to the serial run byte for byte' if equal else 'NOT equal to the serial run'}"
        )
        return 0 if equal and lost and fleets == FLEETS and not outcome.failures else 1


if __name__ == "__main__":
    sys.exit(main())
