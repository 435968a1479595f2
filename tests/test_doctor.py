"""The versions of programs that `doctor` prints."""

from __future__ import annotations

import pytest

from shakedown.doctor import _key_store, program_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "TShark (Wireshark) 4.0.17 (Git v4.0.17 packaged as 4.0.17-0+deb12u1).\n\nCopyright",
            "TShark 4.0.17",
        ),
        ("valgrind-3.19.0\n", "valgrind 3.19.0"),
        ("OpenSSL 3.0.17 1 Jul 2025 (Library: OpenSSL 3.0.17 1 Jul 2025)\n", "OpenSSL 3.0.17"),
        ("OpenSSL 1.1.1w  11 Sep 2023\n", "OpenSSL 1.1.1w"),
        ("LibreSSL 3.3.6\n", "LibreSSL 3.3.6"),
        ("valgrind-3.22.0.GIT\n", "valgrind 3.22.0"),
        ("no version\n", ""),
        ("", ""),
    ],
)
def test_program_version_is_extracted(text, version):
    assert program_version(text) == version


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("SHAKEDOWN_CACHE", "file"),
        ("XDG_CACHE_HOME", "file"),
        ("HOME", "home"),
        ("SHAKEDOWN_CACHE", "file/x"),
    ],
)
def test_key_store_that_cannot_be_created_is_reported_missing(variable, folder, tmp_path, monkeypatch):
    for name in ("SHAKEDOWN_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "file").touch()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".cache").touch()
    monkeypatch.setenv(variable, str(tmp_path / folder))
    assert _key_store() == ("missing", f"{variable}={tmp_path / folder}: cannot be written")
    monkeypatch.setenv(variable, str(tmp_path / "new"))
    assert _key_store() == ("ok", f"{variable}={tmp_path / 'new'}")
