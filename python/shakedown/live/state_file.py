"""A server's state in SQLite, in a file that only its owner can read, and only one process at a time."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from shakedown.errors import InputError, ShakedownError, os_reason
from shakedown.files.write import SPECIAL, is_special

HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"
APPLICATION_AT = slice(68, 72)
"""In the header of SQLite's files (https://www.sqlite.org/fileformat2.html, section 1.3)."""


def columns(database: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(
        database.execute(
            "SELECT made.name, of.name FROM sqlite_master AS made JOIN pragma_table_info(made.name) AS of"
            " WHERE made.type = 'table'"
        )
    )


class StateFile:
    """The base of `SgsnState` and `EapSessions`: a file that is identified, checked and locked."""

    APPLICATION: int
    """SQLite's application ID, which differs from those of other files."""
    LAYOUT: int
    WHAT: str
    """For errors: `accepted: WHAT, or a new file`."""
    TABLES: tuple[str, ...]
    WITHOUT_IT: str
    """For errors: the consequence of a new file."""
    PRAGMAS: tuple[str, ...]
    """The durability of changes."""

    def __init__(self, path: str | Path) -> None:
        """Opens or creates a file. Raises `InputError` if it belongs to another program or is in use, and
        `ShakedownError` if the disk is full.
        """
        self._path = Path(path).absolute()
        if is_special(self._path):
            # SQLite would create files next to a device, and its mode must not be changed.
            raise InputError(f"{path}: {SPECIAL}; accepted: {self.WHAT}, or a new file")
        try:
            self._keep_to_owner()
        except OSError as error:
            raise InputError(f"{path}: {os_reason(error)}") from error
        except ValueError as error:
            raise InputError(f"{str(path)!r}: {error}") from error
        try:
            # An absolute path, because SQLite keeps `:memory:` in memory.
            self._database = sqlite3.connect(
                self._path, timeout=1.0, isolation_level=None, check_same_thread=False
            )
            self._open()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise ShakedownError(f"{path}: {error}") from error
            raise InputError(f"{path}: {error}; accepted: {self.WHAT}, or a new file") from error
        except ValueError as error:
            raise InputError(f"{path}: {error}") from error

    def _keep_to_owner(self) -> None:
        """Creates the file, or removes other users' permissions if it is ours or empty.

        Only the owner may read the file, because the secrets of sessions allow their resumption. The mode is
        set before SQLite writes, because its other files (`-journal`, `-wal`) get the same mode.
        """
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            return
        except FileExistsError:
            descriptor = os.open(self._path, os.O_RDWR)
        try:
            header = os.pread(descriptor, HEADER_BYTES, 0)
            ours = header.startswith(MAGIC) and header[APPLICATION_AT] == self.APPLICATION.to_bytes(4, "big")
            if header and not ours:
                return
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        for suffix in ("-journal", "-wal"):
            beside = Path(f"{self._path}{suffix}")
            if beside.exists() and beside.stat().st_mode & 0o077:
                beside.chmod(0o600)

    def _open(self) -> None:
        database = self._database
        # Two servers of one file would count resumptions independently.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        application = database.execute("PRAGMA application_id").fetchone()[0]
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (application, layout, tables) == (0, 0, 0):
            self._make_tables(database)
            database.execute(f"PRAGMA application_id = {self.APPLICATION}")
            database.execute(f"PRAGMA user_version = {self.LAYOUT}")
        elif application != self.APPLICATION:
            raise ValueError(f"is another program's database; accepted: {self.WHAT}, or a new file")
        elif layout != self.LAYOUT:
            raise ValueError(
                f"has layout {layout}, another version's; accepted: layout {self.LAYOUT}, or a new file"
                f" (delete this one: {self.WITHOUT_IT})"
            )
        elif (found := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise ValueError(f"is damaged ({found.splitlines()[-1]}); accepted: {self.WHAT}, or a new file")
        elif columns(database) != self._own_columns():
            raise ValueError(f"has unexpected tables; accepted: {self.WHAT}, or a new file")
        database.execute("COMMIT")
        # Some pragmas change the file, so they follow the checks.
        for pragma in self.PRAGMAS:
            database.execute(f"PRAGMA {pragma}")

    def _make_tables(self, database: sqlite3.Connection) -> None:
        for statement in self.TABLES:
            database.execute(statement)

    def _own_columns(self) -> set[tuple[str, str]]:
        with closing(sqlite3.connect(":memory:")) as empty:
            self._make_tables(empty)
            return columns(empty)

    def close(self) -> None:
        self._database.close()

    def _all(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        """Executes statements in one transaction."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for text, values in statements:
                self._database.execute(text, values)
            self._database.execute("COMMIT")
        except BaseException:  # a signal handler may raise any exception
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
