"""Results: the manifest and the tidy table of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from shakedown.results import fleets as fleet_queries
from shakedown.results import loads as load_queries
from shakedown.results import queries
from shakedown.results.parts import Table
from shakedown.results.reader import damage_reported, load_manifest, load_parts, missing
from shakedown.results.table import SCHEMA, empty
from shakedown.schema.arguments import checked
from shakedown.schema.saved import Manifest, Planned, ScenarioFigures


@dataclass(frozen=True, repr=False, eq=False)
class Results:
    """The manifest of a run, and the table of its figures, with one row per figure.

    `missing` contains the scenarios that the run planned but did not write. The views are tables made from
    `table`, with one row per handshake, message, operation or prediction. `source` is the given table, or the
    parts of a folder, which are decoded when they are needed.
    """

    manifest: Manifest
    source: Table
    folder: Path | None = None
    missing: tuple[Planned, ...] = field(default_factory=tuple)

    def __repr__(self) -> str:
        kinds: Counter[str] = Counter()
        for part in self.chunks():
            found = part.group_by("kind", maintain_order=True).agg(pl.col("scenario").n_unique()).rows()
            kinds.update(dict(found))
        words = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing"
        where = f" in {self.folder}" if self.folder else ""
        ended = "" if self.is_whole else f", {self.how_it_ended}"
        return (
            f"Results({self.title!r}{where}: scenarios: {words}{ended}; "
            f"table: {self.height:,} rows × {len(SCHEMA)} columns)"
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """All figures, one row per figure. A large table needs much memory."""
        if isinstance(self.source, pl.DataFrame):
            return self.source
        return pl.concat([empty(), *self.source.chunks()])

    def chunks(self, kind: str | None = None) -> Iterator[pl.DataFrame]:
        """The table in blocks of parts: those with one kind of figures, or all."""
        return iter([self.source]) if isinstance(self.source, pl.DataFrame) else self.source.chunks(kind)

    @property
    def height(self) -> int:
        """Number of rows of the table."""
        return self.source.height

    @property
    def title(self) -> str:
        """The title or name of the experiment."""
        about = self.manifest.experiment
        return about.title or about.name or "What these handshakes cost"

    @property
    def is_whole(self) -> bool:
        """Whether the run ended normally and wrote everything that was planned."""
        return (self.folder is None or self.manifest.ended == "complete") and not self.missing

    @property
    def how_it_ended(self) -> str:
        """`complete`, `interrupted`, `failed`, or a text that begins with `not ended`."""
        return self.manifest.ended or "not ended: it was killed, or still runs"

    # Tables with one row per object in their name. The queries document their columns.
    handshakes = cached_property(queries.handshakes)
    messages = cached_property(queries.messages)
    operations = cached_property(queries.operations)
    predictions = cached_property(queries.predictions)
    fleets = cached_property(fleet_queries.fleets)
    fleet_series = cached_property(fleet_queries.fleet_series)
    fleet_kinds = cached_property(fleet_queries.fleet_kinds)
    fleet_kind_series = cached_property(fleet_queries.fleet_kind_series)
    loads = cached_property(load_queries.loads)
    load_steps = cached_property(load_queries.steps)

    def figures(self) -> Iterator[ScenarioFigures]:
        """The table as objects, one per scenario."""
        for part in self.chunks():
            with damage_reported(self.folder):
                yield from queries.figures(part)

    def csv(self) -> str:
        """The table as CSV; samples are separated by spaces."""
        return "".join(self.csv_parts())

    def csv_parts(self) -> Iterator[str]:
        """The CSV in parts; the first contains the names of the columns."""
        joined = pl.col("samples").list.eval(pl.element().cast(pl.String)).list.join(" ")
        yield empty().with_columns(samples=joined).write_csv()
        for part in self.chunks():
            yield part.with_columns(samples=joined).write_csv(include_header=False)


@checked
def load_results(folder: str | Path) -> Results:
    """Reads a results folder. Raises `InputError` with one line if it is not a results folder, or damaged."""
    folder = Path(folder)
    manifest, last_may_miss = load_manifest(folder)
    table, there = load_parts(folder, manifest, last_may_miss)
    return Results(manifest, table, folder, tuple(missing(manifest, there)))
