"""One capture of many real peers, created once for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import ssl
from functools import partial
from pathlib import Path

import pytest
from bench.harness import checked_example

from capture.oracle import PORTS, Captured
from capture.peers import Site, capturing, together

# These tests identify a connection by its client's port. The kernel may assign a port again for another
# server; then the capture is repeated.
ATTEMPTS = 5
NEEDED = ("tshark", "editcap", "openssl", "curl", "nginx", "gnutls-cli", "gnutls-serv", "tstclnt")


def unavailable(reason: str) -> None:
    """Skips the test if peers are missing; in CI, fails it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def program(cargo: None) -> Path:
    return checked_example("inspect_capture")


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Captured:
    """Captures OpenSSL, nginx with curl, Python, GnuTLS, NSS and (if installed) Go; TLS 1.0 to 1.3, DTLS."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        unavailable(f"not installed (make peers installs them): {' '.join(missing)}")
    for _ in range(ATTEMPTS):
        found = one_capture(Site(tmp_path_factory.mktemp("site")), program)
        clients = [connection["client"] for connection in found.ours()]
        if len(set(clients)) == len(clients):
            return found
    pytest.fail(f"{ATTEMPTS} captures, and in each of them a client's port came twice")


def one_capture(site: Site, program: Path) -> Captured:
    path = site.folder / "peers.pcapng"
    try:
        with capturing(path, PORTS):
            made = streams(site)
            made_datagram = datagrams(site)
    except PermissionError as error:
        unavailable(f"may not capture: {error}")
    return Captured(path, site.key_log, made, made_datagram, program)


def streams(site: Site) -> int:
    """Makes connections over TCP and returns their number."""
    made = 0
    old = ("-cipher", "ALL:@SECLEVEL=0")
    session = str(site.folder / "session.pem")
    with site.openssl_server(24400, *old, "-min_protocol", "TLSv1"):
        cases = [
            ["-tls1_3"],
            ["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"],
            ["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
            ["-tls1_3", "-groups", "X448"],
            ["-tls1_3", "-sess_out", session],
            ["-tls1_3", "-sess_in", session],
            ["-tls1_2", "-sess_out", session],
            ["-tls1_2", "-sess_in", session],
            ["-tls1_2", "-no_ticket", "-sess_out", session],
            ["-tls1_2", "-no_ticket", "-sess_in", session],
            ["-tls1_2", "-no_etm", "-cipher", "AES128-SHA:@SECLEVEL=0"],
            ["-tls1_1", *old],
            ["-tls1", *old],
        ]
        ciphers = (
            "AES256-SHA256 AES128-CCM8 DHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-SHA384"
            " DHE-RSA-CAMELLIA128-SHA ECDHE-RSA-CHACHA20-POLY1305 ARIA128-GCM-SHA256"
            " ECDHE-ARIA256-GCM-SHA384 AES256-CCM"
        )
        cases += [["-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0"] for cipher in ciphers.split()]
        for case in cases:
            site.openssl_client(24400, *case)
        site.openssl_client(24400, "-tls1_2", host="[::1]")
        made += len(cases) + 1
    with site.openssl_server(24401, "-Verify", "1", *old):
        own = ["-cert", str(site.certificate), "-key", str(site.key)]
        for case in (["-tls1_3", *own], ["-tls1_2", *own], ["-tls1_2"], ["-tls1_3"]):
            site.openssl_client(24401, *case)
            made += 1
    # One group only, which the client does not guess: a retry.
    with site.openssl_server(24402, "-groups", "P-521"):
        site.openssl_client(24402, "-tls1_3", "-groups", "X25519:P-521")
        made += 1
    with site.nginx(24403):
        fetch = partial(site.curl, 24403)
        together(*[partial(fetch, "--tls-max", version) for version in ("1.2", "1.3") for _ in range(4)])
        made += 8
    with site.gnutls_server(24404, "--http"):
        for priority in ("NORMAL", "NORMAL:-VERS-TLS1.3", "NORMAL:-VERS-TLS1.3:-GROUP-ALL:+GROUP-FFDHE2048"):
            site.gnutls_client(24404, "--priority", priority)
            made += 1
        site.openssl_client(24404, "-tls1_3")
        made += 1
    with site.python_server(24405):
        together(*[partial(site.python_client, 24405)] * 4)
        site.python_client(24405, version=ssl.TLSVersion.TLSv1_2)
        made += 5
    with site.python_server(24406, start_tls=True, piece=100):
        site.python_client(24406, start_tls=True)
        made += 1
    with site.nginx(24407):
        for versions in ("tls1.2:tls1.2", "tls1.3:tls1.3"):
            site.nss_client(24407, "-V", versions)
            made += 1
        if shutil.which("go"):
            for version in ("1.2", "1.3"):
                site.go_client(24407, version)
                made += 1
    return made


def datagrams(site: Site) -> int:
    """Makes connections over UDP and returns their number."""
    made = 0
    with site.openssl_server(24470, "-dtls1_2", "-mtu", "600"):
        site.openssl_client(24470, "-dtls1_2", "-mtu", "600")
        made += 1
    with site.openssl_server(24471, "-dtls1_2", "-cipher", "ALL:@SECLEVEL=0"):
        site.openssl_client(24471, "-dtls1_2", "-cipher", "AES128-SHA:@SECLEVEL=0")
        made += 1
    with site.gnutls_server(24472, "--udp"):
        site.gnutls_client(24472, "--udp")
        made += 1
    return made
