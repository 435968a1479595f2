"""`certs`: generating, presenting and validating chains, with the system's OpenSSL as an oracle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

STYLES = ("automated", "cross-signed", "extended", "large-root", "many-names")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A chain of three for gw.example, made by the command."""
    import sys

    folder = tmp_path_factory.mktemp("made")
    command = [sys.executable, "-m", "shakedown", "certs", "make", "p256@p384@p384", "--out", str(folder)]
    subprocess.run([*command, "--name", "gw.example"], check=True, capture_output=True, timeout=300)
    return folder


def shown(shakedown: Run, *arguments: str | Path) -> list[dict]:
    done = shakedown("certs", "show", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def reasons(entry: dict) -> list[str]:
    return [violation["reason"] for violation in entry["violations"]]


def test_new_chain_is_accepted_by_openssl_and_by_shakedown(shakedown, peer, made):
    command = [peer("openssl"), "verify", "-verify_hostname", "gw.example", "-CAfile", made / "ca.pem"]
    done = subprocess.run([*command, "-untrusted", made / "chain.pem", made / "chain.pem"], timeout=120)
    assert done.returncode == 0
    [entry] = shown(
        shakedown,
        made / "chain.pem",
        "--key",
        made / "key.pem",
        "--ca",
        made / "ca.pem",
        "--host",
        "gw.example",
    )
    assert entry["violations"] == []
    assert entry["keys_name"] == "p256@p384@p384"
    assert len(entry["certificates"]) == 2
    for certificate in entry["certificates"]:
        assert sum(part["bytes"] for part in certificate["parts"]) == certificate["bytes"]


def test_show_prints_contents_sizes_and_reasons_of_refusal(shakedown, made):
    arguments = ("--ca", made / "ca.pem", "--at", "2050-03-01", "--host", "other.example")
    done = shakedown("certs", "show", made / "chain.pem", *arguments)
    assert done.returncode == 0
    for line in (
        "2 X.509 certificates (PEM), keys p256@p384@p384",
        "CN=gw.example",
        "X509v3 Subject Alternative Name",
        "certificate 1: expired at 2049-12-24 00:00:00 UTC",
        "certificate 1: is not for 'other.example' but for dns:gw.example",
    ):
        assert line in done.stdout


def test_the_wrong_order_and_the_wrong_key_are_found(shakedown, made, tmp_path):
    blocks = (made / "chain.pem").read_text().split("-----BEGIN")
    turned = tmp_path / "turned.pem"
    turned.write_text("".join(f"-----BEGIN{block}" for block in reversed(blocks[1:])))
    [entry] = shown(shakedown, turned, "--ca", made / "ca.pem", "--key", made / "ca-key.pem")
    assert reasons(entry) == ["wrong_order", "key_mismatch"]
    assert entry["violations"][0]["detail"] == (
        "the right order, leaf first: 'gw.example', 'Shakedown Intermediate CA 1'"
    )


@pytest.mark.parametrize("style", STYLES)
def test_public_styles_are_generated_and_described(shakedown, tmp_path, style):
    # Small keys are enough to check the shapes.
    keys = "p256@p256@p256@p256" if style == "cross-signed" else "p256@p256@p256"
    done = shakedown("certs", "make", keys, "--profile", f"style-{style}", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    [entry] = shown(shakedown, tmp_path / "chain.pem", "--ca", tmp_path / "ca.pem")
    assert entry["violations"] == []
    assert (tmp_path / "ca-other.pem").exists() == (style == "cross-signed")


def test_one_authority_issues_several_certificates(shakedown, tmp_path):
    root, leaf = tmp_path / "root", tmp_path / "leaf"
    assert shakedown("certs", "issue", "root", "ed25519", "--out", root, "--name", "R").returncode == 0
    issuer = ("--ca", root / "chain.pem", "--ca-key", root / "key.pem")
    done = shakedown("certs", "issue", "client", "mldsa44", "--out", leaf, *issuer, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["description"]["keys_name"] == "mldsa44@ed25519"


def test_wtls_certificates_are_generated_and_described(shakedown, tmp_path):
    done = shakedown("certs", "make", "163k@283k", "--wtls", "--out", tmp_path, "--side", "client")
    assert done.returncode == 0, done.stderr
    files = (tmp_path / "chain.pem", tmp_path / "chain.wtls")
    entries = shown(shakedown, *files, "--key", tmp_path / "key.pem", "--ca", tmp_path / "ca.pem")
    assert [entry["file"] for entry in entries] == [str(file) for file in files]
    for entry in entries:
        assert (entry["keys_name"], entry["violations"]) == ("163k@283k", [])
        assert entry["certificates"][0]["kind"] == "WTLS"
    raw = (tmp_path / "chain.wtls").read_bytes()
    assert entries[1]["bytes_sent"] == len(raw)
    # Security levels are OpenSSL's and do not apply to WTLS certificates.
    told = shakedown(
        "certs", "show", tmp_path / "chain.wtls", "--side", "client", "--ca", tmp_path / "ca.pem"
    )
    assert told.stdout.splitlines()[-1] == "A peer accepts these certificates."


def test_printed_profile_can_be_edited_and_used(shakedown, tmp_path):
    text = shakedown("certs", "profiles", "lab").stdout
    own = tmp_path / "own.toml"
    own.write_text(text.replace("CN=Shakedown Root CA", "CN=Mine"))
    done = shakedown("certs", "make", "p256", "--profile", own, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["description"]["certificates"][0]["issuer"].endswith("CN=Mine")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "nothing.pem"), "nothing.pem: No such file"),
        (("show", "noise.pem"), "noise.pem: unreadable; accepted: X.509 certificates in PEM, DER"),
        (("show", "cut.pem"), "cut.pem: certificate 2 (line "),
        (("show", "chain.pem", "--level", "9"), '"9" is out of range; accepted: 0 to 5'),
        (("show", "chain.pem", "--level", "-1"), '"-1" is out of range; accepted: 0 to 5'),
        (("make", "p256", "--out", "x", "--days", "9" * 30), "is out of range; accepted: 1 to 100,000"),
        (("show", "chain.pem", "--at", "soon"), '"soon" is not a time; accepted: Unix seconds'),
        (("show", "chain.pem", "--key", "chain.pem"), "chain.pem: holds no private key"),
        (("make", "p255", "--out", "x"), "unknown key 'p255'; accepted: rsa512"),
        (("make", "p256", "--out", "."), "exists already"),
        (
            ("make", "p256", "--out", "x", "--profile", "own.toml"),
            "certificate profile own.toml line 1: unknown",
        ),
        (
            ("make", "p256", "--out", "x", "--alternative", "y"),
            "subject_alternative_names: 'y' is not accepted",
        ),
        (
            ("make", "ed25519", "--wtls", "--out", "x"),
            "a WTLS certificate cannot have a key of the kind ed25519",
        ),
        (("issue", "server", "p256", "--out", "x"), "an issuer is needed for everything but a root"),
        (("profiles", "labb"), 'did you mean "lab"?'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_input_is_reported_in_one_line_with_status_2(shakedown, made, tmp_path, arguments, said):
    chain = (made / "chain.pem").read_text()
    (tmp_path / "chain.pem").write_text(chain)
    (tmp_path / "cut.pem").write_text(chain[:-100])
    (tmp_path / "noise.pem").write_bytes(bytes(range(256)))
    (tmp_path / "own.toml").write_text("colour = 1\n")
    done = shakedown("certs", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
