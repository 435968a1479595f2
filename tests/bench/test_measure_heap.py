"""`measure`'s memory and massif's count the same handshake."""

from __future__ import annotations

import pytest
from tools import measure_heap

SUITE = "tls1.3/x25519/p256/mutual"


@pytest.mark.usefixtures("cargo")
def test_measure_agrees_with_massif_on_a_suite_with_tickets(peer, capsys):
    peer("valgrind")
    assert measure_heap.main([SUITE]) == 0, capsys.readouterr().out
