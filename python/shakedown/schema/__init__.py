"""The one definition of everything that is saved or printed.

Each module holds the objects of one command or file, and lists in `PRINTED` those that commands print and
files hold; from these lists the published JSON Schema is made (`publish.py`).
"""

from __future__ import annotations

from shakedown.schema.base import (
    CLASSES,
    SIDES,
    Class,
    Kind,
    Object,
    Side,
    builtins,
    convert,
    decode,
    encode,
    encode_pretty,
)
from shakedown.schema.identity import Identified, StackId
from shakedown.schema.measured import Measurement
from shakedown.schema.trace import CapturedTrace, Message, Operation, Trace

__all__ = [
    "CLASSES",
    "SIDES",
    "CapturedTrace",
    "Class",
    "Identified",
    "Kind",
    "Measurement",
    "Message",
    "Object",
    "Operation",
    "Side",
    "StackId",
    "Trace",
    "builtins",
    "convert",
    "decode",
    "encode",
    "encode_pretty",
]
