"""User-supplied certificates in an experiment: their files, the suites that use them, and their description.

A suite without key names uses the user's chain if possible. A suite with key names uses the chain if its
keys are those; otherwise certificates with the named keys are generated. So one experiment can compare a
user's chain with others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shakedown import native
from shakedown.errors import InputError, NoUseError
from shakedown.native.scenario import MeasureOptions
from shakedown.schema import convert
from shakedown.schema.base import SIDES, Side
from shakedown.schema.certificates import ChainFiles, Description, UserChain

VALIDATION_LEVEL = 2
"""OpenSSL's security level at which the report validates certificates: the default of OpenSSL's clients."""


@dataclass(frozen=True)
class SideFiles:
    """The files of one side: a chain, leaf first; its key and root if they are in other files."""

    side: Side
    chain: Path
    key: Path | None = None
    ca: Path | None = None
    password_env: str | None = None

    @property
    def password(self) -> str | None:
        """The password, from the environment, so that it need not be in a file."""
        return os.environ.get(self.password_env) if self.password_env else None

    def options(self) -> dict[str, str]:
        prefix = "" if self.side == "server" else "client_"
        given = {"chain": self.chain, "key": self.key, "ca": self.ca, "password": self.password}
        return {prefix + name: str(value) for name, value in given.items() if value is not None}

    def described(self, now: int) -> Description:
        """A description of the chain, with a peer's violations at `now` (Unix seconds)."""
        [found] = native.certs(
            {
                "do": "show",
                "files": [str(self.chain)],
                "key": self.key,
                "ca": self.ca,
                "password": self.password,
                "side": self.side,
                "level": VALIDATION_LEVEL,
                "now": now,
            }
        )
        return convert({key: value for key, value in found.items() if key != "file"}, Description)

    def about(self, now: int, suites: Sequence[str]) -> UserChain:
        """The entry in a manifest: names of files, without folders and keys."""
        return UserChain(
            **msgspec.structs.asdict(self.described(now)),
            suites=tuple(suites),
            files=ChainFiles(
                chain=self.chain.name,
                key=self.key.name if self.key else None,
                ca=self.ca.name if self.ca else None,
            ),
            verification_time=now,
            level=VALIDATION_LEVEL,
        )


@dataclass(frozen=True)
class Assigned:
    """A suite, named after the user-supplied certificates, and the sides that present them."""

    suite: str
    sides: tuple[Side, ...] = ()
    notes: tuple[str, ...] = ()


class WrongChainError(InputError):
    """One side's files are invalid for every suite."""

    def __init__(self, side: Side, reason: str) -> None:
        super().__init__(reason)
        self.side = side


def assign(written: str, suite: str, files: Mapping[Side, SideFiles], now: int) -> Assigned:
    """Selects the files that a suite presents; `written` is the name as the user wrote it, `suite` canonical.

    Raises `WrongChainError` if they are invalid: unreadable, not a pair, out of order, or not valid at `now`.
    """
    given = [side for side in SIDES if side in files]
    choices = [tuple(given)] if len(given) < 2 else [tuple(given), ("server",), ("client",)]
    free = leaves_keys_out(written)
    for sides in choices:
        try:
            found, notes = _named(suite, sides, files, now)
        except NoUseError:
            continue
        if free or found == suite:
            return Assigned(native.runnable(found), sides, tuple(notes))
    return Assigned(suite)


def _named(
    suite: str, sides: Sequence[Side], files: Mapping[Side, SideFiles], now: int
) -> tuple[str, list[str]]:
    try:
        return native.named_by_chain(suite, _options(sides, files, now))
    except NoUseError:
        raise
    except InputError as error:
        raise WrongChainError(_culprit(suite, sides, files, now), str(error)) from error


def _options(sides: Sequence[Side], files: Mapping[Side, SideFiles], now: int) -> MeasureOptions:
    given = {key: value for side in sides for key, value in files[side].options().items()}
    return MeasureOptions(now=now, **given)  # type: ignore[arg-type]  # the keys are those of files


def _culprit(suite: str, sides: Sequence[Side], files: Mapping[Side, SideFiles], now: int) -> Side:
    """The side whose files are invalid, after those of several sides were refused together."""
    for side in sides[:-1]:
        try:
            native.named_by_chain(suite, _options([side], files, now))
        except NoUseError:
            continue
        except InputError:
            return side
    return sides[-1]


def leaves_keys_out(written: str) -> bool:
    """Whether a suite's name, as the user wrote it, does not specify keys.

    Keys are the third part, if they are specified. Any other third part changes something else.
    """
    parts = written.strip().lower().split("/")
    if len(parts) < 3:
        return True
    base = native.describe("/".join(parts[:2]))
    try:
        probe = native.describe("/".join(parts[:3]))
    except InputError:
        # For example "optimized", which is valid only with further parts.
        return True
    if probe["keys"] != base["keys"]:
        return False
    others = ("authentication", "mode", "cipher")
    said = {str(base[name]) for name in others} | {"full"}
    return any(probe[name] != base[name] for name in others) or parts[2] in said
