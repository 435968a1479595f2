"""Real handshakes across emulated bearers, timed in a capture, compared with the simulator.

    python -m tools.bearer_handshakes [--count N] [--certificates N …] [BEARER …]

For each bearer, without its spread and loss: `openssl s_client` with `openssl s_server`, each at its end,
timed in a capture; and `load` with `serve`, TLS and WTLS, with the times of `load`. The medians are printed
next to the simulator's time for the same messages, and for OpenSSL also the time of the client's end between
what it receives and what it sends next; the rest of a difference is the server's program and the bearer's
lateness. `--certificates` sets the length of the chains of OpenSSL's server, for flights of any length, and
omits `load` and `serve`. Bearers run at the same time; the exit status is 1 if a median differs from the
simulator's by more than 5 %.

If other programs use the processors, every packet and every step of a program waits for one; root can run
this tool under `chrt -f 5` on such a machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import output

from shakedown import native
from shakedown.native.scenario import HandshakeId, MeasureOptions
from shakedown.prediction.network import exchange
from shakedown.prediction.spec import WTLS, datagram_spec, message_spec, stream_spec, work_spec
from shakedown.profiles import load_bearer
from shakedown.profiles.delay import distribution
from tools import pages

GATEWAY = "198.18.0.2"
COMMAND = [*pages.SHAKEDOWN, "bearer"]
TLS = "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256 -groups X25519"


@dataclass(frozen=True)
class Handshake:
    """The start of the client's second flight in a TLS 1.3 handshake, and the bytes sent by then.

    Attributes:
        ready_s: from the first SYN to the client's Finished.
        hello_bytes, flight_bytes: sizes of the client's and the server's first flights.
        client_s: the part of `ready_s` from the server's SYN-ACK to the ClientHello, and from the end of the
            server's flight to the Finished: kernel and program at the client's end.
    """

    ready_s: float
    hello_bytes: int
    flight_bytes: int
    client_s: float


def write_profile(path: Path, tables: Mapping[str, Mapping[str, object]], **more: object) -> Path:
    """A bearer's profile with these tables and keys; a value in JSON is also one in TOML."""
    head = {"schema": 2, "name": path.stem, "title": "made", "date": "2026", "source": ["a check"], **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in head.items()]
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path.write_text("\n".join([*lines, ""]))
    return path


def fixed(name: str, folder: Path) -> Path:
    """A shipped profile without its spread and loss, so that all handshakes are equal."""
    bearer = load_bearer(name)
    ways = {
        side: {
            "rate_bps": way.rate_bits_per_s,
            "delay_ms": distribution(way.delay).mean * 1e3,
            "queue_bytes": 65536,
        }
        for side, way in (("up", bearer.up), ("down", bearer.down))
    }
    kept = {"half_duplex": bearer.half_duplex, "link_encryption": bearer.link_encryption}
    return write_profile(folder / f"{name}.toml", ways, **kept)


def credentials(folder: Path, certificates: int) -> str:
    """Options of `openssl s_server` for a leaf and copies of it: a server flight of any length."""
    key, leaf, chain = folder / "key.pem", folder / "leaf.pem", folder / f"chain-{certificates}.pem"
    if not leaf.exists():
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ("-keyout", key, "-out", leaf, "-subj", "/CN=test", "-days", "30")
        output("openssl", "req", "-x509", *curve, *files)
    chain.write_text(leaf.read_text() * (certificates - 1))
    more = f" -cert_chain {chain}" if certificates > 1 else ""
    return f"-key {key} -cert {leaf}{more}"


def start(bearer: str | Path, capture: Path, server: str) -> subprocess.Popen[str]:
    """Start a handshake of `openssl s_client` with `openssl s_server`, each at its end of a bearer."""
    far = f"exec openssl s_server -accept 4433 {server} {TLS} -num_tickets 0 -quiet"
    near = (
        f"exec openssl s_client -connect {GATEWAY}:4433 {TLS} -noservername < /dev/null > {capture}.log 2>&1"
    )
    options = ["--seed", "0", "--pcap", str(capture), "--linger", "0", "--pair", far]
    command = [*COMMAND, "run", *options, str(bearer), "--", "sh", "-c", near]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def packets_of(capture: Path, *fields: str, tshark: str = "tshark") -> list[list[str]]:
    """The given tshark fields of each TCP packet."""
    field_options = [part for field in fields for part in ("-e", field)]
    text = output(tshark, "-r", capture, "-Y", "tcp", "-T", "fields", *field_options)
    return [line.split("\t") for line in text.splitlines()]


def timed(capture: Path, tshark: str) -> Handshake:
    """The handshake in a capture of the client's end; retransmitted data counts once."""
    hello_bytes = flight_bytes = 0
    client_s = received_s = 0.0
    packets = packets_of(capture, "frame.time_relative", "ip.src", "tcp.seq", "tcp.len", tshark=tshark)
    for time_s, source, sequence, length in packets:
        if source == GATEWAY:
            if hello_bytes == 0 or int(length) > 0:
                received_s = float(time_s)
            if int(length) > 0:
                flight_bytes = max(flight_bytes, int(sequence) + int(length) - 1)
        elif int(length) > 0 and hello_bytes == 0:
            hello_bytes = int(length)
            client_s += float(time_s) - received_s
        elif int(length) > 0 and int(sequence) == hello_bytes + 1:
            client_s += float(time_s) - received_s
            return Handshake(float(time_s), hello_bytes, flight_bytes, client_s)
    raise AssertionError(f"{capture}: no second flight of the client\n{packets}")


def openssl_messages(handshake: Handshake) -> list[dict[str, Any]]:
    """Messages of a handshake with flights of these lengths, without work.

    The server's are ServerHello, ChangeCipherSpec and EncryptedExtensions, then Certificate,
    CertificateVerify and Finished: libssl writes its buffer when it is full, so the boundaries of messages
    determine segments.
    """
    server = (127, 6, 28, handshake.flight_bytes - 320, 101, 58)
    return [
        message_spec("client", "ClientHello", handshake.hello_bytes, flight=1),
        *(message_spec("server", "", size_bytes, flight=2) for size_bytes in server),
        message_spec("client", "Finished", 64, flight=3),
    ]


def simulated_s(bearer: str | Path, messages: Sequence[dict[str, Any]], protocol: str = "tls1.3") -> float:
    """The time until the simulator's client may send."""
    stream = protocol != "wtls"
    handshake = stream_spec("live", messages) if stream else datagram_spec("live", messages, WTLS)
    return exchange(handshake, load_bearer(str(bearer))).ready.mean


BEARERS = ("gsm-csd", "gprs", "nb-iot", "lte", "geo")
SUITES = ("tls1.3/x25519/p256/server", "wtls/rsa/rsa1024/server")
COUNT = 20
MAX_OFF = 0.05
PORT = 9203


@dataclass(frozen=True)
class Median:
    """Medians of handshakes over one bearer (s): live, and by the simulator.

    Attributes:
        who: the programs.
        client_s: the client's end's part of the live time; None if unknown.
    """

    bearer: str
    who: str
    count: int
    live_s: float
    simulated_s: float
    client_s: float | None

    @property
    def off(self) -> float:
        """The relative difference of the live time from the simulator's."""
        return self.live_s / self.simulated_s - 1.0


def with_openssl(bearer: str, certificates: int, count: int, folder: Path) -> Median:
    """OpenSSL's test programs, one handshake after another."""
    profile, server = fixed(bearer, folder), credentials(folder, certificates)
    found, simulated = [], []
    for number in range(count):
        capture = folder / f"{bearer}-{certificates}-{number}.pcap"
        with start(profile, capture, server) as process:
            _, errors = process.communicate(timeout=300)
        if errors:
            raise RuntimeError(errors)
        found.append(timed(capture, "tshark"))
        simulated.append(simulated_s(profile, openssl_messages(found[-1])))
    client_s = median(one.client_s for one in found)
    live_s = median(one.ready_s for one in found)
    who = f"openssl, {found[-1].flight_bytes:,} bytes"
    return Median(bearer, who, count, live_s, median(simulated), client_s)


def with_ours(bearer: str, suite: str, count: int, folder: Path) -> Median:
    """`load` and `serve`, one handshake after another.

    Each begins long after the end of the previous connection has left the link: on slow bearers a client that
    began at once would wait behind its own packets.
    """
    profile = fixed(bearer, folder)
    simulator_s = simulated_s(profile, measured_messages(suite), suite.partition("/")[0])
    gap_s = 1.5 * simulator_s + 1.0
    options = (
        f"--arrivals deterministic --rate {1.0 / gap_s}/s --duration {(count + 1) * gap_s}s --clients 1 "
        f"--count {count} --timeout 60s"
    )
    run = loaded(suite, profile, options, serve="--payload 5", bearer=("--linger", "0"))
    return Median(bearer, suite, run["completed"], run["handshake_s"]["p50"], simulator_s, None)


def loaded(
    suite: str, profile: Path, options: str, *, serve: str, bearer: Sequence[str], after: str = ""
) -> dict[str, Any]:
    """The result of `load` with `serve` behind a bearer; the client's end runs `after` in a shell afterwards.

    Options are those of `load`, of `serve` and of `bearer run`.
    """
    log = profile.with_suffix(f".{suite.replace('/', '-')}.log")
    ours = " ".join(pages.SHAKEDOWN)
    server = f"exec {ours} serve {suite} --listen {GATEWAY}:{PORT} {serve} > {log} 2>&1"
    scheme = "wtls" if suite.startswith("wtls/") else "tls"
    load = f"{ours} load {scheme}://{GATEWAY}:{PORT} {suite} {options}"
    load += f" --authorized-target {GATEWAY} --no-rate-cap --json"
    # The server ends with the client's command, so data that its connections have not yet sent is lost.
    client = f"until grep -q listening {log}; do sleep 0.1; done; {load}; status=$?; {after} exit $status"
    run = output(*COMMAND, "run", *bearer, "--pair", server, profile, "--", "sh", "-c", client)
    found: list[dict[str, Any]] = json.loads(run)
    return found[0]


def measured_messages(suite: str) -> list[dict[str, Any]]:
    """A suite's messages, with the work that they take on this machine."""
    measured = native.measure(HandshakeId(suite=native.canonical(suite)), MeasureOptions(repeat=30))
    return [
        message_spec(
            one.sender,
            one.name,
            one.bytes,
            flight=one.flight,
            unit=one.unit or 0,
            generate=work_spec(one.generate_us * 1e-6),
            process=work_spec(one.process_us * 1e-6),
        )
        for one in measured.messages
        if one.flight is not None
    ]


def line(one: Median) -> str:
    """A row of the table, in ms."""
    client = "" if one.client_s is None else f"{one.client_s * 1e3:10.1f}"
    return (
        f"{one.bearer:10}{one.who:28}{one.count:6}{one.live_s * 1e3:12.1f}{one.simulated_s * 1e3:12.1f}"
        f"{100 * one.off:+8.1f} %{client}"
    )


def main() -> int:
    """Run the tool; return the exit status."""
    parser = pages.options("bearer_handshakes", __doc__)
    parser.add_argument("bearers", nargs="*", metavar="BEARER", default=list(BEARERS))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--certificates", type=int, nargs="+", default=[])
    given = parser.parse_args()
    print(f"{'':38}{'':6}   median (ms)   simulated      off  the client's")
    near = True
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(given.bearers)) as pool:
        folder = Path(name)
        for certificates in given.certificates or [1]:
            credentials(folder, certificates)

        def all_of(bearer: str) -> list[Median]:
            ours = [] if given.certificates else SUITES
            return [
                *(with_openssl(bearer, one, given.count, folder) for one in given.certificates or [1]),
                *(with_ours(bearer, suite, given.count, folder) for suite in ours),
            ]

        for medians in pool.map(all_of, given.bearers):
            for one in medians:
                print(line(one), flush=True)
                near &= abs(one.off) <= MAX_OFF
    return int(not near)


if __name__ == "__main__":
    sys.exit(main())
