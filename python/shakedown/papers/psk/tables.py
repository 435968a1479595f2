"""A row for each cell of table 4.1: by the byte formula, and its growth compared with that of our bytes."""

from __future__ import annotations

from shakedown.models.transmission import (
    kuo_anonymous_dh_bytes,
    kuo_dhe_psk_bytes,
)
from shakedown.papers.load import PaperData
from shakedown.papers.psk.inputs import CHANGING_VALUES, KEY_BITS, NAMES, TABLE, size_bytes, suite
from shakedown.papers.replication import Replication
from shakedown.papers.verdicts import cell_row
from shakedown.schema.replication import Row


def cells(data: PaperData) -> list[Row]:
    """Table 4.1 by the formula for its bytes, and by the number of values that grow with the key."""
    rows = []
    for row in data.tables[TABLE].rows:
        name = row["mechanism"]
        for bits in KEY_BITS:
            replication, tolerance, reason = _law(data, name, bits)
            rows.append(
                cell_row(
                    f"table 4.1, {NAMES[name]}",
                    f"handshake bytes at {bits} bit",
                    "bytes",
                    row[f"bytes_{bits}_bit"],
                    replication,
                    tolerance,
                    reason,
                )
            )
    return rows


def _law(data: PaperData, mechanism: str, bits: int) -> tuple[float | None, str, str]:
    if mechanism == "dh_anon":
        return float(kuo_anonymous_dh_bytes(bits)), "exact", "527 + 3 k / 8: prime and two public values"
    if mechanism == "dhe_psk":
        return float(kuo_dhe_psk_bytes(bits)), "exact", "anonymous DH and 72 bytes for identity and hint"
    if mechanism == "plain_psk":
        base = None if bits == 512 else size_bytes(data, mechanism, 512)
        return base, "exact", "an input" if base is None else "does not depend on the key: as at 512 bit"
    if bits == 1024:
        return None, "", "an input: the formula for certificates starts from it"
    count = CHANGING_VALUES[mechanism]
    value = size_bytes(data, mechanism, 1024) + count * (bits - 1024) / 8
    return value, "5 %", f"from 1024 bit, with {count} numbers as long as the key; encodings explain the rest"


def measured_cells(data: PaperData, replication: Replication) -> list[Row]:
    """The growth of table 4.1 with the key size, compared with the growth of our bytes."""
    rows = []
    for name in NAMES:
        if name == "plain_psk":
            continue
        for bits in KEY_BITS[1:]:
            suites = (suite(name, bits), suite(name, 512))
            costs = replication.all(suites)
            rows.append(
                cell_row(
                    f"table 4.1, growth with the key, {NAMES[name]}",
                    f"handshake bytes at {bits} bit over those at 512 bit",
                    "bytes",
                    f"{size_bytes(data, name, bits) - size_bytes(data, name, 512):.0f}",
                    costs[0].size_bytes - costs[1].size_bytes if costs else None,
                    "10 %",
                    f"our TLS 1.0 handshakes: {costs[0].size_bytes:.0f} less {costs[1].size_bytes:.0f}; "
                    "names in certificates, identity and hint are shorter in ours and cancel"
                    if costs
                    else replication.why_not(suites),
                )
            )
    return rows
