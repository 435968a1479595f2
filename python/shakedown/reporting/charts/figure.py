"""A figure: one Vega-Lite definition, drawn for wide and narrow pages and as SVG, PNG and CSV files."""

from __future__ import annotations

import csv
import gzip
import io
import re
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, cast

from shakedown.files.text import visible
from shakedown.reporting.charts import theme
from shakedown.reporting.charts.engine import vega
from shakedown.reporting.charts.inherited import hoisted

if TYPE_CHECKING:
    import polars as pl

WIDE_PX, NARROW_PX = 960, 336
"""Inner widths of the two drawings: for a desktop's or a printed page, and for a phone's."""

MAX_INSIDE = 4 << 20
"""Limit of the characters of a figure's CSV inside the page; a longer one is only a separate file."""

SUITE, TIP = "_suite", "_tip"
"""Fields of a drawing's rows: the handshake of a mark, and its tooltip."""
_BETWEEN = "\ue000"

_UNUSED = re.compile(
    r' (?:aria-\w+|role|class|pointer-events|font-family)="[^"]*"'
    r'| (?:stroke-)?opacity="1"| font-weight="normal"'
)
_PLACES = re.compile(r'(?<= )(?:d|transform|[xy]2)="[^"]*"')

Definition = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A figure's content; `define` takes the inner width in pixels, `data` goes into the CSV."""

    name: str
    title: str
    kind: str
    alternative: str
    define: Callable[[int], Definition]
    data: Sequence[Mapping[str, object]] | pl.DataFrame
    caption: str = ""
    trace: str = ""
    """The figure as a Chrome trace (JSON), if it is a timeline; else empty."""

    @cached_property
    def wide(self) -> str:
        """The wide drawing in light colours."""
        return draw(self.define(WIDE_PX))

    @property
    def height(self) -> float:
        """Height of the wide drawing in pixels."""
        found = re.search(r'height="([\d.]+)"', self.wide)
        return float(found[1]) if found else 0.0

    @cached_property
    def narrow(self) -> str:
        """The narrow drawing in light colours."""
        return draw(self.define(NARROW_PX))

    @cached_property
    def svg(self) -> str:
        return theme.for_file(self.wide)

    @cached_property
    def csv(self) -> str:
        text = io.StringIO()
        rows = iter(self.data) if isinstance(self.data, Sequence) else self.data.iter_rows(named=True)
        if (first := next(rows, None)) is not None:
            writer = csv.DictWriter(text, fieldnames=list(first), lineterminator="\n")
            writer.writeheader()
            writer.writerow(first)
            writer.writerows(rows)
        return text.getvalue()

    def png(self) -> bytes:
        """The figure as PNG, with twice as many pixels for sharp print."""
        return _compressed(bytes(vega().svg_to_png(self.svg, scale=2)))

    def files(self) -> dict[str, bytes]:
        """The figure's files by the ends of their names."""
        found = {"svg": self.svg.encode(), "png": self.png(), "csv": self.csv.encode()}
        return found | ({"trace.json": self.trace.encode()} if self.trace else {})

    def in_page(self) -> tuple[str, str]:
        """The wide and the narrow drawing for a page, with texts for screen readers."""
        return self._inline(self.wide, "w"), self._inline(self.narrow, "n")

    def _inline(self, svg: str, variant: str) -> str:
        label = f'role="img" aria-label="{escape(visible(self.alternative))}"'
        drawing = theme.for_page(svg).replace("<svg ", f"<svg {label} ", 1)
        return _own_ids(drawing, f"{self.name}-{variant}")

    def inside(self, form: str) -> str:
        """The CSV or the trace for embedding in the page (gzip, Base64); empty if it is very long."""
        content = self.csv if form == "csv" else self.trace
        if len(content) > MAX_INSIDE:
            return ""
        return b64encode(gzip.compress(content.encode(), mtime=0)).decode()


def fitted(text: str, room_px: float, character_px: float = 6.2) -> str:
    """The text, shortened in the middle if it does not fit, because names differ at their ends."""
    most = max(5, int(room_px / character_px))
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def label(text: str, room_px: float, character_px: float = 6.2) -> dict[str, str]:
    """A row's `text`, shortened if necessary; the tooltip then has the full text."""
    cut = fitted(text, room_px, character_px)
    return {"text": cut} if cut == text else {"text": cut, TIP: text}


def draw(definition: Definition) -> str:
    """A Vega-Lite definition as SVG, with the common settings; nothing is fetched.

    Marks whose rows have a `SUITE` get a `data-suite`; those with a `TIP` a `<title>`, which browsers show.
    """
    safe = cast(Definition, _described(definition))
    svg = vega().vegalite_to_svg({**safe, "config": theme.vega_config()}, allowed_base_urls=[])
    svg = re.sub(rf'<(\w+) aria-label="([^"]*){_BETWEEN}([^"]*)"([^>]*?)(/?)>', _annotated, svg)
    return hoisted(_lean(svg))


def _described(value: object) -> object:
    """A definition without texts that a browser would interpret. Vega's descriptions of the marks contain the
    suites and tooltips of their rows.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list | tuple):
        return [_described(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[Any, Any] = {_described(key): _described(item) for key, item in value.items()}
    rows = found.get("data", {}).get("values", ()) if "mark" in found else ()
    if not any(SUITE in row or TIP in row for row in rows):
        return found
    values = [{**row, "_about": f"{row.get(SUITE, '')}{_BETWEEN}{row.get(TIP, '')}"} for row in rows]
    about = {"description": {"field": "_about", "type": "nominal"}}
    return {**found, "data": {"values": values}, "encoding": {**found["encoding"], **about}}


def _annotated(match: re.Match[str]) -> str:
    element, suite, tip, rest, closed = match.groups()
    suite = f' data-suite="{suite}"' if suite else ""
    tip = f"<title>{tip}</title>" if tip else ""
    if not tip:
        return f"<{element}{suite}{rest}{closed}>"
    return f"<{element}{suite}{rest}>{tip}" + (f"</{element}>" if closed else "")


def _lean(svg: str) -> str:
    """The drawing without attributes and elements that change no pixel: half of its characters."""
    svg = re.sub(r'<path class="(?:back|fore)ground"[^>]*(?:display="none"|d="M0,0h0v0h0Z")[^>]*/>', "", svg)
    svg = re.sub(r"<[^>]+>", lambda tag: _PLACES.sub(_rounded, _UNUSED.sub("", tag[0])), svg)
    return svg.replace("<svg ", f'<svg font-family="{theme.FONT}" ', 1)


def _rounded(places: re.Match[str]) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", places[0])


def _compressed(png: bytes) -> bytes:
    """The PNG with zlib's best compression: a quarter of the renderer's output."""
    head, pixels, place = b"", b"", 8
    while place < len(png):
        (size,) = struct.unpack_from(">I", png, place)
        chunk = png[place : place + 12 + size]
        kind = chunk[4:8]
        if kind == b"IDAT":
            pixels += chunk[8:-4]
        elif kind != b"IEND":
            head += chunk
        place += len(chunk)
    body = zlib.compress(zlib.decompress(pixels), 9)

    def written(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    return png[:8] + head + written(b"IDAT", body) + written(b"IEND", b"")


def _own_ids(svg: str, prefix: str) -> str:
    """The drawing with ids that are unique on the page; the page's own patterns keep theirs."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r"url\(#(?!fill-)", f"url(#{prefix}-", svg)
