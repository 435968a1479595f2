"""Real clients and servers, and a capture of their connections."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

REQUEST = b"GET / HTTP/1.0\r\n\r\n"


MARKER_PORT = 9
"""The discard port: captured, but of no protocol under test."""


def mark(path: Path) -> None:
    """Sends a marker until the capture has it, and therefore all earlier packets."""
    marker = os.urandom(16)
    deadline = time.monotonic() + 300
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while not path.exists() or marker not in path.read_bytes():
            assert time.monotonic() < deadline, "tshark does not write what it captures"
            sender.sendto(marker, ("127.0.0.1", MARKER_PORT))
            time.sleep(0.05)


@contextlib.contextmanager
def capturing(path: Path, ports: range) -> Iterator[None]:
    """tshark on the loopback device, for a range of ports, until the block ends.

    Raises PermissionError where this user may not capture.
    """
    command = ["tshark", "-q", "-i", "lo", "-B", "64", "-w", str(path)]
    command += ["-f", f"portrange {ports.start}-{ports.stop - 1} or udp port {MARKER_PORT}"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            deadline = time.monotonic() + 120
            text = ""
            while "Capture started" not in text:
                if process.poll() is not None:
                    raise PermissionError(text.strip() or "tshark ended")
                if time.monotonic() > deadline:
                    raise TimeoutError("tshark did not begin to capture")
                time.sleep(0.05)
                log.seek(0)
                text = log.read().decode()
            # tshark reports the start a little early and writes packets a little late.
            mark(path)
            yield
            mark(path)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)


@contextlib.contextmanager
def server(command: list[str | Path], port: int, *, datagrams: bool = False, **options) -> Iterator[None]:
    """A server process, from when it listens until the block ends."""
    process = subprocess.Popen(
        [*map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )
    try:
        # Local address, remote address, state: 0A is LISTEN; old connections are in other states.
        wanted = re.compile(rf":{port:04X} \S+ {'07' if datagrams else '0A'} ")
        tables = ("udp", "udp6") if datagrams else ("tcp", "tcp6")
        for _ in range(5000):
            if any(wanted.search(Path(f"/proc/net/{table}").read_text()) for table in tables):
                break
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with status {process.returncode}")
            time.sleep(0.02)
        yield
    finally:
        if process.stdin is not None:
            process.stdin.close()
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Site:
    """A folder with a certificate, and clients that write their secrets into one key log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key_log = folder / "keys.log"
        self.key_log.touch()
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        subprocess.run(
            f"openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost -keyout {self.key}"
            f" -addext subjectAltName=DNS:localhost -out {self.certificate}",
            shell=True,
            check=True,
            capture_output=True,
        )
        self.environment = {**os.environ, "SSLKEYLOGFILE": str(self.key_log)}

    def openssl_server(self, port: int, *options: str) -> contextlib.AbstractContextManager[None]:
        command = [
            "openssl",
            "s_server",
            "-accept",
            str(port),
            "-cert",
            self.certificate,
            "-key",
            self.key,
            "-quiet",
        ]
        datagrams = any(option.startswith("-dtls") for option in options)
        return server([*command, *([] if datagrams else ["-www"]), *options], port, datagrams=datagrams)

    def openssl_client(self, port: int, *options: str, host: str = "localhost") -> None:
        command = ["openssl", "s_client", "-connect", f"{host}:{port}", "-servername", "localhost"]
        command += ["-keylogfile", str(self.key_log), *options]
        if any(option.startswith("-dtls") for option in options):
            command.append("-quiet")
            # With -quiet the client does not exit by itself; the timeout ends it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(command, input=b"hello\n", capture_output=True, timeout=5.0)
            return
        subprocess.run([*command, "-ign_eof"], input=REQUEST, capture_output=True, timeout=120)

    def nginx(self, port: int) -> contextlib.AbstractContextManager[None]:
        configuration = self.folder / "nginx.conf"
        configuration.write_text(
            f"""
            daemon off; master_process off; pid {self.folder}/nginx.pid; error_log {self.folder}/nginx.log;
            events {{}}
            http {{
                access_log off;
                client_body_temp_path {self.folder}/b; proxy_temp_path {self.folder}/p;
                fastcgi_temp_path {self.folder}/f; uwsgi_temp_path {self.folder}/u;
                scgi_temp_path {self.folder}/s;
                server {{
                    listen 127.0.0.1:{port} ssl;
                    ssl_protocols TLSv1.2 TLSv1.3;
                    ssl_certificate {self.certificate}; ssl_certificate_key {self.key};
                    location / {{ root {self.folder}; }}
                }}
            }}
            """
        )
        (self.folder / "large").write_bytes(bytes(range(256)) * 2000)
        return server(["nginx", "-e", f"{self.folder}/nginx.log", "-c", configuration], port)

    def curl(self, port: int, *options: str) -> None:
        command = [
            "curl",
            "--silent",
            "--insecure",
            "--output",
            os.devnull,
            *options,
            f"https://localhost:{port}/large",
        ]
        subprocess.run(command, env=self.environment, capture_output=True, timeout=120, check=True)

    def gnutls_server(self, port: int, *options: str) -> contextlib.AbstractContextManager[None]:
        command = ["gnutls-serv", "--quiet", "--port", str(port), "--x509keyfile", self.key]
        command += ["--x509certfile", self.certificate, *options]
        return server(command, port, datagrams="--udp" in options)

    def gnutls_client(self, port: int, *options: str) -> None:
        command = ["gnutls-cli", "--no-ca-verification", "--port", str(port), *options, "localhost"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, input=REQUEST, env=self.environment, capture_output=True, timeout=10)

    def nss_client(self, port: int, *options: str) -> None:
        """Runs NSS's client, built without key logging by Debian; -Q usually ends it after the handshake."""
        command = [
            "tstclnt",
            "-D",
            "-o",
            "-Q",
            "-h",
            "127.0.0.1",
            "-a",
            "localhost",
            "-p",
            str(port),
            *options,
        ]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10)

    def go_client(self, port: int, version: str) -> None:
        program = self.folder / "go-client"
        if not program.exists():
            source = Path(__file__).parent / "go_client.go"
            subprocess.run(
                [shutil.which("go") or "go", "build", "-o", program, source], check=True, timeout=300
            )
        subprocess.run([program, f"localhost:{port}", version, self.key_log], check=True, timeout=120)

    @contextlib.contextmanager
    def python_server(self, port: int, *, start_tls: bool = False, piece: int = 1 << 14) -> Iterator[None]:
        """Answers connections one by one, in pieces; with `start_tls`, lines of plain text come first."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        listener = socket.create_server(("127.0.0.1", port))

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with contextlib.suppress(OSError), connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if start_tls:
                        connection.sendall(b"220 ready when you are\r\n")
                        connection.recv(100)
                        connection.sendall(b"220 go ahead\r\n")
                    with context.wrap_socket(connection, server_side=True) as secure:
                        secure.recv(100)
                        for start in range(0, 60_000, piece):
                            secure.sendall(bytes(min(piece, 60_000 - start)))
                        secure.unwrap()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join()

    def python_client(
        self, port: int, *, start_tls: bool = False, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = version
        context.keylog_filename = str(self.key_log)
        with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
            if start_tls:
                connection.recv(100)
                connection.sendall(b"STARTTLS\r\n")
                connection.recv(100)
            with context.wrap_socket(connection, server_hostname="localhost") as secure:
                secure.sendall(b"hello")
                with contextlib.suppress(ssl.SSLError, OSError):
                    while secure.recv(1 << 14):
                        pass


def together(*tasks: Callable[[], None]) -> None:
    """Runs clients at the same time, so that their packets interleave."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
