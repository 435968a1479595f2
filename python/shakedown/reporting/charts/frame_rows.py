"""Rows of a data frame as mappings that are made when looked at: there may be very many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import polars as pl

Row = Mapping[str, object]


class FrameRows(Sequence[Row]):
    """A data frame's rows, each by the names of its columns."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return self.frame.height

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> FrameRows: ...
    def __getitem__(self, at: int | slice) -> Row | FrameRows:
        if isinstance(at, slice):
            return FrameRows(self.frame[at])
        return self.frame.row(at, named=True)

    def __iter__(self) -> Iterator[Row]:
        return self.frame.iter_rows(named=True)
