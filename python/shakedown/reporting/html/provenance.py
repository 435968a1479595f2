"""The provenance of a report's figures, so that they can be reproduced; and missing scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from shakedown.reporting.figures import count, time, whole
from shakedown.reporting.html.section import Block, Section, Table
from shakedown.results import queries

if TYPE_CHECKING:
    from shakedown.results.folder import Results

MAX_NAMED = 12
"""Missing scenarios that are named individually."""


def provenance(results: Results) -> Section:
    manifest, rows = results.manifest, results.handshakes
    stacks = {
        f"{name} {version}"
        for side in ("client", "server")
        for name, version in rows.select(f"{side}_stack", f"{side}_stack_version").unique().iter_rows()
        if name is not None
    }
    repeats = ", ".join(whole(one) for one in rows["repeat"].unique().sort().to_list())
    preempted = whole(float(rows["preempted"].sum() or 0))
    facts: dict[str, object] = {
        "date": manifest.created,
        "machine": _facts(manifest.machine),
        "stack": ", ".join(sorted(stacks)),
        "build": _facts(manifest.build),
        "clock": ", ".join(sorted(one for one in rows["clock"].unique().to_list() if one)),
        "repetitions": f"{repeats} of each suite; {preempted} preempted ones discarded" if repeats else None,
        "captures": "; ".join(_capture_facts(results)),
        "seed": manifest.seed,
        "command": " ".join(manifest.command),
        "ended": None if results.folder is None else results.how_it_ended,
        "not measured": "; ".join(f"{one.suite}: {one.reason}" for one in manifest.failures),
        "provenance": manifest.provenance,
    }
    cells = [[name, str(value)] for name, value in facts.items() if value not in (None, "")]
    return Section("provenance", "Where the figures come from", "", [Block(table=Table(["", ""], cells, 0))])


def warning(results: Results) -> str:
    """The notice at the top of the page if a run is incomplete; else empty."""
    if results.is_whole:
        return ""
    ended = {
        "interrupted": "This run was interrupted",
        "failed": "This run failed before its end",
        "complete": "This run lacks parts",
    }.get(results.manifest.ended or "", "This run has not ended: it was killed, or still runs")
    missing = results.missing
    if not missing:
        return f"{ended}; all that it had planned is here."
    by_kind: dict[str, list[str]] = {}
    for one in missing:
        by_kind.setdefault(one.kind, []).append(one.about)
    named = []
    for kind, names in by_kind.items():
        more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        named.append(f"{kind}: {', '.join(names[:MAX_NAMED])}{more}")
    planned = len(results.manifest.planned)
    return f"{ended}. Missing are {len(missing):,} of {count(planned, 'part')}: {'; '.join(named)}."


def _capture_facts(results: Results) -> list[str]:
    """One line about the content of each capture."""
    lines = []
    for one in queries.captures(results).to_dicts():
        if one["packets"] is None:
            lines.append(one["capture"])
            continue
        key_log = f" with {one['keylog']}" if one["keylog"] else ", no key log"
        lines.append(
            f"{one['capture']}{key_log}: {whole(one['packets'])} packets over {time(one['length_s'], 2)}"
        )
    return lines


def _facts(about: msgspec.Struct | None) -> str:
    """One line about a machine or a build, with units after the figures."""
    words = []
    for name, value in ({} if about is None else msgspec.structs.asdict(about)).items():
        if value in (None, "", [], {}):
            continue
        plain = name.replace("_", " ")
        if name.endswith("_bytes"):
            words.append(f"{plain.removesuffix(' bytes')} {value / 2**30:.1f} GiB")
        elif name.endswith("_hz"):
            words.append(f"{plain.removesuffix(' hz')} {value / 1e9:.2f} GHz")
        else:
            words.append(f"{plain} {value}")
    return ", ".join(words)
