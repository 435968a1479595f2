"""Writing files: completely or not at all, even after a power failure, and without replacing files unless
requested.

A file is written to a draft in the same folder, `.NAME.shakedown-draft`, flushed to the disk and renamed.
The draft is locked while its writer runs: a second writer of the same file is refused, and the next writer
removes the draft of a killed one. An existing name is refused unless its replacement was requested; a
symbolic link counts as an existing name and is never followed. A replacement has no more permissions than the
file that it replaces. A log that others read while it is written has its final name from the start.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from itertools import takewhile
from pathlib import Path
from typing import IO

from shakedown.errors import InputError, os_failure, os_reason

FORCE = "another name, or --force"
SPECIAL = "is a device, a pipe or a socket, not a regular file"
DRAFT = ".shakedown-draft"
_TRIES = 10


def check_free(path: Path, replace: bool = False, accepted: str = FORCE) -> None:
    """Refuses a name that exists, or a folder that does not, before any work is done. Raises `InputError`."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: no such folder")
    if path.is_dir():
        raise InputError(f"{path}: cannot be written: is a directory")
    if not replace and os.path.lexists(path) and not is_special(path):
        raise InputError(f"{path}: exists already; accepted: {accepted}")


def check_distinct(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuses an output that is also an input or another output.

    Symbolic and hard links are recognised, so another name of the same file is refused too. None, devices and
    pipes are ignored. Raises `InputError`.
    """
    written: list[Path] = []
    read = [path for path in inputs if path is not None]
    for path in outputs:
        if path is None or is_special(path):
            continue
        for others, used in ((read, "read"), (written, "written")):
            for other in others:
                if _is_same(path, other):
                    which = f"is {used} too"
                    if path != other:
                        which = f"is the same file as {other}, which {which}"
                    raise InputError(f"{path}: {which}; accepted: another name to write to")
        written.append(path)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path == other or path.resolve() == other.resolve() or path.samefile(other)
    except (OSError, RuntimeError):
        # One of them does not exist yet, or is a cyclic link, so no content can be lost.
        return False


def check_writable(path: Path, replace: bool = False, accepted: str = FORCE) -> None:
    """As `check_free`; refuses a folder without write permission. Raises `InputError` or `ShakedownError`."""
    check_free(path, replace, accepted)
    if not is_special(path):
        Destination(path, replace=replace).abandon()


def draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}{DRAFT}")


def _open_draft(path: Path, mode: int) -> int:
    """Creates and locks a file's draft; `BlockingIOError` if another process writes the file."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(draft_of(path), flags, mode)
            if _locked(handle) is not False and os.fstat(handle).st_nlink:
                return handle
            # Before it was locked, another process removed it as the draft of a killed writer.
            os.close(handle)
        if not remove_left_over(path):
            break
    raise BlockingIOError(
        errno.EWOULDBLOCK, f"another process is writing it ({draft_of(path).name})", str(path)
    )


def remove_left_over(path: Path) -> bool:
    """Removes the draft of a killed writer. False if a draft remains: its writer may still run, or the draft
    belongs to another user.
    """
    draft = draft_of(path)
    try:
        handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or not _locked(handle):
            return False
        with suppress(OSError):
            if os.path.samestat(draft.lstat(), about):
                draft.unlink()
        return True
    finally:
        os.close(handle)


def _locked(handle: int) -> bool | None:
    """Locks a file without waiting; False if another process holds the lock, None if locks do not work."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


class Draft:
    """A file that is being written, under its draft's name; every method raises `OSError`."""

    def __init__(self, path: Path) -> None:
        """Creates the draft, a new file; a device, a pipe or a socket is refused."""
        self.path, self.temp_path = path, draft_of(path)
        _refuse_special(path)
        there = _mode_of(path)
        # Until the rename, its permissions are no wider than those of the file that it may replace.
        handle = _open_draft(path, 0o666 if there is None else there & 0o666 | 0o600)
        self._file: IO[bytes] = os.fdopen(handle, "wb")

    def write(self, content: bytes | str) -> None:
        self._file.write(content.encode() if isinstance(content, str) else content)

    def commit(self, *, replace: bool) -> None:
        """Flushes the file to the disk and renames it; `FileExistsError` if the name exists."""
        try:
            _refuse_special(self.path)
            if replace and not self.path.is_symlink():
                self._take_mode(_mode_of(self.path))
            self._file.flush()
            os.fsync(self._file.fileno())
            if replace:
                self.temp_path.replace(self.path)
                self._file.close()
            else:
                _rename_exclusively(self.temp_path, self.path)
        finally:
            self.abandon()
        flush_folder(self.path.parent)

    def _take_mode(self, mode: int | None) -> None:
        handle = self._file.fileno()
        # File systems without permissions report one mode for all files, and refuse to change it.
        if mode is not None and stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            os.fchmod(handle, mode)

    def abandon(self) -> None:
        """Removes the draft; has no effect after the rename."""
        if not self._file.closed:
            try:
                # Removed before it is unlocked, so the next writer never finds an unlocked draft.
                self.temp_path.unlink(missing_ok=True)
            finally:
                with suppress(OSError):
                    self._file.close()


class Destination:
    """An output file of a command. Every method raises one-line errors: `InputError` if the name exists or is
    unusable, `ShakedownError` if the disk fails.
    """

    def __init__(self, path: Path, *, replace: bool, accepted: str = FORCE) -> None:
        """Refuses an existing name before anything is written."""
        self.path, self._replace, self._accepted = path, replace, accepted
        check_free(path, replace, accepted)
        self._special: IO[bytes] | None = None
        self._draft: Draft | None = None
        with self._one_line_errors():
            if is_special(path):
                # A device or a pipe has no content that could be lost.
                self._special = path.open("wb", buffering=0)
            else:
                self._draft = Draft(path)

    @property
    def temp_path(self) -> Path:
        """The file's present name, for another writer that appends to it before and after the rename."""
        return self.path if self._draft is None else self._draft.temp_path

    def write(self, content: bytes | str) -> None:
        with self._one_line_errors():
            if self._draft is not None:
                self._draft.write(content)
            elif self._special is not None:
                self._special.write(content.encode() if isinstance(content, str) else content)

    def commit(self) -> None:
        """Gives the file its name."""
        with self._one_line_errors():
            if self._draft is not None:
                self._draft.commit(replace=self._replace)
            elif self._special is not None:
                self._special.close()

    def abandon(self) -> None:
        """Removes the draft, or closes the device."""
        if self._draft is not None:
            self._draft.abandon()
        elif self._special is not None:
            self._special.close()

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError as error:
            raise InputError(f"{self.path}: exists already; accepted: {self._accepted}") from error
        except OSError as error:
            raise os_failure(f"{self.path}: cannot be written: {os_reason(error)}", error) from error


@contextmanager
def writing(path: Path, *, replace: bool = False, accepted: str = FORCE) -> Iterator[Destination]:
    """A file that is renamed to its final name at the end of the block; an error leaves no file.

    Raises `InputError` if the name exists or cannot be written.
    """
    destination = Destination(path, replace=replace, accepted=accepted)
    try:
        yield destination
    except BaseException:
        destination.abandon()
        raise
    destination.commit()


def write(path: Path, content: bytes | str, *, replace: bool = False, accepted: str = FORCE) -> None:
    """Writes a complete file. Raises `InputError` if it exists (without ``replace``) or cannot be written."""
    with writing(path, replace=replace, accepted=accepted) as file:
        file.write(content)


def write_durably(path: Path, content: bytes, *, replace: bool) -> None:
    """Writes a complete internal file, such as a cache entry.

    Raises `OSError`; `FileExistsError` if the name exists and must not be replaced.
    """
    draft = Draft(path)
    try:
        draft.write(content)
    except BaseException:
        draft.abandon()
        raise
    draft.commit(replace=replace)


@contextmanager
def made_folders(folder: Path) -> Iterator[None]:
    """Creates a folder and its parents. Created folders that are empty at the end of the block are removed.

    Raises `InputError` or `ShakedownError` if the folder cannot be created.
    """
    missing = missing_folders(folder)
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise os_failure(f"{folder}: cannot be written: {os_reason(error)}", error) from error
        yield
    finally:
        remove_empty(missing)


def missing_folders(folder: Path) -> list[Path]:
    """The folder and its parents, as far as they do not exist, innermost first."""
    return list(takewhile(lambda one: not os.path.lexists(one), (folder, *folder.parents)))


def remove_empty(folders: Iterable[Path]) -> None:
    """Removes folders that exist, until one is not empty."""
    with suppress(OSError):
        for folder in folders:
            with suppress(FileNotFoundError):
                folder.rmdir()


def flush_folder(folder: Path) -> None:
    """Flushes a folder's list of names to the disk, so a new name survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return sha256(content).hexdigest()


def digest_of(path: Path) -> str | None:
    """The digest of a regular file; None for anything else, symbolic links included."""
    with suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            with path.open("rb") as file:
                return file_digest(file, "sha256").hexdigest()
    return None


def _rename_exclusively(draft: Path, path: Path) -> None:
    """Renames a draft; raises `FileExistsError` if the new name exists."""
    try:
        os.link(draft, path, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: claim the name first.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
        draft.replace(path)


def _mode_of(path: Path) -> int | None:
    """The permissions of a regular file or of a link's target; None if there is no regular file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else None


def is_special(path: Path) -> bool:
    """Whether a name is a device, a pipe or a socket, which is written to but not replaced.

    This includes all names in `/dev` and `/proc`, even if they are links to files (`/dev/stdout`).
    """
    try:
        mode = path.stat().st_mode
        folder = os.path.realpath(path.parent)
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        return False
    return not stat.S_ISREG(mode) or folder == "/dev" or folder.startswith("/proc/")


def _refuse_special(path: Path) -> None:
    if is_special(path):
        raise OSError(errno.EINVAL, SPECIAL, str(path))
