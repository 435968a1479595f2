"""Certificates and servers that the tests of a session share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import supplied
from eap.freeradius import FreeRadius, freeradius
from shakedown.schema.base import decode
from shakedown.schema.eap import Authentications


@dataclass
class Site:
    """Chains of both sides; each has a root of its own."""

    server: Path
    client: Path

    def peer(self) -> tuple[str, ...]:
        """The peer's chain, key and trusted root, as options."""
        return (
            *("--chain", str(self.client / "chain.pem"), "--key", str(self.client / "key.pem")),
            *("--ca", str(self.server / "ca.pem")),
        )

    def authenticator(self) -> tuple[str, ...]:
        """The server's chain, key and trusted root, as options."""
        return (
            *("--chain", str(self.server / "chain.pem"), "--key", str(self.server / "key.pem")),
            *("--ca", str(self.client / "ca.pem")),
        )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("eap")
    return Site(
        supplied.chain(folder / "server", "p256"), supplied.chain(folder / "client", "p256", "client")
    )


@pytest.fixture(scope="session")
def radius(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeRadius]:
    """One FreeRADIUS for all tests that need no other settings."""
    import os
    import shutil

    if shutil.which("freeradius") is None:
        message = "freeradius is not installed (make peers installs it)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with freeradius(tmp_path_factory.mktemp("radius"), site.server, site.client / "ca.pem") as server:
        yield server


@pytest.fixture
def authenticate(shakedown: Callable[..., Any], site: Site) -> Callable[..., dict[str, Any]]:
    """`authenticate(server, suite, *options)`: the object that `eap peer --json` prints."""

    def run(server: FreeRadius, suite: str, *options: str) -> dict[str, Any]:
        done = shakedown(
            "eap", "peer", "--server", server.address, "--secret", server.secret, "--suite", suite,
            *site.peer(), *options, "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + server.log[-3000:]
        decode(done.stdout, list[Authentications])
        (found,) = json.loads(done.stdout)
        return found

    return run
