"""Checks arguments of public functions against their annotations; errors are one clear line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from shakedown.errors import InputError, did_you_mean, refused_name

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")
R = TypeVar("R")

_WORDS = {
    "None": "None",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "Path": "a path",
    "Sequence[str]": "a list of strings",
    "Sequence[int]": "a list of whole numbers",
    "Sequence[float]": "a list of numbers",
    "Names": "a string or a path or a list of both",
    "Callable": "a function",
    "Results": "Results",
    "Sequence[Kind]": "a list of kinds of clients",
    "Sequence[str | Path]": "a list of strings or paths",
    "Generators": "Generators",
    "Sequence[Budget]": "a list of Budgets",
    "Sequence[Calibration]": "a list of Calibrations",
    "Mapping[str, Trace]": "traces by suite",
    "Sequence[Fleet | str]": "a list of both",
    "Stacks": "Stacks",
}
"""Descriptions of annotations in error messages, if they differ from the annotation's name."""


def _words(kind: str) -> str | None:
    """The description of a part of an annotation; None if it is not checked."""
    if kind in _WORDS or not re.fullmatch(r"[A-Z]\w+", kind) or kind == "Client":
        return _WORDS.get(kind)  # Dask's client is checked where Dask is loaded
    return f"{'an' if kind[0] in 'AE' else 'a'} {kind}"


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function raise `InputError` for arguments that do not match their annotations and for names
    that the system refuses, and converts arguments of other libraries to Python's types.

    Missing and unknown arguments raise a `TypeError`, as usual in Python.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        import inspect

        signature = inspect.signature(function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = next((name for name in kwargs if name not in signature.parameters), "")
            hint = did_you_mean(unknown, signature.parameters) if unknown else ""
            if hint and f"'{unknown}'" not in str(error):
                hint = f"; unknown argument '{unknown}'{hint}"
            if unknown and (option := _option(unknown, signature, function.__globals__)):
                hint = f"; for {unknown}: {option}"
            raise TypeError(f"{error}{hint}") from None
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: plain(one) for key, one in value.items()}
                continue
            bound.arguments[name] = found = plain(value)
            for one in found if parameter.kind is parameter.VAR_POSITIONAL else (found,):
                check(name, one, str(parameter.annotation))
        try:
            return function(*bound.args, **bound.kwargs)
        except (ValueError, OSError) as error:
            if line := refused_name(error):
                raise InputError(line) from error
            raise

    return call


def _option(name: str, signature: Signature, names: Mapping[str, Any]) -> str:
    """`fleet=Fleet(clients=…)` for a name that is a field of an argument's options, else empty."""
    for parameter in signature.parameters.values():
        for word in re.findall(r"\w+", str(parameter.annotation)):
            kind = names.get(word)
            fields = (getattr(kind, key, ()) for key in ("__struct_fields__", "__dataclass_fields__"))
            if any(name in some for some in fields):
                return f"{parameter.name}={word}({name}=…)"
    return ""


def plain(value: Any) -> Any:  # noqa: ANN401 - any argument
    """Converts numbers, arrays and paths of other libraries to Python's types; keeps other values."""
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value).__module__ == "numpy":
        return value.tolist()
    if isinstance(value, PathLike) and not isinstance(value, Path):
        text = fspath(value)
        return Path(text) if isinstance(text, str) else text
    if isinstance(value, Integral) and not isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, int | float) else value


def check_fields(values: Mapping[str, Any], kind: type) -> None:
    """Checks values against a class's annotations. Raises `InputError`, also for unknown names."""
    accepted: dict[str, str] = kind.__annotations__
    for name, value in values.items():
        if name not in accepted:
            raise InputError(f"there is no option {name}; accepted: {', '.join(accepted)}")
        check(name, value, accepted[name])


def check(name: str, value: object, annotation: str) -> None:
    """Raises `InputError` for a value that does not match an annotation; unknown annotations match all."""
    parts = re.split(r" \| (?![^\[]*\])", annotation)
    kinds = ["Callable" if one.startswith("Callable[") else one for one in parts]
    words = [_words(one) for one in kinds]
    if None in words or any(_is(value, one) for one in kinds):
        return
    plain = value is None or isinstance(value, str | bytes | Real | list | tuple)
    try:
        shown = repr(value) if plain else f"a {type(value).__name__}"
    except ValueError:  # an integer of thousands of digits
        shown = "a number of thousands of digits"
    raise InputError(f"{name} is {shown[:80]}; accepted: {' or '.join(filter(None, words))}")


def several(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


@overload
def profile_name(name: str | Path) -> str: ...
@overload
def profile_name(name: None) -> None: ...
def profile_name(name: str | Path | None) -> str | None:
    """A profile's name, or its path as text that cannot be mistaken for a name."""
    return name if name is None or isinstance(name, str) else f"{name.parent}/{name.name}"


def _fits_float(value: object) -> bool:
    if not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _is(value: object, kind: str) -> bool:
    match kind:
        case "None":
            return value is None
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, Integral) and not isinstance(value, bool)
        case "float":
            return not isinstance(value, bool) and _fits_float(value)
        case "str":
            return isinstance(value, str)
        case "Path":
            return isinstance(value, PathLike)
        case "Callable":
            return callable(value)
    if kind == "Names":
        return _is(value, "str") or _is(value, "Path") or _is(value, "Sequence[str | Path]")
    if kind.startswith("Mapping["):
        return isinstance(value, Mapping)
    if kind.startswith("Sequence["):
        inner = kind.removeprefix("Sequence[").removesuffix("]")
        return (
            isinstance(value, Collection)
            and not isinstance(value, str | bytes | Mapping)
            and all(any(_is(one, part) for part in inner.split(" | ")) for one in value)
        )
    # Compares names, so the class's module need not be loaded.
    return any(one.__name__ == kind for one in type(value).__mro__)
