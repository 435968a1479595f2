"""The return values of functions of suites, for one suite and for a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from shakedown.reporting.rows import Rows
from shakedown.schema import base

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
Listed = list[str] | tuple[str, ...]


class OneOrRows(Protocol[P, T]):
    """A function that returns one object for a suite's name, and rows for a list."""

    @overload
    def __call__(self, suites: str, /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, suites: Listed, /, *args: P.args, **kwargs: P.kwargs) -> Rows[T]: ...


class RowsOf(Protocol[P, T, U]):
    """A function that returns rows; in a list, suites without figures are rows of another type."""

    @overload
    def __call__(self, suites: str, /, *args: P.args, **kwargs: P.kwargs) -> Rows[T]: ...
    @overload
    def __call__(self, suites: Listed, /, *args: P.args, **kwargs: P.kwargs) -> Rows[T | U]: ...


OfSuites = Callable[Concatenate[str | Sequence[str], P], list[T]]


def one_or_rows(function: OfSuites[P, T]) -> OneOrRows[P, T]:
    """Makes a function return one object for a suite's name, and rows for a list."""

    @wraps(function)
    def call(suites: str | Sequence[str], /, *args: P.args, **kwargs: P.kwargs) -> object:
        found = function(suites, *args, **kwargs)
        return found[0] if isinstance(suites, str) else Rows(found)

    kind = function.__annotations__["return"][len("list[") : -1]
    call.__annotations__["return"] = f"{kind} | Rows[{kind}]"
    return cast("OneOrRows[P, T]", call)


def rows_of(kind: type[T], failed: type[U]) -> Callable[[OfSuites[P, Any]], RowsOf[P, T, U]]:
    """Converts a function's rows to objects of the schema; rows with an error have their own type."""

    def decorated(function: OfSuites[P, Any]) -> RowsOf[P, T, U]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Rows[object]:  # noqa: ANN401 - RowsOf has the types
            found = function(*args, **kwargs)
            return Rows(
                base.convert(one, failed if "error" in one else kind) if isinstance(one, dict) else one
                for one in found
            )

        call.__annotations__["return"] = f"Rows[{kind.__name__} | {failed.__name__}]"
        return cast("RowsOf[P, T, U]", call)

    return decorated
