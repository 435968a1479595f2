"""A bearer that TCP's timers jam is an answer in one line, and not one of weeks after minutes."""

import pytest

from shakedown.errors import InputError
from shakedown.pricing.predict import predict

SLOW = "lorawan-sf12"
"""A packet of data leaves it every five minutes, and no timer of TCP's is longer than two."""
CHAIN = "tls1.3/x25519mlkem768/mldsa65/server"
"""Hundreds of segments there."""


def test_what_tcp_cannot_carry_is_refused_by_itself():
    with pytest.raises(InputError, match=f"'{SLOW}': TCP's timers, of 120 s at most, send .* over datagrams"):
        predict([CHAIN], bearer=SLOW)


def test_datagrams_beside_it_have_their_figures():
    secret, chain = predict(["wtls/shared_secret", CHAIN], bearer=SLOW)
    assert "TCP's timers" in chain["error"]
    ready, done = (secret[what] for what in ("ready_s", "done_s"))
    assert 60.0 < ready["p50"] <= done["p50"] < done["p95"] < done["p99"]
    assert secret["range_s"][0] < secret["total_s"]
