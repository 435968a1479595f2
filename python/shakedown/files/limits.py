"""Limits on input: sizes, depths and counts, with their error messages.

The limit of a file's size depends on its purpose. The limits are far above normal use, and far below the size
that would exhaust memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from shakedown.errors import InputError, os_reason
from shakedown.schema.violations import not_json

MIB: Final = 1 << 20

MAX_EXPERIMENT_BYTES = 16 * MIB
MAX_PROFILE_BYTES = 4 * MIB
MAX_IMPORT_BYTES = 64 * MIB
MAX_TRACES_BYTES = 512 * MIB
MAX_MANIFEST_BYTES = 256 * MIB
MAX_PART_BYTES = 2048 * MIB

MAX_DEPTH = 100
"""Nesting depth of tables and arrays, in TOML and JSON."""

MAX_DIGITS = 4300
"""Digits of an integer; Python's parsers refuse more."""

MAX_SUITES = 200_000
MAX_PLACES = 100_000
"""Pairs of device and bearer in an experiment."""
MAX_RATES = 10_000
MAX_KINDS = 1_000
"""Kinds of clients in a mixture."""
MAX_MIXES = 100
MAX_WORKERS = 100_000
MAX_CAPTURES = 1_000

MAX_UNIX_S = 253_402_300_799
"""The last second of the year 9999, the last year of Python's `datetime`."""


def read_bytes(path: Path, max_bytes: int, what: str = "file") -> bytes:
    """The content of a file of limited size. Raises `InputError`. Devices and pipes are read like files, so
    an endless one is refused when it exceeds the limit.
    """
    return b"".join(read_lines(path, max_bytes, what))


def read_lines(
    path: Path, max_bytes: int, what: str = "file", *, max_line_bytes: int | None = None
) -> Iterator[bytes]:
    """Reads a file of limited size in blocks of whole lines. Raises `InputError`.

    `max_line_bytes` is for callers that keep only one line in memory; None: any length.
    """
    left, begun = max_bytes, list[bytes]()
    try:
        with path.open("rb") as file:
            while block := file.read(MIB):
                left -= len(block)
                if left < 0:
                    raise InputError(
                        f"{path}: longer than {max_bytes // MIB} MiB; accepted: a {what} up to this size"
                    )
                end = block.rfind(b"\n") + 1
                if end:
                    yield b"".join((*begun, block[:end]))
                    begun.clear()
                begun.append(block[end:])
                if max_line_bytes is not None and sum(map(len, begun)) > max_line_bytes:
                    raise InputError(
                        f"{path}: a line is longer than {max_line_bytes // MIB} MiB; accepted: a {what}"
                    )
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        # A NUL in the name.
        raise InputError(f"{str(path)!r}: cannot be read: {error}") from error
    if rest := b"".join(begun):
        yield rest


def read_text(path: Path, max_bytes: int, what: str = "file") -> str:
    """All of a text file in UTF-8. Raises `InputError`."""
    content = read_bytes(path, max_bytes, what)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file in UTF-8 (byte {error.start})") from error


def check_readable(path: str | Path) -> None:
    """Raises `InputError` with the system's reason if a file that the core will read cannot be opened."""
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise InputError(f'"{path}" cannot be read: {os_reason(error)}') from error


def parse_json(text: str | bytes, where: str) -> Any:  # noqa: ANN401 - JSON has any type
    """Parses untrusted JSON. Raises `InputError`, also for a duplicate key in an object, because another
    parser might use the other value.
    """
    import json

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise InputError(f'{where}: the key "{key[:60]}" stands twice in an object')
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise InputError(f"{where}: not JSON: nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        reason = digits_line(error)
        raise InputError(f"{where}: not JSON: {reason}" if reason else not_json(where, error)) from None


def digits_line(error: ValueError) -> str:
    """The message for an integer of more than `MAX_DIGITS` digits; empty for any other error."""
    return (
        f"a whole number of more than {MAX_DIGITS:,} digits"
        if "integer string conversion" in str(error)
        else ""
    )
