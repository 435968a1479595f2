"""All examples of the documentation work."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest

import docs_examples
from docs_examples import ROOT, agree, blocks, documents, examples, matches, plain, run

DOCUMENTS = documents()
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def disagreement(document: Path, folder: Path) -> str | None:
    """Runs a document's commands in a folder; returns the first that differs from the document."""
    for block in blocks(document, "console"):
        for example in examples(block):
            if example.command.startswith(docs_examples.NOT_RUN):
                continue
            status, printed = run(example.command, folder)
            if not matches(example, printed):
                return f"$ {example.command}\n{printed}"
            failed = any(line.startswith("error: ") for line in example.output.splitlines())
            if (status != 0) != failed:
                return f"$ {example.command}\nexit status {status}"
    return None


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_documented_commands_print_the_documented_output(document, tmp_path):
    other = disagreement(document, tmp_path)
    assert other is None, other


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_documented_python_prints_the_documented_output(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    class Checker(doctest.OutputChecker):
        def check_output(self, want: str, got: str, optionflags: int) -> bool:
            loosely = not computed and plain(want) == plain(got)
            return loosely or super().check_output(want, got, optionflags)

    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    source = "\n".join(blocks(document, "pycon"))
    computed = not re.search(r"shakedown\.(measure|load|run)", source)
    test = doctest.DocTestParser().get_doctest(source, {}, document.name, str(document), 0)
    output: list[str] = []
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_documented_experiments_are_valid(document, tmp_path):
    from shakedown.experiments.figure_kinds import load_experiment

    for number, block in enumerate(blocks(document, "toml")):
        if re.search(r"^suites\s*=", block, re.MULTILINE):
            path = tmp_path / f"{number}.toml"
            path.write_text(block)
            load_experiment(path)


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_relative_links_have_existing_targets(document):
    text = document.read_text()
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_documented_make_targets_exist(document):
    for block in blocks(document, "console"):
        for example in examples(block):
            if example.command.startswith("make "):
                target = example.command.split()[1]
                subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_shipped_experiments_are_valid():
    from shakedown.experiments.figure_kinds import load_experiment

    found = sorted((ROOT / "examples").glob("*.toml"))
    assert found
    for path in found:
        assert load_experiment(path).suites


def test_measured_numbers_may_differ_and_words_may_not():
    assert agree("tls1.2/psk   317   0.044 ms", "tls1.2/psk 1,317 12 ms")
    assert agree("took 317 µs", "took 1.2 s")
    assert not agree("took 317 µs", "took 317 bytes")
    assert not agree("tls1.2/psk   317", "tls1.3/psk   317")
    assert not agree("tls1.2/psk 317", "tls1.2/psk 317 bytes")
    assert agree("tls1.2/psk   317", "tls1.2/psk 317", exactly=True)
    assert not agree("tls1.2/psk 317", "tls1.2/psk 318", exactly=True)
    assert agree("first\n…\nlast", "first\nand\nthen\nlast")
    assert not agree("first\n…\nlast", "first\nand")
