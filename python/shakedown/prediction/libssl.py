"""Handshakes in memory through another libssl, called by ctypes: the time of each side's calls.

For the library of a server that is not ours, which is another version or another build. A bio pair joins
both sides; each call is timed, less what a call that does nothing takes. Between two readings of the clock
stands the call alone, on functions that were bound before: after a handshake's work the interpreter is cold,
and ten microseconds of it would look like the library's.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown.errors import InputError
from shakedown.profiles.costs import Triple
from shakedown.schema.base import Side

_WANT_READ = 2
_BUFFER_BYTES = 65_536
_MIN_VERSION, _MAX_VERSION, _GROUPS, _SESSION_CACHE = 123, 124, 92, 44
_VERSIONS = {"tls1.2": 0x0303, "tls1.3": 0x0304}
_ROUNDS = 20
_WARM_UP = 5
_MONTGOMERY = {"x25519": b"X25519", "x448": b"X448"}
KEYS = {**_MONTGOMERY, **{f"p{bits}": f"P-{bits}".encode() for bits in (256, 384, 521)}}
RARE_KEYS = {
    **{f"p{bits}": f"P-{bits}".encode() for bits in (192, 224)},
    **{f"brainpoolp{bits}r1": f"brainpoolP{bits}r1".encode() for bits in (256, 384, 512)},
    **{
        name: name.encode()
        for name in (
            *("secp160r1", "sect163k1", "sect163r2", "sect233k1", "sect233r1", "sect283k1", "sect283r1"),
            *("sect409k1", "sect409r1", "sect571k1", "sect571r1"),
        )
    },
}
"""Keys of a key exchange, as libcrypto calls them: `openssl speed` does not time making one."""
_KEYGENS = 300


class LibraryError(InputError):
    """A library that is missing, is not libssl, or fails the handshake."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A handshake to make: what is negotiated, with which files, and whether a session is resumed."""

    protocol: str
    group: str
    cipher: str
    certificate: Path
    key: Path
    root: Path
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
        try:
            self._library = ctypes.CDLL(path)
            self._declare()
        except (OSError, AttributeError) as error:
            raise LibraryError(f"{path}: {error}; accepted: OpenSSL's libssl, 1.1.1 or later") from error

    def _declare(self) -> None:
        """Pointers are pointers, or ctypes would cut them to int."""
        for name in (
            "TLS_client_method",
            "TLS_server_method",
            "SSL_CTX_new",
            "SSL_new",
            "SSL_get1_session",
        ):
            getattr(self._library, name).restype = ctypes.c_void_p
        self._library.SSL_CTX_ctrl.restype = ctypes.c_long
        # The timed ones take pointers as plain numbers.
        self._handshake = self._bound("SSL_do_handshake", ctypes.c_int, ctypes.c_void_p)
        self._nothing = self._bound("SSL_get_error", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)

    def _bound(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:  # noqa: ANN401 - C's
        """A function of its own, so that others may call it as they like."""
        return ctypes.CFUNCTYPE(result, *arguments)((name, self._library))

    def _call(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - C's
        wrapped = [
            ctypes.c_void_p(one) if isinstance(one, int) and one > 0xFFFFFF else one for one in arguments
        ]
        return getattr(self._library, name)(*wrapped)

    def _must(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - C's
        found = self._call(name, *arguments)
        if not found:
            raise LibraryError(f"{name} failed in another libssl")
        return found

    @contextmanager
    def _context(self, plan: Plan, side: str) -> Iterator[int]:
        """A context of one side."""
        context = self._must("SSL_CTX_new", self._must(f"TLS_{side}_method"))
        try:
            version = ctypes.c_long(_VERSIONS[plan.protocol])
            for what in (_MIN_VERSION, _MAX_VERSION):
                self._must("SSL_CTX_ctrl", context, what, version, None)
            self._must("SSL_CTX_ctrl", context, _GROUPS, ctypes.c_long(0), plan.group.encode())
            ciphers = "SSL_CTX_set_ciphersuites" if plan.protocol == "tls1.3" else "SSL_CTX_set_cipher_list"
            self._must(ciphers, context, plan.cipher.encode())
            if side == "server":
                self._must("SSL_CTX_use_certificate_chain_file", context, str(plan.certificate).encode())
                self._must("SSL_CTX_use_PrivateKey_file", context, str(plan.key).encode(), 1)
                self._must("SSL_CTX_set_num_tickets", context, ctypes.c_size_t(plan.tickets))
            else:
                self._call("SSL_CTX_ctrl", context, _SESSION_CACHE, ctypes.c_long(0), None)
                self._must("SSL_CTX_load_verify_locations", context, str(plan.root).encode(), None)
                self._call("SSL_CTX_set_verify", context, 1, None)
            yield context
        finally:
            self._call("SSL_CTX_free", context)

    def keygen(self, name: str) -> dict[Triple, float]:
        """Microseconds for a key of a key exchange; nothing where the library is older than OpenSSL 3.0."""
        make, free = (getattr(self._library, one, None) for one in ("EVP_PKEY_Q_keygen", "EVP_PKEY_free"))
        if make is None or free is None:
            return {}
        make.restype = ctypes.c_void_p
        curve = {**KEYS, **RARE_KEYS}[name]
        kind = (curve,) if name in _MONTGOMERY else (b"EC", curve)
        times = []
        for _ in range(_KEYGENS):
            begun = time.perf_counter_ns()
            key = make(None, None, *kind)
            times.append((time.perf_counter_ns() - begun) * 1e-3)
            if not key:
                return {}
            free(ctypes.c_void_p(key))
        return {("keygen", "ecdh", name): statistics.median(times)}

    def measure(self, plan: Plan, count: int) -> dict[Side, float]:
        """Perform a handshake `count` times: the median microseconds of each side's calls.

        Raises:
            LibraryError: if it fails, or is not resumed although it should be.
        """
        idle_us = self._idle_us()
        found: list[tuple[float, float]] = []
        with self._context(plan, "client") as client, self._context(plan, "server") as server:
            session = None
            if plan.resumed:
                session = self._once(client, server, None, idle_us, keep=True)[2]
            for number in range(count + _WARM_UP):
                client_us, server_us, _ = self._once(client, server, session, idle_us)
                if number >= _WARM_UP:
                    found.append((client_us, server_us))
            if session is not None:
                self._call("SSL_SESSION_free", session)
        client_us, server_us = (statistics.median(figures) for figures in zip(*found, strict=True))
        return {"client": client_us, "server": server_us}

    def _once(
        self, client: int, server: int, session: int | None, idle_us: float, *, keep: bool = False
    ) -> tuple[float, float, int | None]:
        """One handshake: both sides' microseconds, and the session if asked for."""
        clock = time.perf_counter_ns
        ours, theirs = (self._must("SSL_new", context) for context in (client, server))
        pair = (ctypes.c_void_p(), ctypes.c_void_p())
        size = ctypes.c_size_t(_BUFFER_BYTES)
        self._must("BIO_new_bio_pair", ctypes.byref(pair[0]), size, ctypes.byref(pair[1]), size)
        for one, bio, state in ((ours, pair[0], "connect"), (theirs, pair[1], "accept")):
            self._call("SSL_set_bio", one, bio, bio)
            self._call(f"SSL_set_{state}_state", one)
        if session is not None:
            self._must("SSL_set_session", ours, session)
        took = {ours: 0.0, theirs: 0.0}
        done = {ours: False, theirs: False}
        for _ in range(_ROUNDS):
            for one in (ours, theirs):
                if done[one]:
                    continue
                begun = clock()
                result = self._handshake(one)
                ended = clock()
                took[one] += (ended - begun) * 1e-3 - idle_us
                done[one] = result == 1
                if not done[one] and self._call("SSL_get_error", one, result) != _WANT_READ:
                    raise LibraryError("the handshake failed in another libssl")
            if all(done.values()):
                break
        else:
            raise LibraryError("the handshake did not end in another libssl")
        if session is not None and not self._call("SSL_session_reused", theirs):
            raise LibraryError("the session was not resumed in another libssl")
        kept = self._must("SSL_get1_session", ours) if keep else None
        self._call("SSL_set_shutdown", ours, 3)
        self._call("SSL_set_shutdown", theirs, 3)
        self._call("SSL_free", ours)
        self._call("SSL_free", theirs)
        return took[ours], took[theirs], kept

    def _idle_us(self) -> float:
        """The overhead of timing: the time of a call that does almost nothing."""
        context = self._must("SSL_CTX_new", self._must("TLS_server_method"))
        connection = self._must("SSL_new", context)
        times = []
        for _ in range(501):
            begun = time.perf_counter_ns()
            self._nothing(connection, 1)
            ended = time.perf_counter_ns()
            times.append((ended - begun) * 1e-3)
        self._call("SSL_free", connection)
        self._call("SSL_CTX_free", context)
        return statistics.median(times)
