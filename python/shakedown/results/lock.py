"""Who may write in a results folder: one process at a time, for as long as it holds the folder's lock."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from shakedown.errors import InputError, os_failure, os_reason


class FolderLock:
    """A folder in which no other process writes results until it is released, or this process ends."""

    def __init__(self, folder: str | Path, accepted: str = "another folder") -> None:
        """Makes the folder if need be, and locks it. Raises `InputError` where it can't, or another has it;
        `accepted` says what to do then.
        """
        self.folder = Path(folder)
        self._handle: int | None = None
        self._made = False
        while not self._locked(accepted):
            # Its maker removed it, empty, before it was locked here; by now it may be another's.
            self._made = False
            self.release()

    def _locked(self, accepted: str) -> bool:
        """Whether the folder that has the name now is locked."""
        try:
            with suppress(FileExistsError):
                self.folder.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.folder.mkdir()
                self._made = True
            if self._is_taken():
                raise FileExistsError
            with suppress(FileNotFoundError):
                self._handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileExistsError:
            raise InputError(
                f"{self.folder}: {self.folder.name} is there already; accepted: a new or empty folder"
            ) from None
        except OSError as error:
            raise os_failure(
                f"{self.folder}: results cannot be written there: {os_reason(error)}", error
            ) from error
        if self._handle is None:
            return False
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._made = False
            self.release()
            raise InputError(f"{self.folder}: another run is writing there; accepted: {accepted}") from None
        except OSError:
            # A file system without locks: names that exist are still never replaced.
            return True
        about = os.fstat(self._handle)
        with suppress(OSError):
            there = self.folder.stat()
            return (there.st_dev, there.st_ino) == (about.st_dev, about.st_ino)
        return False

    def _is_taken(self) -> bool:
        """Whether the name is something else's. What somebody removes meanwhile is not: one look decides."""
        try:
            return not stat.S_ISDIR(self.folder.stat().st_mode)
        except FileNotFoundError:
            return self.folder.is_symlink()

    def release(self) -> None:
        """Lets others write there. A folder that was made for the lock and holds nothing is removed."""
        if self._handle is not None:
            if self._made:
                with suppress(OSError):
                    self.folder.rmdir()
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
