"""Figures of measured handshakes for comparisons, from the table of results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple, cast

import polars as pl

from shakedown.results.table import IDENTITY_COLUMNS
from shakedown.schema.base import Side
from shakedown.schema.comparison import ComparedQuantity


class Figure(NamedTuple):
    """The identity of a figure. `sender` sends `message`; the numbers distinguish equal names, from 1."""

    quantity: ComparedQuantity
    side: Side | None = None
    sender: Side | None = None
    message: str | None = None
    message_number: int = 1
    operation: str | None = None
    number: int = 1
    part: str | None = None

    @property
    def message_label(self) -> str | None:
        if self.message is None:
            return self.part
        return _numbered(self.message, self.message_number)

    @property
    def is_whole(self) -> bool:
        return self.message is None and self.operation is None

    @property
    def operation_label(self) -> str | None:
        return None if self.operation is None else _numbered(self.operation, self.number)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} #{number}"


@dataclass(frozen=True)
class Readings:
    """A figure's median. `varies`: it differs between runs of one build. `encoded`: it includes a signature
    whose encoding has no fixed length.
    """

    unit: str
    median: float
    varies: bool = False
    encoded: bool = False


QUANTITIES: dict[str, ComparedQuantity] = {
    "handshake.time": "time",
    "message.generate": "time",
    "message.process": "time",
    "operation.time": "time",
    "handshake.bytes": "bytes",
    "message.bytes": "bytes",
    "handshake.instructions": "instructions",
    "message.instructions": "instructions",
    "operation.instructions": "instructions",
    "memory.peak": "memory",
    "memory.held": "memory",
}
"""Quantities of the table, and the quantities that are compared."""

ENCODED = ("dsa", "ecdsa")
"""Algorithms whose signatures are two DER integers, whose lengths depend on their values."""

SEED = "handshake.instructions_seed"
"""A quantity of the table; if it is missing, counts of instructions vary from run to run."""

Figures = dict[Figure, Readings]


class Handshake(NamedTuple):
    """The identity under which figures are compared."""

    suite: str
    client_stack: str | None
    server_stack: str | None
    carrier: str
    credentials: str

    @property
    def stacks(self) -> str:
        """The stacks, and the carrier and credentials if they are not the usual ones."""
        names = " → ".join(dict.fromkeys(filter(None, (self.client_stack, self.server_stack))))
        usual = ("bare", "generated", None)
        return ", ".join([names, *(one for one in (self.carrier, self.credentials) if one not in usual)])


def handshakes(table: pl.DataFrame) -> dict[Handshake, Figures]:
    """The figures of each measured handshake of a table of results."""
    rows = table.filter(
        (pl.col("kind") == "measured")
        & pl.col("quantity").is_in([*QUANTITIES, SEED])
        & (pl.col("statistic").is_null() | (pl.col("statistic") == "median"))
        & pl.col("value").is_not_null()
    )
    found: dict[Handshake, Figures] = {}
    for key, part in rows.partition_by(list(Handshake._fields), as_dict=True, maintain_order=True).items():
        found[Handshake(*key)] = _figures(part)
    return found


def _figures(rows: pl.DataFrame) -> Figures:
    # The number of each message among those of its name and sender, by its index in the handshake.
    numbers: dict[int, int] = {}
    messages: Counter[tuple[str, str]] = Counter()
    places = rows.select("message_index", "sender", "message").drop_nulls().unique().sort("message_index")
    for index, sender, message in places.iter_rows():
        messages[sender, message] += 1
        numbers[index] = messages[sender, message]
    varying = {"time"} if SEED in rows["quantity"] else {"time", "instructions"}
    signing = (pl.col("operation") == "sign") & pl.col("algorithm").is_in(ENCODED)
    signed = rows.filter(signing).select("side", "message_index").unique()
    signers, signatures = set(signed["side"]), set(signed["message_index"].drop_nulls())
    found: Figures = {}
    for row in rows.filter(pl.col("quantity") != SEED).iter_rows(named=True):
        operation = None
        if row["quantity"].startswith("operation."):
            operation = " ".join(filter(None, (row["operation"], row["algorithm"], row["parameters"])))
        figure = Figure(
            quantity=QUANTITIES[row["quantity"]],
            side=row["side"],
            sender=row["sender"],
            message=row["message"],
            message_number=numbers.get(cast(int, row["message_index"]), 1),
            operation=operation,
            part=row["quantity"].removeprefix("memory.") if row["quantity"].startswith("memory.") else None,
        )
        while figure in found:
            figure = figure._replace(number=figure.number + 1)
        encoded = figure.quantity == "bytes" and (
            bool(signers)
            if figure.is_whole and figure.side is None
            else figure.side in signers
            if figure.is_whole
            else row["message_index"] in signatures
        )
        found[figure] = Readings(row["unit"], row["value"], figure.quantity in varying, encoded)
    return found


assert set(Handshake._fields) <= set(IDENTITY_COLUMNS)
