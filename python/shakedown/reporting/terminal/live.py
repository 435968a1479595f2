"""A load on a terminal: its progress and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shakedown.reporting.figures import count, rate, share, time, whole

if TYPE_CHECKING:
    from shakedown.schema.live import LoadFigures, LoadProgress, LoadRun, TimeSpent

_CHECKED = {
    "no": "not checked",
    "ca": "checked against the given certificates",
    "generated": "checked against the generated root",
}


def progress_line(now: LoadProgress, duration_s: float) -> str:
    """`12.3 of 60 s: 3,690 done, 0 failed, 2 open; p50 3.1 ms, p99 9.0 ms`: short enough for 80 columns."""
    words = (
        f"{min(now.elapsed_s, duration_s):.1f} of {duration_s:g} s: {whole(now.completed)} done, "
        f"{whole(now.failed)} failed, {whole(now.open)} open"
    )
    times = now.handshake_s
    for name, value in (("p50", times.p50), ("p99", times.p99)):
        if value is not None:
            words += f"{';' if name == 'p50' else ','} {name} {time(value, 2)}"
    return words


def load_lines(run: LoadRun) -> list[str]:
    """The result of a load in lines, without its times."""
    asked = f"{rate(run.rate_per_s.planned)}/s, " if run.rate_per_s.planned is not None else ""
    generators = f" from {run.generators} generators" if run.generators > 1 else ""
    lines = [
        f"live: {run.target}, {run.suite or 'any suite'}",
        f"load: {asked}{run.arrivals}, {count(run.clients, 'client')}{generators}; "
        f"{whole(run.planned)} planned, {whole(run.completed)} completed ({rate(run.rate_per_s.achieved)}/s)",
        f"certificate: {_CHECKED[run.certificate_checked]}",
    ]
    for one in run.negotiated:
        parts = [one.protocol, one.cipher_suite, *([one.group] if one.group else [])]
        lines.append(f"negotiated: {' '.join(parts)} ({whole(one.count)})")
    if run.resumed.asked:
        confirmed = run.resumed.confirmed / run.resumed.asked
        lines.append(
            f"resumed: {whole(run.resumed.confirmed)} of {whole(run.resumed.asked)} requested "
            f"({share(confirmed)}), confirmed by the server"
        )
    lines += _failed(run)
    lines += [f"{'met' if one.met else 'not met'}: {one.text}" for one in run.requirements]
    return lines


def background_lines(figures: LoadFigures) -> list[str]:
    """The result of a background load in lines, without its times."""
    return [
        f"background: {rate(figures.rate_per_s.planned)}/s, poisson; {whole(figures.planned)} planned, "
        f"{whole(figures.completed)} completed ({rate(figures.rate_per_s.achieved)}/s)",
        *_failed(figures),
    ]


def _failed(figures: LoadFigures) -> list[str]:
    """Failures by cause, the most frequent first."""
    causes = sorted(figures.failed.items(), key=lambda item: -item[1])
    return [f"failed: {whole(failures)} × {cause}" for cause, failures in causes]


def time_spent_lines(spent: TimeSpent) -> list[str]:
    """The handshakes to which a table of the time spent applies."""
    sides = f"{whole(spent.joined)} with the server's times" if spent.joined else "the client's times only"
    lines = [f"where the time goes: {count(spent.handshakes, 'sampled handshake')}, {sides}"]
    if spent.emulate_device is not None and spent.slowdown is not None:
        lines.append(
            f"the client is as slow as {spent.emulate_device}: {spent.slowdown:.3g} times this machine's time"
        )
    if spent.preempted:
        lines.append(f"discarded: {whole(spent.preempted)} in which the clients' thread was preempted")
    if spent.handshakes < spent.sampled:
        omitted = spent.sampled - spent.handshakes
        lines.append(f"discarded: {whole(omitted)} without the server's times, or with other messages")
    return lines
