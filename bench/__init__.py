"""Benchmarks: what a part of the laboratory costs beside a peer, and whether that is within its target.

``python -m bench`` runs all of them, ``python -m bench NAME...`` some. A benchmark lives in a module of this
package and is listed in that module's ``BENCHMARKS``; nothing else has to know of it.
"""

import sys
from pathlib import Path

# Servers and certificates are made as tests make them.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
