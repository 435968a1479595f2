"""eapol_test, wpa_supplicant's EAP peer behind a RADIUS client, against any server."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CONFIGURATION = """
network={{
    key_mgmt=IEEE8021X
    eap=TLS
    identity="anonymous@shakedown.test"
    ca_cert="{ca}"
    client_cert="{chain}"
    private_key="{key}"
    fragment_size={fragment}
    phase1="tls_disable_tlsv1_3={without_tls13}"
}}
"""


@dataclass(frozen=True)
class Outcome:
    """The log and exit status of eapol_test."""

    log: str
    status: int

    @property
    def resumed(self) -> list[bool]:
        """Whether each authentication resumed a session."""
        # With TLS 1.3 the log states it twice, before and after the ticket.
        rounds = re.split(r"EAP: EAP entering state SUCCESS", self.log)[:-1]
        found = [re.findall(r"Handshake finished - resumed=([01])", one) for one in rounds]
        return [one[-1] == "1" for one in found if one]

    @property
    def matching_keys(self) -> tuple[int, int]:
        """Authentications whose MPPE keys are the MSK, and those whose are not."""
        found = re.search(r"MPPE keys OK: (\d+)\s+mismatch: (\d+)", self.log)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def requests(self) -> int:
        """Access-Requests sent."""
        return len(re.findall(r"Sending RADIUS message to authentication server", self.log))

    @property
    def eap_failure(self) -> bool:
        return "CTRL-EVENT-EAP-FAILURE" in self.log


def eapol_test(
    folder: Path,
    port: int,
    secret: str,
    *,
    client: Path,
    ca: Path,
    tls13: bool,
    again: int = 0,
    fragment: int = 1398,
    wait_s: int = 120,
) -> Outcome:
    """Runs one authentication, then `again` resumed ones."""
    configuration = folder / "eapol_test.conf"
    configuration.write_text(
        CONFIGURATION.format(
            ca=ca,
            chain=client / "chain.pem",
            key=client / "key.pem",
            fragment=fragment,
            without_tls13=0 if tls13 else 1,
        )
    )
    command = ["eapol_test", "-c", configuration, "-a", "127.0.0.1", "-p", str(port), "-s", secret]
    command += [f"-r{again}", f"-t{wait_s}"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, errors="replace"
    )
    return Outcome(done.stdout + done.stderr, done.returncode)
