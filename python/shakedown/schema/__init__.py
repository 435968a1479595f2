"""The definition of everything that is saved or printed.

Each module defines the objects of one command or file. Its `PRINTED` lists those that commands print or files
contain; the published JSON Schema is generated from these lists (`publish.py`).
"""

from __future__ import annotations

from shakedown.schema.base import builtins, convert, decode, encode

__all__ = ["builtins", "convert", "decode", "encode"]
