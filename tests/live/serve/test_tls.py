"""TLS servers with clients of other projects."""

from __future__ import annotations

import subprocess

import pytest

from live.serve.serving import SUITE, ask, client_context, command, connect, read_all, serving


def s_client(openssl: str, server, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [openssl, "s_client", "-connect", server.target, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


def test_openssl_completes_a_full_handshake(peer):
    with serving(SUITE) as server:
        said = s_client(peer("openssl"), server)
        assert "New, TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256" in said
        assert "X25519" in said
        counted = server.stop()
    assert counted["handshakes"] == {"full": 1, "resumed": 0, "failed": {}}
    assert counted["handshake_s"]["count"] == counted["busy_s"]["count"] == 1
    assert 0 < counted["busy_s"]["mean"] < counted["handshake_s"]["mean"]
    assert counted["busy_s"]["p50"] is not None
    # One handshake gives no tail percentiles.
    assert counted["busy_s"]["p90"] is counted["busy_s"]["p99"] is None


@pytest.mark.parametrize("bytes_", [5, 16_000])
def test_head_and_payload_share_a_record(bytes_):
    with serving(SUITE, "--payload", bytes_) as server, connect(server) as stream:
        stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        # One read returns one record.
        head, payload = stream.recv(65_536).split(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert payload == b"." * bytes_


def test_curl_gets_the_payload(peer):
    with serving(SUITE, "--payload", 100_000) as server:
        url = f"https://{server.target}/"
        done = subprocess.run(
            [peer("curl"), "--silent", "--show-error", "--insecure", url, url, "--http1.1"],
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == b"." * 200_000
        counted = server.stop()
    # The second request came over the connection of the first.
    assert counted["accepted"] == 1
    assert counted["answers"] == 2


def test_python_gets_the_payload_after_a_request_or_at_once():
    with serving(SUITE, "--payload", 5) as server:
        head, _, body = ask(server).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body == b"....."
        with connect(server) as stream:
            stream.sendall(b"\x01")
            assert stream.recv(100) == b"....."
    with serving(SUITE, "--payload", 300_000, "--payload-when", "handshake") as server:
        with connect(server) as stream:
            received = b""
            while len(received) < 300_000:
                received += stream.recv(65536)
        assert received == b"." * 300_000


def test_sigterm_lets_an_answer_finish():
    size = 30_000_000
    with serving(SUITE, "--payload", size, "--drain-timeout", "200s") as server:
        with connect(server) as stream:
            stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
            first = stream.recv(1)
            server.process.terminate()
            rest = read_all(stream)
        body = (first + rest).partition(b"\r\n\r\n")[2]
        assert len(body) == size
        output, _ = server.process.communicate(timeout=300)
        assert server.process.returncode == 0
        assert '"cut": 0' in output


def test_a_second_client_is_served_while_a_first_one_waits():
    with serving(SUITE, "--payload", 5) as server, connect(server):
        assert ask(server).endswith(b".....")


def test_one_line_at_the_start_and_one_at_the_end():
    process = subprocess.Popen(
        command(SUITE, "--listen", "127.0.0.1:0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().startswith("listening on 127.0.0.1:")
    process.terminate()
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    assert output == "stopped: 0 handshakes (0 resumed), 0 failed, 0 responses\n"


def test_port_in_use_is_reported_in_one_line():
    with serving(SUITE) as server:
        done = subprocess.run(
            command(SUITE, "--listen", server.target), capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 2
    assert done.stderr == f"error: cannot listen on {server.target}: another program listens there\n"


@pytest.mark.parametrize("text", ["nowhere", "1.2.3.4", "::1:443", "127.0.0.1:70000", ":443"])
def test_invalid_address_is_reported_in_one_line(text):
    done = subprocess.run(command(SUITE, "--listen", text), capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is not an address; accepted: HOST:PORT" in done.stderr


def test_tls12_clients_are_refused_by_a_tls13_suite():
    import ssl

    context = client_context(maximum_version=ssl.TLSVersion.TLSv1_2)
    with serving(SUITE) as server:
        with pytest.raises(ssl.SSLError):
            connect(server, context)
        counted = server.stop()
    assert counted["handshakes"]["failed"] == {"protocol_version": 1}
