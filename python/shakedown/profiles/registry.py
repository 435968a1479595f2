"""Finding profiles: the ones shipped with the package and the user's own.

The user's profiles stand in ``$XDG_DATA_HOME/shakedown/devices`` and ``…/bearers`` (``~/.local/share`` by
default).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from shakedown.errors import InputError, did_you_mean, os_reason
from shakedown.profiles.bearer import Bearer, parse_bearer
from shakedown.profiles.device import Device, parse_device, unknown_variant, variant_of

THIS_MACHINE = "this-machine"
Profile = TypeVar("Profile", Device, Bearer)
_PACKAGE = Path(__file__).parent


def user_data_dir() -> Path:
    """Return where the user's own profiles and traces are kept."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "shakedown"


def this_machine_path() -> Path:
    """Return where ``primitives`` writes this machine's profile and ``--device this-machine`` reads it."""
    return user_data_dir() / "devices" / f"{THIS_MACHINE}.toml"


def device_names() -> list[str]:
    """Return the names of every device profile, shipped and own, and ``this-machine``, sorted."""
    return sorted({*_paths("devices"), THIS_MACHINE})


def existing_device_names() -> list[str]:
    """The same, without ``this-machine`` where it has no profile yet."""
    return [name for name in device_names() if name != THIS_MACHINE or this_machine_path().exists()]


def bearer_names() -> list[str]:
    """Return the names of every bearer profile, shipped and own, sorted."""
    return sorted(_paths("bearers"))


def load_device(name: str) -> Device:
    """Load and validate a device profile by name, or by path if ``name`` has a slash or ends in ``.toml``.

    ``BOARD:VARIANT`` is another build of the same board.

    Raises:
        InputError: for an unknown name (the nearest is suggested), an unreadable file or a bad profile.
    """
    if name == THIS_MACHINE and THIS_MACHINE not in _paths("devices"):
        raise InputError(
            f"device {THIS_MACHINE!r} has no profile yet at {this_machine_path()}; "
            "'shakedown devices measure' makes it"
        )
    if "/" in name or name.endswith(".toml"):
        return _load("devices", "device", name, parse_device)
    board, colon, variant = name.partition(":")
    device = _load("devices", "device", board, parse_device)
    if not colon:
        return device
    found = variant_of(device, variant)
    if found is None:
        raise InputError(unknown_variant(device, variant))
    return found


def load_bearer(name: str) -> Bearer:
    """Load and validate a bearer profile by name or path; errors as ``load_device``."""
    return _load("bearers", "bearer", name, parse_bearer)


def shipped_names(kind: str) -> list[str]:
    """Return the names of the ``devices`` or ``bearers`` that the package ships."""
    return sorted(_shipped(kind))


@lru_cache(maxsize=2)
def _shipped(kind: str) -> dict[str, Path]:
    """The package's own, which stay as they are; not to be written to."""
    return {path.stem: path for path in sorted((_PACKAGE / kind).glob("*.toml"))}


def _own(kind: str) -> list[Path]:
    """The user's, sorted; looked for each time, for any may have come meanwhile."""
    try:
        with os.scandir(user_data_dir() / kind) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.name.endswith(".toml"))
    except OSError:
        return []


def _paths(kind: str) -> dict[str, Path]:
    shipped = dict(_shipped(kind))
    for path in _own(kind):
        if path.stem in shipped:
            raise InputError(
                f"{path}: duplicate name {path.stem!r}; the package ships one; accepted: a name of its own"
            )
        shipped[path.stem] = path
    return shipped


def _load(folder: str, word: str, name: str, parse: Callable[[dict[str, Any], str], Profile]) -> Profile:
    as_path = "/" in name or name.endswith(".toml")
    if as_path:
        path = Path(name)
    else:
        paths = _paths(folder)
        if name not in paths:
            hint = did_you_mean(name, paths)
            raise InputError(f"unknown {word} {name!r}; accepted: {', '.join(sorted(paths))}{hint}")
        path = paths[name]
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {os_reason(error)}; accepted: a readable {word} profile") from None
    # Copied over, moved here, or read by a relative path from another folder: another file.
    stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    profile: Profile = _read(path, stamp, parse)
    if not as_path and profile.name != name:
        raise InputError(f"{path}: name is {profile.name!r}; accepted: the file's own name {name!r}")
    return profile


@lru_cache(maxsize=256)
def _read(path: Path, _stamp: tuple[int, ...], parse: Callable[[dict[str, Any], str], Profile]) -> Profile:
    from shakedown.files.limits import MAX_PROFILE_BYTES
    from shakedown.files.toml import load_toml

    document, _ = load_toml(path, MAX_PROFILE_BYTES, "TOML file")
    return parse(document, str(path))
