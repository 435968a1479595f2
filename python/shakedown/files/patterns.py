"""Names with wildcards and sets, as in shells: `tls1.3/{x25519,p256}/*/server`, `gprs-*`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from shakedown.errors import InputError, did_you_mean

MAX_NAMES = 10_000


def is_pattern(text: str) -> bool:
    """Whether a text contains a wildcard or a set."""
    return any(mark in text for mark in "*?[{")


def alternatives(text: str) -> list[str]:
    """Expands the sets in braces of a text. Raises `InputError`."""
    before, brace, rest = text.partition("{")
    if not brace:
        return [text]
    parts, depth, start = [], 1, 0
    for place, mark in enumerate(rest):
        depth += (mark == "{") - (mark == "}")
        if (mark == "," and depth == 1) or depth == 0:
            parts.append(rest[start:place])
            start = place + 1
        if depth == 0:
            break
    else:
        raise InputError(f'"{text[:60]}": a set in braces is not closed; accepted: {{one,other}}')
    ends = alternatives(rest[start:])
    found = [before + inner + end for part in parts for inner in alternatives(part) for end in ends]
    if len(found) > MAX_NAMES:
        raise InputError(f'"{text[:60]}" matches {len(found):,} names; accepted: at most {MAX_NAMES:,}')
    return found


def matches(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern, part by part; a final `*` matches one or more parts."""
    wanted, parts = pattern.split("/"), name.split("/")
    if wanted[-1] == "*" and len(wanted) > 1:
        parts = [*parts[: len(wanted) - 1], "/".join(parts[len(wanted) - 1 :])]
    return len(wanted) == len(parts) and all(
        fnmatchcase(part, want) for part, want in zip(parts, wanted, strict=True)
    )


def expanded(word: str, names: Iterable[str], what: str) -> list[str]:
    """The names that a pattern matches; a word without wildcards is returned as is. Raises `InputError`."""
    return list(dict.fromkeys(_expanded(word, list(names), what)))


def one_name(name: str, what: str) -> str:
    """Returns a single name. Raises `InputError` for a pattern, which may match several."""
    if is_pattern(name):
        raise InputError(
            f'{what} "{name[:60]}" is a pattern; accepted: a name, or a list that holds patterns'
        )
    return name


def _expanded(word: str, names: list[str], what: str) -> Iterator[str]:
    if not is_pattern(word):
        yield word
        return
    for one in alternatives(word):
        if not is_pattern(one):
            yield one
            continue
        found = [name for name in names if matches(one, name)]
        if not found:
            hint = did_you_mean(one.strip("*?[]"), names)
            raise InputError(
                f'no {what} matches "{one[:60]}"{hint or ";"} accepted: names that "shakedown {what}s" lists'
            )
        yield from found
