"""What a running server takes for a connection, measured from outside: behind `capacity --calibrate`.

Clients here shake hands with it in a closed loop, one round after the other. Where the server's processes are
on this machine, what the kernel books to their threads is its work, whatever the clients take. Where they are
not, the rate at which it stops to follow more clients is, with the workers that it has.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from shakedown.errors import InputError, ShakedownError
from shakedown.schema.arguments import checked
from shakedown.schema.live import LoadRun
from shakedown.schema.predictions import Calibration, MeasuredTime

ROUNDS, SECONDS = 6, 1.0
BEGINNING_S = 0.02
"""A short load before each: what clients do before they are counted is in both, and in no difference."""
CLIENTS = 16
SPREAD = 1.1
"""How far a machine is from itself at another time, as a factor: that of a device's own figures."""
MAX_GROWTH = 1.1
"""A server that twice as many clients make faster by more than this factor has not been busy."""
MAX_CLIENT_LOAD = 0.8
"""Share of a processor beyond which clients here, which have one, and not the server set the rate."""
MAX_SLEEPS = 0.5
"""A server that sleeps more often by connection is woken for its messages, which is counted as its work."""
LISTENING = "0A"
PAUSE_S, MAX_OTHERS = 0.3, 0.05
"""A pause before the rounds, and the share of it that a server may be at work without them."""
MAX_ENDED, TICKS_S = 1.1, 0.05
"""How much more processes may have run than their threads that are there, beside what ticks of 10 ms hide."""
MAX_BUSY = 0.1
"""The share of the processors that other programs may take: they slow what shares caches with them."""
LOOK_S = 0.03
"""Between two looks for processes that the server starts: one for a connection lives about as long."""


@checked
def calibrate(
    target: str,
    suite: str,
    *,
    server_workers: int = 1,
    authorized_target: str | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Measures what a running server takes for a connection of a suite, TCP and close included.

    Args:
        target: `HOST:PORT` of the server.
        suite: what clients ask for.
        server_workers: workers of a server on another machine.
        authorized_target: the host, where it is not this machine; it is loaded without a limit.
        rounds: how often it is measured, after one that does not count.
        seconds: of each round.
        progress: called with how many rounds are done, of how many.

    Raises:
        InputError: for a target or a suite that is no good, and hosts that may not be loaded.
        ShakedownError: where the server fails handshakes, or what was measured does not tell its work.
    """
    if rounds < 2 or not 0.05 <= seconds <= 60.0:
        raise InputError(f"{rounds} rounds of {seconds:g} s; accepted: at least 2, of 0.05 to 60 s")
    tell = progress or (lambda done, total: None)

    def loaded(clients: int, duration_s: float) -> LoadRun:
        return _load(target, suite, clients, duration_s, authorized_target)

    tell(0, rounds + 1)
    host, _, port = target.removeprefix("tls://").rpartition(":")
    processes = _listening(host, port)
    warnings = []
    loaded(CLIENTS, seconds)
    begun = _booked(processes)
    time.sleep(PAUSE_S if processes else 0.0)
    first = _booked(processes)
    if processes and first.since(begun).ran_s > MAX_OTHERS * PAUSE_S:
        warnings.append("the server works for others, too: that is counted as work for these connections")
    times_s: list[float] = []
    handshakes = sleeps = 0
    clients_s, begun_s, busy_s = 0.0, time.monotonic(), _busy_s()
    with _new_children(processes) as new:
        for number in range(rounds):
            tell(number + 1, rounds + 1)
            books, completed = [_booked(processes)], []
            for duration_s in (BEGINNING_S, seconds):
                run = loaded(CLIENTS, duration_s)
                clients_s += run.generator_cpu_s
                books.append(_booked(processes))
                completed.append(run.completed)
            short, long = (after.since(before) for before, after in pairwise(books))
            more = completed[1] - completed[0]
            if more <= 0 or (processes and long.ran_s <= short.ran_s):
                raise ShakedownError(
                    f"{suite}: {target} took {completed[1]} connections in {seconds:g} s; accepted: longer "
                    "rounds"
                )
            handshakes += more
            sleeps += long.sleeps - short.sleeps
            if processes:
                times_s.append((long.ran_s - short.ran_s) / more)
            else:
                times_s.append(server_workers * run.elapsed_s / run.completed)
    if new:
        raise ShakedownError(
            f"{target}: the server started processes meanwhile ({len(new)} were seen), whose work may be "
            "counted nowhere; accepted: a server that keeps its processes"
        )
    all_of_it = _booked(processes).since(first)
    processors_s = (time.monotonic() - begun_s) * (os.cpu_count() or 1)
    others = (_busy_s() - busy_s - clients_s - all_of_it.ran_s) / processors_s
    if others > MAX_BUSY:
        warnings.append(
            f"other programs took {others:.0%} of this machine's processors: without them a connection "
            "takes less"
        )
    if all_of_it.whole_s > MAX_ENDED * all_of_it.ran_s + TICKS_S * rounds:
        raise ShakedownError(
            f"{target}: threads or processes of the server end with their connections, and their work with "
            "them; accepted: a server that keeps its threads"
        )
    if processes and sleeps > MAX_SLEEPS * handshakes:
        warnings.append(
            f"the server slept {sleeps / handshakes:.1f} times a connection, as its clients kept it waiting: "
            "fully loaded it takes less"
        )
    if not processes:
        _check_saturated(loaded(2 * CLIENTS, seconds), statistics.median(times_s) / server_workers)
    tell(rounds + 1, rounds + 1)
    middle_s = statistics.median(times_s)
    return Calibration(
        target=target,
        suite=suite,
        method="process" if processes else "rate",
        processes=tuple(sorted({_name(one) for one in processes})),
        server_s=MeasuredTime(
            estimate=middle_s,
            lower=min(*times_s, middle_s / SPREAD),
            upper=max(*times_s, middle_s * SPREAD),
        ),
        rounds=rounds,
        handshakes=handshakes,
        warnings=tuple(warnings),
    )


def _load(target: str, suite: str, clients: int, seconds: float, authorized_target: str | None) -> LoadRun:
    from shakedown.live.load_test import load

    run = load(
        target,
        suite,
        arrivals="closed",
        clients=clients,
        duration_s=seconds,
        check=False,
        authorized_target=authorized_target,
        rate_cap=authorized_target is None,
    )
    if run.interrupted:
        raise KeyboardInterrupt
    if run.failed or not run.completed:
        causes = ", ".join(run.failed) or "none ended in time"
        raise ShakedownError(
            f"{suite}: {run.failed_count} of {run.started} handshakes with {target} failed: {causes}"
        )
    resumption = suite.endswith(("/resumed", "/ticket"))
    if resumption and run.resumed.confirmed < run.completed:
        raise ShakedownError(
            f"{suite}: {target} resumed {run.resumed.confirmed} of {run.completed} sessions; accepted: a "
            "server that resumes all"
        )
    return run


def _check_saturated(more: LoadRun, each_s: float) -> None:
    growth = each_s * more.completed / more.elapsed_s
    clients_load = more.generator_cpu_s / more.elapsed_s
    if growth > MAX_GROWTH or clients_load > MAX_CLIENT_LOAD:
        why = (
            f"its clients take {clients_load:.0%} of a processor here"
            if clients_load > MAX_CLIENT_LOAD
            else f"twice as many clients make it {growth:.2f} times as fast"
        )
        raise ShakedownError(
            f"the rate of {more.target} is not that of a busy server ({why}); accepted: calibrating on the "
            "server's machine, where its CPU time is seen, or from a faster client nearer to it"
        )


@dataclass(frozen=True, slots=True)
class _Booked:
    """What the kernel has booked to processes: CPU time of their threads, of all that they and children that
    they awaited ever ran (in ticks of 10 ms), and how often their threads waited.
    """

    ran_s: float
    whole_s: float
    sleeps: int

    def since(self, before: _Booked) -> _Booked:
        """What was added."""
        return _Booked(self.ran_s - before.ran_s, self.whole_s - before.whole_s, self.sleeps - before.sleeps)


def _booked(processes: frozenset[int]) -> _Booked:
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
        # Fields 14 to 17 of proc(5), after a name that may hold anything.
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return _Booked(ran_ns * 1e-9, ticks / os.sysconf("SC_CLK_TCK"), sleeps)


def _busy_s() -> float:
    """What all programs and the kernel have run on this machine's processors (proc(5), `/proc/stat`)."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, _ = map(int, fields)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _listening(host: str, port: str) -> frozenset[int]:
    """This machine's processes that have a socket listening there, and their children; none where the host is
    another, or where they are somebody else's.
    """
    host = host.strip("[]")
    if not port.isdecimal() or not _is_here(host):
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
    """Their children that there are now, less those that are known."""
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
def _new_children(processes: frozenset[int]) -> Iterator[set[int]]:
    """Children that the processes start meanwhile, as far as they are seen.

    The kernel adds what a child ran to its parent where that waits for it, and nowhere where the parent
    ignores how its children end.
    """
    seen: set[int] = set()
    ended = threading.Event()

    def look() -> None:
        while processes and not ended.wait(LOOK_S):
            seen.update(_children(processes, processes | seen))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


def _addresses(host: str) -> set[str]:
    """Its addresses, and those for any, as `/proc/net/tcp` has them: words of four bytes, lowest first."""

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


def _is_here(host: str) -> bool:
    """Whether an address of the host is one of this machine's: one can be bound to."""
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


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return str(process)
