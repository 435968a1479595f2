"""The lists of suites, stacks, devices and bearers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from shakedown import native
from shakedown.files.patterns import is_pattern
from shakedown.native.suite_names import expand, holding
from shakedown.profiles import bearer_names, existing_device_names, load_bearer, load_device
from shakedown.profiles.bearer import Bearer
from shakedown.profiles.device import Device
from shakedown.profiles.registry import Profile, matching
from shakedown.reporting.rows import Rows
from shakedown.schema.arguments import checked, profile_name
from shakedown.schema.catalogue import StackEntry, SuiteEntry


@checked
def suites(*words: str, all: bool = False) -> Rows[SuiteEntry]:
    """Suites that can run on this machine and whose names contain all words or match the patterns; with
    `all`, also suites that cannot run. Without words, the list has all combinations of protocol, key
    exchange, authentication and mode with the default group, key and cipher, and suites in which one of
    these three parts has another value.
    """
    listed = native.suites(all=all)
    patterns, plain = [word for word in words if is_pattern(word)], [w for w in words if not is_pattern(w)]
    if patterns:
        names = [name for name in expand(patterns) if all_in(plain, name)]
    else:
        found = [entry for entry in listed if all_in(plain, entry.suite)]
        if found or not plain:
            return Rows(found)
        names = holding(plain)
    known = {entry.suite: entry for entry in listed}
    return Rows(
        known.get(name)
        or SuiteEntry(suite=name, stack=native.describe(name)["stack"], supported=True, reason=None)
        for name in names
    )


def stacks() -> Rows[StackEntry]:
    """The implementations that run suites."""
    return Rows(native.stacks())


def all_in(words: Iterable[str], text: str) -> bool:
    return not [word for word in words if word not in text]


@checked
def devices(*names: str | Path) -> Rows[Device]:
    """The device profiles with these names, patterns, paths, or parts of names and titles; without arguments,
    all.
    """
    return Rows(_profiles(names, existing_device_names(), load_device, "device"))


@checked
def bearers(*names: str | Path) -> Rows[Bearer]:
    """The bearer profiles with these names, patterns, paths, or parts of names and titles; without arguments,
    all.
    """
    return Rows(_profiles(names, bearer_names(), load_bearer, "bearer"))


def _profiles(
    names: Sequence[str | Path], known: Sequence[str], load: Callable[[str], Profile], what: str
) -> Iterator[Profile]:
    words = [profile_name(one) for one in names]
    return map(load, matching(words, known, lambda name: load(name).title, what) if words else known)
