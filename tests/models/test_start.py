"""A prediction loads and starts only what it needs, because this is most of its time."""

from __future__ import annotations

import sys

import pytest

from runs import python


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_prediction_starts_no_thread_and_loads_only_needed_modules():
    """Numpy's masked arrays and linear algebra's threads take time to start; no prediction uses them."""
    words = ["predict", "tls1.3/x25519/p256", "--device", "cortex-m4", "--bearer", "nb-iot", "--json"]
    code = (
        "import os, sys\n"
        "from shakedown.cli import exit_status\n"
        f"assert exit_status({words!r}) == 0\n"
        "loaded = [name for name in ('numpy.ma',) if name in sys.modules]\n"
        "print('numpy' in sys.modules, len(os.listdir('/proc/self/task')), *loaded)"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True 1"
