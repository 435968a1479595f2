"""Table 4.1 of the report on pre-shared keys by message: explained and unexplained bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interop.hellos import SCSV, hello, of_capture
from shakedown.api import in_memory
from shakedown.papers import replication as measuring
from shakedown.papers.load import load
from shakedown.papers.psk import messages
from shakedown.papers.psk.inputs import SLUG, size_bytes, suite

DATA = load(SLUG)
NAMES = {"dh_anon": 0, "dhe_psk": len("Client_identity"), "plain_psk": len("Client_identity")}


@pytest.fixture(scope="module")
def replication() -> measuring.Replication:
    """The handshakes that are compared, measured now."""
    suites = [suite(name, messages.KEY_BITS) for name in (*messages.MECHANISMS, "rsa", "dhe_dss")]
    return measuring.Replication(
        "", "", {one: measuring.summarise(in_memory.measure(one, 1, samples=True)) for one in suites}
    )


@pytest.mark.parametrize("mechanism", messages.MECHANISMS)
def test_replicated_bytes_are_the_sum_of_the_fields(
    replication: measuring.Replication, mechanism: str
) -> None:
    parts = messages.replicated_parts(replication, mechanism)
    assert parts.total == replication.costs[suite(mechanism, messages.KEY_BITS)].size_bytes
    assert parts.names == NAMES[mechanism], "an identity and no hint; a field too many would show here"
    assert parts.others == 291


@pytest.mark.parametrize("mechanism", messages.MECHANISMS)
@pytest.mark.parametrize("hint", [True, False])
def test_parts_of_a_printed_total_add_up(mechanism: str, hint: bool) -> None:
    parts = messages.printed_parts(DATA, mechanism, hint=hint)
    assert parts.total == size_bytes(DATA, mechanism, messages.KEY_BITS)
    assert parts.others == 500


def test_printed_plain_psk_has_a_hint_and_lacks_four_bytes() -> None:
    both = messages.printed_parts(DATA, "dhe_psk").names
    assert both == 72 - 4
    assert messages.printed_parts(DATA, "plain_psk", hint=False).names > both
    assert both - messages.printed_parts(DATA, "plain_psk").names == 4


def test_printed_plain_psk_is_replicated_plus_explained_parts(replication: measuring.Replication) -> None:
    """317 + 209 that nothing explains + a message for the hint + longer names = 586."""
    ours = messages.replicated_parts(replication, "plain_psk")
    printed = messages.printed_parts(DATA, "plain_psk")
    unexplained = printed.others - ours.others
    assert unexplained == messages.printed_parts(DATA, "dhe_psk").others - 291 == 209
    assert ours.total + unexplained + printed.server_fields + (printed.names - ours.names) == printed.total


def test_extensions_newer_than_the_report_are_known(tmp_path: Path) -> None:
    capture = tmp_path / "one.pcap"
    in_memory.capture(["tls1.0/psk"], capture)
    raw = of_capture(capture)
    found = {side: hello(message) for side, message in raw.items()}
    later = {"encrypt_then_mac", "extended_master_secret", "renegotiation_info"}
    extensions = 0
    for one in found.values():
        assert one.extensions.keys() <= later
        extensions += 2 + sum(4 + len(content) for content in one.extensions.values())
    assert SCSV in found["client"].suites
    # AES-CBC and SHA-1: 16 and 20 bytes, padded together to 48; or 16 padded to 32, and 20.
    finished: list[Any] = [
        one for one in in_memory.measure("tls1.0/psk", 1).messages if one.name == "Finished"
    ]
    assert [one.bytes for one in finished] == [5 + 32 + 20] * 2
    assert extensions + 2 + sum(one.bytes - (5 + 48) for one in finished) == messages.NEWER_BYTES


def test_page_states_that_nothing_was_measured() -> None:
    assert "not measured" in messages.words(DATA, measuring.Replication())["bytes_table"]
