"""Writing device profiles as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.profiles.costs import Triple


@dataclass(frozen=True)
class About:
    """The keys at the top of a profile."""

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
    head = {"schema": 1, **vars(about), "clock_hz": round(about.clock_hz)}
    core, implementation = head.pop("core"), head.pop("implementation")
    if not about.note:
        del head["note"]
    spread = head.pop("spread")
    if spread is not None:
        head["spread"] = float(f"{spread:.3g}")
    tables = [
        ("", head),
        ("[core]", core),
        ("[implementation]", implementation),
        ("[connection]", connection),
    ]
    if overhead and any(overhead.values()):
        tables += [("[overhead]", {"stack": stack}), ("[overhead.cooling]", cooling)]
        tables += [(f"[[overhead.{name}]]", row) for name, rows in overhead.items() for row in rows]
    for (operation, algorithm, parameters), cost in sorted(primitives.items()):
        named = {"operation": operation, "algorithm": algorithm}
        named |= {"parameters": parameters} if parameters else {}
        tables.append(("[[primitive]]", {**named, **cost}))
    return "\n".join(
        "".join([f"{title}\n" if title else "", *(f"{key} = {_value(one)}\n" for key, one in table.items())])
        for title, table in tables
        if table
    )


def quoted(text: str) -> str:
    """A TOML string on one line."""
    # Bytes of the command line that are not UTF-8 cannot be written to a TOML file.
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    # TOML has the same escapes as JSON.
    return json.dumps(text.replace("\n", " ").replace("\r", " "), ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )


def _value(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(quoted, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
