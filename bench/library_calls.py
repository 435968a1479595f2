"""Go's library compared with OpenSSL: the factors of `--server-software go`, except that of the connection.

`python -m bench.library_calls` times each public-key operation of the profile (library_calls.go) and `openssl
speed` of X25519, alternately on one processor beside a loop, and prints the multiple with the middle half of
its rounds. Then it times handshakes in memory with Go's crypto/tls (library_handshakes.go) and with the
system's libssl: the server's time without public-key operations gives the factors of other work.

Rounds are valid by the rule of `shakedown.prediction.processor_speed`; the slowest of a round's loops
decides. No server is measured: the factors are not fitted to what the benchmark "capacity" predicts with
them.

`--out FILE` writes the profile with the factors of this machine.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import supplied
from bench.harness import UnavailableError, need, output
from shakedown import profiles
from shakedown.native.processors import placed, processors
from shakedown.prediction.cpu_contention import shared
from shakedown.prediction.libssl import Libssl, Plan, libssl_of
from shakedown.prediction.other_openssl import openssl_speed
from shakedown.prediction.processor_speed import Speed, Timed
from shakedown.profiles import load_software
from shakedown.profiles.costs import Triple
from shakedown.profiles.software import UNIT, ServerSoftware

SOURCE = Path(__file__).with_suffix(".go")
HANDSHAKES_SOURCE = SOURCE.with_name("library_handshakes.go")
PROFILE = Path(profiles.__file__).parent / "server_software" / "go.toml"
ROUNDS, MAX_ROUNDS = 5, 15
"""Valid rounds that are needed, and the maximum number of rounds."""
SPREAD = {"work": 1.25, "symmetric_work": 1.25}
"""Range of a factor of other work: those of the handshakes below are within it of their median."""
OWN_SPREAD = 1.1
"""Range of a multiple that was measured on this machine, like that of a profile's own figures."""
REPEAT = 300
"""Handshakes with libssl in one round."""
SIGNATURES: dict[str, tuple[str, Triple]] = {
    "p256": ("ecdsap256", ("sign", "ecdsa", "p256")),
    "ed25519": ("ed25519", ("sign", "eddsa", "ed25519")),
}
"""By key: its name in `openssl speed`, and the server's signature."""
KEYGEN: Triple = ("keygen", "ecdh", "x25519")


class Handshake(NamedTuple):
    """A handshake in memory with the server's key, and the factor for which it is used."""

    protocol: str
    key: str
    resumed: bool = False

    @property
    def factor(self) -> str:
        """A resumption in TLS 1.2 has no public-key operation; all others have a key exchange."""
        return "symmetric_work" if self.resumed and self.protocol == "tls1.2" else "work"

    @property
    def public(self) -> list[Triple]:
        """The server's public-key operations."""
        exchange = [] if self.factor == "symmetric_work" else [KEYGEN, UNIT]
        return exchange if self.resumed else [*exchange, SIGNATURES[self.key][1]]

    def plan(self, files: Path) -> Plan:
        """The same handshake with libssl: one ticket, as from Go's server."""
        ciphers = {"tls1.2": "ECDHE-ECDSA-AES128-GCM-SHA256", "tls1.3": "TLS_AES_128_GCM_SHA256"}
        return Plan(
            self.protocol == "tls1.3",
            "X25519:P-256",
            ciphers[self.protocol],
            certificate=str(files / "chain.pem"),
            key=str(files / "key.pem"),
            root=str(files / "ca.pem"),
            tickets=1,
            resumed=self.resumed,
        )


HANDSHAKES = (
    *(Handshake(protocol, key) for protocol in ("tls1.2", "tls1.3") for key in SIGNATURES),
    Handshake("tls1.3", "p256", resumed=True),
    Handshake("tls1.2", "p256", resumed=True),
)


def called(program: Path, *arguments: str) -> float:
    """The output of Go's program: microseconds."""
    return float(output(program, *arguments))


def multiples(program: Path, operations: list[str]) -> dict[str, list[float]]:
    """The multiples of each operation in valid rounds."""
    there = processors()[:1]
    speed = Speed()
    rounds: dict[str, list[Timed[float]]] = {one: [] for one in operations}
    with placed(there), shared(there) as meter:
        for _ in range(MAX_ROUNDS):
            for operation, found in rounds.items():
                if speed.has(ROUNDS, found):
                    continue
                ours = meter.timed(partial(called, program, operation), speed)
                unit = meter.timed(partial(openssl_speed, "openssl", "ecdhx25519"), speed)
                found.append(Timed(ours.found / unit.found[UNIT], max(ours.loop_s, unit.loop_s)))
    return {one: speed.counted(found, ROUNDS) for one, found in rounds.items()}


def works(calls: Path, handshakes: Path, folder: Path) -> dict[str, list[float]]:
    """The ratios of Go to libssl for each factor of other work: of each handshake, in valid rounds."""
    there, library, speed = processors()[:1], Libssl(libssl_of("openssl")), Speed()
    for key in SIGNATURES:
        supplied.chain(folder / key, key, profile="lab")
    rounds: dict[Handshake, list[Timed[float]]] = {one: [] for one in HANDSHAKES}
    with placed(there), shared(there) as meter:
        for _ in range(MAX_ROUNDS):
            left = [one for one, found in rounds.items() if not speed.has(ROUNDS, found)]
            if not left:
                break
            before = len(speed.loops_s)
            ours, theirs = meter.timed(partial(_public_us, calls, library), speed).found
            for one in left:
                files = folder / one.key
                mode = "resumed" if one.resumed else "full"
                go = meter.timed(partial(called, handshakes, str(files), one.protocol, mode), speed)
                openssl = meter.timed(partial(library.measure, one.plan(files), REPEAT), speed)
                rest_us = go.found - sum(ours[triple] for triple in one.public)
                their_rest_us = openssl.found["server"] - sum(theirs[triple] for triple in one.public)
                loop_s = max(speed.loops_s[before], go.loop_s, openssl.loop_s)
                rounds[one].append(Timed(rest_us / their_rest_us, loop_s))
    found: dict[str, list[float]] = {}
    for one, ratios in rounds.items():
        found.setdefault(one.factor, []).append(statistics.median(speed.counted(ratios, ROUNDS)))
        sys.stderr.write(f"{one}: {found[one.factor][-1]:.3g}\n")
    return found


def _public_us(calls: Path, library: Libssl) -> tuple[dict[Triple, float], dict[Triple, float]]:
    """Microseconds of the handshakes' public-key operations: in Go, and in OpenSSL."""
    wanted = [KEYGEN, UNIT, *(triple for _, triple in SIGNATURES.values())]
    ours = {triple: called(calls, " ".join(triple)) for triple in wanted}
    theirs = library.keygen("x25519")
    for name in ("ecdhx25519", *(name for name, _ in SIGNATURES.values())):
        theirs |= openssl_speed("openssl", name)
    return ours, theirs


def measured(software: ServerSoftware) -> dict[str, list[float]]:
    """All factors of a profile's library. Raises `UnavailableError`."""
    for tool in ("go", "openssl"):
        need(tool)
    if software.library is None:
        raise UnavailableError(f"the profile of {software.name} has no library")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls, handshakes = (_built(source, folder) for source in (SOURCE, HANDSHAKES_SOURCE))
        return multiples(calls, list(software.library.primitives)) | works(calls, handshakes, folder)


def _built(source: Path, folder: Path) -> Path:
    """A Go program, built into a folder."""
    program = folder / source.stem
    output("go", "build", "-o", program, source)
    return program


def of_this_machine(profile: str, found: Mapping[str, Sequence[float]]) -> str:
    """A profile's text with the factors of this machine."""
    for name, some in found.items():
        key = name if name in SPREAD else f'"{name}"'
        line = f"{key} = [{statistics.median(some):.4g}, {SPREAD.get(name, OWN_SPREAD):g}]"
        profile, count = re.subn(rf"^{key} = .*$", line, profile, flags=re.MULTILINE)
        assert count == 1, name
    return profile


def table(software: ServerSoftware, found: Mapping[str, Sequence[float]]) -> str:
    """The table of a page: factors of this machine next to those of the profile."""
    assert software.library is not None
    work = {"work": software.work, "symmetric_work": software.work_of(public_keys=False)}
    profile = {**software.library.primitives, **work}
    lines = [
        "| operation | multiple | middle half | n | profile | range |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, some in found.items():
        low, middle, high = statistics.quantiles(some, n=4) if len(some) > 1 else 3 * [*some]
        times, spread = profile[name]
        lines.append(
            f"| {name} | {middle:.3g} | {low:.3g} – {high:.3g} | {len(some)} | {times:g} | ×/÷ {spread:g} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write a profile if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the profile of this machine to this file")
    given = parser.parse_args()
    software = load_software("go")
    found = measured(software)
    sys.stdout.write(f"{table(software, found)}\n")
    if given.out:
        text = of_this_machine(PROFILE.read_text(encoding="utf-8"), found)
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
