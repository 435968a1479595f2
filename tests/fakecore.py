"""A fake native core with the same types, for conditions that the real core cannot produce."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import real


class CoreError(Exception):
    pass


class InvalidSuite(CoreError, ValueError):
    pass


class InvalidOption(CoreError, ValueError):
    pass


class Unsupported(CoreError, ValueError):
    pass


class HandshakeFailed(CoreError):
    side, state, alert = "server", "waiting for ClientHello", "handshake_failure"


class CaptureError(CoreError):
    pass


KNOWN = ("tls1.2/psk", "tls1.2/rsa/rsa2048/server", "tls1.3/x25519/p256/server")


class FakeCore(ModuleType):
    """`raising` maps a suite to what measuring it raises; `measured` lists the calls."""

    CoreError, InvalidSuite, Unsupported = CoreError, InvalidSuite, Unsupported
    HandshakeFailed, CaptureError, InvalidOption = HandshakeFailed, CaptureError, InvalidOption
    __version__ = "0.0.0"
    OPENSSL_VERSION = "3.6.0"

    def __init__(self) -> None:
        super().__init__("shakedown._core")
        self.BUILD_PROFILE = "release"
        self.raising: dict[str, BaseException] = {}
        self.captured: list[tuple] = []
        self.measured: list[tuple[str, int, dict | None]] = []

    def canonical(self, suite: str) -> str:
        suite = suite.lower()
        if suite.split("/")[0] not in ("tls1.2", "tls1.3", "ssl3"):
            raise InvalidSuite(
                f'"{suite}": unknown protocol "{suite.split("/")[0]}"; accepted: tls1.2, tls1.3'
            )
        return suite

    def describe(self, suite: str) -> dict:
        if suite.startswith("ssl3"):
            raise Unsupported(f"{suite}: this stack has no SSL 3.0")
        return {"stack": "openssl", "authentication": None, "key_exchange": "psk"}

    def suites(self, all: bool = False) -> list[dict]:
        return [{"suite": name, "stack": "openssl", "supported": True, "reason": None} for name in KNOWN]

    def stacks(self) -> list[dict]:
        return [{"name": "openssl", "version": "3.6.0", "client": ["tls1.2"], "server": ["tls1.2"]}]

    def profile_suites(self) -> list[tuple[str, int]]:
        return [(name, 0) for name in KNOWN]

    def machine(self) -> dict:
        return real.native.machine()

    def measure(self, suite, repeat, *, options=None, progress=None) -> dict:
        self.measured.append((suite, repeat, options))
        if progress:
            progress(repeat)
        if suite in self.raising:
            raise self.raising[suite]
        return real.raw(suite, repeat)

    def capture(self, suites, path, *, keylog=None, options=None, tickets=None) -> None:
        self.captured.append((suites, options))
        for name in (path, keylog):
            if name is not None:
                Path(name).write_text(f"{len(suites)} suites")

    def certs(self, request) -> list[dict]:
        assert request["do"] == "profile"
        return []

    def replay(self, spec: str) -> str:
        return real.native.replay(spec)

    def take_notices(self) -> list[str]:
        return []

    def inspect(self, path, keylog=None, *, progress=None) -> list[dict]:
        raise CaptureError(f"{path}: not a capture; accepted: pcap, pcapng")
