"""`python -m shakedown.schema FOLDER`: writes the JSON Schema of everything that is printed or saved."""

from __future__ import annotations

import sys
from pathlib import Path

from shakedown.schema.publish import published


def main(folder: Path) -> None:
    """One file an object."""
    for name, text in published().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
