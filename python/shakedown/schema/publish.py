"""The published JSON Schema: made from the objects' definitions, one file an object.

A module of this package lists in `PRINTED` which of its objects commands print and files hold, by the name of
the schema's file, and who prints or writes them; nothing else has to know of a new one.
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
"""Objects by the name of their schema's file, and who prints or writes them."""


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
    """Bounds such as 0.0 as 0: `typing` keeps types that differ in that alone once, as first spelt."""
    if isinstance(value, dict):
        return {key: _whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
