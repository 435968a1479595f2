"""The page itself: sections into HTML, style and pictures inside it, nothing fetched."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from shakedown.report import captures, certificates, elsewhere, queue, shares, theme, words
from shakedown.report import sections as common
from shakedown.report.section import Section
from shakedown.results.folder import Results

SECTIONS: tuple[Callable[[Results], Section | None], ...] = (
    common.overview,
    captures.captures_section,
    certificates.certificates_section,
    elsewhere.predictions_section,
    queue.queue_section,
    shares.cases_section,
    common.time_section,
    common.bytes_section,
    common.waterfalls,
    common.provenance,
)
"""The page's parts from top to bottom; one that returns None has nothing to say about these results."""


def build(results: Results) -> list[Section]:
    """The sections that have something to say about these results."""
    made = (section(results) for section in SECTIONS)
    return [section for section in made if section is not None]


def render(results: Results, sections: list[Section]) -> str:
    """One self-contained HTML document."""
    from jinja2 import Environment, StrictUndefined

    here = files("shakedown.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = _breakable
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    experiment: dict[str, Any] = results.experiment
    return template.render(
        title=experiment.get("title") or experiment.get("name") or "What these handshakes cost",
        question=experiment.get("question") or "",
        answer=[
            *(words.answer(results.by_suite) if results.measurements else []),
            *captures.answer(results),
        ],
        findings=words.findings(results.by_suite) if results.measurements else [],
        sections=sections,
        style=theme.stylesheet_variables() + "\n" + (here / "page.css").read_text(encoding="utf-8"),
        patterns=theme.page_patterns(),
        version=(results.manifest.get("build") or {}).get("shakedown", ""),
        created=results.manifest.get("created", "")[:10],
        experiment_text=experiment.get("text") or "",
    )


def _breakable(suite: str) -> Any:  # noqa: ANN401 - markupsafe.Markup, of a library imported late
    """A suite's name that may be broken after its slashes, so that it fits a phone."""
    from markupsafe import Markup, escape

    return Markup("/<wbr>").join(escape(part) for part in suite.split("/"))
