"""The page itself: sections into HTML, style and pictures inside it, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from shakedown.files.text import visible, visible_lines
from shakedown.reporting.charts import theme
from shakedown.reporting.html.certificates import certificates_section
from shakedown.reporting.html.provenance import provenance, warning
from shakedown.reporting.html.section import PLACES, ReportedKind, Section

if TYPE_CHECKING:
    from shakedown.results.folder import Results


def build(results: Results, kinds: Sequence[ReportedKind]) -> list[Section]:
    """The sections that have something to say about these results, from top to bottom."""
    made = [section for kind in kinds for section in kind.sections(results)]
    made += certificates_section(results)
    place = {anchor: number for number, anchor in enumerate(PLACES)}
    return [*sorted(made, key=lambda one: place.get(one.anchor, len(PLACES))), provenance(results)]


def render(results: Results, sections: list[Section], kinds: Sequence[ReportedKind]) -> str:
    """One self-contained HTML document; what the first kind answers stands first."""
    from jinja2 import Environment, StrictUndefined

    here = files("shakedown.reporting.html")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_printed
    )
    environment.filters["breakable"] = _breakable
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    manifest = results.manifest
    said = [kind.answer(results) for kind in kinds]
    return template.render(
        title=results.title,
        question=manifest.experiment.question,
        warning=warning(results),
        answer=[pieces for answer, _ in said for pieces in answer],
        findings=[pieces for _, findings in said for pieces in findings],
        sections=sections,
        style=theme.stylesheet_variables() + "\n" + (here / "page.css").read_text(encoding="utf-8"),
        patterns=theme.page_patterns(),
        version=manifest.build.shakedown if manifest.build else "",
        created=manifest.created[:10],
        experiment_text=_lines(manifest.experiment.text),
    )


def _printed(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    """Every text that the template prints, made safe; what is markup already stays."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _lines(text: str) -> Any:  # noqa: ANN401 - markupsafe.Markup, of a library imported late
    """A text of several lines, made safe."""
    from markupsafe import escape

    return escape(visible_lines(text)) if text else ""


def _breakable(suite: str) -> Any:  # noqa: ANN401 - markupsafe.Markup, of a library imported late
    """A suite's name that may be broken after its slashes, so that it fits a phone."""
    from markupsafe import Markup, escape

    return Markup("/<wbr>").join(escape(visible(part)) for part in suite.split("/"))
