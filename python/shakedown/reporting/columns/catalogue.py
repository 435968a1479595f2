"""Columns of suites, stacks, devices and bearers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any

from shakedown.profiles.delay import quantile_s
from shakedown.reporting.columns import (
    ALWAYS,
    OFTEN,
    ROOM,
    USUAL,
    WIDE,
    Column,
    ObjectTable,
    Row,
    label,
    seconds,
    shares,
)
from shakedown.reporting.figures import NOTHING, time

if TYPE_CHECKING:
    from shakedown.profiles.bearer import Bearer
    from shakedown.profiles.device import Device

SUITES = (
    label("suite", "suite", path=True),
    label("stack", "stack", "the stack that runs it", rank=OFTEN),
    label("supported", "runs", identity=True),
    label("reason", "why not", rank=USUAL, prose=True, show=lambda value: value or ""),
)

STACKS = (
    label("name", "stack"),
    label("version", "version"),
    label("client", "as a client", "protocols of which it runs the client", prose=True),
    label("server", "as a server", "protocols of which it runs the server", prose=True),
)

DEVICES = (
    label("name", "device"),
    label("title", "title", rank=USUAL, prose=True),
    Column(
        key="primitives", name="figures", unit="1", rank=ALWAYS, meaning="primitives whose cost is known",
        text=lambda row: f"{row['primitives']}" if row["primitives"] else "none",
    ),
    label("variants", "variants", "other builds: NAME:VARIANT", rank=WIDE,
          show=lambda value: " ".join(value)),
    label("chip", "chip", rank=WIDE),
    Column(key="clock_hz", name="clock MHz", unit="Hz", rank=WIDE, show=lambda value: f"{value / 1e6:g}"),
    label("library", "library", rank=WIDE),
    label("build", "build", rank=WIDE),
    label("date", "date", rank=WIDE),
)  # fmt: skip


def devices(profiles: Sequence[Device]) -> ObjectTable:
    rows = [{**one.summary(), "variants": [build.variant for build in one.variants]} for one in profiles]
    return ObjectTable(DEVICES, rows, notes=lambda shown: _device_notes(rows, shown))


def _device_notes(rows: Sequence[Row], shown: Set[str]) -> Iterator[str]:
    """The note that devices have other builds, with an example, if the table describes devices and does not
    list builds.
    """
    several = [row for row in rows if row["variants"]]
    if several and "title" in shown and "variants" not in shown:
        first = several[0]
        example = f"{first['name']}:{first['variants'][0]}"
        have = "1 device has" if len(several) == 1 else f"{len(several)} devices have"
        yield f"{have} other builds, as {example}; see --columns name,variants"


PRIMITIVES = (
    label("device", "device", identity=True),
    label("operation", "operation"),
    label("algorithm", "algorithm", show=lambda value: value or ""),
    label("parameters", "parameters", show=lambda value: value or ""),
    seconds("call_s", "per call", rank=ALWAYS),
    seconds("kib_s", "per KiB", rank=ALWAYS, show=lambda value: "" if value is None else time(value)),
    label("note", "note", prose=True, rank=USUAL, show=lambda value: value or ""),
)


def primitive_rows(profile: Device) -> list[dict[str, Any]]:
    """A device's costs, and the published totals."""
    found: list[dict[str, Any]] = []
    for (operation, algorithm, parameters), cost in sorted(profile.costs.items()):
        # A call without cost has a note; symmetric work with a cost per KiB only has no cost per call.
        call_s = None if cost.per_kib_s and not cost.mean_s else cost.mean_s
        found.append(
            {
                **{"device": profile.name, "operation": operation, "algorithm": algorithm},
                **{"parameters": parameters, "call_s": call_s, "kib_s": cost.per_kib_s or None},
                "note": cost.note,
            }
        )
    return found


BEARERS = (
    label("name", "bearer"),
    label("title", "title", rank=ROOM, prose=True),
    Column(key="up_bits_per_s", name="up", unit="bit/s", rank=ALWAYS, show=lambda value: bit_rate(value)),
    Column(key="down_bits_per_s", name="down", unit="bit/s", rank=ALWAYS, show=lambda value: bit_rate(value)),
    seconds("delay_p50_s", "one way p50", "median delay, mean of both directions", rank=ALWAYS),
    seconds("delay_p95_s", "p95", "95th percentile of the delay", rank=ALWAYS),
    shares("loss", "loss", "share of packets lost", rank=ALWAYS,
           show=lambda value: f"{100.0 * value:.2g}%" if value else NOTHING),
    seconds("setup_s", "from idle p50", "median time of the radio's set-up", rank=ALWAYS),
)  # fmt: skip


def bearers(profiles: Sequence[Bearer]) -> ObjectTable:
    def notes(shown: Set[str]) -> Iterator[str]:
        # A table of several bearers may have no space for the titles.
        if len(profiles) > 1 and "up_bits_per_s" in shown and "title" not in shown:
            yield "titles: --columns name,title; sources: shakedown bearers NAME"

    return ObjectTable(BEARERS, [_bearer_row(one) for one in profiles], notes=notes)


def _bearer_row(profile: Bearer) -> dict[str, Any]:
    up, down = profile.up.delay, profile.down.delay
    return {
        "name": profile.name,
        "title": profile.title,
        "up_bits_per_s": profile.up_bits_per_s,
        "down_bits_per_s": profile.down_bits_per_s,
        "delay_p50_s": (quantile_s(up, 0.5) + quantile_s(down, 0.5)) / 2.0,
        "delay_p95_s": (quantile_s(up, 0.95) + quantile_s(down, 0.95)) / 2.0,
        "loss": profile.loss,
        "setup_s": quantile_s(profile.setup, 0.5) if profile.setup else None,
    }


def bit_rate(bits_per_s: float) -> str:
    """`9.6 kbit/s`, `100 Mbit/s`."""
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= size:
            return f"{bits_per_s / size:g} {unit}"
    return f"{bits_per_s:g} bit/s"
