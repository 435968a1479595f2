"""From pairs of readings to a ratio with its interval."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np

from shakedown.native.processors import ran_s, threads

ROOT = Path(__file__).resolve().parent.parent
RESAMPLES = 2000
SEED = 20260101

Pair: TypeAlias = tuple[float, float]
"""A reading of ours and the peer's reading next to it, in the same unit."""


class UnavailableError(Exception):
    """A benchmark cannot run here; the message names what is missing."""


class Row(TypedDict):
    """A benchmark's figures in the file."""

    name: str
    what: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    spread: list[float]
    better: Literal["lower", "higher"]
    target: float
    n: int


@dataclass(frozen=True)
class Benchmark:
    """One comparison.

    ``pairs`` runs it: ours and the peer alternate, and each pair is adjacent in time; it raises
    `UnavailableError` if the peer, or a tool, is missing.
    """

    name: str
    what: str
    peer_name: str
    better: Literal["lower", "higher"]
    target: float
    pairs: Callable[[], Sequence[Pair]]

    def evaluate(self, pairs: Sequence[Pair]) -> Row:
        """The ratio is the median of the pairs' ratios; its spread is a 95 % bootstrap interval."""
        readings = np.asarray(pairs, dtype=float)
        if readings.ndim != 2 or readings.shape[1] != 2 or len(readings) == 0 or not (readings > 0).all():
            raise ValueError(f"{self.name}: readings must be pairs of positive numbers")
        ratios = readings[:, 0] / readings[:, 1]
        low, high = bootstrap_median(ratios)
        ours, peer = np.median(readings, axis=0)
        return {
            "name": self.name,
            "what": self.what,
            "ours": round(float(ours), 3),
            "peer": round(float(peer), 3),
            "peer_name": self.peer_name,
            "ratio": round(float(np.median(ratios)), 4),
            "spread": [round(low, 4), round(high, 4)],
            "better": self.better,
            "target": self.target,
            "n": len(readings),
        }


def bootstrap_median(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[float, float]:
    """The 95 % interval of the median of ``values`` (shape ``(n,)``), by resampling with a fixed seed."""
    random = np.random.default_rng(SEED)
    medians = [float(np.median(random.choice(values, size=len(values)))) for _ in range(RESAMPLES)]
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(low), float(high)


def is_met(row: Row) -> bool:
    """A target is met if the median of the ratios meets it; if only the better end of the interval does, it
    is missed.
    """
    return _reaches(row, row["ratio"])


def verdict(row: Row) -> str:
    """Text: whether the median meets the target, and if so, whether the whole interval does."""
    if not is_met(row):
        return "missed"
    low, high = row["spread"]
    worse = high if row["better"] == "lower" else low
    beyond = "above" if row["better"] == "lower" else "below"
    return "met" if _reaches(row, worse) else f"met, but interval reaches {beyond}"


def _reaches(row: Row, ratio: float) -> bool:
    return ratio <= row["target"] if row["better"] == "lower" else ratio >= row["target"]


def need(program: str) -> str:
    """The path of a program.

    Raises:
        UnavailableError: if it is not installed.
    """
    path = shutil.which(program)
    if path is None:
        raise UnavailableError(f"{program} is not installed (make peers installs it)")
    return path


def cpu_s(pid: int) -> float:
    """CPU time of a process's threads so far (s), as counted by the scheduler."""
    return ran_s(threads(pid), pid)


class Ran(NamedTuple):
    """A completed program: its output, elapsed time, CPU time and peak memory."""

    text: str
    elapsed_s: float
    cpu_s: float
    peak_mib: float


def ran(*command: str | Path, quiet: bool = False) -> Ran:
    """Run a program; if `quiet`, its standard output is discarded.

    Raises:
        UnavailableError: if it fails.
    """
    with TemporaryFile() as out:
        begun = perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else out, stderr=out)
        _, status, used = os.wait4(process.pid, 0)
        elapsed_s = perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if process.returncode != 0:
        raise UnavailableError(f"{command[0]} ended with status {process.returncode}: {text.strip()[-300:]}")
    return Ran(text, elapsed_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def output(*command: str | Path, **options: Any) -> str:  # noqa: ANN401 - those of `subprocess.run`
    """The standard output of a program.

    Raises:
        UnavailableError: if it is missing or fails; the message is its own.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except FileNotFoundError:
        raise UnavailableError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        words = " ".join(map(str, command))
        raise UnavailableError(f"{words}: {done.stderr.strip()[-500:] or f'status {done.returncode}'}")
    printed: str = done.stdout
    return printed


def rust_example(package: str, example: str, *arguments: str) -> str:
    """Build an example program of a crate with optimisation, run it, and return its output."""
    command = ("cargo", "run", "--release", "--locked", "--quiet", "-p", package, "--example", example)
    return output(*command, "--", *arguments, cwd=ROOT)


def checked_example(example: str) -> Path:
    """Build an example program like the Rust tests, whose build is reused; return its path."""
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--workspace"]
    command += ["--config", "tools/checked.toml", "--example", example, "--message-format", "json"]
    messages = map(json.loads, output(*command, cwd=ROOT).splitlines())
    return next(Path(message["executable"]) for message in messages if message.get("executable"))
