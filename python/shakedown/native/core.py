"""Loading the native core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shakedown.errors import ShakedownError

if TYPE_CHECKING:
    from types import ModuleType


def extension() -> ModuleType:
    """The extension module; if it is missing, the error explains how to build it."""
    try:
        from shakedown import _core
    except ImportError as error:
        if error.name not in (None, "shakedown", "shakedown._core"):
            raise
        raise ShakedownError(
            f'the native core cannot be loaded ({error}); "make build" or "pip install ." builds it'
        ) from error
    return _core
