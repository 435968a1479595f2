"""The profile of this machine for a server that runs another OpenSSL than the one that measures here.

Two things are asked of the other library, both apart from any server: what its own `openssl speed` gives for
public-key operations, next to ours in loops of the same kind; and what a few handshakes in memory take,
through its libssl. What of these its public-key operations do not explain, next to the same of ours, says by
how much its other work differs: all symmetric calls, the decoding of keys, and the work on messages take as
many times as long as they do here, on either side.
"""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown.prediction.libssl import LibraryError, Libssl, Plan, Took, libssl_of
from shakedown.prediction.prices import price
from shakedown.prediction.trace import Trace, parse_trace
from shakedown.profiles.costs import Triple
from shakedown.profiles.device import Device
from shakedown.profiles.importers.common import Primitives
from shakedown.profiles.importers.openssl import read_openssl_speed
from shakedown.profiles.overhead import handshake_kind
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS
from shakedown.schema.base import SIDES, Side

SPEED = ("rsa2048", "ecdsap256", "ecdsap384", "ecdhp256", "ecdhp384", "ecdhx25519", "ed25519")
"""What `openssl speed` is asked for."""
HANDSHAKES = (
    ("tls1.2/rsa/rsa2048/server/ticket", 0, "X25519:P-256", "AES128-GCM-SHA256"),
    ("tls1.3/x25519/ed25519/server", 0, "X25519", "TLS_AES_128_GCM_SHA256"),
    ("tls1.3/x25519/ed25519/server/aes256-gcm", 2, "X25519", "TLS_AES_256_GCM_SHA384"),
    ("tls1.3/x25519/p256@rsa2048/server", 2, "X25519:P-256", "TLS_AES_128_GCM_SHA256"),
    ("tls1.3/x25519/p384/server", 2, "X25519:P-384", "TLS_AES_128_GCM_SHA256"),
    ("tls1.2/ecdhe_ecdsa+x25519/p256/server", 0, "X25519:P-256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("tls1.2/ecdhe_rsa+x25519/rsa2048/server", 0, "X25519", "ECDHE-RSA-AES128-GCM-SHA256"),
)
"""Suites that are measured through the other libssl, first one without public-key operations: with so many
tickets; groups and cipher as OpenSSL calls them.
"""
CLIENTS_WORK = {
    ("ClientHello", "generate"),
    ("ServerHello", "process"),
    ("EncryptedExtensions", "process"),
    ("CertificateRequest", "process"),
    ("Certificate", "process"),
    ("CertificateVerify", "process"),
    ("ServerKeyExchange", "process"),
    ("ServerHelloDone", "process"),
    ("ClientKeyExchange", "generate"),
    ("NewSessionTicket", "process"),
}
"""Work on messages that is the client's where only servers have certificates."""
BOTH = {"ChangeCipherSpec", "Finished"}
"""What both sides make and read: its factor is between."""
REPEAT = 60
ROUNDS = 5
"""Ours and the other library's in turn, so often, and so many handshakes each time."""
SECONDS, OUR_SECONDS, SPEED_ROUNDS = 1, 0.3, 2
PUBLIC_KEY_SHARE = 0.9
"""A handshake of which public-key operations take more than this says little of the rest."""


@dataclass(frozen=True, slots=True)
class Factors:
    """How the other library compares: how many times as long its work takes.

    Attributes:
        version: of the other library.
        calls: public-key operations.
        symmetric: symmetric work.
        work: the stack's own work, reading of keys included, by kind of handshake and side.
    """

    version: str
    calls: Mapping[Triple, float]
    symmetric: float
    work: Mapping[tuple[str, Side], float]

    def call(self, triple: Triple) -> float:
        """A call, by its own figure, its algorithm's, or all."""
        operation, algorithm, parameters = triple
        alike = {"keygen": "derive", "encrypt": "verify", "decrypt": "sign"}
        found = self.calls.get(triple, self.calls.get((alike.get(operation, ""), algorithm, parameters)))
        if found is not None:
            return found
        family = [ratio for (_, one, _), ratio in self.calls.items() if one == algorithm]
        return statistics.median(family or self.calls.values() or [1.0])

    def stack(self, protocol: str, side: Side | None) -> float:
        """The stack's own work in a kind of handshake, on a side; of either where it is None."""
        kinds = {kind for kind, _ in self.work}
        plain = protocol.split(",")[0]
        if protocol != plain and protocol not in kinds:
            return self.symmetric
        kind = protocol if protocol in kinds else plain if plain in kinds else None
        found = [
            ratio
            for (one, where), ratio in self.work.items()
            if (kind is None or one == kind) and (side is None or where == side)
        ]
        return statistics.fmean(found) if found else 1.0


def measure_other(
    program: str,
    device: Device,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Factors:
    """Compare the OpenSSL of a program with the one that the profile of this machine was measured with.

    Args:
        program: the command line tool of the other OpenSSL.
        device: the profile of this machine.
        progress: told what is done, of how much, and what comes next.

    Raises:
        LibraryError: where the library cannot be used.
    """
    total = len(HANDSHAKES) + 1
    progress(0, total, "openssl speed")
    calls = _calls(program)
    library = Libssl(libssl_of(program))
    symmetric = 1.0
    ratios: dict[tuple[str, Side], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (suite, tickets, group, cipher) in enumerate(HANDSHAKES):
            progress(1 + number, total, suite)
            trace = _trace(suite, tickets)
            kind = _kind(trace)
            plan = _plan(suite, tickets, group, cipher, Path(folder) / str(number))
            for _ in range(ROUNDS):
                ours = _ours(suite, tickets)
                theirs = library.measure(plan, REPEAT)
                for side in SIDES:
                    known = Factors("", calls, symmetric, {})
                    ratio = _ratio(trace, side, device, ours, theirs, known)
                    if ratio is not None:
                        ratios.setdefault((kind, side), []).append(ratio)
            if not number:
                symmetric = statistics.median(ratio for found in ratios.values() for ratio in found)
    work = {where: statistics.median(found) for where, found in ratios.items()}
    return Factors(_version(program), calls, symmetric, work)


def adjusted(
    primitives: Primitives, overhead: Mapping[str, list[dict[str, Any]]], factors: Factors
) -> tuple[Primitives, dict[str, list[dict[str, Any]]]]:
    """What a profile of this machine says, as it is with the other library: times in microseconds."""
    calls: Primitives = {
        triple: {key: value * _factor(triple, factors) for key, value in cost.items()}
        for triple, cost in primitives.items()
    }
    rows = {name: [_adjusted_row(row, factors) for row in found] for name, found in overhead.items()}
    return calls, rows


def _factor(triple: Triple, factors: Factors) -> float:
    if _is_public_key(triple):
        return factors.call(triple)
    return factors.stack("", None) if triple[0] == "import" else factors.symmetric


def _adjusted_row(row: Mapping[str, Any], factors: Factors) -> dict[str, Any]:
    """A row of the overhead's tables; the stack of another protocol is no OpenSSL."""
    protocol = row.get("protocol", "")
    if "operation" in row:
        triple = (row["operation"], row["algorithm"], row.get("parameters", ""))
        factor = 1.0 if protocol else _factor(triple, factors)
    elif "side" in row:
        factor = factors.stack(protocol, row["side"])
    elif row["name"] in BOTH:
        factor = factors.stack(protocol, None)
    else:
        name = row["name"].split(",")[0]
        factor = factors.stack(protocol, "client" if (name, row["work"]) in CLIENTS_WORK else "server")
    return {key: value * factor if isinstance(value, float) else value for key, value in row.items()}


def _is_public_key(triple: Triple) -> bool:
    return triple[0] not in SYMMETRIC_OPERATIONS and triple[0] != "import"


def _kind(trace: Trace) -> str:
    public_keys = any(_is_public_key(one.triple) for one in trace.operations)
    return handshake_kind(trace.protocol, public_keys=public_keys)


def _ours(suite: str, tickets: int) -> Took:
    """The same handshake by the library in here, now."""
    from shakedown import native
    from shakedown.native.scenario import HandshakeId, Options

    options = Options(repeat=REPEAT, tickets=tickets)
    found = native.measure(HandshakeId(suite=native.canonical(suite)), options).handshake
    return Took(found.client_us.median, found.server_us.median)


def _ratio(
    trace: Trace, side: Side, device: Device, ours: Took, theirs: Took, factors: Factors
) -> float | None:
    """The other library's work beside public-key operations and, where there are any, symmetric work, over
    ours; None where these are nearly all.

    What the profile says of them is taken at the speed that the machine has now.
    """
    usual_s = price(trace, side, device).total.mean
    own = [
        (one, device.costs[one.triple])
        for one in trace.operations
        if one.side == side and one.triple in device.costs
    ]
    ours_s, theirs_s = (
        (took.client_us if side == "client" else took.server_us) * 1e-6 for took in (ours, theirs)
    )
    now = ours_s / usual_s
    calls = [(one.triple, one.count * cost.mean_s) for one, cost in own if _is_public_key(one.triple)]
    symmetric_s = math.fsum(
        cost.time_s(one.count, one.size_bytes) for one, cost in own if one.triple[0] in SYMMETRIC_OPERATIONS
    )
    if not any(_is_public_key(one.triple) for one in trace.operations):
        return theirs_s / ours_s
    apart_s = now * (math.fsum(seconds for _, seconds in calls) + symmetric_s)
    their_apart_s = now * (
        math.fsum(seconds * factors.call(triple) for triple, seconds in calls)
        + symmetric_s * factors.symmetric
    )
    if apart_s > PUBLIC_KEY_SHARE * ours_s or theirs_s <= their_apart_s:
        return None
    return (theirs_s - their_apart_s) / (ours_s - apart_s)


def _calls(program: str) -> dict[Triple, float]:
    """By how many times operations take longer than ours, both in loops of nothing else and in turn."""
    from shakedown import native

    ratios: dict[Triple, list[float]] = {}
    for name in SPEED * SPEED_ROUNDS:
        command = [program, "speed", "-mr", "-seconds", str(SECONDS), name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise LibraryError(f"{program}: {error.strerror}; accepted: OpenSSL's program") from error
        for triple, theirs in read_openssl_speed(done.stdout).primitives.items():
            if "time_us" not in theirs or triple[0] not in ("sign", "verify", "derive"):
                continue
            timed = native.primitives(filter=list(triple), seconds=OUR_SECONDS, back_to_back=True)
            ours = [one for one in timed if (one.operation, one.algorithm, one.parameters) == triple]
            if ours and ours[0].us.median > 0.0:
                ratios.setdefault(triple, []).append(theirs["time_us"] / ours[0].us.median)
    if not ratios:
        raise LibraryError(f"{program} speed -mr: no figures; accepted: OpenSSL's program, 1.1.1 or later")
    return {triple: statistics.median(found) for triple, found in ratios.items()}


def _version(program: str) -> str:
    done = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    found = re.match(r"(\S+ \S+)", done.stdout)
    return found[1] if found else program


def _trace(suite: str, tickets: int) -> Trace:
    """The suite's messages and operations, as they are here."""
    from shakedown import native
    from shakedown.native.scenario import HandshakeId, Options
    from shakedown.schema import builtins

    name = native.canonical(suite)
    return parse_trace(
        builtins(native.measure(HandshakeId(suite=name), Options(repeat=3, tickets=tickets))), name
    )


def _plan(suite: str, tickets: int, group: str, cipher: str, folder: Path) -> Plan:
    """The suite for the other libssl, with a chain of new keys."""
    import time

    from shakedown import native

    about = native.describe(suite)
    folder.mkdir()
    keys = about["keys"] if isinstance(about["keys"], str) else "@".join(about["keys"])
    native.certs(
        {
            "do": "make",
            "now": int(time.time()),
            "keys": keys,
            "out": folder,
            "side": "server",
            "profile": "lab",
        }
    )
    return Plan(
        about["protocol"],
        group,
        cipher,
        folder / "chain.pem",
        folder / "key.pem",
        folder / "ca.pem",
        tickets=tickets,
        resumed=about["mode"] in ("ticket", "resumed"),
    )
