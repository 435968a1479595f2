"""The output of `reproduce --json`."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Number, Object, Text

Verdict = Literal["agrees", "differs", "undecided", "cannot be tested"]
Kind = Literal["modelled", "measured"]


class Row(Object, frozen=True, kw_only=True):
    """A figure of a paper and its replication.

    `claim_id` is null for cells of tables and for modern reruns; `replication` is null if there is none.
    `difference` is the replication minus the published figure, or minus the nearest end of a published range,
    in `unit`. `tolerance` describes the difference that still counts as agreement; null without a comparison.
    `interval` has the smallest and the largest round of the measurement. `depends_on` is the input of the
    verdict: the paper's figures, or handshakes measured on this machine.
    """

    paper: Text
    item: Text
    claim_id: str | None
    quantity: Text
    unit: str
    published: Number | str | None
    replication: Number | str | None
    difference: Number | None
    tolerance: str | None
    kind: Kind
    verdict: Verdict
    reason: Text
    interval: tuple[Number, Number] | None
    depends_on: Text


PRINTED = {
    "comparison": (Row, "An object of reproduce --json."),
}
