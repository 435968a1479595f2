"""Reading pqm4's results, ``benchmarks.csv`` and ``benchmarks.md``: cycles of post-quantum schemes.

Of several implementations of a scheme, the fastest is used, by the sum of its operations' means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shakedown.profiles.importers.common import ContradictionError, Imported

_SCHEME = re.compile(r"^ml-(kem|dsa)-(\d+)$")
_EXECUTIONS = re.compile(r"\s*\([\d,]+ executions?\)$")
_OPERATIONS = {"kem": ("keygen", "encapsulate", "decapsulate"), "dsa": ("keygen", "sign", "verify")}
_SPEED = "speed evaluation"
_STATISTICS = ("mean_cycles", "min_cycles", "max_cycles")

Row = tuple[str, str]
"""Scheme and implementation."""


def read_pqm4(text: str) -> Imported:
    """Read ``benchmarks.csv`` or ``benchmarks.md``: mean, minimum and maximum cycles of each operation.

    Raises:
        ContradictionError: if a scheme has two different figures for one implementation.
    """
    found = Imported()
    if _SPEED not in text.lower() or "[cycles]" not in text:
        return found
    rows: dict[Row, tuple[int, list[list[float]]]] = {}
    others: dict[str, int] = {}
    section = ""
    for number, cells in _lines(text):
        if len(cells) == 1:
            section = cells[0] if cells[0].lower().endswith("evaluation") else section
            continue
        if cells[0].lower() == "scheme" or set(cells[0]) <= set("- :"):
            continue
        if section.lower() != _SPEED:
            others[section] = others.get(section, 0) + 1
            continue
        scheme, implementation = _EXECUTIONS.sub("", cells[0]).lower(), cells[1]
        figures = _figures(cells[2:])
        if _SCHEME.match(scheme) is None:
            found.omitted.append(f"{scheme} {implementation}: no suite uses it")
        elif figures is None:
            found.omitted.append(f"{scheme} {implementation}, line {number}: a form that is not known")
        else:
            line, known = rows.setdefault((scheme, implementation), (number, figures))
            if known != figures:
                raise ContradictionError(
                    f"lines {line} and {number} give different figures for {scheme} {implementation}; "
                    "accepted: one figure of each"
                )
    _take_fastest(found, rows)
    found.omitted += [
        f"{name}: no times ({lines} line{'' if lines == 1 else 's'})" for name, lines in others.items()
    ]
    return found


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells, from CSV or Markdown; headings are single cells."""
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        if line.startswith("#"):
            yield number, [line.lstrip("# ").strip()]
        elif "|" in line:
            yield number, [cell.strip() for cell in line.strip().strip("|").split("|")]
        elif line.strip(", \t"):
            cells = [cell.strip() for cell in line.split(",")]
            yield number, [cell for cell in cells if cell] if not any(cells[1:]) else cells


def _figures(cells: list[str]) -> list[list[float]] | None:
    """Mean, minimum and maximum of each of the three operations, or None for other cells."""
    if len(cells) == len(_STATISTICS):
        cells = [
            number.replace(",", "") for cell in cells for number in re.findall(r": *([\d,]+)(?:\s|$)", cell)
        ]
    if len(cells) != 3 * len(_STATISTICS) or not all(re.fullmatch(r"\d{1,15}", cell) for cell in cells):
        return None
    found = [[float(cell) for cell in cells[at : at + 3]] for at in range(0, len(cells), 3)]
    return found if all(0.0 < least <= mean <= most for mean, least, most in found) else None


def _take_fastest(found: Imported, rows: dict[Row, tuple[int, list[list[float]]]]) -> None:
    sums = {row: sum(mean for mean, _, _ in figures) for row, (_, figures) in rows.items()}
    for row, (_, figures) in rows.items():
        scheme, implementation = row
        best = min((other for other in rows if other[0] == scheme), key=lambda one: sums[one])
        if best != row:
            found.omitted.append(f"{scheme} {implementation}: {best[1]} is faster")
            continue
        match = _SCHEME.match(scheme)
        assert match is not None
        for operation, cycles in zip(_OPERATIONS[match[1]], figures, strict=True):
            triple = (operation, f"ml{match[1]}", f"ml{match[1]}{match[2]}")
            found.primitives[triple] = dict(zip(_STATISTICS, cycles, strict=True))
