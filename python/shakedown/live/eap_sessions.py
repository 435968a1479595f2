"""Sessions of `eap serve` in SQLite, so that peers can resume them after a restart or crash.

A session holds the secrets that peer and server share, and the peer's certificate. A server of the same
suite, certificate and roots gives it to a peer that offers its ID, for a day from the full authentication; a
resumption does not prolong that. The core refuses it when the peer's certificates have ended. The file
survives the death of the process; sessions of the last moments before a power failure may be missing, and
cost their peers a full handshake.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from shakedown.live.state_file import StateFile

MAX_AGE_S = 24 * 3600
MAX_SESSIONS = 100_000
"""More push out the oldest."""
PRUNE_EVERY = 1000


class EapSessions(StateFile):
    """One server's file, locked meanwhile."""

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
        """Opens a file, or begins one; `clock` gives seconds since 1970. Raises `InputError`."""
        super().__init__(path)
        self.failure: str | None = None
        """The first thing that went wrong with the file while it served; peers then authenticate in full."""
        self._max_sessions = max_sessions
        self._clock = clock
        self._since_pruned = 0
        self._prune()

    def put(self, session: bytes, bound: bytes, secret: bytes, made_s: int) -> None:
        """Keeps a session, if it can.

        `bound` stands for all that it depends on; `made_s` is the time of the full authentication behind it,
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
        """A session that is not too old, of a server with the same `bound`.

        One that was made later than now is of a clock that has been set back since: its age is not known, nor
        will be when the clock has caught up with it. So it is forgotten.
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
