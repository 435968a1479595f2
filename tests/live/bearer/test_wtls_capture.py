"""WTLS between two processes over a bearer, captured on the link and decoded by tshark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

GATEWAY = "198.18.0.2"
SUITE = "wtls/rsa/rsa1024/mutual"
PORT = 9203
COUNT = 3


def test_tshark_decodes_handshakes_between_our_processes_as_wtls(
    shakedown: Callable[..., subprocess.CompletedProcess[str]], peer: Callable[[str], str], tmp_path: Path
) -> None:
    tshark = peer("tshark")
    capture = tmp_path / "link.pcap"
    ours = f"{sys.executable} -m shakedown"
    server = f"exec {ours} serve {SUITE} --listen {GATEWAY}:{PORT} --payload 5 > {tmp_path}/server.log 2>&1"
    options = (
        f"--arrivals closed --clients 1 --count {COUNT} --duration 600s --timeout 100s "
        f"--authorized-target {GATEWAY} --no-rate-cap"
    )
    load = f"{ours} load wtls://{GATEWAY}:{PORT} {SUITE} {options} --http / --json"
    # The server's log is on the host's disk, which both namespaces see.
    client = f"until grep -q listening {tmp_path}/server.log; do sleep 0.1; done; exec {load}"
    run = shakedown("bearer", "run", "--pcap", capture, "--pair", server, "lte", "--", "sh", "-c", client)
    assert run.returncode == 0, run.stderr
    (found,) = json.loads(run.stdout)
    assert found["completed"] == found["planned"] == found["first_byte_s"]["n"] == COUNT

    fields = ["ip.src", "wtls.rec_type", "wtls.handshake.type", "wtls.rec_cipher", "_ws.malformed"]
    read = [tshark, "-r", str(capture), "-d", f"udp.port=={PORT},wtls", "-Y", "wtls", "-T", "fields"]
    text = subprocess.run(
        [*read, *(part for field in fields for part in ("-e", field))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    assert not any(row[4] for row in rows), text
    seen: dict[str, list[int]] = {"client": [], "server": []}
    data = 0
    for source, records, messages, *_ in rows:
        side = "server" if source == GATEWAY else "client"
        seen[side] += [int(number, 0) for number in messages.split(",") if number]
        data += sum(int(number, 0) == 4 for number in records.split(",") if number)
    # One uncounted handshake comes first; lost datagrams are sent again.
    assert seen["client"].count(1) >= COUNT + 1
    assert seen["server"].count(2) >= COUNT + 1
    # The client's Certificate, ClientKeyExchange and CertificateVerify.
    assert {11, 16, 15} <= set(seen["client"])
    assert {11, 13, 14} <= set(seen["server"])
    assert data >= 2 * COUNT
