"""Reads TOML, and composes its error messages: the line of a key, its value, and syntax errors."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from shakedown.errors import InputError
from shakedown.files.limits import MAX_DEPTH, digits_line, read_text

MAX_VALUE_LENGTH = 80
"""Maximum number of characters of a value in an error message."""

MAX_KEYS = 500_000
"""Characters that may begin or join keys, `=`, `.`, `[` and `{`: tomllib needs up to 1 KB for each."""

_TOO_DEEP = re.compile(
    rf"""(?<![\w\\-])
    (?: (?: [\w-]++ | "(?:[^"\\\n]|\\.)*+" | '[^'\n]*+' ) [ \t]*+ \. [ \t]*+ ){{{MAX_DEPTH}}}""",
    re.VERBOSE,
)
"""A key of more than `MAX_DEPTH` parts: tomllib's time and memory grow with the square of their number."""


def load_toml(path: Path, max_bytes: int, what: str) -> tuple[dict[str, Any], str]:
    """A TOML file's tables, and its text. Raises `InputError` with the line number."""
    text = read_text(path, max_bytes, what).removeprefix("\ufeff")
    if (keys := sum(map(text.count, "=.[{"))) > MAX_KEYS:
        raise InputError(
            f'{path}: {keys:,} characters "=", ".", "[" and "{{"; accepted: {MAX_KEYS:,} at most'
        )
    if deep := _TOO_DEEP.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise InputError(f"{path}, line {line}: not valid TOML: nested deeper than {MAX_DEPTH}")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(syntax_error(path, text, str(error))) from error
    except RecursionError:
        raise InputError(f"{path}: not valid TOML: nested deeper than {MAX_DEPTH}") from None
    except MemoryError:
        raise InputError(f"{path}: needs more memory than there is; accepted: a smaller {what}") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid TOML: {digits_line(error) or error}") from None
    if depth(data) > MAX_DEPTH:
        raise InputError(f"{path}: not valid TOML: nested deeper than {MAX_DEPTH}")
    return data, text


def depth(value: object) -> int:
    """The nesting depth of tables and arrays."""
    level, here = 0, [value]
    while here := [one for one in here if isinstance(one, dict | list)]:
        level += 1
        here = [inner for one in here for inner in (one.values() if isinstance(one, dict) else one)]
    return level


def syntax_error(path: Path, text: str, reason: str) -> str:
    """Converts an error of tomllib to a message with the line number and its key."""
    match = re.fullmatch(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)", reason, re.DOTALL)
    lines = text.splitlines() or [""]
    number = int(match[2]) if match and match[2] else len(lines)
    what = match[1] if match else reason
    what = what[:1].lower() + what[1:]
    key = re.match(r"\s*([\w.\-]+)\s*=", lines[number - 1] if number <= len(lines) else "")
    named = f", key {key[1]}" if key else ""
    return f"{path}, line {number}{named}: not valid TOML: {what}"


def locate(text: str, key: str, element: str | None = None) -> int:
    """The line number of a key in a TOML text, or of a string in its array; 1 if it is not found.

    A key of a table is written `table.key`; if only the table is found, the result is the table's line.
    """
    lines = text.splitlines()
    table, _, inner = key.partition(".")
    if inner:
        start = locate(text, table)
        at = re.compile(rf"""(?:^|[\s{{,.])["']?{re.escape(inner)}["']?\s*=""")
        found = [number for number, line in enumerate(lines[start - 1 :], start=start) if at.search(line)]
        holding = [number for number in found if element is not None and element in lines[number - 1]]
        return next(iter((*holding, *found)), start)
    at = re.compile(rf"""\s*(?:\[+\s*)?["']?{re.escape(key)}["']?\s*(?:=|\.|\])""")
    for number, line in enumerate(lines, start=1):
        if not at.match(line):
            continue
        if element is not None:
            for later, candidate in enumerate(lines[number - 1 :], start=number):
                if element in candidate:
                    return later
        return number
    return 1


def describe(value: object) -> str:
    """A TOML value as text for an error message, truncated to `MAX_VALUE_LENGTH` characters."""
    if isinstance(value, bool):
        return "true" if value else "false"
    names: dict[type, str] = {dict: "a table", list: "an array"}
    if type(value) in names:
        return names[type(value)]
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError as error:
        return digits_line(error) or "a value that cannot be printed"
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 1]}…"
