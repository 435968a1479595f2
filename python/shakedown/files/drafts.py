"""Drafts: files in the making, beside their final names, each held by the process that writes it.

A draft is called `.NAME.MACHINE-TOKEN.draft`, where MACHINE are a few digits of this machine's name, and is
locked for as long as its writer lives. A draft of this machine that is not locked was left by a killed
writer; the next writer of the same file removes it. Drafts of other machines, and on file systems without
locks, stay.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from socket import gethostname

SUFFIX = ".draft"
_NAME = re.compile(r"\.(?P<of>.+)\.(?P<machine>[0-9a-f]{6})-[0-9a-f]{8}" + re.escape(SUFFIX), re.DOTALL)
_TRIES = 10
"""Names that are tried: each is taken with a chance of one in four thousand million."""


@cache
def _machine() -> str:
    return sha256(gethostname().encode("utf-8", "surrogateescape")).hexdigest()[:6]


def open_draft(path: Path, mode: int) -> tuple[Path, int]:
    """A new draft of a file, locked, and its handle; the umask restricts `mode`. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_TRIES):
        draft = path.with_name(f".{path.name}.{_machine()}-{token_hex(4)}{SUFFIX}")
        handle = os.open(draft, flags, mode)
        if _held(handle) is not False and os.fstat(handle).st_nlink:
            return draft, handle
        # Another process took it for a leftover before it was locked.
        os.close(handle)
        draft.unlink(missing_ok=True)
    raise FileExistsError(f"{path}: no name is free for its draft")


def _held(handle: int) -> bool | None:
    """Locks a file without waiting; False where somebody else has it, None where there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def remove_left_over(folder: Path, is_of: Callable[[str], bool]) -> list[Path]:
    """Removes drafts of this machine that their writers left when they were killed, of the files in a folder
    whose names `is_of` chooses. Returns what was removed; what cannot be looked at or removed stays.
    """
    removed = []
    for name in _names(folder):
        found = _NAME.fullmatch(name)
        if found and found["machine"] == _machine() and is_of(found["of"]) and _remove(folder / name):
            removed.append(folder / name)
    return removed


def remove_left_over_of(paths: Iterable[Path]) -> None:
    """The same for drafts of these files."""
    folders: dict[Path, set[str]] = {}
    for path in paths:
        folders.setdefault(path.parent, set()).add(path.name)
    for folder, names in folders.items():
        remove_left_over(folder, names.__contains__)


def _names(folder: Path) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.name.endswith(SUFFIX)]
    return []


def _remove(draft: Path) -> bool:
    """Removes a draft that no process holds."""
    try:
        handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or not _held(handle):
            return False
        with suppress(OSError):
            now = draft.lstat()
            # Where the file has got its name already, that stays.
            if (now.st_dev, now.st_ino) == (about.st_dev, about.st_ino):
                draft.unlink()
                return True
        return False
    finally:
        os.close(handle)
