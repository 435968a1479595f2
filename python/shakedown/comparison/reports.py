"""Checked budgets for CI systems: Markdown for a job's summary, and JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from shakedown.files.text import visible
from shakedown.reporting.columns.comparison import CHECKED, check_notes, checked_row, escaped, markdown_table
from shakedown.schema.budget import CheckedLimit


def verdict(checked: Sequence[CheckedLimit]) -> str:
    """How many limits fail the check, by reason; empty if none do."""
    fails = Counter(one.verdict for one in checked if one.fails)
    found = ", ".join(f"{fails[reason]} {reason}" for reason in ("exceeded", "unknown") if fails[reason])
    return found.replace(" ", f" of {len(checked)} limits ", 1)


def markdown(checked: Sequence[CheckedLimit]) -> str:
    head = f"**{verdict(checked) or f'{len(checked)} limits met'}**"
    rows = [{**checked_row(one), "strong": one.fails} for one in checked]
    keys = ("suite", "quantity", "limit", "found", "change", "verdict")
    notes = [f"- {escaped(one)}" for one in check_notes(rows)]
    return "\n".join(
        [head, "", *markdown_table(CHECKED, rows, keys, "strong"), *(notes and ["", *notes]), ""]
    )


def junit(checked: Iterable[CheckedLimit]) -> str:
    """JUnit XML, with one test suite per handshake and one test case with a unique name per limit."""
    root = ElementTree.Element("testsuites", name="shakedown check")
    suites: dict[str, list[CheckedLimit]] = {}
    for one in checked:
        suites.setdefault(f"{one.suite} ({one.stacks})" if one.stacks else one.suite, []).append(one)
    for name, rows in suites.items():
        about = {"name": name, "tests": str(len(rows)), "failures": str(sum(one.fails for one in rows))}
        suite = ElementTree.SubElement(root, "testsuite", {**about, "errors": "0", "skipped": "0"})
        for one in rows:
            limited = visible(" ".join(filter(None, (one.quantity, one.place))))
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=limited)
            cells = {column.key: column.cell(checked_row(one)) for column in CHECKED}
            text = "{verdict}: limit {limit}, found {found} ({change})".format(**cells)
            text += "" if one.reason is None else f": {visible(one.reason)}"
            if one.fails:
                ElementTree.SubElement(case, "failure", message=text)
            else:
                ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
