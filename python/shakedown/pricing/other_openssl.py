"""The profile of this machine for a server that runs another OpenSSL than the one that measures here.

Two things are asked of the other library, both apart from any server: what its own `openssl speed` gives for
public-key operations, next to ours in loops of the same kind; and what a few handshakes in memory take,
through its libssl. What of these its public-key operations do not explain, next to the same of ours, says by
how much its other work differs: all symmetric calls, the decoding of keys, and the work on messages take as
many times as long as they do here.
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

from shakedown.pricing.libssl import LibraryError, Libssl, Plan, Took, libssl_of
from shakedown.pricing.prices import price
from shakedown.pricing.trace import Trace, parse_trace
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
    ("tls1.3/p256/ed25519/server", "P-256", "TLS_AES_128_GCM_SHA256"),
    ("tls1.3/p256/rsa2048/server", "P-256", "TLS_AES_128_GCM_SHA256"),
    ("tls1.3/x25519/p384/server", "X25519", "TLS_AES_128_GCM_SHA256"),
    ("tls1.2/ecdhe_ecdsa+p256/p256/server", "P-256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("tls1.2/ecdhe_rsa+p256/rsa2048/server", "P-256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("tls1.2/rsa/rsa2048/server/ticket", "P-256", "AES128-GCM-SHA256"),
)
"""Suites that are measured through the other libssl: group and cipher as OpenSSL calls them."""
REPEAT = 60
ROUNDS = 5
"""Ours and the other library's in turn, so often, and so many handshakes each time."""
SECONDS = 1
PUBLIC_KEY_SHARE = 0.9
"""A handshake of which public-key operations take more than this says little of the rest."""


@dataclass(frozen=True, slots=True)
class Factors:
    """How the other library compares: public-key calls by triple, other work by kind of handshake."""

    version: str
    calls: Mapping[Triple, float]
    work: Mapping[str, float]
    objects_us: float

    def call(self, triple: Triple) -> float:
        """How many times as long a call takes: by its own figure, its algorithm's, or all."""
        operation, algorithm, parameters = triple
        alike = {"keygen": "derive", "encrypt": "verify", "decrypt": "sign"}
        found = self.calls.get(triple, self.calls.get((alike.get(operation, ""), algorithm, parameters)))
        if found is not None:
            return found
        family = [ratio for (_, one, _), ratio in self.calls.items() if one == algorithm]
        return statistics.median(family or self.calls.values() or [1.0])

    def other(self, protocol: str) -> float:
        """How many times as long everything else takes, by the kind of handshake."""
        found = self.work.get(protocol, self.work.get(protocol.split(",")[0]))
        return statistics.median(self.work.values()) if found is None else found


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
    ratios: dict[str, list[float]] = {}
    objects: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (suite, group, cipher) in enumerate(HANDSHAKES):
            progress(1 + number, total, suite)
            trace = _trace(suite)
            plan = _plan(suite, group, cipher, Path(folder) / str(number))
            for _ in range(ROUNDS):
                ours = _ours(suite)
                took = library.measure(plan, REPEAT)
                objects.append(took.server_object_us)
                for side in SIDES:
                    ratio = _ratio(trace, side, device, ours, took, Factors("", calls, {}, 0.0))
                    if ratio is not None:
                        ratios.setdefault(_kind(trace), []).append(ratio)
    work = {kind: statistics.median(found) for kind, found in ratios.items()}
    return Factors(_version(program), calls, work, statistics.median(objects))


def adjusted(
    primitives: Primitives, overhead: Mapping[str, list[dict[str, Any]]], factors: Factors
) -> tuple[Primitives, dict[str, list[dict[str, Any]]]]:
    """What a profile of this machine says, as it is with the other library: times in microseconds."""
    everywhere = factors.other("")
    calls: Primitives = {}
    for triple, cost in primitives.items():
        factor = factors.call(triple) if _is_public_key(triple) else everywhere
        calls[triple] = {key: value * factor for key, value in cost.items()}
    rows = {name: [_adjusted_row(row, factors) for row in found] for name, found in overhead.items()}
    return calls, rows


def _adjusted_row(row: Mapping[str, Any], factors: Factors) -> dict[str, Any]:
    """A row of the overhead's tables; the stack of another protocol is no OpenSSL."""
    protocol = row.get("protocol", "")
    if "operation" in row:
        triple = (row["operation"], row["algorithm"], row.get("parameters", ""))
        factor = factors.call(triple) if _is_public_key(triple) else factors.other(protocol)
        factor = 1.0 if protocol else factor
    else:
        factor = factors.other(protocol)
    return {key: value * factor if isinstance(value, float) else value for key, value in row.items()}


def _is_public_key(triple: Triple) -> bool:
    return triple[0] not in SYMMETRIC_OPERATIONS and triple[0] != "import"


def _kind(trace: Trace) -> str:
    public_keys = any(_is_public_key(one.triple) for one in trace.operations)
    return handshake_kind(trace.protocol, public_keys=public_keys)


def _ours(suite: str) -> Took:
    """The same handshake by the library in here, now."""
    from shakedown import core
    from shakedown.scenario import HandshakeId, Options

    found = core.measure(HandshakeId(suite=core.canonical(suite)), Options(repeat=REPEAT)).handshake
    return Took(found.client_us.median, found.server_us.median, 0.0)


def _ratio(
    trace: Trace, side: Side, device: Device, ours: Took, theirs: Took, factors: Factors
) -> float | None:
    """The other library's work beside public-key operations, over ours; None where these are nearly all.

    What the profile says of public-key operations is taken at the speed that the machine has now.
    """
    usual_s = price(trace, side, device).total.mean
    calls = [
        (one.triple, one.count * device.costs[one.triple].mean_s)
        for one in trace.operations
        if one.side == side and one.triple in device.costs and _is_public_key(one.triple)
    ]
    ours_s, theirs_s = (
        (took.client_us if side == "client" else took.server_us) * 1e-6 for took in (ours, theirs)
    )
    now = ours_s / usual_s
    public_s = now * math.fsum(seconds for _, seconds in calls)
    their_public_s = now * math.fsum(seconds * factors.call(triple) for triple, seconds in calls)
    if public_s > PUBLIC_KEY_SHARE * ours_s or theirs_s <= their_public_s:
        return None
    return (theirs_s - their_public_s) / (ours_s - public_s)


def _calls(program: str) -> dict[Triple, float]:
    """By how many times operations take longer than ours, both in loops of nothing else."""
    from shakedown import core

    command = [program, "speed", "-mr", "-seconds", str(SECONDS), *SPEED]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LibraryError(f"{program}: {error.strerror}; accepted: OpenSSL's program") from error
    theirs = read_openssl_speed(done.stdout).primitives
    found: dict[Triple, float] = {}
    for operation in ("sign", "verify", "derive"):
        timed = core.primitives(filter=[operation], seconds=0.1, back_to_back=True)
        for one in timed:
            triple = (one.operation, one.algorithm, one.parameters)
            if triple in theirs and one.us.median > 0.0:
                found[triple] = theirs[triple]["time_us"] / one.us.median
    if not found:
        raise LibraryError(f"{program} speed -mr: no figures; accepted: OpenSSL's program, 1.1.1 or later")
    return found


def _version(program: str) -> str:
    done = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    found = re.match(r"(\S+ \S+)", done.stdout)
    return found[1] if found else program


def _trace(suite: str) -> Trace:
    """The suite's messages and operations, as they are here."""
    from shakedown import core
    from shakedown.scenario import HandshakeId, Options
    from shakedown.schema import builtins

    name = core.canonical(suite)
    return parse_trace(builtins(core.measure(HandshakeId(suite=name), Options(repeat=3))), name)


def _plan(suite: str, group: str, cipher: str, folder: Path) -> Plan:
    """The suite for the other libssl, with a chain of new keys."""
    import time

    from shakedown import core

    about = core.describe(suite)
    folder.mkdir()
    keys = about["keys"] if isinstance(about["keys"], str) else "@".join(about["keys"])
    core.certs(
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
        resumed=about["mode"] in ("ticket", "resumed"),
    )
