"""The documentation site: Sphinx with MyST (the pages are Markdown) and Furo.

`make site` builds it without a network. The reference of commands, of the Python API and of the shipped
profiles is generated from the program, so it cannot be out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import shakedown
from shakedown.profiles.bearer import Bearer
from shakedown.profiles.device import Device
from shakedown.schema.options import OptionGroup, declared

project = "Shakedown"
author = "The Shakedown authors"
version = release = shakedown.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
exclude_patterns = ["README.md"]
html_theme = "furo"
html_title = "Shakedown"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_copyright = False
# For summaries the search fetches the pages that it found; browsers refuse that to a site opened as a file.
html_show_search_summary = False
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
# Two dashes begin an option; as an en dash they could not be copied into a shell.
smartquotes = False
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
copybutton_prompt_text = r"^\$ |^>>> |^\.\.\. |^> "
copybutton_prompt_is_regexp = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "member-order": "bysource"}
# Outputs of commands are no shell and examples of results no Python; what is not TOML or JSON stays plain.
highlight_language = "none"


class Profiles(SphinxDirective):
    """`profiles`: a table of the shipped device or bearer profiles with the sources of their figures."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table, as the MyST parser reads it."""
        found = shakedown.devices() if self.arguments[0] == "devices" else shakedown.bearers()
        lines = ["| name | title | sources |", "| --- | --- | --- |"]
        lines += [
            f"| `{one.name}` | {_cell(one.title)} | {_cell('; '.join(_sources(one)))} |" for one in found
        ]
        return self.parse_text_to_nodes("\n".join(lines))


def _sources(profile: Device | Bearer) -> list[str]:
    """Its sources, each once; a bearer names them by figure."""
    listed = profile.source.values() if isinstance(profile.source, dict) else [profile.source]
    return list(dict.fromkeys(one for some in listed for one in ([some] if isinstance(some, str) else some)))


def _cell(text: str) -> str:
    """A text that stands in one cell of a table and means nothing but itself."""
    return re.sub(r"([|*_`<\[\]$])", r"\\\1", text)


class Public(SphinxDirective):
    """`public`: every name that `import shakedown` offers, by autodoc."""

    def run(self) -> list[nodes.Node]:
        """One entry a name; a class with its members."""
        lines = StringList()
        for name in sorted(shakedown.__all__):
            found = getattr(shakedown, name)
            if callable(found):
                kind = "autoclass" if isinstance(found, type) else "autofunction"
                group = isinstance(found, type) and issubclass(found, OptionGroup)
                entry = [f".. {kind}:: shakedown.{name}", *(_options(found) if group else []), ""]
                lines.extend(StringList(entry, source=__file__))
        node = nodes.section()
        node.document = self.state.document
        self.state.nested_parse(lines, self.content_offset, node)
        return node.children


def _options(group: type[OptionGroup]) -> list[str]:
    """The directive's options and content: a list of the group's fields, instead of its attributes."""
    lines = ["   :no-members:", ""]
    for one in declared(group):
        default = one.default_text or ("" if one.default in (None, False, ()) else repr(one.default))
        about = f"{one.about}  [default: {default}]" if default else one.about
        lines.append(f"   :param {one.field}: {about}".replace("*", r"\*").replace("@", r"\@"))
    return lines


def _plain(_app: Sphinx, _context: object, lines: list[str]) -> None:
    """The help of commands is plain text: an asterisk is one. Its example is a command."""
    lines[:] = [
        f"Example: ``{example}``" if (example := line.partition("Example: ")[2]) else line.replace("*", r"\*")
        for line in lines
    ]


ACCESSIBLE = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper ', '<div tabindex="0" class="table-wrapper '),
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages of the site">'),
)
"""What Sphinx and Furo leave out: levels of headings, names of landmarks, and what scrolls by keyboard."""


def _accessible(app: Sphinx, error: Exception | None) -> None:
    """Completes the pages for those who use no mouse or no screen."""
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = written = page.read_text(encoding="utf-8")
        for found, complete in ACCESSIBLE:
            text = text.replace(found, complete)
        if text != written:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Registers what this file adds."""
    for part in ("description", "epilog"):
        app.connect(f"sphinx-click-process-{part}", _plain)
    app.connect("build-finished", _accessible)
    app.add_directive("profiles", Profiles)
    app.add_directive("public", Public)
