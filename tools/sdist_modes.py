"""Marks the scripts in source distributions as executable: `python -m tools.sdist_modes FILE…`.

maturin writes every file without that mode, but the build runs tools/openssl-perl, and make runs others.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from pathlib import Path

EXECUTABLE = 0o755


def marked(archive: bytes) -> bytes:
    """The same .tar.gz, with the executable mode for files that begin with `#!/`."""
    written = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as source,
        tarfile.open(fileobj=written, mode="w") as target,
    ):
        for member in source:
            file = source.extractfile(member)
            content = file.read() if file else b""
            if content.startswith(b"#!/"):
                member.mode = EXECUTABLE
            target.addfile(member, io.BytesIO(content))
    return gzip.compress(written.getvalue(), mtime=0)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_bytes(marked(path.read_bytes()))
