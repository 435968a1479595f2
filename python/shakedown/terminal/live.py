"""A load on a terminal: while it goes on, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shakedown.terminal.figures import count, rate, share, time, whole
from shakedown.terminal.tables import plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from shakedown.schema.live import LoadProgress, LoadRun, Times

_CHECKED = {
    "no": "not checked",
    "ca": "checked against the given certificates",
    "generated": "checked against the generated root",
}


def progress_line(now: LoadProgress, duration_s: float) -> str:
    """`12.3 of 60 s: 3,690 started, 3,688 completed, 0 failed, 2 open; handshake p50 3.1 ms, p99 9 ms`."""
    words = (
        f"{min(now.elapsed_s, duration_s):.1f} of {duration_s:g} s: {whole(now.started)} started, "
        f"{whole(now.completed)} completed, {whole(now.failed)} failed, {whole(now.open)} open"
    )
    times = now.handshake_s
    return words + (f"; handshake p50 {time(times.p50, 2)}, p99 {time(times.p99, 2)}" if times.n else "")


def load_lines(run: LoadRun) -> list[str]:
    """What came of a load, line by line, but for its times."""
    asked = f"{rate(run.rate_per_s.planned)}/s, " if run.rate_per_s.planned is not None else ""
    lines = [
        f"live: {run.target}, {run.suite or 'any suite'}",
        f"load: {asked}{run.arrivals}, {count(run.clients, 'client')}; "
        f"{whole(run.planned)} planned, {whole(run.completed)} completed ({rate(run.rate_per_s.achieved)}/s)",
        f"certificate: {_CHECKED[run.certificate_checked]}",
    ]
    for one in run.negotiated:
        parts = [one.protocol, one.cipher_suite, *([one.group] if one.group else [])]
        lines.append(f"negotiated: {' '.join(parts)} ({whole(one.count)})")
    if run.resumed.asked:
        confirmed = run.resumed.confirmed / run.resumed.asked
        lines.append(
            f"resumed: {whole(run.resumed.confirmed)} of {whole(run.resumed.asked)} that asked "
            f"({share(confirmed)}), confirmed by the server"
        )
    for cause, failures in sorted(run.failed.items(), key=lambda item: -item[1]):
        lines.append(f"failed: {whole(failures)} × {cause}")
    lines += [f"{'met' if one.met else 'not met'}: {one.text}" for one in run.requirements]
    return lines


def load_table(run: LoadRun) -> Table:
    """The times of a load."""
    names = ("mean", "p50", "p90", "p95", "p99", "max")
    table = plain_table(["from the planned start to"], names)
    for label, times in (
        ("connection", run.connect_s),
        ("end of handshake", run.handshake_s),
        ("first byte", run.first_byte_s),
        ("actual start", run.start_lateness_s),
    ):
        if times.n:
            table.add_row(label, *cells(times))
    return table


def cells(times: Times) -> list[str]:
    """Mean, percentiles and maximum."""
    return [time(one) for one in (times.mean, times.p50, times.p90, times.p95, times.p99, times.max)]
