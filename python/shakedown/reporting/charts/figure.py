"""A figure: one Vega-Lite definition, drawn for wide and narrow pages and as SVG, PNG and CSV files."""

from __future__ import annotations

import csv
import io
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from shakedown.files.text import visible
from shakedown.reporting.charts import theme

WIDE_PX, NARROW_PX = 860, 336
"""Inner widths of the two drawings: for a desktop's or a printed page, and for a phone's."""

MAX_INSIDE = 8 << 20
"""Characters of a figure's CSV that the page itself holds; a longer one is beside it alone."""

Definition = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """What a figure shows; `define` takes the inner width in pixels, `data` goes into the CSV."""

    name: str
    title: str
    kind: str
    alternative: str
    define: Callable[[int], Definition]
    data: Sequence[Mapping[str, object]]
    caption: str = ""

    @cached_property
    def wide(self) -> str:
        """The wide drawing in light colours."""
        return draw(self.define(WIDE_PX))

    @cached_property
    def narrow(self) -> str:
        """The narrow drawing in light colours."""
        return draw(self.define(NARROW_PX))

    @cached_property
    def svg(self) -> str:
        """The figure as a file."""
        return theme.for_file(self.wide)

    @cached_property
    def csv(self) -> str:
        """What the figure shows, as figures."""
        text = io.StringIO()
        if self.data:
            writer = csv.DictWriter(text, fieldnames=list(self.data[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.data)
        return text.getvalue()

    def png(self) -> bytes:
        """The file as pixels, twice as many for sharp print."""
        import vl_convert

        return bytes(vl_convert.svg_to_png(self.svg, scale=2))

    def in_page(self) -> tuple[str, str]:
        """The wide and the narrow drawing for a page, named for those who cannot see them."""
        return self._inline(self.wide, "w"), self._inline(self.narrow, "n")

    def _inline(self, svg: str, variant: str) -> str:
        label = f'role="img" aria-label="{_attribute(visible(self.alternative))}"'
        drawing = theme.for_page(svg).replace("<svg ", f"<svg {label} ", 1)
        return _own_ids(drawing, f"{self.name}-{variant}")

    def link(self, form: str) -> str:
        """A `data:` address under which the page itself holds the file in one form: svg or csv; of a very
        long one, the address of the file beside the page.
        """
        if form == "csv" and len(self.csv) > MAX_INSIDE:
            return f"figures/{self.name}.csv"
        content, media = {"svg": (self.svg, "image/svg+xml"), "csv": (self.csv, "text/csv;charset=utf-8")}[
            form
        ]
        return f"data:{media};base64,{b64encode(content.encode()).decode()}"


def fitted(text: str, room_px: float, character_px: float = 6.2) -> str:
    """The text, its middle left out where it would not fit: names differ at their ends."""
    most = max(5, int(room_px / character_px))
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def draw(definition: Definition) -> str:
    """A Vega-Lite definition as SVG, with the common settings; nothing is fetched."""
    import vl_convert

    safe = cast(Definition, _visible(definition))
    svg = vl_convert.vegalite_to_svg({**safe, "config": theme.vega_config()}, allowed_base_urls=[])
    return re.sub(r' aria-\w+="[^"]*"| role="[^"]*"', "", svg)


def _visible(value: object) -> object:
    """A definition whose texts hold nothing that a reader's browser would obey."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value


def _own_ids(svg: str, prefix: str) -> str:
    """The drawing with ids that no other drawing on the page has; the page's own patterns keep theirs."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r"url\(#(?!fill-)", f"url(#{prefix}-", svg)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
