"""Converts validation errors of msgspec and Python to messages in the terms of the document's format."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import msgspec
from msgspec import inspect as types

from shakedown.errors import did_you_mean

Format = Literal["JSON", "TOML"]

NOT_EMPTY = r"\S"

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
    "bytes": "bytes",
    "datetime": "a date and time",
    "date": "a date",
    "time": "a time of day",
}
"""msgspec's names of types; `object` is called a table in TOML, which has no null."""


def violation(error: msgspec.ValidationError, kind: Any, where: str, form: Format) -> str:  # noqa: ANN401
    """``where: messages[2].bytes: expected a whole number, got null``; `kind` is the document's type."""
    reason, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    found = reason[:1].lower() + reason[1:]
    if match := re.fullmatch(r"object contains unknown field `(.*)`", found, re.DOTALL):
        found = _unknown(match[1], _type_at(kind, place), form)
    elif match := re.fullmatch(r"object missing required field `(.*)`", found):
        found = f"the key {match[1]} is missing"
    elif match := re.fullmatch(r"invalid enum value (.*)", found, re.DOTALL):
        found = f"expected {_words_of(_type_at(kind, place))}, got {match[1]}"
    elif form == "TOML" and found == "expected `array`, got `object`" and _holds_tables(kind, place):
        found = f"expected an array of tables, [[{place}]], got a table, [{place}]"
    else:
        found = _in_words(found, form)
    return ": ".join(part for part in (where, place, found) if part)


def not_json(where: str, error: Exception) -> str:
    """Why a text is not JSON, with the place; its line is omitted if there is only one."""
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        several = "\n" in error.doc.strip("\r\n")
        place = f"line {error.lineno}, column {error.colno}" if several else f"column {error.colno}"
        reason = f"{reason} at {place}"
    else:
        reason = str(error).removeprefix("JSON is malformed: ")
        reason = reason[:1].lower() + reason[1:]
    return ": ".join(part for part in (where, "not JSON", reason) if part)


def _in_words(reason: str, form: Format) -> str:
    reason = reason.replace(f"`str` matching regex {NOT_EMPTY!r}", "a non-empty string")
    return re.sub(r"`([a-z]+(?: \| [a-z]+)*)`", lambda match: _named(match[1].split(" | "), form), reason)


def _named(names: list[str], form: Format) -> str:
    """Names of msgspec's types as one phrase: `a number or null`."""
    if "float" in names:
        names = [one for one in names if one != "int"]
    if form == "TOML":
        names = [one for one in names if one != "null"] or names
    table = {"object": "a table"} if form == "TOML" else {}
    return " or ".join(table.get(one) or _WORDS.get(one, f"`{one}`") for one in names)


def _unknown(key: str, found: types.Type | None, form: Format) -> str:
    """The error for an unknown key, with a similar key, or for TOML with all keys."""
    known = [one.encode_name for one in found.fields] if isinstance(found, types.StructType) else []
    hint = did_you_mean(key, known)
    if not hint and form == "TOML" and known:
        hint = f"; the keys are {', '.join(known)}"
    return f"unknown key {key[:60]}{hint}"


def _words_of(found: types.Type | None) -> str:
    return " or ".join(map(str, found.values)) if isinstance(found, types.LiteralType) else "another word"


def _holds_tables(kind: Any, place: str) -> bool:  # noqa: ANN401 - a type
    """Whether a top-level key of the document is an array of tables."""
    found = _type_at(kind, place) if place.isidentifier() else None
    return isinstance(_item(found), types.StructType)


def _type_at(kind: Any, place: str) -> types.Type | None:  # noqa: ANN401 - a type
    """The type of the value at a place such as `budget[0].bytes`; None if it is unknown."""
    found: types.Type | None = types.type_info(kind)
    for step in re.findall(r"\[[^\]]*\]|[^.\[\]]+", place):
        if isinstance(found, types.StructType):
            fields = (one.type for one in found.fields if one.encode_name == step)
            found = _plain(next(fields, None))
        else:
            found = _item(found) if step.startswith("[") else None
    return found


def _item(found: types.Type | None) -> types.Type | None:
    """The type of the elements of an array, or of the values of an object with arbitrary keys."""
    if isinstance(found, types.ListType | types.VarTupleType):
        return _plain(found.item_type)
    return _plain(found.value_type) if isinstance(found, types.DictType) else None


def _plain(found: types.Type | None) -> types.Type | None:
    """A type without its constraints and without null."""
    if isinstance(found, types.Metadata):
        return _plain(found.type)
    if isinstance(found, types.UnionType):
        rest = [one for one in found.types if not isinstance(one, types.NoneType)]
        return _plain(rest[0]) if len(rest) == 1 else None
    return found
