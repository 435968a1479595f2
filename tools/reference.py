"""`python -m tools.reference FOLDER`: writes the generated parts of the reference.

A page for each command, the JSON Schema of everything that is printed or saved, the quantities of results,
and the keys of the tables of single kinds of figures in an experiment. The last two are between
`<!-- NAME -->` and `<!-- end -->` on a page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from shakedown.cli import app
from shakedown.experiments.figure_kinds import KINDS, tables
from shakedown.results.quantities import QUANTITIES
from shakedown.schema.publish import published
from tools.pages import between, table

COMMAND = """```{{eval-rst}}
.. click:: shakedown.cli.{name}:command
   :prog: shakedown {name}
   :nested: full
```

The site that `make site` builds lists the options on this page; `--help` prints the same options.
"""


def written(folder: Path) -> dict[str, str]:
    """Texts by file name; on pages, text outside the marks is unchanged."""
    results = between((folder / "results.md").read_text(encoding="utf-8"), "quantities", _quantities())
    experiments = (folder / "experiments.md").read_text(encoding="utf-8")
    for name in tables():
        if f"<!-- keys of {name} -->" not in experiments:
            experiments += f"\n## Table `{name}`\n\n<!-- keys of {name} -->\n<!-- end -->\n"
        experiments = between(experiments, f"keys of {name}", _keys(name))
    return {**published(), **_commands(), "results.md": results, "experiments.md": experiments}


def _commands() -> dict[str, str]:
    """A page for each command; the site adds its options."""
    names = app.list_commands(click.Context(app))
    return {f"commands/{name}.md": COMMAND.format(name=name) for name in names}


def _quantities() -> str:
    """A heading and a table per kind."""
    lines = []
    for name in KINDS:
        rows = (
            (f"`{one.name}`", one.unit or "text", one.about if one.unit else one.about.removeprefix("text: "))
            for one in QUANTITIES[name]
        )
        lines.append(f"### {name}\n\n{table('quantity | unit | what', rows)}\n")
    return "\n".join(lines)


def _keys(name: str) -> str:
    rows = ((f"`{key.name}`", _named(key.value), _named(key.default)) for key in tables()[name].keys)
    return table(f"key of `[{name}]` | value | default", rows)


def _named(text: str) -> str:
    """A text of an option's help, with the keys of a file in place of the options of the command line."""
    return re.sub(r"--([a-z-]+)", lambda match: f"`{match[1].replace('-', '_')}`", text)


def main(folder: Path) -> None:
    for name, text in written(folder).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
