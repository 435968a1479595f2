"""Errors for users: each is one line."""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Iterable

MAX_LINE = 2_000
"""Characters of an error line."""

MAX_WORD = 200
"""Longer words are not compared with accepted ones, because the time is quadratic in the length."""


MIN_PART, MAX_HOLDING = 3, 3
"""A word of at least `MIN_PART` characters is also searched for in the accepted names; at most
`MAX_HOLDING` of these names are suggested.
"""


class ShakedownError(Exception):
    """A failure that is not a defect of this program; `str()` is one line of limited length."""

    exit_status = 1

    def __str__(self) -> str:
        return bounded(super().__str__())


class InputError(ShakedownError):
    """Invalid input. The message names the input, its place, and the accepted values."""

    exit_status = 2


class NoUseError(InputError):
    """The input is valid, but the suite does not use it."""


def bounded(line: str) -> str:
    """Shortens the middle of a long line; its end states what is accepted."""
    if len(line) <= MAX_LINE:
        return line
    half = MAX_LINE // 2
    return f"{line[:half]} … {line[-half:]}"


def refused_name(error: Exception) -> str:
    """The line for a text or a file's name that Python or the system refuses; empty for other errors."""
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        return f'"{error.object[:60]}" is not text; accepted: UTF-8'
    if isinstance(error, ValueError) and str(error) == "embedded null byte":
        return "a name contains a NUL byte; accepted: names without NUL bytes"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG and error.filename is not None:
        return f"{str(error.filename)[:60]}…: {os_reason(error)}"
    return ""


def without_name(reason: str, name: str) -> str:
    """Removes the name from the beginning of a reason that is printed next to it."""
    while (shorter := reason.removeprefix(f"{name}: ").removeprefix(f"suite '{name}': ")) != reason:
        reason = shorter
    return reason


def did_you_mean(word: str, accepted: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean "NEAREST"?`, or an empty text if no accepted word is similar to `word` or contains it.

    For names joined by commas, the suggestion is the set `{a,b}`.
    """
    if len(word) > MAX_WORD:
        return ""
    accepted = list(accepted)
    names = word.split(",")
    if len(names) > 1 and all(name in accepted for name in names):
        return f'; did you mean "{{{word}}}"?'
    import difflib  # only errors need it

    names_by_case = {name.casefold(): name for name in accepted}
    nearest = difflib.get_close_matches(word.casefold(), names_by_case, n=1, cutoff=cutoff)
    if not nearest and len(word) >= MIN_PART:
        nearest = [name for name in names_by_case if word.casefold() in name][:MAX_HOLDING]
    if not nearest:
        return ""
    *others, last = (f'"{names_by_case[name]}"' for name in nearest)
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


_ALTERNATIVE = re.compile(r",? or (?P<option>--[a-z][a-z-]*)(?: [^;,]*)?")
"""An alternative at the end of a message that is an option of the command line."""


def with_options(line: str, known: Collection[str]) -> str:
    """Names options as on the command line: at the line's beginning (`client_ca is "…"`), and without
    alternatives that are options which the command does not have.

    Errors of functions that several commands call end with `accepted: …, or --option …`, but not all of these
    commands have the option.
    """
    name, is_, rest = line.partition(' is "')
    if (option := f"--{name.replace('_', '-')}") in known:
        line = option + is_ + rest
    return _ALTERNATIVE.sub(lambda found: found[0] if found["option"] in known else "", line)


_OF_NAMES = frozenset(
    {
        errno.EACCES, errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENODEV,
        errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.ENXIO, errno.EPERM, errno.EROFS,
    }
)  # fmt: skip


def os_failure(line: str, error: OSError) -> ShakedownError:
    """Converts an operating system's error: to `InputError` if the file's name is the cause, otherwise (for
    example if the disk is full) to `ShakedownError`.
    """
    return InputError(line) if error.errno in _OF_NAMES else ShakedownError(line)


def without_codes(line: str) -> str:
    """Removes the operating system's error numbers from a message of the core."""
    return re.sub(r" \(os error \d+\)", "", line)


def os_reason(error: OSError) -> str:
    """The operating system's description of an error, in lower case: `no space left on device`."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
