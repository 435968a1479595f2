"""Writing device profiles as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.profiles.costs import Triple


@dataclass(frozen=True)
class About:
    """What heads a profile."""

    name: str
    title: str
    chip: str
    clock_hz: float
    library: str
    build: str
    date: str
    source: tuple[str, ...]
    note: str = ""
    spread: float | None = None
    core: Mapping[str, str | int] | None = None
    implementation: Mapping[str, str] | None = None


def profile_toml(
    about: About,
    primitives: Mapping[Triple, Mapping[str, float]],
    overhead: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    connection: Mapping[str, float] | None = None,
    *,
    stack: str = "",
    cooling: Mapping[str, float] | None = None,
) -> str:
    head = {
        "schema": "1",
        "name": quoted(about.name),
        "title": quoted(about.title),
        "chip": quoted(about.chip),
        "clock_hz": f"{about.clock_hz:.0f}",
        "library": quoted(about.library),
        "build": quoted(about.build),
        "date": quoted(about.date),
        "source": f"[{', '.join(quoted(one) for one in about.source)}]",
    }
    if about.note:
        head["note"] = quoted(about.note)
    if about.spread is not None:
        head["spread"] = f"{about.spread:.3g}"
    lines = [f"{key} = {value}" for key, value in head.items()]
    for title, table in (("core", about.core), ("implementation", about.implementation)):
        if table:
            lines += ["", f"[{title}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    if connection:
        lines += ["", "[connection]", *(f"{key} = {_value(value)}" for key, value in connection.items())]
    if overhead and any(overhead.values()):
        lines += ["", "[overhead]", f"stack = {quoted(stack)}"]
        if cooling:
            lines += [
                "",
                "[overhead.cooling]",
                *(f"{key} = {_value(value)}" for key, value in cooling.items()),
            ]
        for name, rows in overhead.items():
            for row in rows:
                lines += [
                    "",
                    f"[[overhead.{name}]]",
                    *(f"{key} = {_value(value)}" for key, value in row.items()),
                ]
    for (operation, algorithm, parameters), cost in sorted(primitives.items()):
        lines += ["", "[[primitive]]", f"operation = {quoted(operation)}", f"algorithm = {quoted(algorithm)}"]
        lines += [f"parameters = {quoted(parameters)}"] if parameters else []
        lines += [f"{key} = {value:.6g}" for key, value in cost.items()]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A TOML string on one line."""
    # Bytes of the command line that are no UTF-8 cannot stand in a file of text.
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    # JSON's escapes are TOML's.
    return json.dumps(text.replace("\n", " ").replace("\r", " "), ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )


def _value(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
