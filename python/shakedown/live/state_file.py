"""A server's state in SQLite, in a file that is its owner's alone and open to one process at a time."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from shakedown.errors import InputError, os_reason


class StateFile:
    """What `SgsnState` and `EapSessions` share: a file that is recognised, checked and locked."""

    APPLICATION: int
    """Tells the file from other programs' and from our others."""
    LAYOUT: int
    WHAT: str
    """In a line: `accepted: WHAT, or a new file`."""
    TABLES: tuple[str, ...]
    PRAGMAS: tuple[str, ...]
    """How far a change is on the disk when it returns."""

    def __init__(self, path: str | Path) -> None:
        """Opens a file, or begins one. Raises `InputError` where it is another program's, or in use."""
        self._path = Path(path)
        try:
            # Whoever reads the secrets of sessions can resume them: the file is the owner's alone.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise InputError(f"{path}: {os_reason(error)}") from error
        except ValueError as error:
            raise InputError(f"{str(path)!r}: {error}") from error
        try:
            self._database = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
            self._open()
        except sqlite3.Error as error:
            raise InputError(f"{path}: {error}; accepted: {self.WHAT}, or a new file") from error
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error

    def _open(self) -> None:
        database = self._database
        # Two servers of one file would each count in their own time.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        application = database.execute("PRAGMA application_id").fetchone()[0]
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (application, layout, tables) == (0, 0, 0):
            for statement in self.TABLES:
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {self.APPLICATION}")
            database.execute(f"PRAGMA user_version = {self.LAYOUT}")
        elif application != self.APPLICATION:
            raise ValueError(f"is another program's database; accepted: {self.WHAT}, or a new file")
        elif layout != self.LAYOUT:
            raise ValueError(f"has layout {layout}; accepted: {self.LAYOUT}")
        elif (found := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise ValueError(f"is damaged ({found.splitlines()[-1]}); accepted: {self.WHAT}, or a new file")
        database.execute("COMMIT")
        # It is known to be ours now; one that was there before may be everybody's to read.
        if self._path.stat().st_mode & 0o077:
            self._path.chmod(0o600)
        # Some of them change the file.
        for pragma in self.PRAGMAS:
            database.execute(f"PRAGMA {pragma}")

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def _all(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        """Statements that are done together or not at all."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for text, values in statements:
                self._database.execute(text, values)
            self._database.execute("COMMIT")
        except BaseException:  # a signal's handler may raise anything
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
