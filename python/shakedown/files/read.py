"""Files that are to be read by somebody else, looked at first."""

from __future__ import annotations

from pathlib import Path

from shakedown.errors import InputError, os_reason


def check_readable(path: str | Path) -> None:
    """Raises `InputError` where a file cannot be opened, with the system's reason."""
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise InputError(f'"{path}" cannot be read: {os_reason(error)}') from error
