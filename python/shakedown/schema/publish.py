"""The published JSON Schema, generated from the objects' definitions, one file per object.

`PRINTED` in each module of this package lists the objects that commands print or files contain, by the name
of the schema's file, each with a title. A new object needs no other entry.
"""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec

from shakedown import schema


def _printed() -> dict[str, tuple[type[msgspec.Struct], str]]:
    found: dict[str, tuple[type[msgspec.Struct], str]] = {}
    for module in iter_modules(schema.__path__):
        if module.name not in ("__main__", "publish"):
            for name, entry in getattr(
                import_module(f"{schema.__name__}.{module.name}"), "PRINTED", {}
            ).items():
                assert name not in found, f"two objects are published as {name}"
                found[name] = entry
    return found


PRINTED = _printed()
"""Objects and titles, by the name of the schema's file."""


def published() -> dict[str, str]:
    return {f"{name}.schema.json": _text(kind, what) for name, (kind, what) in PRINTED.items()}


def _text(kind: type[msgspec.Struct], what: str) -> str:
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": what,
        **root,
        "$defs": parts,
    }
    return json.dumps(_whole_numbers(whole), indent=2, ensure_ascii=False) + "\n"


def _whole_numbers(value: object) -> object:
    """Writes bounds such as 0.0 as 0, because `typing` caches types that differ only in this as one type."""
    if isinstance(value, dict):
        return {key: _whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
