"""The profile of this machine for a server that runs another OpenSSL than the built-in one.

Public-key operations are those of the other library: its `openssl speed` times every key type and size that
it offers, and key generation, which `openssl speed` omits, is timed in its libcrypto. Operations without such
a figure are not in the profile, so a prediction that needs one scales a related figure and reports this. All
other work, of symmetric primitives and of the stack, is that of our OpenSSL times a factor, measured by
handshakes in memory that alternate between both.
"""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from shakedown import native
from shakedown.native.processors import placed, processors
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.prediction.cpu_contention import shared
from shakedown.prediction.libssl import KEYS, RARE_KEYS, LibraryError, Libssl, Plan, libssl_of
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles.costs import Triple
from shakedown.profiles.importers.common import Primitives
from shakedown.profiles.importers.openssl import read_openssl_speed
from shakedown.profiles.overhead import handshake_kind, is_public_key
from shakedown.schema.base import SIDES, Side

Key = TypeVar("Key")

SPEED = (
    *("rsa1024", "rsa2048", "rsa3072", "rsa4096", "dsa1024", "dsa2048"),
    *("ecdsap224", "ecdsap256", "ecdsap384", "ecdsap521", "ed25519"),
    *("ecdhp224", "ecdhp256", "ecdhp384", "ecdhp521", "ecdhx25519", "ecdhx448"),
    *("ffdh2048", "ffdh3072", "-kem-algorithms", "-signature-algorithms"),
)
"""The algorithms for `openssl speed`; a version skips those that it does not know."""
_RARE_CURVES = (
    *("p160", "p192", "brp256r1", "brp384r1", "brp512r1"),
    *(f"{kind}{bits}" for kind in "kb" for bits in (163, 233, 283, 409, 571)),
)
RARE = ("rsa512", "dsa512", *(f"{what}{curve}" for what in ("ecdsa", "ecdh") for curve in _RARE_CURVES))
"""Algorithms of suites that few servers offer, timed in as few rounds as possible. With `SPEED` these are all
that `openssl speed` offers and a suite uses: none uses RSA of 7680 and 15,360 bits, Ed448, groups of 4096
bits and more, or Brainpool's twisted curves.
"""


class Handshake(NamedTuple):
    """A suite that is measured through the other libssl, with OpenSSL's names of group and cipher."""

    suite: str
    tickets: int
    group: str
    cipher: str


HANDSHAKES = (
    Handshake("tls1.2/rsa/rsa2048/server/ticket", 0, "X25519:P-256", "AES128-GCM-SHA256"),
    Handshake("tls1.2/ecdhe_ecdsa+x25519/p256/server", 0, "X25519:P-256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    Handshake("tls1.2/ecdhe_rsa+x25519/rsa2048/server", 0, "X25519", "ECDHE-RSA-AES128-GCM-SHA256"),
    Handshake("tls1.3/x25519/ed25519/server", 2, "X25519", "TLS_AES_128_GCM_SHA256"),
    Handshake("tls1.3/x25519/p256@rsa2048/server", 2, "X25519:P-256", "TLS_AES_128_GCM_SHA256"),
    Handshake("tls1.3/x25519/p256/server/aes256-gcm", 2, "X25519:P-256", "TLS_AES_256_GCM_SHA384"),
)
FROM_CLIENT = {"ClientHello", "ClientKeyExchange"}
"""The client's messages if only servers have certificates; all others except `BOTH` are the server's."""
BOTH = {"ChangeCipherSpec", "Finished"}
"""Messages that both sides send and process; their factor is the mean of both sides' factors."""
REPEAT = 60
MIN_ROUNDS, MAX_ROUNDS = 3, 12
STEADY = 1.05
"""Rounds end when the figures of valid rounds are within this factor of their medians."""
PUBLIC_KEY_SHARE = 0.9
"""If public-key operations take a larger share of a handshake than this, the rest cannot be measured
precisely.
"""


@dataclass(frozen=True, slots=True)
class OtherOpenssl:
    """The costs of another OpenSSL on this machine.

    Attributes:
        version: version of the library.
        calls: its public-key operations, in microseconds.
        work: ratio of its other work to ours, by kind of handshake and side.
        unsteady: factor within which 90 % of its figures lie around their medians from round to round.
    """

    version: str
    calls: Mapping[Triple, float]
    work: Mapping[tuple[str, Side], float]
    unsteady: float

    def stack(self, protocol: str, side: Side | None) -> float:
        """The factor of other work in a kind of handshake, on a side; None: the mean of both sides."""
        plain = protocol.split(",")[0]
        nearest = [
            [
                ratio
                for (kind, at), ratio in self.work.items()
                if kind in kinds and (side is None or at == side)
            ]
            for kinds in ({protocol}, {plain}, {kind for kind, _ in self.work})
        ]
        return statistics.fmean(next(filter(None, nearest), [1.0]))


def measure_other(
    program: str,
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
    *,
    rare: bool = True,
    alone: Speed | None = None,
    beside: Speed | None = None,
) -> OtherOpenssl:
    """Measure the OpenSSL of a program on one processor: until its figures at the processor's full speed are
    steady, or for `MAX_ROUNDS`.

    Args:
        program: the command line tool of the other OpenSSL.
        rare: whether to measure the algorithms of `RARE` too.
        alone, beside: collect the times of the loop before and after a measurement, and of the one beside
            `openssl speed`.
        progress: called with the work done, the total, and the next step.

    Raises:
        LibraryError: if the library cannot be used.
    """
    library = Libssl(libssl_of(program))
    names, keys = (SPEED, tuple(KEYS)) if not rare else ((*SPEED, *RARE), (*KEYS, *RARE_KEYS))
    total = len(names) + len(keys) + len(HANDSHAKES)
    found: dict[Triple, list[float]] = {}
    there = processors()[:1]
    with placed(there):
        alone, beside = alone or Speed.warmed_up(), beside or Speed()
        for number, name in enumerate(names):
            progress(number, total, name)
            limit = MAX_ROUNDS if name in SPEED else MIN_ROUNDS
            with shared(there) as meter:
                ask = partial(meter.timed, partial(openssl_speed, program, name), beside)
                found |= _steady(ask, beside, limit=limit)
        for number, name in enumerate(keys):
            progress(len(names) + number, total, name)
            limit = MAX_ROUNDS if name in KEYS else MIN_ROUNDS
            found |= _steady(partial(alone.flanked, partial(library.keygen, name)), alone, limit=limit)
    if not found:
        raise LibraryError(f"{program} speed -mr: no figures; accepted: OpenSSL's program, 1.1.1 or later")
    calls = {triple: statistics.median(times_us) for triple, times_us in found.items()}
    ratios: dict[tuple[str, Side], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, placed(there):
        for number, handshake in enumerate(HANDSHAKES):
            progress(len(names) + len(keys) + number, total, handshake.suite)
            plan = _plan(handshake, Path(folder) / str(number))
            measure = partial(_ratios, handshake, library, plan, calls)
            for where, figures in _steady(partial(alone.flanked, measure), alone, times=False).items():
                ratios.setdefault(where, []).extend(figures)
    work = {where: statistics.median(one) for where, one in ratios.items()}
    off = sorted(map(_unsteady, (*found.values(), *ratios.values())))
    done = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    version = re.match(r"(\S+ \S+)", done.stdout)
    return OtherOpenssl(version[1] if version else program, calls, work, off[(9 * len(off)) // 10])


def _steady(
    measure: Callable[[], Timed[Mapping[Key, float]]],
    speed: Speed,
    *,
    times: bool = True,
    limit: int = MAX_ROUNDS,
) -> dict[Key, list[float]]:
    """Figures of rounds at full speed. Rounds are repeated until their figures agree, at most `limit` times;
    there is one round if it has no figure.

    `times` below full speed are corrected; ratios stay as they are.
    """
    rounds: list[Timed[Mapping[Key, float]]] = []

    def figures(*, provisional: bool) -> dict[Key, list[float]]:
        choose = speed.at_full if times else speed.counted
        enough = min(MIN_ROUNDS, len(rounds))
        keys = set.intersection(*(set(one.found) for one in rounds))
        return {
            key: choose(
                [Timed(one.found[key], one.loop_s) for one in rounds], enough, provisional=provisional
            )
            for key in keys
        }

    while len(rounds) < limit:
        rounds.append(measure())
        found = figures(provisional=True)
        if not found:
            break
        if speed.has(MIN_ROUNDS, rounds) and max(map(_unsteady, found.values())) <= STEADY:
            break
    return figures(provisional=False)


def _unsteady(figures: Sequence[float]) -> float:
    """The factor within which half of the figures lie around their median."""
    middle = statistics.median(figures)
    return statistics.median(max(one / middle, middle / one) for one in figures)


def adjusted(
    primitives: Primitives, overhead: Mapping[str, list[dict[str, Any]]], other: OtherOpenssl
) -> tuple[Primitives, dict[str, list[dict[str, Any]]]]:
    """The contents of a profile of this machine, adjusted to the other library; times in microseconds."""
    calls: Primitives = {triple: {"time_us": time_us} for triple, time_us in other.calls.items()}
    factor = other.stack("", None)
    for triple, cost in primitives.items():
        if not is_public_key(triple[0]):
            calls[triple] = {key: value * factor for key, value in cost.items()}
    rows = {name: [one for row in found if (one := _row(row, other))] for name, found in overhead.items()}
    return calls, rows


def _row(row: Mapping[str, Any], other: OtherOpenssl) -> dict[str, Any] | None:
    """A row of the overhead's tables, adjusted; None for a public-key operation, which has one figure."""
    protocol = row.get("protocol", "")
    if "operation" in row:
        if is_public_key(row["operation"]) and not protocol:
            return None
        factor = 1.0 if protocol else other.stack("", None)  # stacks of other protocols are not OpenSSL
    elif "side" in row:
        factor = other.stack(protocol, row["side"])
    elif row["name"] in BOTH:
        factor = other.stack(protocol, None)
    else:
        clients = (row["work"] == "generate") == (row["name"] in FROM_CLIENT)
        factor = other.stack(protocol, "client" if clients else "server")
    return {key: value * factor if isinstance(value, float) else value for key, value in row.items()}


def _ratios(
    handshake: Handshake, library: Libssl, plan: Plan, calls: Mapping[Triple, float]
) -> dict[tuple[str, Side], float]:
    """Ratio of the other library's work without public-key operations to ours, by kind of handshake and side.

    A side is omitted if these operations are nearly all of its work, or if one of them has no figure.
    """
    options = MeasureOptions(repeat=REPEAT, tickets=handshake.tickets)
    ours = native.measure(HandshakeId(suite=native.canonical(handshake.suite)), options)
    theirs_us = library.measure(plan, REPEAT)
    public = [one for one in ours.operations if is_public_key(one.operation)]
    kind = handshake_kind(ours.suite.split("/", 1)[0], public_keys=bool(public))
    found: dict[tuple[str, Side], float] = {}
    for side in SIDES:
        own = [one for one in public if one.side == side]
        called = [calls.get((one.operation, one.algorithm, one.parameters or ""), math.nan) for one in own]
        whole_us = ours.handshake.of(side).median
        rest_us = whole_us - sum(one.us for one in own)
        their_rest_us = theirs_us[side] - sum(
            us * (one.count or 1) for us, one in zip(called, own, strict=True)
        )
        if rest_us > (1.0 - PUBLIC_KEY_SHARE) * whole_us and their_rest_us > 0.0:
            found[kind, side] = their_rest_us / rest_us
    return found


def openssl_speed(program: str, name: str) -> dict[Triple, float]:
    """Public-key operations in microseconds, from `openssl speed`."""
    try:
        done = subprocess.run(
            [program, "speed", "-mr", "-seconds", "1", name], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise LibraryError(f"{program}: {error.strerror}; accepted: OpenSSL's program") from error
    found = read_openssl_speed(done.stdout).primitives
    return {triple: cost["time_us"] for triple, cost in found.items() if "time_us" in cost}


def _plan(handshake: Handshake, folder: Path) -> Plan:
    """The suite for the other libssl, with a chain of new keys."""
    about = native.describe(handshake.suite)
    folder.mkdir()
    keys = about["keys"] if isinstance(about["keys"], str) else "@".join(about["keys"])
    request = {"do": "make", "keys": keys, "out": folder, "side": "server", "profile": "lab"}
    native.certs({"now": int(time.time()), **request})
    return Plan(
        about["protocol"] == "tls1.3",
        handshake.group,
        handshake.cipher,
        certificate=str(folder / "chain.pem"),
        key=str(folder / "key.pem"),
        root=str(folder / "ca.pem"),
        tickets=handshake.tickets,
        resumed=about["mode"] in ("ticket", "resumed"),
    )
