"""Instructions of a handshake, counted by valgrind's callgrind in a separate process.

The process runs this module, which measures a few handshakes with a seed and an instruction counter instead
of the clock. The same work has the same count in nearly every run, because environment, hash seed and random
numbers are fixed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from shakedown.errors import ShakedownError
from shakedown.native.core import extension
from shakedown.native.signals import noted
from shakedown.schema.base import convert
from shakedown.schema.measured import InstructionCounts

COUNTED_REPEAT = 9
DEFAULT_SEED = 1
MAX_SECONDS = 600
ENVIRONMENT = (
    "HOME",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
    "SHAKEDOWN_CACHE",
    "XDG_CACHE_HOME",
)
"""The only variables that the process inherits, because their total size affects the stack's alignment: a
longer PATH changes counts by 0.05 %. The process needs no PATH.
"""


def valgrind() -> str:
    """The path of valgrind; raises `ShakedownError` if it is not installed."""
    found = shutil.which("valgrind")
    if found is None:
        raise ShakedownError(
            "instructions are counted by valgrind, which is not installed; accepted: a machine with it "
            "(Debian: apt install valgrind)"
        )
    return found


def count_instructions(suite: str, options: Mapping[str, object] | None) -> InstructionCounts:
    """Counts a suite's instructions; `options` are those of the core's `measure`.

    A stack that does not support a seed is counted without one, so its counts may vary. Raises
    `ShakedownError`.
    """
    chosen = dict(options or {})
    chosen.setdefault("seed", DEFAULT_SEED)
    try:
        return _counted(suite, chosen)
    except UnseedableError:
        del chosen["seed"]
        return _counted(suite, chosen)


class UnseedableError(ShakedownError):
    """The stack uses only random numbers of the operating system."""


def _counted(suite: str, options: Mapping[str, object]) -> InstructionCounts:
    # Temporary folders have names of one length, so the length affects all counts equally.
    with tempfile.TemporaryDirectory(prefix="shakedown-") as folder:
        log = Path(folder) / "log"
        command = [
            valgrind(),
            "--tool=callgrind",
            "--instr-atstart=no",
            "--callgrind-out-file=/dev/null",
            f"--log-file={log}",
            sys.executable,
            "-m",
            __name__,
            json.dumps({"suite": suite, "options": {**options, "instructions_log": str(log)}}),
        ]
        environment = _environment()
        _compile_modules()
        try:
            done = _run(command, environment)
        except subprocess.TimeoutExpired:
            raise ShakedownError(f"{suite}: counting instructions took over {MAX_SECONDS} s") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"valgrind ended with status {done.returncode}"])[-1]
        kind = UnseedableError if "seed" in reason and "seed" in options else ShakedownError
        raise kind(f"{suite}: instructions could not be counted: {reason}")
    return _as_counts(json.loads(done.stdout))


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; an interruption or the time limit kills it."""
    process = None
    try:
        # An interruption during the start would leave the process running.
        with noted() as signals:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        if signals:
            raise KeyboardInterrupt
        output, errors = process.communicate(timeout=MAX_SECONDS)
    except BaseException:
        if process is not None:
            process.kill()
            process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | {"PYTHONHASHSEED": "0"}


@cache
def _compile_modules() -> None:
    """Compiles the modules in another process: compiling changes the memory layout of its process."""
    subprocess.run(
        [sys.executable, "-m", __name__], env=_environment(), capture_output=True, timeout=60, check=False
    )


def _as_counts(found: Mapping[str, Any]) -> InstructionCounts:
    """Converts the core's figures, in thousands of instructions, to counts."""

    def spread(of: Mapping[str, Any]) -> dict[str, Any]:
        names = ("median", "mean", "sd", "min", "max")
        return {"n": of["n"], **{name: _count(of[name]) for name in names}}

    handshake, coverage = found["handshake"], found["accounting"]["coverage"]
    about = ("side", "message", "operation", "algorithm", "parameters", "class")
    counts = {
        "client": spread(handshake["client_us"]),
        "server": spread(handshake["server_us"]),
        "coverage": coverage,
        "seed": found["seed"],
        "messages": [
            {"generate": _count(one["generate_us"]), "process": _count(one["process_us"])}
            for one in found["messages"]
        ],
        "operations": [
            {**{name: one[name] for name in about}, "instructions": _count(one["us"])}
            for one in found["operations"]
        ],
    }
    return convert(counts, InstructionCounts)


def _count(thousands: float) -> int:
    return round(thousands * 1000)


def _main() -> None:
    core = extension()
    if not sys.argv[1:]:
        return
    request = json.loads(sys.argv[1])
    try:
        found = core.measure(request["suite"], COUNTED_REPEAT, options=request["options"])
    except core.CoreError as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main()
