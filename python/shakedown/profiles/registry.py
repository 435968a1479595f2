"""Finds profiles: those shipped with the package, and the user's.

The user's profiles are in ``$XDG_DATA_HOME/shakedown/devices`` and ``…/bearers`` (``~/.local/share`` by
default).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from shakedown.errors import InputError, did_you_mean, os_reason
from shakedown.files.limits import MAX_PROFILE_BYTES
from shakedown.files.patterns import expanded, is_pattern, one_name
from shakedown.files.write import is_special
from shakedown.profiles.bearer import (
    CONGESTION_CONTROLS,
    HOST_LIMITS,
    MAX_LOSS,
    SUPER_PACKETS,
    Bearer,
    parse_bearer,
)
from shakedown.profiles.device import Device, parse_device, variant_of
from shakedown.profiles.software import ServerSoftware, parse_software
from shakedown.schema.arguments import profile_name
from shakedown.schema.units import parse_share

THIS_MACHINE = "this-machine"
Profile = TypeVar("Profile", Device, Bearer, ServerSoftware)
MAX_LISTED = 12
"""Limit of names in an error; above it, the error refers to the command that lists them."""
MAX_HINTED = 6
"""Limit of profiles that an error suggests by their titles."""
_PACKAGE = Path(__file__).parent
_NAME = re.compile(r"[^.:*?\[/\x00-\x1f\ud800-\udfff][^:*?\[/\x00-\x1f\ud800-\udfff]*")
"""A name without the characters of patterns and variants, and in UTF-8."""


def user_data_dir() -> Path:
    """Return the folder of the user's profiles and traces."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "shakedown"


def this_machine_path() -> Path:
    """Return the path of this machine's profile, which ``--device this-machine`` reads."""
    return user_data_dir() / "devices" / f"{THIS_MACHINE}.toml"


def device_names() -> list[str]:
    """Return the sorted names of all device profiles, the package's and the user's, and ``this-machine``."""
    return sorted({*_paths("devices"), THIS_MACHINE})


def existing_device_names() -> list[str]:
    """`device_names`, without ``this-machine`` if it has no profile yet."""
    return [name for name in device_names() if name != THIS_MACHINE or this_machine_path().exists()]


def bearer_names() -> list[str]:
    return sorted(_paths("bearers"))


def matching(words: Sequence[str], names: Sequence[str], title: Callable[[str], str], what: str) -> list[str]:
    """The names that equal a word, match a pattern, or contain a word in name or title (ignoring case); a
    word without a match is kept.
    """
    found: dict[str, None] = {}
    for word in words:
        some = expanded(word, names, what)
        if some == [word] and word not in names:
            part = word.casefold()
            some = [name for name in names if part in name.casefold() or part in title(name).casefold()]
        found |= dict.fromkeys(some or [word])
    return list(found)


Names = str | Path | Sequence[str | Path]
"""A profile's name or path, or several; names in a list may be patterns."""


def places(device: Names, server_device: Names, bearer: Names) -> list[tuple[str, str, str]]:
    """All combinations of the named devices, server devices and bearers. Raises `InputError`."""
    return list(
        product(
            listed(device, existing_device_names, "device"),
            listed(server_device, existing_device_names, "device"),
            listed(bearer, bearer_names, "bearer"),
        )
    )


def listed(names: Names, known: Callable[[], list[str]], what: str) -> list[str]:
    """The names: a single one unchanged; in a list, patterns are expanded. Raises `InputError`."""
    if isinstance(names, Path):
        return [profile_name(names)]
    if isinstance(names, str):
        return [names if is_path(names) else one_name(names, what)]
    found: dict[str, None] = {}
    for name in names:
        text, colon, change = profile_name(name).partition(":")
        some = expanded(text, known(), what) if isinstance(name, str) and is_pattern(text) else [text]
        found |= dict.fromkeys(f"{one}{colon}{change}" for one in some)
    if not found:
        raise InputError(f"no {what} is named; accepted: one or more")
    return list(found)


def is_path(name: str) -> bool:
    """Whether a profile is named by its file."""
    return "/" in name or name.endswith(".toml")


def load_device(name: str) -> Device:
    """Load and validate a device profile by name, or by path if ``name`` has a slash or ends in ``.toml``.

    ``BOARD:VARIANT`` is another build of the same board. Raises `InputError` for an unknown name (with a
    suggestion), an unreadable file or an invalid profile.
    """
    if name == THIS_MACHINE and THIS_MACHINE not in _paths("devices"):
        raise InputError(
            f"device {THIS_MACHINE!r} has no profile yet at {this_machine_path()}; "
            "'shakedown devices measure' creates it"
        )
    if is_path(name):
        return _load("devices", "device", name, parse_device)
    board, colon, variant = name.partition(":")
    device = _load("devices", "device", board, parse_device)
    return variant_of(device, variant) if colon else device


def load_bearer(name: str) -> Bearer:
    """Load and validate a bearer profile by name or path; errors as ``load_device``.

    ``BEARER:loss=2%,congestion=bbr,initial-window=20`` changes the loss rate of both directions, the
    congestion control and the initial window; each is optional, as are `super-packets` and the other fields
    of `HostTcp`.
    """
    profile, colon, changes = name.rpartition(":")
    if not colon or "/" in changes:
        return _load("bearers", "bearer", name, parse_bearer)
    bearer = _load("bearers", "bearer", profile, parse_bearer)
    bearer = structs.replace(bearer, name=f"{bearer.name}:{changes}")
    keys: set[str] = set()
    for change in changes.split(","):
        bearer = _changed(bearer, change)
        key = change.partition("=")[0]
        if key in keys:
            raise InputError(f"bearer {name!r}: {key} is there twice; accepted: each setting once")
        keys.add(key)
    return bearer


def changed_bearer(name: str, **changes: str | None) -> str:
    """Adds changes to a bearer's name, in the form for `load_bearer`; None changes nothing."""
    added = ",".join(f"{key.replace('_', '-')}={text}" for key, text in changes.items() if text is not None)
    changed = ":" in name.rpartition("/")[2]
    return f"{name}{',' if changed else ':'}{added}" if added else name


_HOST_NUMBERS = {key.replace("_", "-"): (key, *limits) for key, limits in HOST_LIMITS.items()}


def _changed(bearer: Bearer, change: str) -> Bearer:
    key, _, text = change.partition("=")
    if key == "loss":
        with suppress(InputError):
            loss = parse_share(text)
            if loss <= MAX_LOSS:
                up, down = (structs.replace(way, loss=loss) for way in (bearer.up, bearer.down))
                return structs.replace(bearer, up=up, down=down)
    elif key == "congestion" and text in CONGESTION_CONTROLS:
        return structs.replace(bearer, tcp=structs.replace(bearer.tcp, congestion=text))
    elif key == "quick-ack" and text in ("true", "false"):
        return structs.replace(bearer, tcp=structs.replace(bearer.tcp, quick_ack=text == "true"))
    elif key == "super-packets" and text in SUPER_PACKETS:
        return structs.replace(bearer, super_packets=text)
    elif key in _HOST_NUMBERS and text.isascii() and text.isdecimal():
        name, least, most = _HOST_NUMBERS[key]
        if least <= int(text) <= most:
            return structs.replace(bearer, tcp=structs.replace(bearer.tcp, **{name: int(text)}))
    accepted = {
        "loss": f"0% to {MAX_LOSS:.0%}",
        "congestion": ", ".join(CONGESTION_CONTROLS),
        **{name: f"{least} to {most:,}" for name, (_, least, most) in _HOST_NUMBERS.items()},
        "quick-ack": "true, false",
        "super-packets": ", ".join(SUPER_PACKETS),
    }
    if key in accepted:
        raise InputError(f"bearer {bearer.name!r}: {key} is {text!r}; accepted: {accepted[key]}")
    hint = did_you_mean(key, accepted) or f"; accepted: {', '.join(f'{name}=…' for name in accepted)}"
    raise InputError(f"bearer {bearer.name!r}: unknown setting {change!r}{hint}")


def software_names() -> list[str]:
    return sorted(_paths("server_software"))


def load_software(name: str) -> ServerSoftware:
    """Load and validate a profile of server software by name or path; errors as ``load_device``."""
    return _load("server_software", "server software", name, parse_software)


def shipped_names(kind: str) -> list[str]:
    return sorted(_shipped(kind))


@lru_cache(maxsize=3)
def _shipped(kind: str) -> dict[str, Path]:
    """The package's profiles. They are cached, so the result must not be changed."""
    return {path.stem: path for path in sorted((_PACKAGE / kind).glob("*.toml"))}


def _paths(kind: str) -> dict[str, Path]:
    """The package's and the user's profiles; not cached, because files may be added at any time.

    Files that no name can select (`a:b.toml`), pipes and devices are ignored.
    """
    shipped = dict(_shipped(kind))
    for path in sorted((user_data_dir() / kind).glob("*.toml")):
        if not _NAME.fullmatch(path.stem) or is_special(path):
            continue
        if path.stem in shipped:
            raise InputError(
                f"{path}: duplicate name {path.stem!r}, the name of a shipped profile; accepted: another name"
            )
        shipped[path.stem] = path
    return shipped


def _titled(name: str, paths: Mapping[str, Path]) -> str:
    """Suggests profiles by the words of a name: the one whose title begins with them ("Raspberry Pi 4" for
    `raspberry-pi-4`), or a few whose titles contain them ("NXP LPC1114 (Cortex-M0)" for `cortex-m0`).
    """
    words = re.findall(r"[^\W_]+", name.casefold())
    found, holding = [], []
    for known, path in paths.items():
        with suppress(InputError):  # errors in other profiles are not reported here
            title = str(_document(path).get("title", ""))
            of_title = re.findall(r"[^\W_]+", title.casefold())
            if words and of_title[: len(words)] == words:
                found.append(known)
            elif words and f" {' '.join(words)} " in f" {' '.join(of_title)} ":
                holding.append(known)
    if len(found) == 1:
        return f'; did you mean "{found[0]}"?'
    if found or not 0 < len(holding) <= MAX_HINTED:
        return ""
    *others, last = (f'"{one}"' for one in sorted(holding))
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def _load(folder: str, word: str, name: str, parse: Callable[[dict[str, Any], str], Profile]) -> Profile:
    as_path = is_path(name)
    if as_path:
        path = Path(name)
    else:
        paths = _paths(folder)
        if name not in paths:
            hint = _titled(name, paths) or did_you_mean(name, paths)
            # No command lists server software.
            few = folder == "server_software" or (not hint and len(paths) <= MAX_LISTED)
            listed = ", ".join(sorted(paths)) if few else f'names that "shakedown {folder}" lists'
            raise InputError(f"unknown {word} {name!r}{hint}{'' if hint else ';'} accepted: {listed}")
        path = paths[name]
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {os_reason(error)}; accepted: a readable {word} profile") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r}: {error}; accepted: a readable {word} profile") from None
    # The stamp differs if the file was replaced, or if the relative path is that of another file.
    stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    profile: Profile = _read(path, stamp, parse)
    if not as_path and profile.name != name:
        raise InputError(f"{path}: name is {profile.name!r}; accepted: the file's own name {name!r}")
    return profile


@lru_cache(maxsize=256)
def _read(path: Path, _stamp: tuple[int, ...], parse: Callable[[dict[str, Any], str], Profile]) -> Profile:
    return parse(_document(path), str(path))


def _document(path: Path) -> dict[str, Any]:
    from shakedown.files.toml import load_toml

    return load_toml(path, MAX_PROFILE_BYTES, "TOML file")[0]
