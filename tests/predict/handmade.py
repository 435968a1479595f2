"""Small hand-written recordings of handshakes, with the messages and operations of each suite."""

from __future__ import annotations

from typing import Any

Step = tuple[str, str, int, float]  # sender, name, flight, bytes
Work = tuple[str, int | None, str, str, str]  # side, message, operation, algorithm, parameters


def entry(suite: str, steps: list[Step], work: list[Work]) -> dict[str, Any]:
    """One object of `measure --json`, with the fields that estimates use; its times are synthetic."""
    return {
        "suite": suite,
        "kind": "measured",
        "repeat": 1,
        "messages": [
            {"index": index, "from": sender, "name": name, "flight": flight, "bytes": size,
             "generate_us": 1.0, "process_us": 1.0, "generate_mean_us": 1.0, "process_mean_us": 1.0}
            for index, (sender, name, flight, size) in enumerate(steps)
        ],
        "operations": [
            {"side": side, "message": message, "operation": operation, "algorithm": algorithm,
             "parameters": parameters, "class": "common", "us": 1.0, "mean_us": 1.0, "count": 1,
             "bytes": None}
            for side, message, operation, algorithm, parameters in work
        ],
    }  # fmt: skip


TLS12_RSA = entry(
    "tls1.2/rsa/rsa2048/server",
    [
        ("client", "ClientHello", 1, 120),
        ("server", "ServerHello", 2, 90),
        ("server", "Certificate", 2, 900),
        ("server", "ServerHelloDone", 2, 9),
        ("client", "ClientKeyExchange", 3, 267),
        ("client", "ChangeCipherSpec", 3, 6),
        ("client", "Finished", 3, 45),
        ("server", "ChangeCipherSpec", 4, 6),
        ("server", "Finished", 4, 45),
    ],
    [
        ("client", 2, "verify", "rsa", "rsa2048"),
        ("client", 4, "encrypt", "rsa", "rsa2048"),
        ("server", 4, "decrypt", "rsa", "rsa2048"),
        ("client", 4, "prf", "tls1-prf-sha256", ""),
    ],
)

TLS13_P256 = entry(
    "tls1.3/x25519/p256/server",
    [
        ("client", "ClientHello", 1, 230),
        ("server", "ServerHello", 2, 127),
        ("server", "EncryptedExtensions", 2, 28),
        ("server", "Certificate", 2, 480),
        ("server", "CertificateVerify", 2, 101),
        ("server", "Finished", 2, 58),
        ("client", "Finished", 3, 58),
    ],
    [
        ("client", 0, "keygen", "ecdh", "x25519"),
        ("server", 1, "keygen", "ecdh", "x25519"),
        ("server", 1, "derive", "ecdh", "x25519"),
        ("client", 1, "derive", "ecdh", "x25519"),
        ("client", 3, "verify", "ecdsa", "p256"),
        ("server", 4, "sign", "ecdsa", "p256"),
        ("client", 4, "verify", "ecdsa", "p256"),
        ("client", 3, "import", "ec", "p256"),
    ],
)

TLS13_ML_DSA = entry(
    "tls1.3/x25519mlkem768/mldsa65/server",
    [
        ("client", "ClientHello", 1, 1440),
        ("server", "ServerHello", 2, 1215),
        ("server", "EncryptedExtensions", 2, 28),
        ("server", "Certificate", 2, 5700),
        ("server", "CertificateVerify", 2, 3340),
        ("server", "Finished", 2, 58),
        ("client", "Finished", 3, 58),
    ],
    [
        ("client", 0, "keygen", "hybrid", "x25519mlkem768"),
        ("server", 1, "encapsulate", "hybrid", "x25519mlkem768"),
        ("client", 1, "decapsulate", "hybrid", "x25519mlkem768"),
        ("client", 3, "verify", "mldsa", "mldsa65"),
        ("server", 4, "sign", "mldsa", "mldsa65"),
        ("client", 4, "verify", "mldsa", "mldsa65"),
    ],
)

TLS12_PSK = entry(
    "tls1.2/psk",
    [
        ("client", "ClientHello", 1, 100),
        ("server", "ServerHello", 2, 60),
        ("server", "ServerHelloDone", 2, 9),
        ("client", "ClientKeyExchange", 3, 20),
        ("client", "ChangeCipherSpec", 3, 6),
        ("client", "Finished", 3, 45),
        ("server", "ChangeCipherSpec", 4, 6),
        ("server", "Finished", 4, 45),
    ],
    [],
)


def wtls_rsa(ca: str, end: str) -> dict[str, Any]:
    """The thesis's server-authenticated RSA case: asked for a certificate, the client sends an empty list."""
    return entry(
        f"wtls/rsa/{end}@{ca}/requested",
        [
            ("client", "ClientHello", 1, 150),
            ("server", "ServerHello", 2, 60),
            ("server", "Certificate", 2, 700),
            ("server", "CertificateRequest", 2, 40),
            ("server", "ServerHelloDone", 2, 10),
            ("client", "Certificate", 3, 10),
            ("client", "ClientKeyExchange", 3, 140),
            ("client", "ChangeCipherSpec", 3, 6),
            ("client", "Finished", 3, 30),
            ("server", "ChangeCipherSpec", 4, 6),
            ("server", "Finished", 4, 30),
        ],
        [
            ("client", 2, "verify", "rsa", ca),
            ("client", 6, "encrypt", "rsa", end),
            ("server", 6, "decrypt", "rsa", end),
        ],
    )


def wtls_ecdh(ca: str, end: str, *, mutual: bool) -> dict[str, Any]:
    """The thesis's ECDH_ECDSA cases; in the mutual one no ClientKeyExchange is sent."""
    steps: list[Step] = [
        ("client", "ClientHello", 1, 150),
        ("server", "ServerHello", 2, 60),
        ("server", "Certificate", 2, 300),
        ("server", "CertificateRequest", 2, 40),
        ("server", "ServerHelloDone", 2, 10),
        ("client", "Certificate", 3, 300 if mutual else 10),
    ]
    work: list[Work] = [("client", 2, "verify", "ecdsa", ca)]
    if not mutual:
        steps.append(("client", "ClientKeyExchange", 3, 60))
        work += [
            ("client", 6, "keygen", "ecdh", end),
            ("client", 6, "derive", "ecdh", end),
            ("server", 6, "derive", "ecdh", end),
        ]
    else:
        work += [
            ("client", 5, "derive", "ecdh", end),
            ("server", 5, "verify", "ecdsa", ca),
            ("server", 5, "derive", "ecdh", end),
        ]
    steps += [
        ("client", "ChangeCipherSpec", 3, 6),
        ("client", "Finished", 3, 30),
        ("server", "ChangeCipherSpec", 4, 6),
        ("server", "Finished", 4, 30),
    ]
    return entry(f"wtls/ecdh_ecdsa/{end}@{ca}/{'mutual' if mutual else 'server'}", steps, work)


LIBRARY = [TLS12_RSA, TLS13_P256, TLS13_ML_DSA, TLS12_PSK, wtls_rsa("rsa3072", "rsa1024")]
