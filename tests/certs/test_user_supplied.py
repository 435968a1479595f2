"""`measure` with user-supplied certificates: both sides, all formats, all errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shakedown.api import in_memory
from shakedown.errors import InputError
from shakedown.native.scenario import MeasureOptions
from shakedown.schema.options import options_of

STYLES = ("automated", "cross-signed", "extended", "large-root", "many-names")


def made(folder: Path, *arguments: str) -> Path:
    command = [sys.executable, "-m", "shakedown", "certs", "make", *arguments, "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Path:
    arguments = ("p256@rsa2048@rsa1024", "--profile", "style-extended", "--password", "secret")
    return made(tmp_path_factory.mktemp("server"), *arguments)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Path:
    return made(tmp_path_factory.mktemp("client"), "rsa1024", "--side", "client")


def measured(shakedown, *arguments: str | Path) -> dict:
    done = shakedown("measure", *arguments, "--repeat", "1", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]


def test_suite_is_named_by_the_chain_keys_and_the_chain_is_sent(shakedown, server):
    chain, key, ca = (server / name for name in ("chain.pem", "key.pem", "ca.pem"))
    found = measured(shakedown, "tls1.2/ecdhe_ecdsa", "--chain", chain, "--key", key, "--ca", ca)
    assert found["suite"] == "tls1.2/ecdhe_ecdsa+x25519/p256@rsa2048@rsa1024/server"
    shown = json.loads(shakedown("certs", "show", chain, "--json").stdout)[0]
    [message] = [one for one in found["messages"] if one["name"] == "Certificate"]
    # RFC 5246, section 7.4.2: headers of record and message, lengths of the list and of each certificate.
    assert message["bytes"] == shown["bytes_sent"] + 5 + 4 + 3 + 2 * 3
    verified = [one for one in found["operations"] if (one["side"], one["operation"]) == ("client", "verify")]
    assert len(verified) == 3


def test_pkcs12_archive_supplies_chain_key_and_root(shakedown, server):
    found = measured(shakedown, "tls1.3/x25519", "--chain", server / "all.p12", "--password", "secret")
    assert found["suite"] == "tls1.3/x25519/p256@rsa2048@rsa1024/server"


def test_each_side_presents_its_own_chain(shakedown, server, client):
    files = ["--chain", server / "all.p12", "--password", "secret", "--client-chain", client / "chain.pem"]
    files += ["--client-key", client / "key.pem", "--client-ca", client / "ca.pem"]
    done = shakedown("measure", "tls1.3/x25519/p256/mutual", "--repeat", "1", "--json", *files)
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)
    assert found["suite"] == "tls1.3/x25519/p256@rsa2048@rsa1024/mutual"
    assert "the client's are those of tls1.3/x25519/rsa1024/mutual" in done.stderr
    signed = [
        one["algorithm"]
        for one in found["operations"]
        if (one["side"], one["operation"]) == ("client", "sign")
    ]
    assert len(signed) == 1
    assert signed[0].startswith("rsa")


def test_wtls_suites_accept_wtls_certificates(shakedown, tmp_path):
    folder = made(tmp_path, "163k@233k", "--wtls")
    files = ("--chain", folder / "chain.wtls", "--key", folder / "key.pem", "--ca", folder / "ca.pem")
    assert measured(shakedown, "wtls/ecdh_ecdsa", *files)["suite"] == "wtls/ecdh_ecdsa/163k@233k/server"


@pytest.mark.parametrize("form", ["wtls", "x509"])
def test_certificate_form_is_refused_with_user_supplied_certificates(shakedown, tmp_path, form):
    folder = made(tmp_path, "rsa1024", "--profile", "lab")
    files = {"chain": folder / "chain.pem", "key": folder / "key.pem", "ca": folder / "ca.pem"}
    arguments = [word for name, file in files.items() for word in (f"--{name}", file)]
    done = shakedown("measure", "wtls/rsa", "--certificate-form", form, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "wtls/rsa/rsa1024/server: a certificate form is for generated certificates" in line
    for use in (
        lambda: in_memory.measure("wtls/rsa", 1, options=MeasureOptions(certificate_form=form, **files)),
        lambda: in_memory.measure(
            "wtls/rsa", 1, transfer_bytes=[1024], options=MeasureOptions(certificate_form=form, **files)
        ),
        lambda: in_memory.capture(
            ["wtls/rsa"], tmp_path / "x.pcap", options=MeasureOptions(certificate_form=form, **files)
        ),
    ):
        with pytest.raises(InputError, match="a certificate form is for generated certificates"):
            use()
    # The client's certificates are still generated, in that form.
    found = in_memory.measure("wtls/rsa/mutual", 1, options=MeasureOptions(certificate_form=form, **files))
    assert found.credentials.startswith("user-supplied:")


def test_python_validates_certificates_as_the_command_does(shakedown, tmp_path):
    folder = tmp_path / "brief"
    dates = ("--not-before", "2025-01-01", "--days", "30")
    done = shakedown("certs", "make", "p256", "--out", folder, *dates)
    assert done.returncode == 0, done.stderr
    files = {"chain": folder / "chain.pem", "key": folder / "key.pem", "ca": folder / "ca.pem"}
    january = 1_736_500_000
    found = in_memory.measure("tls1.3/x25519", 1, options=MeasureOptions(now=january, **files))
    assert found.suite == "tls1.3/x25519/p256/server"
    for use in (
        lambda: in_memory.measure("tls1.3/x25519", 1, options=MeasureOptions(**files)),
        lambda: in_memory.measure("tls1.3/x25519", 1, transfer_bytes=[1024], options=MeasureOptions(**files)),
        lambda: in_memory.capture(["tls1.3/x25519"], tmp_path / "x.pcap", options=MeasureOptions(**files)),
        lambda: in_memory.named_by_chain("tls1.3/x25519", options_of(MeasureOptions, files).checked()),
    ):
        with pytest.raises(InputError, match="expired at 2025-01-31"):
            use()
    for alone, chain in (("key", "chain"), ("ca", "chain"), ("client_key", "client_chain")):
        with pytest.raises(InputError, match=f"^{alone} requires {chain}$"):
            in_memory.measure("tls1.3/x25519", 1, options=MeasureOptions(**{alone: folder / "key.pem"}))


def test_password_alone_does_not_change_the_verification_time():
    """The password may be in the environment for other commands."""
    assert options_of(MeasureOptions, {"password": "secret", "chain": None}).checked().now is None
    assert options_of(MeasureOptions, {"now": 7, "chain": "c.pem"}).checked().now == 7
    assert options_of(MeasureOptions, {"client_chain": "c.pem"}).checked().now > 1_700_000_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tls1.3/x25519", "--chain", "chain.pem", "--ca", "ca.pem"), "chain.pem: holds no private key"),
        (("tls1.3/x25519", "--chain", "all.p12"), "all.p12: is protected by a password, and none was given"),
        (("tls1.3/x25519", "--chain", "all.p12", "--password", "x"), "all.p12: the password is wrong"),
        (
            ("tls1.3/x25519", "--chain", "chain.pem", "--key", "key.pem"),
            "give the issuer's certificate with --ca",
        ),
        (
            ("tls1.3/x25519", "--chain", "chain.pem", "--key", "ca-key.pem", "--ca", "ca.pem"),
            "ca-key.pem: the key (rsa1024) is not that of any certificate in chain.pem",
        ),
        (
            ("tls1.3/x25519", "--chain", "turned.pem", "--key", "key.pem", "--ca", "ca.pem"),
            "the right one, leaf first: online-banking.payments.example.com | ExampleCert SHA2 Extended",
        ),
        (
            (
                "tls1.3/x25519",
                "--chain",
                "chain.pem",
                "--key",
                "key.pem",
                "--ca",
                "ca.pem",
                "--now",
                "2050-01-01",
            ),
            "expired at 2049-12-24 00:00:00 UTC",
        ),
        (
            ("tls1.2/ecdhe_rsa", "--chain", "chain.pem", "--key", "key.pem", "--ca", "ca.pem"),
            "ecdhe_rsa in tls1.2 cannot use a p256 key; accepted: rsa512",
        ),
        (("tls1.2/psk", "--chain", "all.p12", "--password", "secret"), "'psk' does not use keys"),
        (("tls1.3/x25519", "--client-chain", "chain.pem"), "the client presents no certificate in it"),
        (("tls1.3/x25519", "--key", "key.pem"), "--key requires --chain"),
        (("tls1.3/x25519", "--client-ca", "ca.pem"), "--client-ca requires --client-chain"),
        (("wtls/rsa", "--chain", "all.p12", "--password", "secret"), "rsa in wtls cannot use a 256p key"),
        (
            ("tls1.3/x25519", "--chain", "noise.pem"),
            "noise.pem: unreadable as certificates or keys; accepted: PEM",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_input_is_reported_in_one_line_with_status_2(shakedown, server, tmp_path, arguments, said):
    for name in ("chain.pem", "key.pem", "ca.pem", "ca-key.pem", "all.p12"):
        (tmp_path / name).write_bytes((server / name).read_bytes())
    blocks = (server / "chain.pem").read_text().split("-----BEGIN")[1:]
    (tmp_path / "turned.pem").write_text("".join(f"-----BEGIN{block}" for block in reversed(blocks)))
    (tmp_path / "noise.pem").write_bytes(bytes(range(256)))
    done = shakedown("measure", *arguments, "--repeat", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_public_styles_run_in_handshakes_and_bytes_follow_their_shape(shakedown, tmp_path):
    sizes = {}
    for style in ("lab", *(f"style-{name}" for name in STYLES)):
        found = measured(shakedown, "tls1.3/x25519/p256@p256@p256", "--profile", style)
        sizes[style] = found["bytes"]["server_to_client"]
    small = ["lab", "style-automated", "style-cross-signed", "style-large-root", "style-extended"]
    assert sorted(sizes, key=sizes.__getitem__) == [*small, "style-many-names"], sizes
