"""The examples of the documentation: finds, runs and compares them, and rewrites them on request.

In a block marked `console`, each line after `$ ` is a command (continued by `> `), followed by its output
with standard error. A line `…` matches any lines. Measured numbers may differ, words may not; figures in
virtual time are equal to the last digit. Blocks marked `pycon` are doctests, compared in the same way; blocks
marked `toml` that name suites are valid experiments.

    .venv/bin/python tests/docs_examples.py     runs all console blocks and writes what they print
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = ("make ", "git ", "pip ", "sudo ", "xdg-open ")
ANYTHING = "…"
COMPUTED = re.compile(r"shakedown (predict|simulate|capacity) (?!.*--calibrate)")
"""Commands whose figures are the same in every run, on every machine."""
TIMEOUT_S = 600


@dataclass(frozen=True)
class Example:
    """A command and its output in the document."""

    command: str
    output: str


def documents() -> list[Path]:
    """The files whose examples are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(document: Path, language: str) -> Iterator[str]:
    """The contents of the document's blocks in a language."""
    for match in BLOCK.finditer(document.read_text(encoding="utf-8")):
        if match[1] == language:
            yield match[2]


def examples(block: str) -> list[Example]:
    """The commands of a console block, each with its output."""
    found: list[Example] = []
    for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines()
        count = 1
        while lines[count - 1].endswith("\\") or (lines[count : count + 1] and lines[count].startswith("> ")):
            count += 1
        command = "\n".join(line.removeprefix("> ") for line in lines[:count])
        found.append(Example(command, "\n".join(lines[count:])))
    return found


def run(command: str, folder: Path) -> tuple[int, str]:
    """Runs a command of a document; returns its status and all it prints."""
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    return done.returncode, done.stdout


def plain(line: str) -> str:
    """A line without what may differ: numbers, units of time, signs, and alignment."""
    # Serial numbers, key identifiers, digests.
    line = re.sub(r"(?<![\w/.-])(?:[0-9A-Fa-f]{2}:?){6,}(?![\w/.-])", "#", line)
    line = re.sub(r"(?<![\w.+/@-])[\d][\d.,]*(?![\w+@-]|/(?!s\b))", "#", line)
    # A time's unit depends on the machine and its load.
    line = re.sub(r"# min\b|\b(ns|µs|us|ms)\b", lambda unit: "# s" if unit[0][0] == "#" else "s", line)
    # Differences may change their sign from run to run.
    line = re.sub(r"(?<!\S)[+−-]#", "#", re.sub(r"(?<!\S)[+−-]\d[\d.,]*(?=\s?%)", "#", line))
    # Whether an interval is wide enough to be printed depends on the machine, too.
    line = re.sub(r" ± #\s?%", "", line)
    # So does the number of repetitions that are left if some were preempted.
    line = re.sub(r"\bmeans of # to #", "means of #", line)
    line = re.sub(r"[─━]+", "─", line)
    return " ".join(line.split())


def agree(expected: str, printed: str, *, exactly: bool = False) -> bool:
    """True if the output is as in the document; numbers may differ unless `exactly`."""
    same = (lambda line: " ".join(line.split())) if exactly else plain
    wanted, got = (
        [same(line) for line in text.splitlines() if line.strip() and not line.startswith("±: ")]
        for text in (expected, printed)
    )
    # Headings fold at other places if figures have other widths: words are the same, lines are not.
    at = wanted.index(ANYTHING) if ANYTHING in wanted else len(wanted)
    head, tail, said = (" ".join(lines).split() for lines in (wanted[:at], wanted[at + 1 :], got))
    more = len(said) - len(head) - len(tail)
    if wanted.count(ANYTHING) < 2 and (more == 0 or (more > 0 and at < len(wanted))):
        first, last = said[: len(head)], said[len(said) - len(tail) :]
        if sorted(head) == sorted(first) and sorted(tail) == sorted(last):
            return True
    pattern = "".join(r"(?:.*\n)*?" if line == ANYTHING else re.escape(line) + r"\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in got)) is not None


def matches(example: Example, printed: str) -> bool:
    """True if a command's output is as in its document; computed figures agree to the last digit."""
    return agree(example.output, printed, exactly=COMPUTED.match(example.command) is not None)


def refresh(document: Path) -> None:
    """Runs the document's commands and replaces their outputs in the document."""
    text = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:

        def rewritten(match: re.Match[str]) -> str:
            if match[1] != "console":
                return match[0]
            out = []
            for example in examples(match[2]):
                output = example.output
                if not example.command.startswith(NOT_RUN):
                    printed = run(example.command, Path(folder))[1]
                    if not matches(example, printed) or ANYTHING not in output.splitlines():
                        output = "\n".join(line.rstrip() for line in printed.splitlines())
                command = example.command.replace("\n", "\n> ")
                out.append(f"$ {command}\n{output}".rstrip("\n"))
            return "```console\n" + "\n".join(out) + "\n```"

        document.write_text(BLOCK.sub(rewritten, text), encoding="utf-8")


if __name__ == "__main__":
    for one in [Path(argument) for argument in sys.argv[1:]] or documents():
        refresh(one)
