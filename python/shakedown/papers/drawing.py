"""A figure of a paper, drawn or waiting for a missing part."""

from __future__ import annotations

from dataclasses import dataclass

from shakedown.reporting.charts.figure import Definition, Figure
from shakedown.reporting.charts.parts import Values, title_of


@dataclass(frozen=True)
class Drawing:
    """A figure of a paper, drawn or waiting for a missing part.

    Attributes:
        note: the source of its figures, and what was never published.
        definition: Vega-Lite, or None if it waits.
        waits_for: the missing part; empty if nothing is missing.
    """

    number: str
    title: str
    note: str
    kind: str
    definition: Definition | None = None
    data: Values = ()
    waits_for: str = ""
    slug: str = ""

    @property
    def name(self) -> str:
        """The figure's file name without its extension."""
        number = self.number.translate(str.maketrans(". ", "--", "()"))
        return f"{self.slug}-figure-{number}"

    @property
    def heading(self) -> str:
        return f"{'Figures' if ' ' in self.number else 'Figure'} {self.number}: {self.title}"

    def figure(self) -> Figure:
        """The chart as a figure. Raises `ValueError` if it waits for a missing part."""
        definition = self.definition
        if definition is None:
            raise ValueError(f"{self.name} waits for {self.waits_for}")
        titled = {**definition, "title": title_of(self.heading)}
        return Figure(
            self.name, self.title, self.kind, f"{self.title}. {self.note}", lambda _: titled, self.data
        )


def waiting(number: str, title: str, waits_for: str) -> Drawing:
    """A figure that is listed, and drawn only when the missing part is available."""
    return Drawing(number, title, "", "measured", waits_for=waits_for)
