"""Options of `serve`: several suites, user-supplied certificates, metrics, traces; and invalid ones."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from live.load.servers import make_certificate
from live.serve.serving import (
    SUITE,
    TIMEOUT_S,
    ask,
    client_context,
    command,
    connect,
    descriptors,
    serving,
)
from shakedown.schema.options import ServerOptions

VERSION = ssl.TLSVersion


def old_client(openssl: str, server, version: str) -> str:
    """The output of a client that accepts anything, for a handshake in an old version."""
    done = subprocess.run(
        [openssl, "s_client", "-connect", server.target, version, "-cipher", "ALL:@SECLEVEL=0"],
        input="",
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout


def test_several_suites_are_served_at_one_address(peer):
    suites = (
        "tls1.3/x25519/p256/server",
        "tls1.2/ecdhe_rsa+p256/rsa2048@rsa2048@rsa2048/server",
        "tls1.2/rsa/rsa2048@rsa2048@rsa2048/server",
    )
    with serving(*suites) as server:
        seen = {}
        for version, ciphers in [
            (VERSION.TLSv1_3, None),
            (VERSION.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256"),
            (VERSION.TLSv1_2, "AES128-GCM-SHA256"),
        ]:
            context = client_context(minimum_version=version, maximum_version=version)
            if ciphers:
                context.set_ciphers(ciphers)
            with connect(server, context) as stream:
                seen[stream.cipher()[0]] = len(stream.getpeercert(binary_form=True))
        assert list(seen) == ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "AES128-GCM-SHA256"]
        # Each suite has its own certificate.
        assert seen["TLS_AES_128_GCM_SHA256"] < seen["AES128-GCM-SHA256"]
        assert "Cipher is (NONE)" in old_client(peer("openssl"), server, "-tls1_1")
        counted = server.stop()
    assert counted["handshakes"]["full"] == 3


@pytest.mark.parametrize("option", ["--key", "--ca"])
def test_file_without_its_chain_is_refused(option):
    done = subprocess.run(
        command("tls1.3/x25519/p256/server", "--listen", "127.0.0.1:0", option, "k.pem"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (2, f"error: {option} requires --chain\n")


@pytest.mark.parametrize("option", ["--chain", "--client-ca"])
def test_missing_file_is_reported_in_one_line(option):
    done = subprocess.run(
        command("tls1.3/x25519/p256/mutual", "--listen", "127.0.0.1:0", option, "/nowhere/chain.pem"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert done.stderr == 'error: "/nowhere/chain.pem" cannot be read: no such file or directory\n'


@pytest.mark.parametrize(
    ("suites", "reason"),
    [
        (
            ("tls1.3/x25519/p256/server", "wtls/ecdh_anon+163k"),
            "accepted at one address: suites of one transport",
        ),
        (
            ("tls1.3/x25519/p256/server", "tls1.3/x25519/p384/server"),
            "different certificates of one kind of key",
        ),
        (("tls1.3/x25519/p256/server", "tls1.2/ecdhe_rsa/rsa2048/mutual"), "different authentication"),
        (
            ("tls1.2/dhe_rsa+dh1024/rsa2048", "tls1.2/dhe_rsa+dh2048/rsa2048"),
            "different Diffie-Hellman groups",
        ),
        (("tls1.3/x25519/p256/server/resumed", "tls1.2/psk"), "resume sessions in different ways"),
        (("wtls/ecdh_anon+163k", "wtls/rsa/rsa1024"), "the stack wtls serves one suite at a time"),
        ((SUITE, SUITE), "they are the same"),
    ],
)
def test_incompatible_suites_are_reported_in_one_line(suites, reason):
    done = subprocess.run(
        command(*suites, "--listen", "127.0.0.1:0"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_weak_protocols_are_refused_unless_a_weak_suite_is_served(peer):
    """OpenSSL's default security level applies: TLS 1.0 is below it, whatever the client accepts."""
    with serving("tls1.2/ecdhe_rsa+x25519/rsa2048/server") as server:
        assert "Cipher is (NONE)" in old_client(peer("openssl"), server, "-tls1")
    with serving("tls1.0/ecdhe_rsa+p256/rsa1024/server") as server:
        assert "New, TLSv1.0, Cipher is ECDHE-RSA-AES256-SHA" in old_client(peer("openssl"), server, "-tls1")


def test_user_supplied_certificates_are_served(peer, tmp_path: Path, shakedown):
    made = shakedown(
        "certs", "make", "p256@p256@p256", "--name", "gateway.example", "--out", tmp_path / "own"
    )
    assert made.returncode == 0, made.stderr
    chain, key, root = (tmp_path / "own" / name for name in ("chain.pem", "key.pem", "ca.pem"))
    with serving(SUITE, "--chain", chain, "--key", key, "--ca", root, "--payload", 2) as server:
        done = subprocess.run(
            [
                *(peer("curl"), "--silent", "--show-error", "--cacert", root, "--resolve"),
                f"gateway.example:{server.port}:127.0.0.1",
                f"https://gateway.example:{server.port}/",
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert (done.stdout, done.stderr) == ("..", "")


def test_suite_is_named_by_the_user_supplied_key(tmp_path: Path, peer):
    """The reported suite has the user-supplied key, as in `measure`."""
    chain, key = make_certificate(peer("openssl"), tmp_path)
    with serving("tls1.3/x25519/rsa2048/server", "--chain", chain, "--key", key) as server:
        ask(server)
        assert server.stop()["suites"] == [SUITE]


def test_generated_roots_can_be_written(tmp_path: Path):
    root = tmp_path / "root.pem"
    with serving(SUITE, "--ca-out", root) as server:
        context = ssl.create_default_context(cafile=str(root))
        plain = socket.create_connection(server.address, timeout=TIMEOUT_S)
        with context.wrap_socket(plain, server_hostname="server.shakedown.test") as stream:
            assert stream.version() == "TLSv1.3"


def test_metrics_are_in_prometheus_format():
    with serving(SUITE, "--metrics", "127.0.0.1:0", "--sample", 1, "--payload", 7) as server:
        for _ in range(3):
            ask(server)
        with pytest.raises(ssl.SSLError):
            connect(server, client_context(maximum_version=VERSION.TLSv1_2))
        url = re.search(r"http://\S+", server.rest)[0]
        # The client has its alert before the server has counted the failure.
        deadline = time.monotonic() + TIMEOUT_S
        page = ""
        while "protocol_version" not in page and time.monotonic() < deadline:
            page = urllib.request.urlopen(url, timeout=TIMEOUT_S).read().decode()
        assert urllib.request.urlopen(f"{url}?target=any", timeout=TIMEOUT_S).status == 200
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.replace("/metrics", "/else"), timeout=TIMEOUT_S)
    figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
    assert figures['shakedown_handshakes_total{outcome="full"}'] == "3"
    assert figures['shakedown_handshakes_failed_total{cause="protocol_version"}'] == "1"
    assert figures["shakedown_handshake_seconds_count"] == "3"
    assert figures['shakedown_handshake_seconds_bucket{le="+Inf"}'] == "3"
    assert float(figures["shakedown_handshake_busy_seconds_sum"]) > 0
    assert figures['shakedown_message_cpu_seconds_count{message="CertificateVerify",from="server"}'] == "3"
    assert float(figures['shakedown_message_cpu_seconds_sum{message="CertificateVerify",from="server"}']) > 0
    for name in {re.split(r"[{ ]", line)[0] for line in figures}:
        assert re.fullmatch(r"[a-z_]+", name), name
    read_by_prometheus(page, figures)


def test_silent_peers_do_not_delay_the_metrics():
    silent = 900
    with (
        descriptors(silent + 200),
        serving(SUITE, "--metrics", "127.0.0.1:0") as server,
        contextlib.ExitStack() as streams,
    ):
        url = re.search(r"http://\S+", server.rest)[0]
        address = urllib.parse.urlsplit(url)
        for _ in range(silent):
            streams.enter_context(socket.create_connection((address.hostname, address.port)))
        # Each silent connection has five seconds; 32 at a time would take more than two minutes.
        assert b"shakedown_uptime_seconds" in urllib.request.urlopen(url, timeout=100).read()
        server.stop()


def read_by_prometheus(page: str, figures: dict[str, str]) -> None:
    """Prometheus's own library reads the same: families with types, and samples that belong to them."""
    families = list(text_string_to_metric_families(page))
    assert len({family.name for family in families}) == len(families) == page.count("# TYPE ")
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) == len(figures)
    assert sorted(sample.value for sample in samples) == sorted(map(float, figures.values()))
    for family in families:
        assert family.type in {"counter", "gauge", "histogram", "summary"}
        assert family.documentation.endswith(".")
        assert all(sample.name.startswith(family.name) for sample in family.samples)
        if family.type == "counter":
            assert {sample.name for sample in family.samples} <= {f"{family.name}_total"}
        if family.type == "histogram":
            counts = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
            bounds = [float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels]
            (total,) = (sample.value for sample in family.samples if sample.name.endswith("_count"))
            assert counts == sorted(counts)
            assert bounds == sorted(bounds)
            assert (bounds[-1], counts[-1]) == (float("inf"), total)


@pytest.mark.parametrize("stack", ["openssl", "rustls"])
def test_sampled_handshakes_are_written_as_half_traces(tmp_path: Path, stack: str):
    from shakedown.schema import decode
    from shakedown.schema.serving import HalfTrace

    file = tmp_path / "traces.jsonl"
    with serving(SUITE, "--stack", stack, "--traces-out", file, "--sample", 2, "--payload", 7) as server:
        for _ in range(5):
            ask(server)
        counted = server.stop()
    assert counted["traces"] == 3
    lines = [decode(line, HalfTrace) for line in file.read_text().splitlines()]
    assert len(lines) == 3
    for one in lines:
        assert one.suites == (SUITE,)
        assert one.stack.name == stack
        names = [(message.sender, message.name) for message in one.messages]
        assert names[0] == ("client", "ClientHello")
        assert ("server", "CertificateVerify") in names
        assert names[-1] == ("client", "Finished")
        calls = {(call.operation, call.algorithm) for call in one.operations if call.class_ != "common"}
        assert calls == {("keygen", "ecdh"), ("derive", "ecdh"), ("sign", "ecdsa")}
        spent = sum(message.us for message in one.messages) + one.unattributed_us
        assert spent == pytest.approx(one.total_us, rel=1e-9)


def test_workers_share_one_port():
    with serving(SUITE, "--server-workers", 3) as server:
        for _ in range(30):
            ask(server)
        counted = server.stop()
    assert (counted["workers"], counted["handshakes"]["full"]) == (3, 30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tls1.3/x25519/p256/server", "--listen", "203.0.113.7:0"), "this machine has no such address"),
        (("tls9/x", "--listen", "127.0.0.1:0"), "tls9"),
        (
            ("wtls/ecdh_anon+163k", "--listen", "127.0.0.1:0", "--payload", "100000"),
            "accepted over datagrams",
        ),
        ((SUITE, "--listen", "127.0.0.1:0", "--client-ca", "nowhere.pem"), "requests client certificates"),
        ((SUITE, "--listen", "127.0.0.1:0", "--idle-timeout", "0s"), "above 0"),
        ((SUITE, "--listen", "127.0.0.1:0", "--stack", "wtls"), "the stack wtls runs wtls only"),
        ((SUITE, "--listen", "no.such.host.invalid:0"), '"no.such.host.invalid" has no address: '),
        ((SUITE,), "--listen"),
    ],
)
def test_wrong_input_is_reported_in_one_line(arguments, said):
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "[Errno" not in done.stderr


def test_the_library_runs_a_server_in_this_process():
    from shakedown.native import serving as library

    with library.start([SUITE], "127.0.0.1:0", settings=ServerOptions(payload_bytes=4)) as server:
        host, port = server.address.rsplit(":", 1)
        with client_context().wrap_socket(socket.create_connection((host, int(port)))) as stream:
            stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert stream.recv(1000).startswith(b"HTTP/1.1 200 OK")
    counted = server.summary()
    assert counted.handshakes.full == 1
    assert json.dumps(counted.address)
