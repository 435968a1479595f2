"""The lock of a results folder: only the process that holds it may write."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from shakedown.errors import InputError, os_failure, os_reason
from shakedown.files.write import missing_folders, remove_empty


class FolderLock:
    """A folder in which no other process writes results until it is released, or this process ends."""

    def __init__(self, folder: str | Path, accepted: str = "another folder") -> None:
        """Creates the folder if it does not exist, and locks it. Raises `InputError` if this fails, or if
        another process holds the lock; the message of that error ends with `accepted`.
        """
        self.folder = Path(folder)
        self._handle: int | None = None
        self._made: list[Path] = []
        try:
            # Its creator may have removed the empty folder before it was locked here.
            while not self._locked():
                self.release()
        except BlockingIOError:
            self._made = []
            self.release()
            raise InputError(f"{self.folder}: another run is writing there; accepted: {accepted}") from None
        except OSError as error:
            self.release()
            if os.path.lexists(self.folder) and isinstance(error, FileExistsError | NotADirectoryError):
                raise InputError(
                    f"{self.folder}: {self.folder.name} is there already; accepted: a new or empty folder"
                ) from None
            raise os_failure(
                f"{self.folder}: results cannot be written there: {os_reason(error)}", error
            ) from error

    def _locked(self) -> bool:
        """Locks the folder. False if the name belongs to another folder by then. Raises `OSError`."""
        try:
            self._made = missing_folders(self.folder)
            self.folder.mkdir(parents=True)
        except FileExistsError:
            self._made = []
            if self.folder.is_symlink() and not self.folder.exists():
                raise
        with suppress(FileNotFoundError):
            self._handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if self._handle is None:
            return False
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            # A file system without locks: names that exist are still never replaced.
            return True
        with suppress(OSError):
            return os.path.samestat(self.folder.stat(), os.fstat(self._handle))
        return False

    def release(self) -> None:
        """Releases the lock. Empty folders that were created for the lock are removed."""
        remove_empty(self._made)
        self._made = []
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
