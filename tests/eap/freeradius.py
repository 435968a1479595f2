"""FreeRADIUS on loopback, without privileges: a temporary folder, a free port, generated certificates."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECRET = "between access point and server"

CONFIGURATION = """
prefix = /usr
name = radiusd
confdir = {folder}
raddbdir = {folder}
libdir = /usr/lib/freeradius
logdir = {folder}
run_dir = {folder}
db_dir = {folder}
max_request_time = 30
cleanup_delay = 5
max_requests = 65536
hostname_lookups = no
proxy_requests = no
log {{
    destination = files
    file = {folder}/radius.log
}}
security {{
    allow_core_dumps = no
    max_attributes = 200
    reject_delay = 0
    status_server = yes
}}
client loopback {{
    ipaddr = 127.0.0.1
    secret = "{secret}"
    require_message_authenticator = yes
}}
thread pool {{
    start_servers = 2
    max_servers = 2
    min_spare_servers = 1
    max_spare_servers = 2
    max_requests_per_server = 0
}}
modules {{
    eap {{
        default_eap_type = tls
        timer_expire = 60
        ignore_unknown_eap_types = no
        max_sessions = ${{max_requests}}
        tls-config lab {{
            private_key_file = {key}
            certificate_file = {chain}
            ca_file = {ca}
            fragment_size = {fragment}
            include_length = yes
            cipher_list = "ALL"
            tls_min_version = "1.2"
            tls_max_version = "1.3"
            ecdh_curve = ""
            cache {{
                enable = {cache}
                lifetime = 1
                name = "lab"
                persist_dir = {folder}/sessions
                store {{
                    Tunnel-Private-Group-Id
                }}
            }}
        }}
        tls {{
            tls = lab
        }}
    }}
}}
server default {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {port}
    }}
    authorize {{
        eap {{
            ok = return
        }}
    }}
    authenticate {{
        eap
    }}
}}
"""


@dataclass
class FreeRadius:
    """A running server."""

    port: int
    folder: Path
    pid: int
    secret: str = field(default=SECRET)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))


def free_port() -> int:
    """A free UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def freeradius(
    folder: Path, server: Path, ca: Path, *, fragment: int = 1024, cache: bool = True, debug: bool = False
) -> Iterator[FreeRadius]:
    """FreeRADIUS with the chain of a folder, trusting a root, until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sessions").mkdir(exist_ok=True)
    port = free_port()
    text = CONFIGURATION.format(
        folder=folder, secret=SECRET, key=server / "key.pem", chain=server / "chain.pem", ca=ca,
        fragment=fragment, cache="yes" if cache else "no", port=port,
    )  # fmt: skip
    (folder / "radiusd.conf").write_text(text)
    output = folder / "start.log"
    how = "-fxx" if debug else "-f"
    with output.open("wb") as out:
        process = subprocess.Popen(
            ["freeradius", "-d", folder, how, "-l", folder / "radius.log"], stdout=out, stderr=out
        )
    try:
        wanted = f":{port:04X} "
        deadline = time.monotonic() + 300
        while wanted not in Path("/proc/net/udp").read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(FreeRadius(port, folder, process.pid).log)
            time.sleep(0.02)
        yield FreeRadius(port, folder, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
