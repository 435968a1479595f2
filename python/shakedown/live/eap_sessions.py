"""Sessions of `eap serve` in SQLite, so that peers can resume them after a restart or crash.

A session contains the secrets that peer and server share, and the peer's certificate. A server with the same
suite, certificate and roots resumes the session of a peer that offers its ID, within a day after the full
authentication; a resumption does not extend this time. The core refuses it if the peer's certificates have
expired. The file survives a crash of the process. The last sessions before a power failure may be lost; their
peers then need a full handshake.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from shakedown.live.state_file import StateFile

MAX_AGE_S = 24 * 3600
MAX_SESSIONS = 100_000
"""If there are more, the oldest are removed."""
PRUNE_EVERY = 1000


class EapSessions(StateFile):
    """One server's file, which is locked while it is open."""

    APPLICATION = 0x53684570  # ShEp
    LAYOUT = 1
    WHAT = "the sessions of an EAP-TLS server"
    WITHOUT_IT = "peers then perform one full authentication"
    TABLES = (
        "CREATE TABLE session (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, bound BLOB NOT NULL,"
        " secret BLOB NOT NULL, made_s INTEGER NOT NULL)",
    )
    PRAGMAS = ("journal_mode = WAL", "synchronous = NORMAL")

    def __init__(
        self, path: str | Path, *, max_sessions: int = MAX_SESSIONS, clock: Callable[[], float] = time.time
    ) -> None:
        """Opens or creates a file; `clock` returns seconds since 1970. Raises `InputError`."""
        super().__init__(path)
        self.failure: str | None = None
        """The first error of the file during service; peers then need a full authentication."""
        self._max_sessions = max_sessions
        self._clock = clock
        self._since_pruned = 0
        self._prune()

    def put(self, session: bytes, bound: bytes, secret: bytes, made_s: int) -> None:
        """Stores a session; an error is recorded in `failure`.

        `bound` identifies the suite, certificate and roots; `made_s` is the time of the full authentication,
        in seconds since 1970.
        """
        try:
            self._database.execute(
                "INSERT OR REPLACE INTO session (id, bound, secret, made_s) VALUES (?, ?, ?, ?)",
                (session, bound, secret, made_s),
            )
            self._since_pruned += 1
            if self._since_pruned >= min(PRUNE_EVERY, self._max_sessions):
                self._prune()
        except sqlite3.Error as error:
            self._fail(error)

    def get(self, session: bytes, bound: bytes) -> bytes | None:
        """A session that has not expired, of a server with the same `bound`.

        If a session's time is in the future, the clock has been set back, and the session's age is unknown,
        also later. Such a session is removed.
        """
        now_s = int(self._clock())
        try:
            found: tuple[bytes, int] | None = self._database.execute(
                "SELECT secret, made_s FROM session WHERE id = ? AND bound = ? AND made_s > ?",
                (session, bound, now_s - MAX_AGE_S),
            ).fetchone()
            if found is not None and found[1] > now_s:
                self._database.execute("DELETE FROM session WHERE id = ?", (session,))
                return None
        except sqlite3.Error as error:
            self._fail(error)
            return None
        return None if found is None else found[0]

    def _fail(self, error: sqlite3.Error) -> None:
        self.failure = self.failure or f"{error}"

    def _prune(self) -> None:
        self._since_pruned = 0
        now_s = int(self._clock())
        self._all(
            ("DELETE FROM session WHERE made_s <= ? OR made_s > ?", (now_s - MAX_AGE_S, now_s)),
            (
                "DELETE FROM session WHERE number <= (SELECT max(number) FROM session) - ?",
                (self._max_sessions,),
            ),
        )
