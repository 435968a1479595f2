"""Bearers for netem test beds: a super-packet of TCP is lost as a unit."""

from __future__ import annotations

import pytest

import shakedown as lab
from shakedown.errors import InputError

SUITE = "tls1.3/x25519mlkem768/mldsa65/server"
BED = """
schema = 2
name = "bed"
title = "A test-bed"
date = "2024-02-01"
super_packets = {super_packets}

[up]
rate_bps = 1e9
delay_ms = 97.8
loss = 0.05

[down]
rate_bps = 1e9
delay_ms = 97.8
loss = 0.05

[source]
rate = "a test-bed"
delay = "a test-bed"
loss = "a test-bed"

[assumed]
offload = "a test-bed"
"""


def simulated(tmp_path, super_packets):
    path = tmp_path / "bed.toml"
    path.write_text(BED.format(super_packets=super_packets))
    (row,) = lab.simulate(SUITE, lab.Fleet(clients=8000, replications=1), bearer=path)
    return row


def test_super_packets_reduce_the_number_of_lost_packets(tmp_path):
    none, cut, whole = (simulated(tmp_path, f'"{one}"') for one in ("none", "cut", "whole"))
    # The same bytes on the link, except for retransmissions and acknowledgements.
    assert none.traffic.packets > 1.1 * cut.traffic.packets > 1.1 * whole.traffic.packets
    dropped = [sum(row.traffic.dropped.values()) for row in (none, cut, whole)]
    assert dropped[0] > 1.1 * dropped[1] > dropped[2]
    # Segments lost together take longer to repair.
    lost = [row.traffic.retransmissions / many for row, many in zip((none, cut), dropped, strict=False)]
    assert lost[1] > lost[0]


@pytest.mark.parametrize("value", ['"tso"', "true"])
def test_wrong_super_packet_values_are_refused_in_one_line(tmp_path, value):
    with pytest.raises(InputError, match="super_packets") as error:
        simulated(tmp_path, value)
    assert "\n" not in str(error.value)
