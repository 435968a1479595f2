"""Checks of the machine: what is missing, and which features that disables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from shakedown.schema.diagnosis import Diagnosis, State

CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
STAT = Path("/proc/stat")
CPU_INFO = Path("/proc/cpuinfo")
STEAL_COLUMN = 8
"""Column of the line `cpu` in /proc/stat: user nice system idle iowait irq softirq steal (proc(5))."""
WATCH_S = 1.0
MAX_STEAL = 0.01
MAX_BUSY = 0.25
MAX_FREQUENCY_SPREAD = 0.05

Finding = tuple[State, str]


def diagnose() -> list[Diagnosis]:
    """Performs each check once. Takes one second, in which the load of the processors is measured."""
    checks: tuple[tuple[str, Callable[[], Finding], str], ...] = (
        ("core", _core, "everything except reading existing files"),
        ("key store", _key_store, "measure, serve, certs: they store keys and certificates there"),
        ("user namespaces", _user_namespaces, "bearer run, bearer check"),
        ("TUN", _tun, "bearer run, bearer check"),
        ("time stamp counter", _time_stamp_counter, "nothing; times of short operations are less precise"),
        ("frequency", _frequency, "comparing times of different runs; compare --pair is less affected"),
        ("steal and load", _steal, "comparing times of different runs; counts are not affected"),
        ("valgrind", _program("valgrind"), "measure --counter instructions, limits on instructions in check"),
        ("tshark", _program("tshark"), "some tests; the program itself does not need it"),
        ("openssl", _program("openssl"), "some tests; the program contains its own OpenSSL"),
    )
    found = []
    for name, look, disables in checks:
        state, text = look()
        found.append(
            Diagnosis(name=name, state=state, found=text, disables=None if state == "ok" else disables)
        )
    return found


def _core() -> Finding:
    from shakedown import native
    from shakedown.errors import ShakedownError

    try:
        about = native.build()
    except ShakedownError as error:
        return "missing", str(error)
    state: State = "ok" if about.profile == "release" else "missing"
    return state, f"{about.shakedown}, {about.profile} build, OpenSSL {about.openssl}"


def _key_store() -> Finding:
    for name, inside in (
        ("SHAKEDOWN_CACHE", ""),
        ("XDG_CACHE_HOME", "shakedown"),
        ("HOME", ".cache/shakedown"),
    ):
        folder = os.environ.get(name)
        if folder:
            there = Path(folder) / inside
            while not os.path.exists(there) and there != there.parent:  # noqa: PTH110 - False if denied
                there = there.parent
            if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
                return "ok", f"{name}={folder}"
            return "missing", f"{name}={folder}: cannot be written"
    return "missing", "none of SHAKEDOWN_CACHE, XDG_CACHE_HOME, HOME is set"


_NAMESPACES = """
import ctypes, fcntl, os, struct, sys
CLONE_NEWUSER, CLONE_NEWNET, TUNSETIFF, IFF_TUN_NO_PI = 0x10000000, 0x40000000, 0x400454CA, 0x1001
if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNET):
    sys.exit(os.strerror(ctypes.get_errno()))
try:
    if sys.argv[1:]:
        with open("/dev/net/tun", "r+b", buffering=0) as device:
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"shakedown0", IFF_TUN_NO_PI))
except OSError as error:
    sys.exit(f"/dev/net/tun: {error.strerror}")
"""
"""Creates namespaces as bearers do, with an argument also a TUN device. They end with the process."""


def _user_namespaces() -> Finding:
    return _in_namespaces([], "can be created")


def _tun() -> Finding:
    return _in_namespaces(["tun"], "a device can be created")


def _in_namespaces(words: list[str], fine: str) -> Finding:
    command = [sys.executable, "-I", "-c", _NAMESPACES, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return ("ok", fine) if done.returncode == 0 else ("missing", done.stderr.strip()[-200:] or "not allowed")


def _time_stamp_counter() -> Finding:
    try:
        source = CLOCK_SOURCE.read_text().strip()
    except OSError:
        return "unknown", "the kernel does not report its clock source"
    return ("ok" if source == "tsc" else "degraded"), f"the kernel's clock source is {source}"


def _frequency() -> Finding:
    clocks = [float(one) for one in _values(CPU_INFO, "cpu MHz")]
    governor = GOVERNOR.read_text().strip() if GOVERNOR.exists() else None
    if not clocks:
        return "unknown", "no processor reports its frequency"
    spread = max(clocks) / min(clocks) - 1
    text = f"{min(clocks):,.0f} to {max(clocks):,.0f} MHz" if spread > 0.001 else f"{clocks[0]:,.0f} MHz"
    if governor is None:
        # A guest sees the nominal clock rate, not the actual one.
        return ("unknown" if spread <= 0.001 else "degraded"), f"{text}; changes are not visible here"
    steady = governor == "performance" and spread <= MAX_FREQUENCY_SPREAD
    return ("ok" if steady else "degraded"), f"{text}, governor {governor}"


def _steal() -> Finding:
    before = _cpu_times()
    time.sleep(WATCH_S)
    after = _cpu_times()
    if before is None or after is None:
        return "unknown", "the kernel does not report it"
    spent = [late - early for early, late in zip(before, after, strict=True)]
    total = sum(spent) or 1
    steal, busy = spent[STEAL_COLUMN - 1] / total, 1 - (spent[3] + spent[4]) / total
    state: State = "ok" if steal <= MAX_STEAL and busy <= MAX_BUSY else "degraded"
    return state, f"{steal:.1%} stolen by the host, processors {busy:.0%} busy, within {WATCH_S:.0f} s"


def _cpu_times() -> list[int] | None:
    try:
        first = STAT.read_text().splitlines()[0].split()
        return [int(one) for one in first[1 : STEAL_COLUMN + 1]]
    except (OSError, IndexError, ValueError):
        return None


def _values(path: Path, name: str) -> Iterator[str]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == name:
            yield value.strip()


def _program(name: str) -> Callable[[], Finding]:
    def look() -> Finding:
        path = shutil.which(name)
        if path is None:
            return "missing", f"not installed (Debian: apt install {name})"
        argument = "version" if name == "openssl" else "--version"
        done = subprocess.run([path, argument], capture_output=True, text=True, check=False)
        return "ok", program_version(done.stdout) or path

    return look


def program_version(text: str) -> str:
    """Name and version (`TShark 4.0.17`) from a program's version output; empty if it has no version."""
    found = re.match(r"\s*([A-Za-z]+)[^\n]*?[ \-v(]([0-9]+(?:\.[0-9]+)+[a-z]?)", text)
    return f"{found[1]} {found[2]}" if found else ""
