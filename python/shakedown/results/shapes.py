"""What JSON from outside must hold, written down as data, and the first place where it doesn't.

A shape is one of

- a `Leaf`, which says in words what it takes;
- a dict of shapes: an object that has these keys, those that end in "?" perhaps; others don't matter;
- a list of one shape: an array of such values; `Some(shape)`: one that is not empty;
- a `Choice` of shapes, of which one must fit; None in it stands for null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MOST = 2**53
"""The largest figure taken: up to there a whole number is the same in every reader of JSON."""


@dataclass(frozen=True)
class Leaf:
    """A plain value: what it is in words, and whether a value is that."""

    words: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Some:
    """An array of at least one value."""

    of: Any


class Choice:
    """One of several shapes; complaints are about the first."""

    def __init__(self, *shapes: Any) -> None:  # noqa: ANN401 - shapes are of several types
        """Takes the shapes, the usual one first."""
        self.shapes = shapes


def one_of(*words: str) -> Leaf:
    """One of these strings."""
    return Leaf(" or ".join(f'"{word}"' for word in words), lambda value: value in words)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -MOST <= value <= MOST


STRING = Leaf("a string", lambda value: isinstance(value, str))
TEXT = Leaf("a string that says something", lambda value: isinstance(value, str) and bool(value.strip()))
NUMBER = Leaf("a number", _is_number)
SIZE = Leaf("a number of 0 or more", lambda value: _is_number(value) and value >= 0)
WHOLE = Leaf(
    "a whole number of 0 or more", lambda value: _is_number(value) and isinstance(value, int) and value >= 0
)
BOOLEAN = Leaf("true or false", lambda value: isinstance(value, bool))
OBJECT = Leaf("an object", lambda value: isinstance(value, dict))


def misfit(value: object, shape: Any, place: str = "") -> str | None:  # noqa: ANN401 - shapes have any type
    """The first place where a value is not of a shape, as `messages[2].bytes is null, not a number`.

    None where all of it fits.
    """
    if isinstance(shape, Choice):
        complaints = [misfit(value, one, place) for one in shape.shapes if one is not None]
        fits = None in complaints or (value is None and None in shape.shapes)
        return None if fits else complaints[0]
    if isinstance(shape, Leaf):
        return None if shape.fits(value) else f"{place} is {_told(value)}, not {shape.words}"
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            return f"{place or 'it'} is {_told(value)}, not an object"
        return _in_object(value, shape, place)
    some = isinstance(shape, Some)
    if not isinstance(value, list):
        return f"{place} is {_told(value)}, not an array"
    if some and not value:
        return f"{place} is empty"
    element = shape.of if some else shape[0]
    complaints = [misfit(item, element, f"{place}[{number}]") for number, item in enumerate(value)]
    return next((complaint for complaint in complaints if complaint), None)


def _in_object(value: Mapping[str, Any], shape: Mapping[str, Any], place: str) -> str | None:
    for name, inner in shape.items():
        key = name.removesuffix("?")
        where = f"{place}.{key}" if place else key
        if key in value:
            complaint = misfit(value[key], inner, where)
            if complaint:
                return complaint
        elif key == name:
            return f"{where} is missing"
    return None


def _told(value: object) -> str:
    """A value in a complaint: short, on one line."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:36]} …"
