"""Recorded handshakes: the library shipped with the package, the user's own, and files that a command is
given.

A trace is one object of ``measure --json``. A library file holds one a line; its first line is an index
(suite to byte offset and length), so that a single trace is read without the rest. A file without an index,
or with one JSON array, is read as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from shakedown.errors import InputError, did_you_mean, os_reason
from shakedown.pricing.trace import Trace, parse_trace

INDEX_KEY = "shakedown_traces"
SHIPPED = Path(__file__).parent.parent / "data" / "traces.json"
RECORD_REPEAT = 5


class TraceLibrary:
    """Traces by canonical suite name, from files in order, then the user's own, then by recording.

    Args:
        path: a file that takes the place of the shipped library, or None.
        own: folder of the traces that were recorded for this user.
        record: makes the trace of a suite (an object of ``measure --json``), or None where that is not
            wanted.
        canonical: gives a suite's canonical name and refuses what names none.
        say: is told, in one line, when a suite is recorded.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        own: Path | None = None,
        record: Callable[[str], Mapping[str, Any]] | None = None,
        canonical: Callable[[str], str] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Open the library; nothing is read before it is asked for."""
        self._path = path or SHIPPED
        self._given = path is not None
        self._own = own
        self._record = record
        self._canonical = canonical
        self._say = say
        self._cache: dict[str, Trace] = {}
        self._entries: dict[str, Mapping[str, Any]] = {}

    def __getitem__(self, suite: str) -> Trace:
        """Return the trace of a suite.

        Raises:
            InputError: for a name that names no suite, or one that is nowhere and cannot be recorded.
        """
        if suite in self._cache:
            return self._cache[suite]
        name = suite
        entry = self._find(name)
        if entry is None and self._canonical is not None:
            name = self._canonical(suite)
            entry = self._find(name)
        if entry is None:
            entry = self._recorded(name)
        trace = parse_trace(entry, f"trace of {name}")
        self._cache[suite] = self._cache[name] = trace
        return trace

    def names(self) -> list[str]:
        """Return the suites that need no recording."""
        kept = [self._read_own(path) for path in sorted(self._own.glob("*.json"))] if self._own else []
        return sorted({*self._index, *(str(entry["suite"]) for entry in kept)})

    @cached_property
    def _index(self) -> dict[str, tuple[int, int]]:
        try:
            with self._path.open("rb") as file:
                first = file.readline()
                head = _json(first, self._path, 1) if first.startswith(b'{"' + INDEX_KEY.encode()) else None
                if head is not None:
                    return {suite: (at, length) for suite, (at, length) in head[INDEX_KEY].items()}
                text = first + file.read()
        except FileNotFoundError:
            if self._given:
                raise InputError(f"{self._path}: no such file; accepted: a file of traces") from None
            return {}
        except OSError as error:
            raise InputError(f"{self._path}: {os_reason(error)}; accepted: a file of traces") from None
        self._entries = _read_whole(text, self._path)
        return dict.fromkeys(self._entries, (0, 0))

    def _find(self, suite: str) -> Mapping[str, Any] | None:
        if suite in self._index:
            if suite in self._entries:
                return self._entries[suite]
            at, length = self._index[suite]
            with self._path.open("rb") as file:
                file.seek(at)
                entry: Mapping[str, Any] = _json(file.read(length), self._path, None)
            return entry
        path = self._own_path(suite)
        return self._read_own(path) if path is not None and path.exists() else None

    def _recorded(self, suite: str) -> Mapping[str, Any]:
        if self._record is None:
            hint = did_you_mean(suite, self._index)
            raise InputError(f'no trace of "{suite}" in {self._path}{hint}')
        self._say(f"no recorded trace of {suite}: recording it once")
        entry = self._record(suite)
        path = self._own_path(suite)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                half = path.with_suffix(".part")
                half.write_text(json.dumps(entry), encoding="utf-8")
                half.replace(path)
            except OSError as error:
                self._say(f"the trace of {suite} cannot be kept: {path}: {os_reason(error)}")
        return entry

    def _own_path(self, suite: str) -> Path | None:
        return None if self._own is None else self._own / f"{quote(suite, safe='')}.json"

    def _read_own(self, path: Path) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = _json(path.read_bytes(), path, None)
        return entry


def open_library(path: Path | None = None, say: Callable[[str], None] = lambda line: None) -> TraceLibrary:
    """Return the library as commands use it: ``path`` or the shipped one, the user's own, then recording
    here.
    """
    from shakedown.profiles import user_data_dir

    def record(suite: str) -> Mapping[str, Any]:
        from shakedown import core
        from shakedown.scenario import HandshakeId, Options
        from shakedown.schema import builtins
        from shakedown.schema.trace import bare

        measured = core.measure(HandshakeId(suite=suite), Options(repeat=RECORD_REPEAT))
        for notice in core.take_notices():
            say(notice)
        return cast("Mapping[str, Any]", builtins(bare(measured)))

    def canonical(suite: str) -> str:
        from shakedown import core

        return core.canonical(suite)

    return TraceLibrary(path, own=user_data_dir() / "traces", record=record, canonical=canonical, say=say)


def write_library(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a library file: the index, then one compact trace a line, sorted by suite."""
    lines = sorted(
        (str(entry["suite"]), json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())
        for entry in entries
    )
    lengths = [len(line) for _, line in lines]
    head = b""
    for _ in range(8):  # offsets depend on the length of the line that holds them: repeat until it settles
        at, index = len(head) + 1, {}
        for (suite, _line), length in zip(lines, lengths, strict=True):
            index[suite] = [at, length]
            at += length + 1
        settled = json.dumps({INDEX_KEY: index}, separators=(",", ":"), ensure_ascii=False).encode()
        if len(settled) == len(head):
            break
        head = settled
    half = path.with_name(path.name + ".part")
    half.write_bytes(b"\n".join([settled, *(line for _, line in lines)]) + b"\n")
    half.replace(path)


def _read_whole(text: bytes, path: Path) -> dict[str, Mapping[str, Any]]:
    stripped = text.strip()
    if stripped.startswith(b"["):
        found = _json(stripped, path, None)
    else:
        found = [_json(line, path, at) for at, line in enumerate(stripped.splitlines(), 1) if line.strip()]
    if not found or not all(isinstance(entry, dict) and "suite" in entry for entry in found):
        raise InputError(f"{path}: holds no traces; accepted: objects of measure --json")
    return {str(entry["suite"]): entry for entry in found}


def _json(text: bytes, path: Path, line: int | None) -> Any:  # noqa: ANN401 - JSON has any type
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        where = f"{path}:{line}" if line else str(path)
        raise InputError(f"{where}: not JSON: {error}; accepted: objects of measure --json") from None
