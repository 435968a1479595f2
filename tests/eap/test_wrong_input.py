"""What `eap peer` cannot be asked: one line and exit status 2, before a packet is sent."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--timeout", "1e300s"], "out of range"),
        (["--timeout", "0s"], "above 0 and up to 3,600 s"),
        (["--timeout", "2h"], "above 0 and up to 3,600 s"),
        (["--rate", "1e300/s"], "out of range"),
    ],
)
def test_times_and_rates_beyond_any_use_are_one_line(shakedown, arguments, says):
    done = shakedown(
        *("eap", "peer", "--server", "127.0.0.1:1", "--secret", "x", "--suite", "tls1.3/x25519/p256/mutual"),
        *arguments,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
