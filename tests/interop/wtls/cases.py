"""The tested suites, and the messages that are sent in each."""

from __future__ import annotations

Message = tuple[str, str]  # sender, name


def _from(sender: str, *names: str) -> list[Message]:
    return [(sender, name) for name in names]


CLIENT_END = _from("client", "ChangeCipherSpec", "Finished")
SERVER_END = _from("server", "ChangeCipherSpec", "Finished")
HELLO = _from("client", "ClientHello")

# The orders of WAP-261-WTLS, section 10.3, and of Tables 3.5 and 3.7 in Bayoglu's thesis (2004).
ORDERS: dict[str, list[list[Message]]] = {
    "server": [
        HELLO,
        _from("server", "ServerHello", "Certificate", "ServerHelloDone"),
        _from("client", "ClientKeyExchange") + CLIENT_END,
        SERVER_END,
    ],
    "requested": [
        HELLO,
        _from("server", "ServerHello", "Certificate", "CertificateRequest", "ServerHelloDone"),
        _from("client", "Certificate", "ClientKeyExchange") + CLIENT_END,
        SERVER_END,
    ],
    "mutual RSA": [
        HELLO,
        _from("server", "ServerHello", "Certificate", "CertificateRequest", "ServerHelloDone"),
        _from("client", "Certificate", "ClientKeyExchange", "CertificateVerify") + CLIENT_END,
        SERVER_END,
    ],
    "mutual ECDH": [
        HELLO,
        _from("server", "ServerHello", "Certificate", "CertificateRequest", "ServerHelloDone"),
        _from("client", "Certificate") + CLIENT_END,
        SERVER_END,
    ],
    "anonymous": [
        HELLO,
        _from("server", "ServerHello", "ServerKeyExchange", "ServerHelloDone"),
        _from("client", "ClientKeyExchange") + CLIENT_END,
        SERVER_END,
    ],
    "abbreviated": [HELLO, _from("server", "ServerHello") + SERVER_END, CLIENT_END],
    "optimised": [HELLO, _from("server", "ServerHello", "Certificate") + SERVER_END, CLIENT_END],
}

CURVES = ("160p", "163k", "224p", "233k", "233r", "163r", "256p", "283k", "283r")
# Assigned numbers of curves; other curves are sent as explicit parameters.
NUMBERS = {"160p": 7, "163k": 3, "224p": 12, "233k": 10, "233r": 11}

CASES: dict[str, str] = {
    "wtls/rsa/rsa1024/server": "server",
    "wtls/rsa/rsa1024@rsa2048@rsa1024/server": "server",
    "wtls/rsa/rsa1024/requested": "requested",
    "wtls/rsa/rsa1024/mutual": "mutual RSA",
    "wtls/rsa/rsa2048@rsa1024/mutual": "mutual RSA",
    **{f"wtls/ecdh_ecdsa/{curve}/server": "server" for curve in CURVES},
    **{f"wtls/ecdh_ecdsa/{curve}/mutual": "mutual ECDH" for curve in CURVES},
    "wtls/ecdh_ecdsa/160p/requested": "requested",
    "wtls/ecdh_ecdsa/283r/requested": "requested",
    "wtls/ecdh_ecdsa/160p@160p@160p/server": "server",
    "wtls/ecdh_ecdsa/160p@160p@160p/mutual": "mutual ECDH",
    "wtls/ecdh_ecdsa/160p@256p@224p/mutual": "mutual ECDH",
    "wtls/ecdh_ecdsa/163k@283k/mutual": "mutual ECDH",
    "wtls/rsa_anon/rsa1024": "anonymous",
    "wtls/rsa_anon/rsa512": "anonymous",
    "wtls/dh_anon+dh512": "anonymous",
    "wtls/dh_anon+dh768": "anonymous",
    "wtls/ecdh_anon+160p": "anonymous",
    "wtls/ecdh_anon+163k": "anonymous",
    "wtls/ecdh_anon+256p": "anonymous",
    "wtls/shared_secret": "abbreviated",
    "wtls/rsa/rsa1024/server/resumed": "abbreviated",
    "wtls/ecdh_ecdsa/160p/mutual/resumed": "abbreviated",
    "wtls/ecdh_ecdsa/160p/mutual/optimized": "optimised",
    "wtls/ecdh_ecdsa/283k/mutual/optimized": "optimised",
    "wtls/rsa/rsa1024/server/3des-sha80": "server",
    "wtls/rsa/rsa1024/server/des-md5": "server",
    "wtls/rsa/rsa1024/server/null-sha40": "server",
    "wtls/rsa/rsa1024/server/rc5-40-md5-80": "server",
}

# Numbers of ciphers and MACs (tables 5 and 6), and the sizes of a MAC.
CIPHERS = {"null": 0, "rc5-40": 1, "rc5": 3, "des": 5, "3des": 6}
MACS = {"sha40": (1, 5), "sha80": (2, 10), "sha": (3, 20), "md5-80": (6, 10), "md5": (7, 16)}


def cipher(suite: str) -> tuple[int, int, int]:
    """The numbers of a suite's cipher and MAC, and the MAC's size."""
    for bulk in sorted(CIPHERS, key=len, reverse=True):
        for mac, (number, size) in MACS.items():
            if suite.endswith(f"/{bulk}-{mac}"):
                return CIPHERS[bulk], number, size
    return 3, 3, 20


def finished_bytes(suite: str) -> int:
    """The size of a protected Finished, header included."""
    bulk, _, mac_bytes = cipher(suite)
    content = 15 + mac_bytes
    return 5 + (content if bulk == 0 else 8 * (content // 8 + 1))
