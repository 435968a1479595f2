"""Hostile peers and adverse conditions: the server keeps running and serves honest clients."""

from __future__ import annotations

import random
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, suppress

import pytest

from live.serve.serving import SUITE, TIMEOUT_S, ask, client_context, connect, descriptors, serving

PAYLOAD = ("--payload", 5)
FLOOD = 10_000
"""Clients that begin a handshake and go no further; each uses a descriptor of this process."""


class HalfClient:
    """A client whose bytes the test sends itself."""

    def __init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = client_context().wrap_bio(self.incoming, self.outgoing)

    def flight(self, received: bytes = b"") -> bytes:
        """The client's next flight."""
        self.incoming.write(received)
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()


def closed_by_peer(stream: socket.socket) -> bool:
    """Whether the peer ends the connection, whatever it sends before."""
    stream.settimeout(TIMEOUT_S)
    try:
        while stream.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def cut_off_while_trickling(stream: socket.socket, data: bytes) -> bool:
    """Whether the peer ends the connection before it has all of the data, which comes byte by byte."""
    stream.settimeout(0.1)
    for byte in data:
        try:
            stream.sendall(bytes([byte]))
            # The pace of the trickle.
            if not stream.recv(1):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_slow_handshake_is_closed_after_the_timeout():
    # The honest client that follows has the same limit, so it is long enough for a busy machine.
    with serving(SUITE, "--handshake-timeout", "8s", *PAYLOAD) as server:
        with socket.create_connection(server.address, timeout=TIMEOUT_S) as stream:
            assert cut_off_while_trickling(stream, HalfClient().flight()[:-1])
        assert ask(server).endswith(b".....")
        counted = server.stop()
    assert counted["handshakes"]["failed"] == {"timeout": 1}


def test_slow_request_is_closed_after_the_timeout():
    with serving(SUITE, "--idle-timeout", "8s", *PAYLOAD) as server:
        with connect(server) as stream:
            assert cut_off_while_trickling(stream, b"G" * 500)
        assert ask(server).endswith(b".....")
        counted = server.stop()
    assert counted["idle_closed"] == 1


@pytest.mark.parametrize("stack", ["openssl", "rustls"])
def test_key_updates_do_not_extend_the_idle_timeout(peer, stack: str):
    with serving(SUITE, "--stack", stack, "--idle-timeout", "8s", *PAYLOAD) as server:
        command = [peer("openssl"), "s_client", "-connect", server.target]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as client:
            assert client.stdin is not None
            deadline_s = time.monotonic() + TIMEOUT_S
            with suppress(BrokenPipeError):
                while client.poll() is None and time.monotonic() < deadline_s:
                    # This also requests new keys from the server; rustls accepts at most 32 such requests.
                    client.stdin.write(b"K\n")
                    client.stdin.flush()
                    time.sleep(0.5)
            client.kill()
        assert ask(server).endswith(b".....")
        counted = server.stop()
    assert counted["handshakes"]["full"] == 2
    assert counted["idle_closed"] == 1


def test_unread_response_is_closed_and_uses_limited_memory():
    # A client has the same limit for its request, so it is long enough for a busy machine.
    with serving(SUITE, "--idle-timeout", "5s", "--payload", 1 << 30) as server:
        ask_head = b"GET / HTTP/1.0\r\n\r\n"
        before_kib = most_kib = server.resident_kib()
        with ExitStack() as streams:
            for _ in range(20):
                streams.enter_context(connect(server)).sendall(ask_head)
            # The server drops all of them once they have read nothing for the limit.
            deadline_s = time.monotonic() + TIMEOUT_S
            while not server_is_idle(server):
                most_kib = max(most_kib, server.resident_kib())
                assert time.monotonic() < deadline_s
                time.sleep(0.02)
        assert most_kib - before_kib < 20 * 400
        counted = server.stop()
    assert counted["idle_closed"] == 20


def server_is_idle(server) -> bool:
    """No connection is open."""
    from pathlib import Path

    sockets = [one for one in Path(f"/proc/{server.process.pid}/fd").iterdir() if is_socket(one)]
    return len(sockets) == 1


def is_socket(path) -> bool:
    try:
        return str(path.readlink()).startswith("socket:")
    except OSError:
        return False


def test_half_open_clients_do_not_block_other_clients():
    half = HalfClient().flight()[:50]
    with (
        descriptors(FLOOD + 200),
        serving(SUITE, "--handshake-timeout", "900s", *PAYLOAD) as server,
        ExitStack() as streams,
    ):
        before_kib = server.resident_kib()
        for number in range(FLOOD):
            stream = streams.enter_context(socket.create_connection(server.address))
            if number % 2:
                stream.sendall(half)
        assert ask(server).endswith(b".....")
        # At most 4,096 handshakes are in progress, and each may hold 60 KiB.
        assert server.resident_kib() - before_kib < 4_096 * 60
        counted = server.stop()
    assert counted["handshakes"]["full"] == 1
    assert counted["handshakes"]["failed"]["too-many-handshakes"] >= FLOOD - 4_096


def test_garbage_is_refused_and_the_server_continues():
    generator = random.Random(20260101)
    hello = HalfClient().flight()
    damaged = []
    for _ in range(200):
        copy = bytearray(hello)
        for _ in range(generator.randrange(1, 5)):
            copy[generator.randrange(len(copy))] = generator.randrange(256)
        damaged.append(bytes(copy))
    pieces = [generator.randbytes(generator.randrange(1, 3000)) for _ in range(200)]
    pieces += [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x80\x2e\x01\x00\x02",
        b"\x00" * 20_000,
        b"\x16\x03\x01\xff\xff" * 9,
    ]
    with serving(SUITE, "--handshake-timeout", "60s", *PAYLOAD) as server:
        for piece in [*damaged, *pieces]:
            with socket.create_connection(server.address) as stream, suppress(OSError):
                stream.sendall(piece)
        assert ask(server).endswith(b".....")
        server.stop()


def test_an_oversized_record_is_refused():
    with serving(SUITE, *PAYLOAD) as server:
        with connect(server) as established:
            # Below the TLS layer: a record longer than any.
            plain = socket.socket(fileno=established.detach())
            plain.sendall(b"\x17\x03\x03\xff\xff" + b"\x00" * 0xFFFF)
            assert closed_by_peer(plain)
            plain.close()
        assert ask(server).endswith(b".....")
        server.stop()


def test_renegotiation_is_refused(peer):
    with serving("tls1.2/ecdhe_ecdsa+x25519/p256/server", *PAYLOAD) as server:
        done = subprocess.run(
            [peer("openssl"), "s_client", "-connect", server.target, "-tls1_2", "-legacy_renegotiation"],
            input="R\nR\nR\n",
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert "RENEGOTIATING" in done.stdout + done.stderr
        assert "no renegotiation" in done.stdout + done.stderr
        counted = server.stop()
    assert counted["handshakes"]["full"] == 1


def test_server_survives_disconnects_at_every_handshake_byte():
    hello = HalfClient().flight()
    with serving(SUITE, *PAYLOAD) as server:
        for length in range(len(hello)):
            with socket.create_connection(server.address) as stream:
                stream.sendall(hello[:length])
        lengths = 0
        length = 0
        while True:
            client = HalfClient()
            with socket.create_connection(server.address, timeout=TIMEOUT_S) as stream:
                stream.sendall(client.flight())
                finished = b""
                while not finished:
                    finished = client.flight(stream.recv(65536))
                if length >= len(finished):
                    break
                stream.sendall(finished[:length])
            length += 1
            lengths += 1
        assert lengths >= 64
        assert ask(server).endswith(b".....")
        counted = server.stop()
    assert counted["handshakes"]["failed"]["disconnected"] >= len(hello) + lengths - 2


def test_full_descriptor_table_does_not_block_new_clients():
    few = ("bash", "-c", 'ulimit -n 80; exec "$@"', "bash")
    with serving(SUITE, *PAYLOAD, prefix=few) as server:
        # Half-open clients are dropped for new ones.
        with ExitStack() as streams:
            for _ in range(200):
                streams.enter_context(socket.create_connection(server.address))
            assert ask(server).endswith(b".....")
        # Established connections are not dropped: the next client waits until one of them closes.
        with ExitStack() as streams:
            held = []
            for _ in range(200):
                plain = socket.create_connection(server.address, timeout=10)
                try:
                    held.append(client_context().wrap_socket(plain))
                except TimeoutError:
                    plain.close()
                    break
                streams.enter_context(held[-1])
            assert 10 < len(held) < 80
            held[0].close()
            assert ask(server).endswith(b".....")
        counted = server.stop()
    assert counted["pauses"] > 0


def test_sigterm_under_load_completes_every_answer():
    with serving(SUITE, *PAYLOAD, "--server-workers", 2, "--drain-timeout", "300s") as server:
        stopping = threading.Event()
        answers, defects = [], []

        def hammer() -> None:
            while not stopping.is_set():
                # Only a client that connects, or sends its request, too late may be refused.
                try:
                    answer = ask(server)
                except ConnectionRefusedError:
                    return
                except OSError as error:
                    defects.append(error)
                else:
                    (answers if answer else defects).append(answer)

        threads = [threading.Thread(target=hammer) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(answers) < 50:
            time.sleep(0.01)
        counted = server.stop()
        stopping.set()
        for thread in threads:
            thread.join()
    assert counted["cut"] == 0
    assert len(answers) == counted["answers"]
    assert all(answer.endswith(b".....") for answer in answers)
    # Each worker refuses each client at most once; workers' queues do not close at the same moment.
    assert len(defects) <= 2 * len(threads)


def test_memory_depends_only_on_open_connections():
    with serving(SUITE, *PAYLOAD) as server:
        ask(server)
        before_kib = server.resident_kib()
        with ExitStack() as streams:
            for _ in range(200):
                streams.enter_context(connect(server))
            open_kib = server.resident_kib() - before_kib
        assert open_kib < 200 * 60
        for _ in range(300):
            ask(server)
        # The memory of the closed connections is reused.
        assert server.resident_kib() - before_kib < 200 * 60
        server.stop()
