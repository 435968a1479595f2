"""What tools share: options, exit status, tables in Markdown, and generated parts of pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

SHAKEDOWN = (sys.executable, "-m", "shakedown")
ROOT = Path(__file__).resolve().parent.parent
VALIDATION = ROOT / "docs" / "validation"


def options(tool: str, about: str | None) -> argparse.ArgumentParser:
    """The parser of a tool's options; the help begins with the tool's docstring."""
    return argparse.ArgumentParser(
        prog=f"tools.{tool}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def status(problems: Iterable[str]) -> int:
    """Print the problems on standard error; return the exit status."""
    found = list(problems)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown. `head` has the names of its columns, `what | >time`: > aligns figures right."""
    rule = " | ".join("---:" if ">" in name else "---" for name in head.split("|"))
    lines = (head.replace(">", ""), rule, *map(" | ".join, rows))
    return "\n".join(f"| {line} |" for line in lines)


def between(page: str, name: str, text: str) -> str:
    """The page with this text between `<!-- NAME -->` and `<!-- end -->`. Raises `SystemExit` if it has no
    such part.
    """
    before, begin, rest = page.partition(f"<!-- {name} -->")
    _, end, after = rest.partition("<!-- end -->")
    if not begin or not end:
        raise SystemExit(f"the page has no part {name}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write(page: Path, name: str, text: str) -> None:
    page.write_text(between(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
