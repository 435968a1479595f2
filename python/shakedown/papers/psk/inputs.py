"""The report's mechanisms, the corresponding suites, and the printed bytes."""

from __future__ import annotations

from shakedown.papers.load import PaperData
from shakedown.papers.replication import Replication, Transfers

SLUG = "tls-psk"
TABLE = "table_4_1_handshake_bytes"
KEY_BITS = (512, 1024, 2048)
RATES_BITS_PER_S = (1e4, 1e5, 1e6)
CLASSES = ("key", "signature", "common")

NAMES = {
    "plain_psk": "PSK",
    "dh_anon": "DH_anon",
    "dhe_psk": "DHE_PSK",
    "rsa": "RSA server",
    "dhe_dss": "DHE_DSS server",
    "rsa_mutual": "RSA mutual",
    "dhe_dss_mutual": "DHE_DSS mutual",
}
"""The report's mechanisms, with the names in its figures."""

CHANGING_VALUES = {"rsa": 3, "rsa_mutual": 6, "dhe_dss": 6, "dhe_dss_mutual": 9}
"""Values in a handshake that are as long as the key: modulus and signature in an RSA certificate, one each in
ClientKeyExchange and CertificateVerify; two values in a DSA certificate, the prime and two public values in
the DH exchange."""

PREMASTER_SECRETS = {"psk": "zeros", "dhe_psk": "ephemeral DH value", "rsa_psk": "secret sent under RSA"}
"""The secret that is combined with the shared key in each PSK family (the report's section 3.3)."""


def suite(mechanism: str, key_bits: int) -> str:
    return {
        "plain_psk": "tls1.0/psk",
        "dh_anon": f"tls1.0/dh_anon+dh{key_bits}",
        "dhe_psk": f"tls1.0/dhe_psk+dh{key_bits}",
        "rsa_psk": f"tls1.0/rsa_psk/rsa{key_bits}",
        "rsa": f"tls1.0/rsa/rsa{key_bits}/server",
        "rsa_mutual": f"tls1.0/rsa/rsa{key_bits}/mutual",
        "dhe_dss": f"tls1.0/dhe_dss+dh{key_bits}/dsa{key_bits}/server",
        "dhe_dss_mutual": f"tls1.0/dhe_dss+dh{key_bits}/dsa{key_bits}/mutual",
    }[mechanism]


BULK_SUITES = (suite("plain_psk", 1024), suite("rsa", 1024), suite("dhe_dss", 1024))
SMALL_BYTES, LARGE_BYTES = 15 * 1024, 1024 * 1024
"""The data of a typical transaction (section 1: 10 to 15 kB), and enough data to compare throughput."""
TRANSFERS = Transfers(BULK_SUITES, ("open",), (SMALL_BYTES, LARGE_BYTES))

SUITES = tuple(dict.fromkeys(suite(name, bits) for name in (*NAMES, "rsa_psk") for bits in KEY_BITS))


def size_bytes(data: PaperData, mechanism: str, key_bits: int) -> float:
    """Handshake bytes of table 4.1."""
    return float(data.tables[TABLE].one(mechanism=mechanism)[f"bytes_{key_bits}_bit"])


def processing_s(replication: Replication, mechanism: str, key_bits: int) -> float:
    """Both sides' time on this machine."""
    cost = replication.costs[suite(mechanism, key_bits)]
    return (cost.client_us + cost.server_us) / 1e6


DSS_ORDER = ("dh_anon", "dhe_psk", "dhe_dss", "dhe_dss_mutual")
ALL = tuple(NAMES)
