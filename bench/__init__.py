"""Benchmarks: the cost of a part of Shakedown compared with a peer, and whether that meets its target.

``python -m bench`` runs all of them, ``python -m bench NAME...`` some. A benchmark is in a module of this
package, which lists it in ``BENCHMARKS``; it is not registered elsewhere.
"""

import sys
from pathlib import Path

# Servers and certificates are created by the helpers of the tests.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
