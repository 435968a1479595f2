"""Captures, read connection by connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from shakedown.errors import InputError
from shakedown.native.core import extension
from shakedown.schema import convert, decode
from shakedown.schema.arguments import checked
from shakedown.schema.captured import CaptureSummary, Connection
from shakedown.schema.trace import CapturedTrace


class Inspected:
    """A connection of a capture, decoded when asked for."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the core's object
        self._inner = inner

    @property
    def json(self) -> str:
        return cast(str, self._inner.json)

    @property
    def connection(self) -> Connection:
        """Its messages, flights and bytes."""
        return decode(self._inner.json, Connection)

    @property
    def trace(self) -> CapturedTrace | None:
        """What `predict --traces` can use; None where not all of the handshake is visible."""
        found = self._inner.trace
        return None if found is None else convert(found, CapturedTrace)

    @property
    def refused(self) -> str | None:
        """Why it makes no trace."""
        return cast("str | None", self._inner.refused)


class Inspection:
    """A capture being read: its connections as they end, those that it leaves open last, by their index."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the core's object
        self._inner = inner

    def __iter__(self) -> Iterator[Inspected]:
        return map(Inspected, self._inner)

    @property
    def summary(self) -> CaptureSummary:
        """What the file held, as far as it was read."""
        return convert(self._inner.summary, CaptureSummary)

    @property
    def problem(self) -> str | None:
        """Why reading ended before the file did, else None."""
        return cast("str | None", self._inner.problem)


@checked
def inspect(
    path: str | Path,
    keylog: str | Path | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Inspection:
    """Opens a capture and reads it as it is iterated over, in bounded memory: its connections as they end.

    Each item has `connection`: an object with messages, flights and bytes; `trace`: what `predict` can use,
    or None, and then `refused`: the reason. After the last, the iterator's `summary` describes the file, and
    `problem` is why reading ended before the end of the file, else None. `progress` is called with the
    number of bytes read. Ctrl-C stops it. Raises `InputError` where nothing could be read.
    """
    core = extension()
    try:
        found = core.inspect(str(path), None if keylog is None else str(keylog), progress=progress)
    except core.CaptureError as error:
        raise InputError(str(error)) from error
    return Inspection(found)
