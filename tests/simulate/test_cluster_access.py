"""Access to a cluster: other users are refused, and the user's credentials are checked."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from shakedown.errors import InputError
from shakedown.experiments import cluster

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("interruptible")]
"""Dask's warnings are not errors."""


def test_connections_without_the_cluster_key_are_refused(client):
    """Listening processes accept no work from a client without this cluster's key."""
    from distributed import Client
    from distributed.security import Security

    assert client.scheduler.address.startswith("tls://127.0.0.1:")
    place = client.scheduler.address.rpartition("://")[2]
    workers = [address.rpartition("://")[2] for address in client.scheduler_info(n_workers=-1)["workers"]]
    assert workers
    for listening in (place, *workers):
        for scheme, security in (("tcp", None), ("tls", Security.temporary())):
            with pytest.raises((OSError, TypeError)):
                Client(f"{scheme}://{listening}", timeout=3, set_as_default=False, security=security)
    assert client.submit(int, "7").result() == 7


def test_every_listening_socket_is_on_loopback(client):
    for pid in {os.getpid(), *client.run(os.getpid).values()}:
        found = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
        mine = [line.split()[3] for line in found.splitlines() if f"pid={pid}," in line]
        assert all(place.startswith("127.0.0.1:") for place in mine), mine


def test_web_servers_of_local_processes_serve_nothing(client):
    """They have no TLS, and any user of the machine can ask them; one worker here replaces another."""

    def port(dask_worker) -> int:
        return dask_worker.http_server.port

    victim, *_ = here = list(client.run(os.getpid).values())
    os.kill(victim, signal.SIGKILL)
    while victim in here or len(here) < 2:
        time.sleep(0.1)
        here = list(client.run(os.getpid, on_error="ignore").values())
    ports = [client.cluster.scheduler.http_server.port, *client.run(port).values()]
    assert len(ports) == 3
    for one in ports:
        for path in (
            "/",
            "/info/main/workers.html",
            "/json/identity.json",
            "/metrics",
            "/proxy/22/127.0.0.1/",
        ):
            asked = http.client.HTTPConnection("127.0.0.1", one, timeout=60)
            asked.request("GET", path)
            assert asked.getresponse().status == 404, (one, path)
            asked.close()


def test_a_folder_of_other_users_is_not_used(monkeypatch, tmp_path):
    """Dask's folder has a known name in the folder for temporary files, and any user may have made it."""
    theirs, victim = tmp_path / "dask-scratch-space", tmp_path / "victim"
    theirs.mkdir()
    victim.write_text("kept")
    for name in ("global.lock", "purge.lock"):
        (theirs / name).symlink_to(victim)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with cluster.local(1) as client:
        assert client.submit(int, "7").result() == 7
        assert not [place for place in sys.path if place.startswith(str(tmp_path))]
        assert sorted(one.name for one in theirs.iterdir()) == ["global.lock", "purge.lock"]
    assert victim.read_text() == "kept"
    assert {one.name for one in tmp_path.iterdir()} == {theirs.name, victim.name}


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """A root, a certificate that it issued, and a foreign root, by OpenSSL."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    for name in ("root", "other"):
        openssl("req", "-x509", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    openssl("req", *new[:5], "-subj", "/CN=node", "-keyout", "node.key", "-out", "node.csr")
    issued = ("-CA", "root.pem", "-CAkey", "root.key", "-days", "2", "-out", "node.pem")
    openssl("x509", "-req", "-in", "node.csr", *issued)
    return folder


def test_scheduler_with_user_supplied_credentials_is_used(pki):
    from distributed import LocalCluster
    from distributed.security import Security

    files = {"ca": pki / "root.pem", "cert": pki / "node.pem", "key": pki / "node.key"}
    ours = cluster.Credentials(**files)
    names = [str(path) for path in files.values()]
    sides = {
        f"tls_{side}_{what}": name
        for side in ("scheduler", "worker", "client")
        for what, name in zip(("cert", "key"), names[1:], strict=True)
    }
    security = Security(tls_ca_file=names[0], require_encryption=True, **sides)
    options = {"n_workers": 1, "processes": False, "dashboard_address": None, "protocol": "tls://"}
    with LocalCluster(host="127.0.0.1", security=security, **options) as running:
        with cluster.connected(running.scheduler_address, ours) as client:
            assert client.submit(int, "7").result() == 7
        with (
            pytest.raises(InputError, match="cannot be reached"),
            cluster.connected(
                running.scheduler_address, cluster.Credentials(pki / "other.pem", *list(files.values())[1:])
            ),
        ):
            pass


@pytest.mark.parametrize(
    ("scheduler", "names", "expected"),
    [
        ("tcp://127.0.0.1:1", ("root.pem", "node.pem", "node.key"), r"accepted with these: tls://HOST:PORT"),
        (
            "tls://127.0.0.1:1",
            ("root.pem", "node.pem", None),
            r"without --scheduler-key; accepted: all three",
        ),
        ("tls://127.0.0.1:1", ("root.pem", "node.pem", "other.key"), r"no credentials for"),
        ("tls://127.0.0.1:1", ("root.pem", "none.pem", "node.key"), r"no credentials for"),
    ],
)
def test_wrong_credentials_are_reported_in_one_line(pki, scheduler, names, expected):
    credentials = cluster.Credentials(*(name and pki / name for name in names))
    with pytest.raises(InputError, match=expected), cluster.connected(scheduler, credentials):
        pass
