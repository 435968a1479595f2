"""Real handshakes across emulated bearers, timed in a capture, and what the models say of them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GATEWAY = "198.18.0.2"
ATTEMPTS = 6
"""How often something is timed until it took as long as it should: a busy machine makes it longer."""
COMMAND = [sys.executable, "-m", "shakedown", "bearer"]
TLS = "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256 -groups X25519"


@dataclass(frozen=True)
class Handshake:
    """When the client of a TLS 1.3 handshake began its second flight, and what had been sent by then.

    Attributes:
        ready_s: from the first SYN to the client's Finished.
        hello_bytes, flight_bytes: of the client's and the server's first flights.
    """

    ready_s: float
    hello_bytes: int
    flight_bytes: int


def fixed(name: str, folder: Path) -> Path:
    """A shipped profile without its spread and loss: what is left is the same in each handshake."""
    from shakedown.profiles import load_bearer

    bearer = load_bearer(name)
    ways = [
        f"[{side}]\nrate_bps = {way.rate_bits_per_s}\n"
        f"delay_ms = {way.delay.distribution.mean * 1e3}\nqueue_bytes = 65536\n"
        for side, way in (("up", bearer.up), ("down", bearer.down))
    ]
    half = f"half_duplex = {str(bearer.half_duplex).lower()}\nlink_encryption = '{bearer.link_encryption}'\n"
    head = f"schema = 2\nname = '{name}'\ntitle = 'fixed'\ndate = '2026'\nsource = ['a test']\n{half}"
    path = folder / f"{name}.toml"
    path.write_text(head + "\n".join(ways))
    return path


def credentials(folder: Path, certificates: int) -> str:
    """Options of `openssl s_server` for a leaf and copies of it: a server flight of any length."""
    key, leaf, chain = folder / "key.pem", folder / "leaf.pem", folder / f"chain-{certificates}.pem"
    if not leaf.exists():
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        make = [
            "openssl",
            "req",
            "-x509",
            *curve,
            "-keyout",
            key,
            "-out",
            leaf,
            "-subj",
            "/CN=test",
            "-days",
            "30",
        ]
        subprocess.run(make, check=True, capture_output=True)
    chain.write_text(leaf.read_text() * (certificates - 1))
    more = f" -cert_chain {chain}" if certificates > 1 else ""
    return f"-key {key} -cert {leaf}{more}"


def start(bearer: str | Path, capture: Path, server: str, seed: int = 0) -> subprocess.Popen[str]:
    """Begins a handshake of `openssl s_client` with `openssl s_server`, each at its end of a bearer."""
    far = f"exec openssl s_server -accept 4433 {server} {TLS} -num_tickets 0 -quiet"
    near = (
        f"exec openssl s_client -connect {GATEWAY}:4433 {TLS} -noservername < /dev/null > {capture}.log 2>&1"
    )
    options = ["--seed", str(seed), "--pcap", str(capture), "--linger", "0", "--pair", far]
    command = [*COMMAND, "run", *options, str(bearer), "--", "sh", "-c", near]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def timed(capture: Path, tshark: str) -> Handshake:
    """The handshake in a capture of the client's end; what was sent again counts once."""
    fields = ["frame.time_relative", "ip.src", "tcp.seq", "tcp.len"]
    command = [
        tshark,
        "-r",
        str(capture),
        "-T",
        "fields",
        *(part for field in fields for part in ("-e", field)),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    hello_bytes = flight_bytes = 0
    for line in text.splitlines():
        time_s, source, sequence, length = line.split("\t")
        if int(length) == 0:
            continue
        if source == GATEWAY:
            flight_bytes = max(flight_bytes, int(sequence) + int(length) - 1)
        elif hello_bytes == 0:
            hello_bytes = int(length)
        elif int(sequence) == hello_bytes + 1:
            return Handshake(float(time_s), hello_bytes, flight_bytes)
    raise AssertionError(f"{capture}: no second flight of the client\n{text}")


def modelled_s(bearer: str | Path, handshake: Handshake) -> float:
    """What the network model says of flights of these lengths; nobody computes anything."""
    from shakedown.models.network import Step, exchange
    from shakedown.profiles import load_bearer

    # ServerHello, ChangeCipherSpec and EncryptedExtensions, then Certificate, CertificateVerify and Finished:
    # libssl hands over what its buffer holds, so where messages end decides on segments.
    server = (127, 6, 28, handshake.flight_bytes - 320, 101, 58)
    steps = [
        Step("client", handshake.hello_bytes),
        *(Step("server", size_bytes) for size_bytes in server),
        Step("client", 64),
    ]
    return exchange(steps, load_bearer(str(bearer)).path()).ready.mean
