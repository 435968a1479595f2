"""Suites that tests of predictions use, and their arguments in the groups of the Python functions."""

from __future__ import annotations

from shakedown.prediction.inputs import Costs, ServerModel
from shakedown.prediction.predict import predict_rows
from shakedown.schema.options import PredictionOptions

P256 = "tls1.3/x25519/p256/server"
RSA = "tls1.2/rsa/rsa2048/server"
PSK = "tls1.2/psk"
ML_DSA = "tls1.3/x25519mlkem768/mldsa65/server"
WTLS = "wtls/rsa/rsa1024@rsa3072/requested"


def service_s(row):
    """A worker's time per handshake: the server's work, and the connection's."""
    return row["server_s"]["estimate"] + (row["connection_s"]["server"] if row["model"] == "default" else 0.0)


def grouped(library, **given):
    """Arguments of `predict_rows` and `capacity_rows`: the server's, costs and options in groups."""
    named = {"server_device": "device", "server_workers": "workers", "server_software": "software"}
    server = {name: given.pop(flat) for flat, name in named.items() if flat in given}
    options = {name: given.pop(name) for name in PredictionOptions.__struct_fields__ if name in given}
    given |= {"options": PredictionOptions(**options)} if options else {}
    costs = Costs(library, given.pop("scale_from", None))
    return {**given, "server": ServerModel(**server), "costs": costs}


def one(suite, library, **options):
    (row,) = predict_rows([suite], **grouped(library, **options))
    return row
