"""An SGSN's sessions and subscribers in SQLite, so that they survive its end, whichever way it comes.

Each change is one transaction, on the disk before it returns: a resumption that was granted is never
forgotten, else a session could be resumed more often than it may be. The core calls it from its threads, one
call at a time.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from shakedown.errors import InputError, os_reason

APPLICATION = 0x5368416B
"""Tells our files from other programs' (ShAk)."""
LAYOUT = 1

_TABLES = (
    "CREATE TABLE session (id BLOB PRIMARY KEY, secret BLOB NOT NULL, imsi TEXT NOT NULL,"
    " home TEXT NOT NULL, resumptions INTEGER NOT NULL, last_ns INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX session_imsi ON session (imsi)",
    "CREATE TABLE subscriber (ptmsi INTEGER PRIMARY KEY, imsi TEXT NOT NULL UNIQUE, home TEXT NOT NULL,"
    " session BLOB)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {LAYOUT}",
)

Session = tuple[bytes, str, str, int, int]
Subscriber = tuple[str, str, bytes | None]


class SgsnState:
    """One SGSN's file, open to nobody else meanwhile."""

    def __init__(self, path: str | Path) -> None:
        """Opens a file, or begins one. Raises `InputError` where it is no SGSN's, or another process's."""
        try:
            # Whoever reads the secrets of sessions can resume them: the file is the owner's alone.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise InputError(f"{path}: {os_reason(error)}") from error
        try:
            self._database = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
            self._open()
        except sqlite3.Error as error:
            raise InputError(f"{path}: {error}; accepted: an SGSN's state, or a new file") from error
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error

    def _open(self) -> None:
        database = self._database
        # Two SGSNs of one file would each count a session's resumptions in their own time.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN EXCLUSIVE")
        application = database.execute("PRAGMA application_id").fetchone()[0]
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (application, layout, tables) == (0, 0, 0):
            for statement in _TABLES:
                database.execute(statement)
        elif application != APPLICATION:
            raise ValueError("is another program's database; accepted: an SGSN's state, or a new file")
        elif layout != LAYOUT:
            raise ValueError(f"has layout {layout}; accepted: {LAYOUT}")
        elif (found := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise ValueError(
                f"is damaged ({found.splitlines()[-1]}); accepted: an SGSN's state, or a new file"
            )
        database.execute("COMMIT")

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def session(self, session: bytes) -> Session | None:
        """A session by its ID: secret, IMSI, home network, resumptions, last time in ns since 1970."""
        found: Session | None = self._database.execute(
            "SELECT secret, imsi, home, resumptions, last_ns FROM session WHERE id = ?", (session,)
        ).fetchone()
        return found

    def keep_session(
        self, session: bytes, secret: bytes, imsi: str, home: str, resumptions: int, last_ns: int
    ) -> None:
        """Keeps a session, in place of any of this ID."""
        self._database.execute(
            "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?)",
            (session, secret, imsi, home, resumptions, last_ns),
        )

    def forget_session(self, session: bytes) -> None:
        """Forgets a session."""
        self._database.execute("DELETE FROM session WHERE id = ?", (session,))

    def subscriber(self, ptmsi: int) -> Subscriber | None:
        """Whose a temporary identity is: IMSI, home network, session ID."""
        found: Subscriber | None = self._database.execute(
            "SELECT imsi, home, session FROM subscriber WHERE ptmsi = ?", (ptmsi,)
        ).fetchone()
        return found

    def keep_subscriber(self, ptmsi: int, imsi: str, home: str, session: bytes | None) -> None:
        """Keeps a subscriber under a new temporary identity; older ones and other sessions are forgotten."""
        self._all(
            ("DELETE FROM session WHERE imsi = ? AND id IS NOT ?", (imsi, session)),
            ("DELETE FROM subscriber WHERE imsi = ?", (imsi,)),
            ("INSERT OR REPLACE INTO subscriber VALUES (?, ?, ?, ?)", (ptmsi, imsi, home, session)),
        )

    def forget_subscriber(self, ptmsi: int) -> None:
        """Forgets a subscriber, sessions included."""
        self._all(
            (
                "DELETE FROM session WHERE imsi IN (SELECT imsi FROM subscriber WHERE ptmsi = ?)",
                (ptmsi,),
            ),
            ("DELETE FROM subscriber WHERE ptmsi = ?", (ptmsi,)),
        )

    def _all(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        """Statements that are done together or not at all."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for text, values in statements:
                self._database.execute(text, values)
        except sqlite3.Error:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")
