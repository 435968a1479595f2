"""Captures, read connection by connection."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, cast

from shakedown.errors import InputError
from shakedown.files.text import visible
from shakedown.native.core import extension
from shakedown.schema import convert, decode
from shakedown.schema.arguments import checked
from shakedown.schema.captured import CaptureSummary, Connection
from shakedown.schema.trace import CapturedTrace


class Inspected:
    """A connection of a capture, decoded on access."""

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
        """The trace for `predict --traces`; None if part of the handshake is not visible."""
        found = self._inner.trace
        return None if found is None else convert(found, CapturedTrace)

    @property
    def refused(self) -> str | None:
        """Why there is no trace; None if there is one."""
        return cast("str | None", self._inner.refused)


class Inspection:
    """A capture being read: its connections as they end, then, by index, those still open at its end."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the core's object
        self._inner = inner

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Inspection cannot be pickled or copied; its connections can be")

    def __iter__(self) -> Iterator[Inspected]:
        return map(Inspected, self._inner)

    @property
    def summary(self) -> CaptureSummary:
        """A description of the file, as far as it was read."""
        return convert(self._inner.summary, CaptureSummary)

    @property
    def problem(self) -> str | None:
        """Why reading ended before the end of the file, else None."""
        return cast("str | None", self._inner.problem)


@checked
def inspect(
    path: str | Path,
    keylog: str | Path | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Inspection:
    """Opens a capture. Iteration reads it in bounded memory and returns connections as they end.

    Each item has `connection`, an object with messages, flights and bytes; `trace` for `predict`, or None;
    and `refused`, the reason why there is no trace. After the last item, `summary` of the result describes
    the file, and `problem` is why reading ended before the end of the file, else None. `progress` is called
    with the number of bytes read. Ctrl-C stops reading. Raises `InputError` if nothing could be read.
    """
    core = extension()
    try:
        found = core.inspect(str(path), None if keylog is None else str(keylog), progress=progress)
    except core.CaptureError as error:
        # The core replaces bytes that are not UTF-8.
        replaced = os.fsencode(path).decode(errors="replace")
        raise InputError(str(error).replace(replaced, visible(path))) from error
    return Inspection(found)
