"""Measurements that look like real ones and cost nothing: the same name always gives the same figures."""

from __future__ import annotations

import random
from hashlib import sha256

MACHINE = {
    "cpu": "Imaginary CPU 1000",
    "cores": 2,
    "kernel": "Linux 6.1",
    "governor": "performance",
    "memory_bytes": 8 << 30,
}

# (sender, name, flight, bytes, [(operation, algorithm, parameters, class, who, microseconds)])
_TLS12 = [
    ("client", "ClientHello", 1, 118, []),
    ("server", "ServerHello", 2, 86, []),
    ("server", "Certificate", 2, 830, [("verify", "rsa", "rsa2048", "signature", "client", 22.0)]),
    (
        "server",
        "ServerKeyExchange",
        2,
        333,
        [
            ("keygen", "dh", "dh2048", "key", "server", 310.0),
            ("sign", "rsa", "rsa2048", "signature", "server", 560.0),
            ("verify", "rsa", "rsa2048", "signature", "client", 21.0),
        ],
    ),
    ("server", "ServerHelloDone", 2, 9, []),
    (
        "client",
        "ClientKeyExchange",
        3,
        267,
        [
            ("keygen", "dh", "dh2048", "key", "client", 305.0),
            ("derive", "dh", "dh2048", "key", "client", 311.0),
            ("derive", "dh", "dh2048", "key", "server", 312.0),
        ],
    ),
    ("client", "ChangeCipherSpec", 3, 6, []),
    ("client", "Finished", 3, 45, []),
    ("server", "ChangeCipherSpec", 4, 6, []),
    ("server", "Finished", 4, 45, []),
]
_PSK = [
    ("client", "ClientHello", 1, 100, []),
    ("server", "ServerHello", 2, 86, []),
    ("server", "ServerHelloDone", 2, 9, []),
    ("client", "ClientKeyExchange", 3, 20, []),
    ("client", "ChangeCipherSpec", 3, 6, []),
    ("client", "Finished", 3, 45, []),
    ("server", "ChangeCipherSpec", 4, 6, []),
    ("server", "Finished", 4, 45, []),
]
_TLS13 = [
    ("client", "ClientHello", 1, 240, [("keygen", "ecdh", "x25519", "key", "client", 31.0)]),
    (
        "server",
        "ServerHello",
        2,
        127,
        [
            ("keygen", "ecdh", "x25519", "key", "server", 30.0),
            ("derive", "ecdh", "x25519", "key", "server", 36.0),
            ("derive", "ecdh", "x25519", "key", "client", 36.5),
        ],
    ),
    ("server", "ChangeCipherSpec", 2, 6, []),
    ("server", "EncryptedExtensions", 2, 28, []),
    ("server", "Certificate", 2, 470, [("verify", "ecdsa", "p256", "signature", "client", 70.0)]),
    (
        "server",
        "CertificateVerify",
        2,
        101,
        [
            ("sign", "ecdsa", "p256", "signature", "server", 25.0),
            ("verify", "ecdsa", "p256", "signature", "client", 69.0),
        ],
    ),
    ("server", "Finished", 2, 74, []),
    ("client", "ChangeCipherSpec", 3, 6, []),
    ("client", "Finished", 3, 74, []),
    ("server", "NewSessionTicket", None, 255, []),
]


def measurement(suite: str = "tls1.2/dhe_rsa+dh2048/rsa2048/server", repeat: int = 30) -> dict:
    """One suite's object as the contract has it, its books balanced."""
    chance = random.Random(sha256(suite.encode()).digest())
    script = (
        _TLS13 if suite.startswith("tls1.3") else _PSK if "psk" in suite or "resumed" in suite else _TLS12
    )
    scale = {"1024": 0.2, "512": 0.1, "mldsa": 3.0}
    factor = next((f for word, f in scale.items() if word in suite), 1.0)
    weight = 3 if "mldsa" in suite else 1
    messages, operations = [], []
    total = {"client": 0.0, "server": 0.0}
    for index, (sender, name, flight, size, calls) in enumerate(script):
        receiver = "server" if sender == "client" else "client"
        time = {sender: 2 + 6 * chance.random(), receiver: 2 + 6 * chance.random()}
        for side in (sender, receiver):
            digest = round(time[side] * 0.3, 3)
            operations.append(_operation(side, index, "digest", "sha256", "", "common", digest, 2, size))
        for operation, algorithm, parameters, kind, side, microseconds in calls:
            cost = round(microseconds * factor * (0.95 + 0.1 * chance.random()), 3)
            time[side] += cost
            operations.append(_operation(side, index, operation, algorithm, parameters, kind, cost, 1, 0))
        generate, process = round(time[sender], 3), round(time[receiver], 3)
        messages.append(
            {
                "index": index,
                "from": sender,
                "name": name,
                "flight": flight,
                "bytes": size * (weight if name.startswith("Cert") else 1),
                "generate_us": round(generate * 0.98, 3),
                "process_us": round(process * 0.98, 3),
                "generate_mean_us": generate,
                "process_mean_us": process,
            }
        )
        total[sender] += generate
        total[receiver] += process
    remainder = {"client": 4.125, "server": 3.5, "client_mean": 4.25, "server_mean": 3.625}
    operations.append(_operation("client", None, "digest", "sha256", "", "common", 0.5, 1, 32))
    sent = {side: sum(m["bytes"] for m in messages if m["from"] == side) for side in ("client", "server")}
    flights = max(m["flight"] for m in messages if m["flight"])
    stack = {"name": "wtls" if suite.startswith("wtls") else "openssl", "version": "3.6.0"}
    return {
        "suite": suite,
        "client_stack": stack,
        "server_stack": stack,
        "carrier": "bare",
        "credentials": "generated",
        "kind": "measured",
        "repeat": repeat,
        "preempted": 1,
        "machine": MACHINE,
        "clock": "thread CPU time",
        "handshake": {
            f"{side}_us": _spread(total[side] + remainder[f"{side}_mean"], repeat) for side in total
        },
        "bytes": {
            "client_to_server": sent["client"],
            "server_to_client": sent["server"],
            "total": sum(sent.values()),
        },
        "flights": flights,
        "messages": messages,
        "operations": operations,
        "unattributed_us": remainder,
        "memory": {
            "client_peak_bytes": 61_440,
            "client_held_bytes": 40_960,
            "server_peak_bytes": 71_680,
            "server_held_bytes": 43_008,
            "context_bytes": {"client": 120_000, "server": 130_000},
            "released_bytes": 0,
        },
    }


def _operation(side, message, operation, algorithm, parameters, kind, us, count, size) -> dict:
    return {
        "side": side,
        "message": message,
        "operation": operation,
        "algorithm": algorithm,
        "parameters": parameters,
        "class": kind,
        "us": us,
        "mean_us": us,
        "count": count,
        "bytes": size,
    }


def _spread(mean: float, n: int) -> dict:
    return {
        "median": mean * 0.98,
        "mean": mean,
        "sd": mean * 0.05,
        "min": mean * 0.9,
        "max": mean * 1.3,
        "n": n,
    }
