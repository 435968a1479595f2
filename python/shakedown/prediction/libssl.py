"""Another libssl than the built-in one: that of a server on this machine, another version or another build.

The core loads it, performs handshakes in memory through it, and times each side's calls
(`crates/stacks/src/other_libssl.rs`).
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict, dataclass

from shakedown.errors import InputError
from shakedown.native.core import extension
from shakedown.profiles.costs import Triple
from shakedown.schema.base import Side

_MONTGOMERY = {"x25519": "X25519", "x448": "X448"}
KEYS = {**_MONTGOMERY, **{f"p{bits}": f"P-{bits}" for bits in (256, 384, 521)}}
RARE_KEYS = {
    **{f"p{bits}": f"P-{bits}" for bits in (192, 224)},
    **{f"brainpoolp{bits}r1": f"brainpoolP{bits}r1" for bits in (256, 384, 512)},
    **{
        name: name
        for name in (
            *("secp160r1", "sect163k1", "sect163r2", "sect233k1", "sect233r1", "sect283k1", "sect283r1"),
            *("sect409k1", "sect409r1", "sect571k1", "sect571r1"),
        )
    },
}
"""libcrypto's names of key exchange keys, whose generation `openssl speed` does not time."""


class LibraryError(InputError):
    """A library that is missing, is not libssl, or fails the handshake."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A handshake to perform, as the core reads it: what is negotiated, the files, and whether it resumes."""

    tls13: bool
    groups: str
    cipher: str
    certificate: str
    key: str
    root: str
    tickets: int = 0
    resumed: bool = False


def libssl_of(program: str) -> str:
    """The libssl that a program is linked with. Raises `LibraryError`."""
    place = shutil.which(program)
    if place is None:
        raise LibraryError(f"{program}: no such program; accepted: one that is linked with a libssl")
    try:
        done = subprocess.run(["ldd", place], capture_output=True, text=True, check=False)
    except OSError as error:
        raise LibraryError(f"ldd: {error.strerror}; it names a program's libraries") from error
    for line in done.stdout.splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and name.startswith("libssl."):
            return place.split(" (")[0]
    raise LibraryError(f"{program}: no shared libssl; accepted: a program that is linked with one")


class Libssl:
    """A shared libssl."""

    def __init__(self, path: str) -> None:
        """Load it. Raises `LibraryError`."""
        core = extension()
        self._refused = core.CoreError
        try:
            self._library = core.OtherLibssl(path)
        except core.CoreError as error:
            raise LibraryError(str(error)) from None

    def keygen(self, name: str) -> dict[Triple, float]:
        """Microseconds to generate a key exchange key; empty if the library is older than OpenSSL 3.0."""
        curve = {**KEYS, **RARE_KEYS}[name]
        kind = (curve, None) if name in _MONTGOMERY else ("EC", curve)
        took_us: float | None = self._library.keygen(*kind)
        return {} if took_us is None else {("keygen", "ecdh", name): took_us}

    def measure(self, plan: Plan, count: int) -> dict[Side, float]:
        """Perform a handshake `count` times: the median microseconds of each side's calls.

        Raises:
            LibraryError: if it fails, or is not resumed although it should be.
        """
        try:
            client_us, server_us = self._library.handshakes(count, asdict(plan))
        except self._refused as error:
            raise LibraryError(str(error)) from None
        return {"client": client_us, "server": server_us}
