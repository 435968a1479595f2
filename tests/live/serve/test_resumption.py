"""Sessions resumed by other clients, by session ID and by ticket, in both protocols."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from live.serve.serving import client_context, connect, read_all, serving

SUITES = {
    "tls1.2/ecdhe_ecdsa+x25519/p256/server/resumed": "-tls1_2",
    "tls1.2/ecdhe_ecdsa+x25519/p256/server/ticket": "-tls1_2",
    "tls1.3/x25519/p256/server/resumed": "-tls1_3",
}


@pytest.mark.parametrize("stack", ["openssl", "rustls"])
@pytest.mark.parametrize("suite", SUITES)
def test_openssl_resumes(peer, tmp_path: Path, suite: str, stack: str):
    kept = str(tmp_path / "session.pem")
    with serving(suite, "--stack", stack, "--payload", 3) as server:

        def s_client(*arguments: str) -> str:
            done = subprocess.run(
                [
                    peer("openssl"),
                    "s_client",
                    "-connect",
                    server.target,
                    SUITES[suite],
                    "-ign_eof",
                    *arguments,
                ],
                # The answer comes after the ticket.
                input="GET / HTTP/1.0\n\n",
                capture_output=True,
                text=True,
                timeout=300,
            )
            return done.stdout

        first = s_client("-sess_out", kept)
        assert "New, TLSv1" in first
        assert first.rstrip().endswith("closed")
        assert "Reused, TLSv1" in s_client("-sess_in", kept)
        counted = server.stop()
    assert counted["handshakes"] == {"full": 1, "resumed": 1, "failed": {}}


@pytest.mark.parametrize("suite", SUITES)
def test_python_resumes(suite: str):
    with serving(suite, "--payload", 3, "--server-workers", 2) as server:
        context = client_context()
        session = None
        reused = []
        for _ in range(3):
            with connect(server, context, session) as stream:
                stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert read_all(stream).endswith(b"...")
                reused.append(stream.session_reused)
                session = stream.session
        counted = server.stop()
    # Sessions and tickets are valid for every worker.
    assert reused == [False, True, True]
    assert (counted["handshakes"]["full"], counted["handshakes"]["resumed"]) == (1, 2)


def test_full_suites_resume_only_with_the_tickets_option():
    def resumes(*options: object) -> bool:
        with serving("tls1.3/x25519/p256/server", "--payload", 1, *options) as server:
            context = client_context()
            session: ssl.SSLSession | None = None
            for _ in range(2):
                with connect(server, context, session) as stream:
                    stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    read_all(stream)
                    session, reused = stream.session, stream.session_reused
        return bool(reused)

    assert not resumes()
    assert resumes("--tickets", 2)
