"""TOML as people wrote it: where a key stands, what was found there, and why a text is none."""

from __future__ import annotations

import re
from pathlib import Path


def syntax_error(path: Path, text: str, reason: str) -> str:
    """tomllib's complaint as ours, with the line and what stands on it."""
    match = re.fullmatch(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)", reason, re.DOTALL)
    lines = text.splitlines() or [""]
    number = int(match[2]) if match and match[2] else len(lines)
    what = match[1] if match else reason
    what = what[:1].lower() + what[1:]
    key = re.match(r"\s*([\w.\-]+)\s*=", lines[number - 1] if number <= len(lines) else "")
    named = f", key {key[1]}" if key else ""
    return f"{path}, line {number}{named}: not valid TOML: {what}"


def locate(text: str, key: str, element: str | None = None) -> int:
    """The line on which a key of a TOML text stands, or a string in its array; 1 if nowhere.

    A key of a table is written `table.key`; where only the table is found, the table's line counts.
    """
    lines = text.splitlines()
    table, _, inner = key.partition(".")
    if inner:
        start = locate(text, table)
        at = re.compile(rf"""(?:^|[\s{{,.])["']?{re.escape(inner)}["']?\s*=""")
        for number, line in enumerate(lines[start - 1 :], start=start):
            if at.search(line) and (element is None or element in line):
                return number
        return start
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
    """A TOML value as an error line names it."""
    names: dict[type, str] = {dict: "a table", list: "an array", bool: "a truth value"}
    if type(value) in names:
        return f"{names[type(value)]} ({value})" if isinstance(value, bool) else names[type(value)]
    return f'"{value}"' if isinstance(value, str) else str(value)
