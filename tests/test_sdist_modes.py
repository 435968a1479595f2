"""Scripts in a source distribution are executable; all other files are unchanged."""

from __future__ import annotations

import io
import tarfile

from tools.sdist_modes import EXECUTABLE, marked


def test_only_scripts_become_executable():
    files = {"a/tools/run": b"#!/bin/sh\nexit 0\n", "a/lib.rs": b"#![no_std]\n", "a/empty": b""}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), 1_153_704_088
            archive.addfile(member, io.BytesIO(content))
    with tarfile.open(fileobj=io.BytesIO(marked(packed.getvalue()))) as archive:
        found = {one.name: (one.mode, one.mtime, archive.extractfile(one).read()) for one in archive}
    assert found == {
        name: (EXECUTABLE if name == "a/tools/run" else 0o644, 1_153_704_088, content)
        for name, content in files.items()
    }
