"""The page: sections as HTML, with embedded style and figures; nothing is loaded from the network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from shakedown.files.text import visible, visible_lines
from shakedown.reporting.charts import theme
from shakedown.reporting.charts.figure import fitted
from shakedown.reporting.columns import shared
from shakedown.reporting.html import captured, live, measured, modelled, simulated
from shakedown.reporting.html.certificates import certificates_section
from shakedown.reporting.html.provenance import provenance, warning
from shakedown.reporting.html.section import PLACES, Section

if TYPE_CHECKING:
    from shakedown.reporting.html.text import Sentence
    from shakedown.results.folder import Results


MAX_NAME_LENGTH = 34
"""Characters of a handshake's name in a table."""
MIN_PART_LENGTH = 6


KINDS = (measured, captured, modelled, simulated, live)
"""The modules of the kinds of figures: sections, and for some an answer or findings, in this order."""


def build(results: Results) -> list[Section]:
    """The sections for these results, from top to bottom."""
    made = [section for kind in KINDS for section in kind.sections(results)]
    made += certificates_section(results)
    place = {anchor: number for number, anchor in enumerate(PLACES)}
    return [*sorted(made, key=lambda one: place.get(one.anchor, len(PLACES))), provenance(results)]


def render(results: Results, sections: list[Section]) -> str:
    """One self-contained HTML document; the first kind's answer comes first."""
    from jinja2 import Environment, StrictUndefined

    here = files("shakedown.reporting.html")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_printed
    )
    environment.filters["breakable"] = _breakable
    suites = _suites(sections)
    short = short_names(suites)
    environment.filters["short"] = lambda suite: short.get(suite, suite)
    script = (here / "page.js").read_text(encoding="utf-8")
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    manifest = results.manifest
    return template.render(
        title=results.title,
        question=manifest.experiment.question,
        warning=warning(results),
        answer=_head_sentences(results, "answer"),
        findings=_head_sentences(results, "findings"),
        sections=sections,
        rows=_columns(sections),
        suites=suites,
        script=script,
        script_digest=b64encode(sha256(f"\n{script}\n".encode()).digest()).decode(),
        style=theme.stylesheet_variables() + "\n" + (here / "page.css").read_text(encoding="utf-8"),
        patterns=theme.page_patterns(),
        version=manifest.build.shakedown if manifest.build else "",
        created=manifest.created[:10],
        experiment_text=_lines(manifest.experiment.text),
    )


def _head_sentences(results: Results, part: str) -> list[Sentence]:
    """The sentences at the head of the page, from the kinds that have such a part."""
    parts = (getattr(kind, part, None) for kind in KINDS)
    return [sentence for sentences in parts if sentences is not None for sentence in sentences(results)]


def _suites(sections: Sequence[Section]) -> list[str]:
    """The handshakes by which the page can be filtered."""
    found: dict[str, None] = {}
    for block in (block for section in sections for block in section.blocks):
        found |= dict.fromkeys(block.table.suites if block.table else ())
        found |= dict.fromkeys([block.suite] if block.suite else ())
    return list(found)


def short_names(suites: Sequence[str]) -> dict[str, str]:
    """Distinct names for narrow columns: without the parts that all share, with long parts shortened."""
    parts = shared(suites).short
    plain = {suite: parts.get(suite, suite) for suite in suites}
    for length in range(MAX_NAME_LENGTH, max(map(len, plain.values()), default=0) + 1):
        cut = {suite: _cut(name, length) for suite, name in plain.items()}
        if len(set(cut.values())) == len(cut):
            return cut
    return plain


def _cut(name: str, length: int) -> str:
    parts = name.split("/")
    while len("/".join(parts)) > length and max(map(len, parts)) > MIN_PART_LENGTH:
        at = max(range(len(parts)), key=lambda place: len(parts[place]))
        parts[at] = parts[at].removesuffix("…")[:-1] + "…"
    return fitted("/".join(parts), length, 1.0)


def _columns(sections: Sequence[Section]) -> list[list[list[Section]]]:
    """Rows of the page, each with one column, or with two of about equal height if wide pages show sections
    of one figure side by side. The order is down the first column, then down the second.
    """
    rows: list[list[list[Section]]] = []
    for small, run in groupby(
        sections, lambda section: sum(b.figure is not None for b in section.blocks) == 1
    ):
        found = list(run)
        if not small or len(found) == 1:
            rows += [[[section]] for section in found]
            continue
        heights = [sum(b.figure.height for b in section.blocks if b.figure) for section in found]
        split = min(range(1, len(found)), key=lambda at: abs(sum(heights[:at]) - sum(heights[at:])))
        rows.append([found[:split], found[split:]])
    return rows


def _printed(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    """Every text that the template prints, made safe; existing markup is unchanged."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _lines(text: str) -> Any:  # noqa: ANN401 - markupsafe.Markup, of a library imported late
    """A text of several lines, made safe."""
    from markupsafe import escape

    return escape(visible_lines(text)) if text else ""


def _breakable(suite: str) -> Any:  # noqa: ANN401 - markupsafe.Markup, of a library imported late
    """A suite's name that may be broken after its slashes, so that it fits a phone."""
    from markupsafe import Markup, escape

    return Markup("/<wbr>").join(escape(visible(part)) for part in suite.split("/"))
