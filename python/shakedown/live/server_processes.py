"""Finds a running server's processes on this machine, and reads their CPU time from the kernel."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from shakedown.errors import InputError
from shakedown.native.processors import placed, processors

LISTENING = "0A"
POLL_INTERVAL_S = 0.03
"""Interval of the search for new processes; one that serves a single connection lives about as long."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The kernel's accounting of processes: CPU time of their present threads; CPU time of all their threads
    and of children that they waited for, in ticks of 10 ms; and the number of their threads' sleeps.
    """

    ran_s: float
    whole_s: float
    sleeps: int

    def since(self, before: Usage) -> Usage:
        return Usage(self.ran_s - before.ran_s, self.whole_s - before.whole_s, self.sleeps - before.sleeps)


def usage(processes: frozenset[int]) -> Usage:
    ran_ns = ticks = sleeps = 0
    for process in processes:
        for task in Path(f"/proc/{process}/task").glob("*"):
            try:
                ran_ns += int((task / "schedstat").read_text(encoding="ascii").split()[0])
                status = (task / "status").read_text(encoding="utf-8", errors="replace")
            except (OSError, IndexError):
                continue
            waited = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)
            sleeps += int(waited[1]) if waited else 0
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # Fields 14 to 17 of proc(5), after a name that may contain any character.
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return Usage(ran_ns * 1e-9, ticks / os.sysconf("SC_CLK_TCK"), sleeps)


def busy_s() -> float:
    """CPU time of all programs and the kernel on this machine (proc(5), `/proc/stat`)."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, _ = map(int, fields)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def listening(host: str, port: str) -> frozenset[int]:
    """This machine's processes with a socket that listens at the address, and their children. Empty if the
    host is another machine, or the processes belong to another user.
    """
    host = host.strip("[]")
    if not port.isdecimal() or not is_here(host):
        return frozenset()
    places = {f"{address}:{int(port):04X}" for address in _addresses(host)}
    sockets = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        sockets |= {
            f"socket:[{fields[9]}]"
            for fields in map(str.split, lines)
            if fields[3] == LISTENING and fields[1] in places
        }
    found = set()
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(descriptor.readlink()) in sockets:
                found.add(int(descriptor.parts[2]))
        except OSError:
            continue
    if os.getpid() in found:
        raise InputError(f"{host}:{port} is served by this process; accepted: a server of its own")
    while more := _children(found) - found:
        found |= more
    return frozenset(found)


def _children(processes: Collection[int], known: Collection[int] = ()) -> set[int]:
    """The present children of processes, without known ones."""
    found: set[int] = set()
    for one in Path("/proc").iterdir():
        if not one.name.isdecimal() or int(one.name) in known:
            continue
        with contextlib.suppress(OSError):
            stat = (one / "stat").read_text(encoding="utf-8", errors="replace")
            if int(stat.rpartition(")")[2].split()[1]) in processes:
                found.add(int(one.name))
    return found


@contextlib.contextmanager
def new_children(processes: frozenset[int]) -> Iterator[set[int]]:
    """Collects children that the processes start during the block, as far as polling finds them.

    The kernel adds a child's CPU time to its parent if the parent waits for it; the time is lost if the
    parent ignores SIGCHLD.
    """
    seen: set[int] = set()
    ended = threading.Event()

    def look() -> None:
        while processes and not ended.wait(POLL_INTERVAL_S):
            seen.update(_children(processes, processes | seen))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


def _addresses(host: str) -> set[str]:
    """A host's and the wildcard addresses as in `/proc/net/tcp`: little-endian words of four bytes."""

    def as_listed(packed: bytes) -> str:
        words = (packed[at : at + 4] for at in range(0, len(packed), 4))
        return "".join(word[::-1].hex().upper() for word in words)

    found = {"0" * 8, "0" * 32}
    for family, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        packed = socket.inet_pton(family, str(address[0]).partition("%")[0])
        found.add(as_listed(packed))
        if family == socket.AF_INET:
            found.add(as_listed(bytes(10) + b"\xff\xff" + packed))
    return found


def allowed(processes: Collection[int]) -> list[int]:
    """The processors that both the processes and this process may use."""
    there: set[int] = set()
    for process in processes:
        with contextlib.suppress(OSError):
            there |= os.sched_getaffinity(process)
    try:
        with placed(there):
            return processors() if there else []
    except OSError:
        return []


def is_here(host: str) -> bool:
    """Whether the host is this machine: a socket can be bound to one of its addresses."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in addresses:
        try:
            with socket.socket(family, kind, protocol) as one:
                one.bind((address[0], 0, *address[2:]))
                return True
        except OSError:
            continue
    return False


def name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return str(process)
