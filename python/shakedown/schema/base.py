"""The base of all schema objects: strict, frozen, and displayed in a few lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from shakedown.errors import InputError
from shakedown.schema.violations import NOT_EMPTY, Format, not_json, violation

Side = Literal["client", "server"]


def opposite(side: Side) -> Side:
    return "server" if side == "client" else "client"


Class = Literal["key", "signature", "common"]
Carrier = Literal["bare", "eap"]

SIDES: tuple[Side, Side] = ("client", "server")
CLASSES: tuple[Class, Class, Class] = ("key", "signature", "common")

MAX_NUMBER = 2**53
"""The largest integer up to which every JSON parser represents integers exactly."""

_NUMBER = msgspec.Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)
_AMOUNT = msgspec.Meta(ge=0, le=MAX_NUMBER)
Number = Annotated[int, _NUMBER] | Annotated[float, _NUMBER]
Amount = Annotated[int, _AMOUNT] | Annotated[float, _AMOUNT]
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
Text = Annotated[str, msgspec.Meta(pattern=NOT_EMPTY)]
Kind = Text
"""A kind of figure: its name in the registry `shakedown.experiments.figure_kinds`."""

MAX_SHOWN_TEXT = 60

T = TypeVar("T")


html_of: Callable[[object], str | None] | None = None
"""Renders objects in notebooks. `api` sets it, because tables are created in a layer above the schema."""


class Object(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that is saved or printed. Unknown keys are errors; `repr` is one line."""

    def __repr__(self) -> str:
        values = ((one.name, getattr(self, one.name)) for one in msgspec.structs.fields(self))
        shown = (f"{name}={_brief(value)}" for name, value in values if value is not msgspec.UNSET)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str | None:
        return None if html_of is None else html_of(self)


def _brief(value: object) -> str:
    """A value in a `repr`: the size of a collection, or truncated text."""
    if isinstance(value, Object):
        return f"<{type(value).__name__}>"
    if isinstance(value, tuple | list | dict):
        return f"<{len(value)}>" if value else "<none>"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_TEXT else f"{text[: MAX_SHOWN_TEXT - 1]}…"


def builtins(value: object) -> Any:  # noqa: ANN401 - JSON has any type
    """Converts a schema object, or a collection of them, to dicts and lists with the printed keys."""
    return msgspec.to_builtins(value)


def encode(value: object) -> bytes:
    """JSON on one line. Raises `ValueError` for NaN and infinity, which would be printed as null."""
    _finite(msgspec.to_builtins(value))
    return msgspec.json.encode(value)


def encode_pretty(value: object) -> str:
    """Indented JSON."""
    return msgspec.json.format(encode(value), indent=2).decode()


def _finite(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a figure that is no number cannot be printed as JSON")
    if isinstance(value, dict):
        for item in value.values():
            _finite(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _finite(item)


Basis = Literal["own", "measured", "scaled", "assumed", "unknown"]
"""The basis of a figure, best first."""


class Bounds(Object, frozen=True, kw_only=True):
    """A figure with its uncertainty: the estimate, and its 90 % interval.

    If anything is `missing`, there is no estimate, unless the missing part is negligible and included in the
    interval. `lower` and `upper` are then the bounds that follow from the known parts, null if there is none.
    `basis` is the weakest basis of the known parts that matter.
    """

    estimate: Number | None
    lower: Number | None
    upper: Number | None
    basis: Basis
    missing: tuple[str, ...] = ()


_described: set[Any] = set()
_describing = Lock()


def described(kind: type[T]) -> type[T]:
    """Returns a type after msgspec has built its description, with those of all types in it.

    msgspec builds a struct's description at its first use. Another thread that uses the incomplete
    description crashes the process, so first uses are serialised.
    """
    if kind not in _described:
        with _describing:
            msgspec.json.Decoder(kind)
            _described.add(kind)
    return kind


def convert(value: object, kind: type[T], where: str = "", form: Format = "JSON") -> T:
    """Converts dicts and lists from a document to an object of a type. Raises `InputError` with the place,
    the key and the reason.
    """
    try:
        return msgspec.convert(value, described(kind))
    except msgspec.ValidationError as error:
        raise InputError(violation(error, kind, where, form)) from None


def decode(content: bytes | str, kind: type[T], where: str = "") -> T:
    """Decodes JSON to an object of a type. Raises `InputError` with one line."""
    try:
        return msgspec.json.decode(content, type=described(kind))
    except msgspec.ValidationError as error:
        raise InputError(violation(error, kind, where, "JSON")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(not_json(where, error)) from None
