"""Runs the command line with `python -m shakedown`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits. Ctrl-C is also handled while the command line is imported."""
    try:
        from shakedown.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
