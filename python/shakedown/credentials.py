"""A user's own certificates in an experiment: which files, to which suites they go, and what they are.

A suite that leaves its keys out takes the user's chain wherever it can; one that names keys takes it where
they are the chain's keys, and keeps certificates made of the named keys elsewhere. So one experiment holds a
user's own chain against others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shakedown.errors import InputError, NoUseError
from shakedown.measurement import SIDES, Side

JUDGED_AT_LEVEL = 2
"""OpenSSL's security level at which the report judges certificates: what its clients have by default."""


@dataclass(frozen=True)
class OwnFiles:
    """What one side shows: a chain, leaf first, its key and root where they are not in the chain's file."""

    side: Side
    chain: Path
    key: Path | None = None
    ca: Path | None = None
    password_env: str | None = None

    @property
    def password(self) -> str | None:
        """From the environment, where it can be kept out of files."""
        return os.environ.get(self.password_env) if self.password_env else None

    def options(self) -> dict[str, object]:
        """These files as options of `measure`."""
        prefix = "" if self.side == "server" else "client_"
        given = {"chain": self.chain, "key": self.key, "ca": self.ca, "password": self.password}
        return {prefix + name: value for name, value in given.items() if value is not None}

    def about(self, now: int) -> dict[str, Any]:
        """What the chain is and what a peer would refuse at `now` (Unix seconds); names of files, no keys."""
        from shakedown import core

        [shown] = core.certs(
            {
                "do": "show",
                "files": [str(self.chain)],
                "key": self.key,
                "ca": self.ca,
                "password": self.password,
                "side": self.side,
                "level": JUDGED_AT_LEVEL,
                "now": now,
            }
        )
        files = {"chain": self.chain, "key": self.key, "ca": self.ca}
        names = {name: path.name for name, path in files.items() if path is not None}
        description = {key: value for key, value in shown.items() if key != "file"}
        return {"files": names, "judged_at": now, "level": JUDGED_AT_LEVEL, **description}


@dataclass(frozen=True)
class OwnMaterial:
    """Each side's files, checked at `now` (Unix seconds), and which sides show theirs in which suite."""

    files: Mapping[Side, OwnFiles] = field(default_factory=dict)
    now: int = 0
    used: Mapping[str, tuple[Side, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def options(self, suite: str) -> dict[str, object]:
        """Options of `measure` for a suite: nothing where it shows certificates that were made here."""
        sides = self.used.get(suite, ())
        options: dict[str, object] = {"now": self.now} if sides else {}
        for side in sides:
            options |= self.files[side].options()
        return options


@dataclass(frozen=True)
class Assigned:
    """A suite by the name that it has with the user's certificates, and the sides that show them."""

    suite: str
    sides: tuple[Side, ...] = ()
    notes: tuple[str, ...] = ()


class WrongMaterialError(InputError):
    """One side's files are no good, whatever the suite."""

    def __init__(self, side: Side, reason: str) -> None:
        """Remembers whose they are."""
        super().__init__(reason)
        self.side = side


def assign(written: str, suite: str, files: Mapping[Side, OwnFiles], now: int) -> Assigned:
    """Which of the files a suite shows; `written` is its name as the user wrote it, `suite` canonical.

    Raises `WrongMaterialError` where they are no good: unreadable, no pair, out of order, not valid at `now`.
    """
    from shakedown import core

    given = [side for side in SIDES if side in files]
    choices = [tuple(given)] if len(given) < 2 else [tuple(given), ("server",), ("client",)]
    free = leaves_keys_out(written)
    for sides in choices:
        try:
            found, notes = _named(suite, sides, files, now)
        except NoUseError:
            continue
        if free or found == suite:
            return Assigned(core.runnable(found), sides, tuple(notes))
    return Assigned(suite)


def _named(
    suite: str, sides: Sequence[Side], files: Mapping[Side, OwnFiles], now: int
) -> tuple[str, list[str]]:
    from shakedown import core

    options: dict[str, object] = {"now": now}
    for side in sides:
        options |= files[side].options()
    try:
        return core.own(suite, **options)
    except NoUseError:
        raise
    except InputError as error:
        raise WrongMaterialError(_culprit(suite, sides, files, now), str(error)) from error


def _culprit(suite: str, sides: Sequence[Side], files: Mapping[Side, OwnFiles], now: int) -> Side:
    """Of the sides whose files were tried together, the one whose are no good."""
    from shakedown import core

    for side in sides[:-1]:
        try:
            core.own(suite, **{"now": now, **files[side].options()})
        except NoUseError:
            continue
        except InputError:
            return side
    return sides[-1]


def leaves_keys_out(written: str) -> bool:
    """Whether a suite's name, as somebody wrote it, says nothing of keys.

    Keys stand third, if at all. Of the other parts that could stand there each changes something else.
    """
    from shakedown import core

    parts = written.strip().lower().split("/")
    if len(parts) < 3:
        return True
    base = core.describe("/".join(parts[:2]))
    try:
        probe = core.describe("/".join(parts[:3]))
    except InputError:
        # An "optimized" or the like, which is sound only with what follows it.
        return True
    if probe["keys"] != base["keys"]:
        return False
    others = ("authentication", "mode", "cipher")
    said = {str(base[name]) for name in others} | {"full"}
    return any(probe[name] != base[name] for name in others) or parts[2] in said
