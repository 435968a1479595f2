"""What `reproduce --json` prints."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Number, Object, Text


class Comparison(Object, frozen=True, kw_only=True):
    """A paper's figure and ours.

    `claim_id` is null for cells of tables and for modern reruns; `replication` is null where there is none;
    `difference` is ours less the published one, in `unit`. `interval` has the least and the greatest round of
    what was measured.
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
    kind: Literal["modelled", "measured"]
    verdict: Literal["agrees", "differs", "undecided", "cannot be tested"]
    reason: Text
    interval: tuple[Number, Number] | None
    depends_on: Text


PRINTED = {
    "comparison": (Comparison, "An object of reproduce --json."),
}
