"""A row for each cell of the result tables."""

from __future__ import annotations

from shakedown.papers.load import PaperData
from shakedown.papers.verdicts import input_row
from shakedown.schema.replication import Row


def cells(data: PaperData) -> list[Row]:
    """Table 1 describes the test-bed: its cells are inputs, and nothing is computed."""
    rows = []
    for row in data.tables["table_1_devices"].rows:
        for column, words, unit in (("clock_mhz", "clock", "MHz"), ("ram_mb", "memory", "MB")):
            rows.append(
                input_row(
                    f"table 1, {row['role']}",
                    words,
                    unit,
                    row[column],
                    "an input: the test-bed",
                )
            )
    return rows
