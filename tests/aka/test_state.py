"""An SGSN's file that was damaged meanwhile."""

import random

import pytest

from shakedown.errors import InputError
from shakedown.live.sgsn_state import SgsnState


def test_a_file_damaged_in_its_middle_is_refused(tmp_path):
    path = tmp_path / "state.sqlite"
    state = SgsnState(path)
    for number in range(200):
        state.keep_session(number.to_bytes(32, "big"), bytes(48), f"imsi{number}", "20201", 0, 0, bytes(32))
    state.close()
    SgsnState(path).close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:7096] = random.Random(1).randbytes(3000)
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="damaged"):
        SgsnState(path)
