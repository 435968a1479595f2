"""Recorded handshakes: the library shipped with the package, the user's own, and files that a command is
given.

A trace is one object of ``measure --json``. A library file holds one a line; its first line is an index
(suite to byte offset and length), so that a single trace is read without the rest. A file without an index,
or with one JSON array, is read as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from shakedown.errors import InputError, did_you_mean, os_reason

Side = Literal["client", "server"]
INDEX_KEY = "shakedown_traces"
SHIPPED = Path(__file__).parent / "data" / "traces.json"
RECORD_REPEAT = 5
_DATAGRAM_PROTOCOLS = ("dtls1.2", "wtls")


@dataclass(frozen=True, slots=True)
class Message:
    """A handshake message: who sent it, its flight (None for tickets), its bytes on the wire."""

    index: int
    sender: Side
    name: str
    flight: int | None
    size_bytes: float


@dataclass(frozen=True, slots=True)
class Operation:
    """A public-key call, or one message's symmetric work of one kind, as (operation, algorithm,
    parameters).
    """

    side: Side
    message: int | None
    triple: tuple[str, str, str]
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Flight:
    """A run of messages of one sender: its bytes, and the indexes of its messages."""

    sender: Side
    size_bytes: float
    messages: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    """What one handshake of a suite is made of; times of the machine that recorded it are left behind."""

    suite: str
    messages: tuple[Message, ...]
    operations: tuple[Operation, ...]

    @cached_property
    def flights(self) -> tuple[Flight, ...]:
        """The handshake's flights in order, without what follows the last Finished."""
        runs: list[list[Message]] = []
        for message in self.messages:
            if message.flight is None:
                continue
            if runs and runs[-1][-1].sender == message.sender:
                runs[-1].append(message)
            else:
                runs.append([message])
        return tuple(
            Flight(run[0].sender, sum(m.size_bytes for m in run), tuple(m.index for m in run)) for run in runs
        )

    def size_bytes(self, sender: Side) -> float:
        """Bytes that one side sends in the handshake's flights."""
        return sum(flight.size_bytes for flight in self.flights if flight.sender == sender)

    @cached_property
    def datagrams(self) -> bool:
        """Whether the protocol runs over datagrams rather than TCP."""
        return self.suite.split("/", 1)[0] in _DATAGRAM_PROTOCOLS


def parse_trace(entry: Mapping[str, Any], where: str) -> Trace:
    """Read one object of ``measure --json``.

    Raises:
        InputError: naming ``where`` and what is missing or wrong.
    """
    try:
        suite = str(entry["suite"])
        messages = tuple(
            Message(int(m["index"]), _side(m["from"]), str(m["name"]), m["flight"], float(m["bytes"]))
            for m in entry["messages"]
        )
        operations = tuple(
            Operation(
                _side(o["side"]),
                o["message"],
                (str(o["operation"]), str(o["algorithm"]), str(o["parameters"] or "")),
                1 if o.get("count") is None else int(o["count"]),
                int(o.get("bytes") or 0),
            )
            for o in entry["operations"]
        )
    except KeyError as error:
        raise InputError(f"{where}: no {error} in a trace; accepted: objects of measure --json") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {error}; accepted: objects of measure --json") from None
    return Trace(suite, messages, operations)


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

        measured = core.measure(suite, RECORD_REPEAT)
        for notice in core.take_notices():
            say(notice)
        return measured

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


def _side(word: object) -> Side:
    if word == "client":
        return "client"
    if word == "server":
        return "server"
    raise ValueError(f"side is {word!r}, not client or server")
