"""The captures that an experiment inspects: its array `captures`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shakedown.errors import InputError
from shakedown.experiments.file.document import Document
from shakedown.files import limits
from shakedown.files.toml import describe
from shakedown.native import captures
from shakedown.native.scenario import CaptureFile, Scenario

KEYS = ("file", "keylog")


def read_captures(document: Document) -> list[Scenario]:
    """One scenario per capture. Raises `InputError`."""
    shape = 'an array of tables such as [{ file = "gateway.pcapng", keylog = "keys.log" }]'
    value = document.array("captures", document.data.get("captures", []), limits.MAX_CAPTURES, dict, shape)
    if not value and "captures" in document.data and "suites" not in document.data:
        raise document.wrong("captures", f"is empty; accepted: {shape}")
    found: dict[Path, Scenario] = {}
    for table in value:
        document.no_others(table, KEYS, "captures")
        if "file" not in table:
            raise document.wrong("captures", f"file is missing; accepted: {shape}")
        file, keylog = (document.file(table, "captures", name) for name in KEYS)
        assert file is not None
        if file in found:
            raise document.wrong("captures.file", f"{describe(table['file'])} is repeated", table["file"])
        _check_open(document, file, keylog, table)
        capture = CaptureFile(file=str(file), keylog=str(keylog) if keylog else None)
        found[file] = Scenario(kind="captured", capture=capture)
    return list(found.values())


def _check_open(document: Document, file: Path, keylog: Path | None, table: Mapping[str, Any]) -> None:
    """Refuses a file that is not a capture or key log, before anything is measured."""
    try:
        captures.inspect(file, keylog)
    except InputError as error:
        key = "keylog" if keylog is not None and str(error).startswith(str(keylog)) else "file"
        raise document.wrong(f"captures.{key}", str(error), table[key]) from error
