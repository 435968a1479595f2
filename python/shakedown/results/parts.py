"""The validated parts of a large results folder, kept compressed and decoded on demand.

A table of millions of rows takes gigabytes; its compressed parts take a hundredth of that. Queries process a
few parts at a time (`over_parts`). This is possible because all rows of a scenario are in one part.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Protocol

import polars as pl

from shakedown.results.table import empty

ROWS_AT_A_TIME = 100_000
"""Parts are decoded in groups of at least this number of rows."""


@dataclass(frozen=True, repr=False)
class Parts:
    """A table in parts: for each, its kind of figures, its number of rows, and its content as Parquet."""

    kinds: Sequence[str] = ()
    heights: Sequence[int] = ()
    contents: Sequence[bytes] = ()

    @property
    def height(self) -> int:
        return sum(self.heights)

    def chunks(self, kind: str | None = None) -> Iterator[pl.DataFrame]:
        """The table in blocks of parts, in order: those with one kind of figures, or all."""
        for group in self._groups:
            if kind is None or any(self.kinds[at] == kind for at in group):
                yield pl.concat([pl.read_parquet(io.BytesIO(self.contents[at])) for at in group])

    @cached_property
    def _groups(self) -> list[list[int]]:
        groups: list[list[int]] = []
        rows = ROWS_AT_A_TIME
        for at, height in enumerate(self.heights):
            if rows >= ROWS_AT_A_TIME:
                groups.append([])
                rows = 0
            groups[-1].append(at)
            rows += height
        return groups


Table = pl.DataFrame | Parts
Query = Callable[[pl.DataFrame], pl.DataFrame]


class Chunked(Protocol):
    """The input of queries: results, or any other table in chunks."""

    def chunks(self, kind: str | None = None) -> Iterator[pl.DataFrame]:
        """The table in blocks of rows: those with one kind of figures, or all."""


View = Callable[[Chunked], pl.DataFrame]


def over_parts(
    kind: str, finish: Query | None = None
) -> Callable[[Query], Callable[[Chunked], pl.DataFrame]]:
    """Runs a query, which must treat each scenario separately, on all parts with a kind of figures, and
    concatenates the results. `finish` is applied to the concatenation.
    """

    def decorated(query: Query) -> View:
        @wraps(query)
        def view(results: Chunked) -> pl.DataFrame:
            views = [query(one) for one in results.chunks(kind)]
            whole = pl.concat(views) if views else query(empty())
            return whole if finish is None else finish(whole)

        return view

    return decorated
