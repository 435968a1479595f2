"""Colours and patterns of every figure, light, dark and in print.

Charts are drawn with the light colours. A page replaces each by a CSS variable, so that the same drawing is
legible on dark paper; a file keeps them. Fills of data are colour and pattern together, so that no meaning
depends on colour alone. The hues, blue, orange, teal and grey, can be distinguished by colour-blind readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
"""Fonts of the same metrics, so that text is as wide in a reader's browser as in the layout."""

INK, MUTED, GRID, PAPER, LANE = "#17212b", "#56616d", "#dfe4e9", "#fefefe", "#eef1f5"


@dataclass(frozen=True)
class Fill:
    """How one category is filled: colours in light and dark, and the strokes drawn over them."""

    name: str
    light: str
    dark: str
    strokes: str = ""

    @property
    def variable(self) -> str:
        """The CSS variable of the colour in a page."""
        return f"var(--{self.name})"

    def pattern(self, colour: str, over: str) -> str:
        """The SVG pattern; `colour` fills it, `over` draws the strokes."""
        strokes = f'<path d="{self.strokes}" stroke="{over}" stroke-width="1.6" fill="none"/>'
        return (
            f'<pattern id="fill-{self.name}" width="8" height="8" patternUnits="userSpaceOnUse">'
            f'<rect width="8" height="8" fill="{colour}"/>{strokes if self.strokes else ""}</pattern>'
        )


FILLS = {
    fill.name: fill
    for fill in (
        Fill("key", "#2563ac", "#5b9be6"),
        Fill("signature", "#d9731f", "#f09a4e", "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4"),
        Fill("common", "#9aa5b1", "#78848f", "M1,2 h2 M5,6 h2"),
        Fill("hello", "#1d8f86", "#3fbfb3", "M2,0 v8 M6,0 v8"),
        Fill("busy", "#d3dae2", "#3a4652"),
    )
}
"""`key`, `signature`, `common` are the classes of operations; `hello` opens; `busy` is a message at work."""

STEPS = {
    fill.name: fill
    for fill in (
        Fill("step0", "#eaf2fb", "#1b2733"),
        Fill("step1", "#cfe2f5", "#20354a"),
        Fill("step2", "#a5caee", "#274b6d"),
        Fill("step3", "#3f7fc1", "#6ea3db"),
        Fill("step4", "#225d9c", "#98c1ea"),
        Fill("step5", "#0f3868", "#cfe4f8"),
        Fill("over", "#fffefd", "#10161c"),
    )
}
"""Steps of a map from little to much, and the text colour on the upper half; each cell is also labelled."""

_PLAIN = (
    Fill("ink", INK, "#e8edf2"),
    Fill("muted", MUTED, "#a3afbb"),
    Fill("grid", GRID, "#2e3842"),
    Fill("paper", PAPER, "#141a20"),
    Fill("lane", LANE, "#1d252d"),
)


def stylesheet_variables() -> str:
    """The CSS variables: light by default and in print, dark if the reader's system is.

    The root's `data-theme` overrides both.
    """
    fills = (*_PLAIN, *FILLS.values(), *STEPS.values())

    def block(where: str, scheme: str) -> str:
        said = "".join(f"--{fill.name}:{getattr(fill, scheme)};" for fill in fills)
        return f"{where}{{color-scheme:{scheme};{said}}}"

    return (
        f"{block(':root', 'light')}\n"
        f"@media screen{{{block(':root[data-theme=dark]', 'dark')}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{{block(':root:not([data-theme=light])', 'dark')}}}"
    )


def page_patterns() -> str:
    """An invisible SVG that defines the patterns for all figures of a page."""
    patterns = "".join(fill.pattern(fill.variable, "var(--paper)") for fill in FILLS.values())
    hidden = 'width="0" height="0" style="position:absolute" aria-hidden="true"'
    return f"<svg {hidden}><defs>{patterns}</defs></svg>"


def for_page(svg: str) -> str:
    """A drawing in light colours, changed to use the page's colours."""
    for fill in FILLS.values():
        svg = svg.replace(f'fill="{fill.light}"', f'fill="url(#fill-{fill.name})"')
        svg = svg.replace(f'stroke="{fill.light}"', f'stroke="{fill.variable}"')
    for fill in (*_PLAIN, *STEPS.values()):
        svg = svg.replace(f'"{fill.light}"', f'"{fill.variable}"')
    return svg


def for_file(svg: str) -> str:
    """A drawing in light colours as a separate file, with its patterns and on white paper."""
    patterns = "".join(fill.pattern(fill.light, PAPER) for fill in FILLS.values())
    for fill in FILLS.values():
        svg = svg.replace(f'fill="{fill.light}"', f'fill="url(#fill-{fill.name})"')
    head, body = svg.split(">", 1)
    return f'{head}><defs>{patterns}</defs><rect width="100%" height="100%" fill="{PAPER}"/>{body}'


def vega_config() -> dict[str, Any]:
    """The common settings of all Vega-Lite definitions."""
    return {
        "background": None,
        "font": FONT,
        "padding": {"left": 12, "top": 4, "right": 8, "bottom": 4},
        "view": {"stroke": None},
        "axis": {
            "labelColor": MUTED,
            "titleColor": MUTED,
            "gridColor": GRID,
            "domain": False,
            "tickColor": GRID,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelFlush": False,
        },
        "legend": {
            "labelColor": INK,
            "titleColor": INK,
            "labelFontSize": 12,
            "symbolSize": 160,
            "symbolType": "square",
            "symbolStrokeWidth": 0,
            "orient": "top",
            "direction": "horizontal",
            "title": None,
            "offset": 8,
            "labelLimit": 0,
            "columnPadding": 44,
        },
        "text": {"color": INK, "fontSize": 11},
    }
