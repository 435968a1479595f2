"""What `reproduce --json` prints."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Number, Object, Text

Verdict = Literal["agrees", "differs", "undecided", "cannot be tested"]
Kind = Literal["modelled", "measured"]


class Row(Object, frozen=True, kw_only=True):
    """A paper's figure and ours.

    `claim_id` is null for cells of tables and for modern reruns; `replication` is null where there is none;
    `difference` is ours less the published one, to the nearest end of a published range, in `unit`.
    `tolerance` is what difference still counts as agreement, as written; null where nothing is compared.
    `interval` has the least and the greatest round of what was measured. `depends_on` is what the verdict
    depends on: the paper's own figures, or handshakes measured here.
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
