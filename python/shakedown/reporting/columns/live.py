"""Columns of loads on real servers: times of a load, its time spent by message, loads of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shakedown.reporting.columns import ALWAYS, ROOM, USUAL, WIDE, Column, label, seconds, shares
from shakedown.reporting.figures import rate, share, time, whole

if TYPE_CHECKING:
    from shakedown.schema.live import LoadFigures, Share, TimeSpent

TIMES = (
    label("load", "load", identity=True),
    label("until", "from the planned start to"),
    *(seconds(f"{name}_s", name, rank=ALWAYS) for name in ("mean", "p50", "p90", "p95", "p99", "max")),
    Column(key="n", name="n", rank=WIDE, meaning="connections counted"),
)


def time_rows(load: str, figures: LoadFigures) -> Iterator[dict[str, Any]]:
    for until, times in (
        ("connection", figures.connect_s),
        ("end of handshake", figures.handshake_s),
        ("first byte", figures.first_byte_s),
        ("actual start", figures.start_lateness_s),
    ):
        if times.n:
            named = {
                f"{name}_s": getattr(times, name) for name in ("mean", "p50", "p90", "p95", "p99", "max")
            }
            yield {"load": load, "until": until, "n": times.n, **named}


def _spent(side: str, part: str, name: str) -> Column:
    return seconds(
        f"{side}_{part}_s", f"{side} {name}", rank=ALWAYS,
        show=lambda value: time(value) if value else "",
    )  # fmt: skip


_ARROWS = {"client": "→ ", "server": "← "}
SPENT = (
    label("message", "message", text=lambda row: f"{_ARROWS.get(row['sender'], '')}{row['message']}"),
    label("sender", "sender", rank=WIDE),
    *(
        _spent(side, part, name)
        for side in ("client", "server")
        for part, name in (("cryptography", "crypto"), ("other", "other"), ("waited", "wait"))
    ),
)


def spent_rows(spent: TimeSpent) -> Iterator[dict[str, Any]]:
    """Both sides' mean times by message; the time outside messages comes last."""
    yield {"message": "(connection)", "sender": None, "client_waited_s": _s(spent.connect_us)}
    for step in spent.steps:
        sides = {"client": step.client, "server": step.server}
        yield {
            "message": step.name,
            "sender": step.sender,
            **{key: value for side, share in sides.items() for key, value in _parts(side, share)},
        }
    rest = {"client": spent.client_unattributed_us, "server": spent.server_unattributed_us}
    # A side whose half is unknown has no columns.
    known = {f"{side}_other_s": _s(value) for side, value in rest.items() if value is not None}
    yield {"message": "(no message)", "sender": None, **known}


def _parts(side: str, share: Share | None) -> Iterator[tuple[str, float | None]]:
    for part in ("cryptography", "other", "waited") if share is not None else ():
        yield f"{side}_{part}_s", _s(getattr(share, f"{part}_us"))


def _s(value_us: float | None) -> float | None:
    return None if value_us is None else value_us * 1e-6


LOADS = (
    label("suite", "suite", text=lambda row: row["label"], path=True),
    label("arrivals", "arrivals", identity=True, rank=USUAL),
    Column(key="rate", name="rate", unit="1/s", rank=ALWAYS, show=lambda value: f"{rate(value)}/s"),
    seconds("handshake_mean_s", "mean", "from the planned start"),
    seconds("handshake_p50_s", "p50"),
    seconds("handshake_p99_s", "p99", rank=ALWAYS),
    seconds("server_cpu_s", "server CPU", "its threads' CPU time for one handshake, with the kernel's work"),
    shares("utilisation", "utilisation", "share of time that the server's stack worked", rank=ALWAYS),
    Column(key="failed", name="failed", rank=ALWAYS,
           text=lambda row: share(row["failed"] / row["planned"], 1) if row["failed"] else "none"),
    Column(key="completed", name="completed", rank=ROOM, show=whole),
    shares("resumed", "resumed", "share of the requested resumptions", rank=ROOM),
)  # fmt: skip


def load_row(row: dict[str, Any]) -> dict[str, Any]:
    asked = row["resumed_asked"]
    return {**row, "resumed": row["resumed_confirmed"] / asked if asked else None}
