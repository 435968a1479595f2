"""The one definition of everything that is saved or printed.

Each module holds the objects of one command or file, and lists in `PRINTED` those that commands print and
files hold; from these lists the published JSON Schema is made (`publish.py`).
"""

from __future__ import annotations

from shakedown.schema.base import builtins, convert, decode, encode

__all__ = ["builtins", "convert", "decode", "encode"]
