"""`python -m tools.reference FOLDER`: writes what of the reference the program itself knows.

A page for each command, the JSON Schema of everything that is printed or saved, the quantities of results,
and the keys of the tables that single kinds of figures read in an experiment. The last two stand between
`<!-- NAME -->` and `<!-- end -->` on a page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from shakedown.cli import app
from shakedown.experiments.figure_kinds import KINDS, tables
from shakedown.results.quantities import QUANTITIES
from shakedown.schema.publish import published

END = "<!-- end -->"


def written(folder: Path) -> dict[str, str]:
    """Texts by file name; of pages, what stands outside the marks is as it is."""
    results = _between((folder / "results.md").read_text(encoding="utf-8"), "quantities", _quantities())
    experiments = (folder / "experiments.md").read_text(encoding="utf-8")
    for name in tables():
        if _begin(f"keys of {name}") not in experiments:
            experiments += f"\n## Table `{name}`\n\n{_begin(f'keys of {name}')}\n{END}\n"
        experiments = _between(experiments, f"keys of {name}", _keys(name))
    return {**published(), **_commands(), "results.md": results, "experiments.md": experiments}


def _commands() -> dict[str, str]:
    """A page for each command, which the site fills with its options."""
    return {
        f"commands/{name}.md": "\n".join(
            [
                "```{eval-rst}",
                f".. click:: shakedown.cli.{name}:command",
                f"   :prog: shakedown {name}",
                "   :nested: full",
                "```",
                "",
            ]
        )
        for name in app.list_commands(click.Context(app))
    }


def _begin(name: str) -> str:
    return f"<!-- {name} -->"


def _between(page: str, name: str, lines: Iterator[str]) -> str:
    before, begin, rest = page.partition(_begin(name))
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the page has no part {name}")
    return "\n".join([f"{before}{begin}", *lines, f"{end}{after}"])


def _quantities() -> Iterator[str]:
    """A heading and a table a kind."""
    for name in KINDS:
        yield from (f"### {name}", "", "| quantity | unit | what |", "| --- | --- | --- |")
        for one in QUANTITIES[name]:
            what = one.about if one.unit else one.about.removeprefix("text: ")
            yield f"| `{one.name}` | {one.unit or 'text'} | {what} |"
        yield ""


def _keys(name: str) -> Iterator[str]:
    yield from (f"| key of `[{name}]` | value | default |", "| --- | --- | --- |")
    for key in tables()[name].keys:
        yield f"| `{key.name}` | {key.value} | {key.default} |"


def main(folder: Path) -> None:
    for name, text in written(folder).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
