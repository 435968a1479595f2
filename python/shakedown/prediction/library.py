"""Recorded handshakes: the package's library, the user's own recordings, and files given to a command.

A trace is one object of ``measure --json``. A library file has one trace per line; its first line is an index
(suite to byte offset and length), so that a single trace is read without the others. A file without an index,
or with one JSON array, is read completely.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote

from shakedown import native
from shakedown.errors import InputError, ShakedownError, did_you_mean, os_reason
from shakedown.files.limits import MAX_TRACES_BYTES, MIB, parse_json, read_bytes
from shakedown.files.write import write_durably
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.prediction.captured import completed
from shakedown.prediction.trace import Trace, parse_trace
from shakedown.profiles.registry import load_software, user_data_dir
from shakedown.profiles.software import DEFAULT_SOFTWARE, ServerSoftware
from shakedown.schema.base import builtins
from shakedown.schema.trace import bare

INDEX_KEY = "shakedown_traces"
SHIPPED = Path(__file__).parent.parent / "data" / "traces.json"
RECORD_REPEAT = 5


class TraceLibrary:
    """Traces by canonical suite name, from files in order, then the user's own, then by recording.

    Args:
        path: a file to use instead of the shipped library, or None.
        software: the server's software, whose tickets replace those of the traces; None: as recorded.
        own: folder of the traces that were recorded for this user.
        record: records the trace of a suite (an object of ``measure --json``); None: never record.
        canonical: returns a suite's canonical name; raises for an unknown suite.
        say: called with one line when a suite is recorded.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        software: ServerSoftware | None = None,
        own: Path | None = None,
        record: Callable[[str], Mapping[str, Any]] | None = None,
        canonical: Callable[[str], str] | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Open the library; nothing is read before the first lookup."""
        self._path = path or SHIPPED
        self._given = path is not None
        self._software = software
        self._own = own
        self._record = record
        self._canonical = canonical
        self._say = say
        self._cache: dict[str, Trace] = {}
        self._entries: dict[str, Mapping[str, Any]] = {}
        self._several: Counter[str] = Counter()
        self._failed: dict[str, Exception] = {}
        self._announced: set[str] = set()

    def __getitem__(self, suite: str) -> Trace:
        """Return the trace of a suite.

        Raises `InputError` for an unknown suite, or one that has no trace and cannot be recorded.
        """
        if suite in self._cache:
            return self._cache[suite]
        name = suite
        entry = self._find(name)
        if entry is None and self._canonical is not None:
            name = self._canonical(suite)
            if name in self._cache:
                return self._cache[name]
            entry = self._find(name)
        entry = entry or self._kept(name) or self._recorded(name)
        trace = parse_trace(entry, f"trace of {name}")
        if trace.partial:
            trace = self.completed(trace)
        if self._software is not None:
            if note := self._software.note(trace.suite):
                self._say(note)
            trace = trace.served_by(self._software)
        self._cache[suite] = self._cache[name] = trace
        return trace

    def completed(self, captured: Trace) -> Trace:
        """A captured handshake, completed with the work that captures do not show, from a measured one.

        It stays partial if its suite cannot be measured; figures that depend on that work are lower bounds.
        """
        try:
            return completed(captured, self._measured[captured.suite])
        except Exception as error:
            if not of_one_suite(error):
                raise
            return captured

    def __contains__(self, suite: str) -> bool:
        """Whether the library's own file has the trace of a suite, by its canonical name."""
        return suite in self._index

    def announce(self, suites: Iterable[str]) -> None:
        """Emit one notice if several of these suites have to be recorded, in place of one for each."""
        if self._canonical is None or self._record is None:
            return
        missing = set()
        for suite in suites:
            with suppress(ShakedownError):  # an unknown suite is reported when it is looked up
                name = self._canonical(suite)
                path = self._own_path(name)
                if not (name in self or (path is not None and path.exists())):
                    missing.add(name)
        if len(missing) > 1:
            where = f"{self._path}: no traces" if self._given else "no recorded traces"
            self._say(f"{where} of {len(missing):,} suites: recording each once")
            self._announced |= missing

    @cached_property
    def _measured(self) -> TraceLibrary:
        """Measured handshakes, with the tickets that they were recorded with."""
        return TraceLibrary(own=self._own, record=self._record, canonical=self._canonical, say=self._say)

    @cached_property
    def _index(self) -> dict[str, tuple[int, int]]:
        try:
            with self._path.open("rb") as file:
                first = file.readline(MAX_TRACES_BYTES + 1)
                if first.startswith(b'{"' + INDEX_KEY.encode()):
                    return _read_index(first, self._path)
                text = first + file.read(max(0, MAX_TRACES_BYTES + 1 - len(first)))
        except FileNotFoundError:
            if self._given:
                raise InputError(f"{self._path}: no such file; accepted: a file of traces") from None
            return {}
        except OSError as error:
            raise InputError(f"{self._path}: {os_reason(error)}; accepted: a file of traces") from None
        if len(text) > MAX_TRACES_BYTES:
            raise InputError(
                f"{self._path}: longer than {MAX_TRACES_BYTES // MIB} MiB; accepted: a file of traces up to "
                "this size"
            )
        for entry in _read_whole(text, self._path):
            suite = str(entry["suite"])
            self._several[suite] += 1
            self._entries.setdefault(suite, entry)
        return dict.fromkeys(self._entries, (0, 0))

    def _find(self, suite: str) -> Mapping[str, Any] | None:
        """The trace in the library's file, if it is there."""
        if suite not in self._index:
            return None
        if suite in self._entries:
            if self._several.get(suite, 1) > 1:
                self._say(
                    f"{self._path}: contains {self._several[suite]} handshakes of {suite}; the first is used "
                    f"({_bytes_of(self._entries[suite])})"
                )
            return self._entries[suite]
        at, length = self._index[suite]
        try:
            with self._path.open("rb") as file:
                file.seek(at)
                entry = _json(file.read(length), self._path, None)
        except OSError as error:
            raise InputError(f"{self._path}: {os_reason(error)}; accepted: a file of traces") from None
        if not isinstance(entry, dict) or entry.get("suite") != suite:
            raise InputError(f"{self._path}: damaged: {suite} is not at the position in its index")
        return entry

    def _kept(self, suite: str) -> Mapping[str, Any] | None:
        """The trace that was recorded for this user before, if there is one."""
        path = self._own_path(suite)
        if path is None or not path.exists():
            return None
        try:
            entry = _json(read_bytes(path, MAX_TRACES_BYTES, "trace"), path, None)
            if not isinstance(entry, dict) or quote(str(entry.get("suite")), safe="") != path.stem:
                raise InputError(f"{path}: damaged: not the trace of {unquote(path.stem)}")
        except InputError as error:
            self._say(f"{error}; recorded again")
            return None
        tickets = any(one.get("name") == "NewSessionTicket" for one in entry.get("messages", ()))
        if self._software and suite.startswith("tls1.3/") and not tickets:
            return None  # recorded by a version that omitted tickets
        if self._given:
            self._say(f"{self._path}: no trace of {suite}; using the one recorded earlier")
        return entry

    def _recorded(self, suite: str) -> Mapping[str, Any]:
        if self._record is None:
            hint = did_you_mean(suite, self._index)
            raise InputError(f'no trace of "{suite}" in {self._path}{hint}')
        if suite in self._failed:
            raise self._failed[suite]
        if suite not in self._announced:
            where = f"{self._path}: no trace" if self._given else "no recorded trace"
            self._say(f"{where} of {suite}: recording it once")
        try:
            entry = self._record(suite)
        except Exception as error:
            self._failed[suite] = error
            raise
        path = self._own_path(suite)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_durably(path, json.dumps(entry).encode(), replace=True)
            except OSError as error:
                self._say(f"the trace of {suite} cannot be saved: {path}: {os_reason(error)}")
        return entry

    def _own_path(self, suite: str) -> Path | None:
        return None if self._own is None else self._own / f"{quote(suite, safe='')}.json"


def opened(
    traces: TraceLibrary | Mapping[str, Trace] | str | Path | None,
    server_software: str | Path | None = None,
) -> TraceLibrary:
    """The library of an argument ``traces``: a library, traces by suite, a file, or None (the shipped one).

    Raises `InputError` if both a server's software and a library are given, because a library has its own.
    """
    if traces is None or isinstance(traces, str | Path):
        return open_library(None if traces is None else Path(traces), server_software=server_software)
    if server_software is not None:
        raise InputError(
            "server_software is given with a trace library; accepted: with a trace file or the shipped traces"
        )
    # Only the names of suites are looked up in a library.
    return cast(TraceLibrary, traces)


def of_one_suite(error: Exception) -> bool:
    """Whether an error concerns one suite only, so that the others can be computed."""
    return isinstance(error, InputError) or native.is_failure(error)


def announce(library: TraceLibrary | Mapping[str, Trace], suites: Iterable[str]) -> None:
    """Emit one notice for all suites that have to be recorded; traces given by suite are never recorded."""
    if isinstance(library, TraceLibrary):
        library.announce(suites)


def open_library(
    path: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
    *,
    server_software: str | Path | None = None,
) -> TraceLibrary:
    """Return the library of a command: the traces of ``path`` or the shipped ones, then the user's own, then
    new recordings.

    ``server_software`` is a name or a path. Default: `DEFAULT_SOFTWARE`; for a given file, the software with
    which it was recorded. Raises `InputError` for unknown software.
    """

    def record(suite: str) -> Mapping[str, Any]:
        options = MeasureOptions(repeat=RECORD_REPEAT).issuing(suite)
        measured = native.measure(HandshakeId(suite=suite), options)
        for notice in native.take_notices():
            say(notice)
        return cast("Mapping[str, Any]", builtins(bare(measured)))

    chosen = DEFAULT_SOFTWARE if server_software is None and path is None else server_software
    software = None if chosen is None else load_software(str(chosen))
    own = user_data_dir() / "traces"
    return TraceLibrary(path, software=software, own=own, record=record, canonical=native.canonical, say=say)


def write_library(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a library file: the index, then one compact trace per line, sorted by suite."""
    lines = sorted(
        (str(entry["suite"]), json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())
        for entry in entries
    )
    lengths = [len(line) for _, line in lines]
    # Offsets depend on the length of the index line, so all offsets are padded to the same width.
    width = len(str(sum(lengths) + sum(len(suite.encode()) + 64 for suite, _ in lines) + 64))

    def index(offsets: Iterable[int]) -> bytes:
        places = (
            f"{json.dumps(suite, ensure_ascii=False)}:[{offset:>{width}},{length}]"
            for (suite, _), length, offset in zip(lines, lengths, offsets, strict=True)
        )
        return f'{{"{INDEX_KEY}":{{{",".join(places)}}}}}'.encode()

    first = len(index([0] * len(lines))) + 1
    settled = index(accumulate((length + 1 for length in lengths[:-1]), initial=first))
    write_durably(path, b"\n".join([settled, *(line for _, line in lines)]) + b"\n", replace=True)


def _read_index(line: bytes, path: Path) -> dict[str, tuple[int, int]]:
    """The offsets of traces, from a library's first line."""
    found = _json(line, path, 1)
    index = found.get(INDEX_KEY) if isinstance(found, dict) else None
    if not isinstance(index, dict):
        raise InputError(f"{path}: damaged: its index is not an object")
    places: dict[str, tuple[int, int]] = {}
    for suite, place in index.items():
        if not (
            isinstance(place, list)
            and len(place) == 2
            and all(type(one) is int and 0 <= one <= MAX_TRACES_BYTES for one in place)
        ):
            raise InputError(f"{path}: damaged: its index has no position for {suite}")
        places[suite] = (place[0], place[1])
    return places


def _bytes_of(entry: Mapping[str, Any]) -> str:
    found = entry.get("bytes")
    total = found.get("total") if isinstance(found, dict) else None
    return f"{total:,} bytes" if isinstance(total, int) else "no total of bytes"


def _read_whole(text: bytes, path: Path) -> list[Mapping[str, Any]]:
    stripped = text.strip()
    if stripped.startswith(b"["):
        found = _json(stripped, path, None)
    else:
        found = [_json(line, path, at) for at, line in enumerate(stripped.splitlines(), 1) if line.strip()]
    if not found or not all(isinstance(entry, dict) and "suite" in entry for entry in found):
        raise InputError(f"{path}: holds no traces; accepted: objects of measure --json")
    return list(found)


def _json(text: bytes, path: Path, line: int | None) -> Any:  # noqa: ANN401 - JSON has any type
    try:
        return parse_json(text, f"{path}, line {line}" if line else str(path))
    except InputError as error:
        raise InputError(f"{error}; accepted: objects of measure --json") from None


def resumed_of(suite: str) -> str:
    """The suite that resumes a session of this suite. Raises `InputError` if there is none."""
    about = native.describe(suite)
    if about.get("is_resumption"):
        raise InputError(f"{suite}: resumes already; accepted with a share of resumption: a full handshake")
    head, _, last = suite.rpartition("/")
    for name in (f"{suite}/resumed", f"{head}/resumed/{last}"):
        found = native.possible(name)
        if found is not None:
            return found
    raise InputError(f"{suite}: its sessions are not resumed; accepted with it: a share of resumption of 0")
