"""Programs that make pages and fits, and check them against measurements: `python -m tools.NAME`."""

import sys
from pathlib import Path

# Servers and nodes are started by the helpers of the tests.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
