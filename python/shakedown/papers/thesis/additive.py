"""Tables 4.1 to 4.11 from the thesis's own primitives and certificates: what the tables have in common.

A primitive's time is the median over all cases that contain it, so that each cell is compared with what the
other cases say about it. A handshake's bytes follow from one constant for each family and the sizes of
signatures and public keys.
"""

from __future__ import annotations

from statistics import median

from shakedown.models.processing import processing_s
from shakedown.papers.thesis.inputs import Authentication, Case, Thesis
from shakedown.schema.base import Side

_KEY_EXCHANGE = {"client": "client_kx_pct", "server": "server_kx_pct"}
_PUBLIC = {
    ("ecc", "client"): "ecdh_of_client_kx_pct",
    ("ecc", "server"): "ecdh_of_server_kx_pct",
    ("rsa", "client"): "rsa_encrypt_of_client_kx_pct",
    ("rsa", "server"): "rsa_decrypt_of_server_kx_pct",
}


class Primitives:
    """Medians of the primitives' times on both devices, in seconds."""

    def __init__(self, thesis: Thesis) -> None:
        found: dict[tuple[str, ...], list[float]] = {}
        for case, authentication in thesis.all():
            for side in ("client", "server"):
                for key, time_s in _resolved(thesis, case, authentication, side).items():
                    found.setdefault(key, []).append(time_s)
        self._medians = {key: median(times) for key, times in found.items()}

    def parts_s(self, case: Case, authentication: Authentication, side: Side) -> dict[str, float]:
        return {
            part: self._medians[key]
            for part, key in _keys(case, authentication, side).items()
            if key in self._medians
        }

    def time_s(self, case: Case, authentication: Authentication, side: Side) -> float:
        return float(processing_s(list(self.parts_s(case, authentication, side).values())))

    def share(self, case: Case, authentication: Authentication, side: Side, column: str) -> float:
        """A column of the percentage tables, in per cent."""
        parts = self.parts_s(case, authentication, side)
        exchange_s = parts["public"] + parts["master secret"]
        total_s = sum(parts.values())
        if column == "others_pct":
            return 100.0 * parts["others"] / total_s
        if column in ("client_kx_pct", "server_kx_pct"):
            return 100.0 * exchange_s / total_s
        if column.startswith("master_secret"):
            return 100.0 * parts["master secret"] / exchange_s
        if column.startswith("verify"):
            return 100.0 * parts["certificate"] / total_s
        if column.startswith("certificate_verify"):
            return 100.0 * parts["CertificateVerify"] / total_s
        return 100.0 * parts["public"] / exchange_s


def _keys(case: Case, authentication: Authentication, side: Side) -> dict[str, tuple[str, ...]]:
    """Which primitive each part is: its kind and the key it works with."""
    keys = {
        "others": (side, "others", case.family, authentication),
        "public": (side, "public", case.end),
        "master secret": (side, "master secret"),
    }
    if side == "client" or authentication == "mutual":
        keys["certificate"] = (side, "verify", case.ca)
    if case.family == "rsa" and authentication == "mutual":
        # A signature by the client's key is checked with the same operation as a certificate by such a key.
        keys["CertificateVerify"] = (side, "sign" if side == "client" else "verify", case.end)
    return keys


def _resolved(
    thesis: Thesis, case: Case, authentication: Authentication, side: Side
) -> dict[tuple[str, ...], float]:
    """The printed times of one side's primitives in one case."""
    total_s = thesis.time_s(case, authentication, side)

    def share(column: str) -> float:
        return thesis.share(case, authentication, side, column)

    exchange_s = total_s * share(_KEY_EXCHANGE[side])
    times = {
        "others": total_s * share("others_pct"),
        "public": exchange_s * share(_PUBLIC[case.family, side]),
        "master secret": exchange_s * share(f"master_secret_of_{side}_kx_pct"),
        "certificate": total_s * share(f"verify_{'server' if side == 'client' else 'client'}_cert_pct"),
        "CertificateVerify": total_s
        * share("certificate_verify_sign_pct" if side == "client" else "certificate_verify_check_pct"),
    }
    keys = _keys(case, authentication, side)
    return {keys[part]: time_s for part, time_s in times.items() if part in keys and time_s > 0}


_ORDER_BYTES = {
    **{"160p": 21, "163k": 21, "163r": 21, "224p": 28, "233k": 29, "233r": 30},
    **{"256p": 32, "283k": 36, "283r": 36},
}
_POINT_BYTES = {
    **{"160p": 41, "163k": 43, "163r": 43, "224p": 57, "233k": 61, "233r": 61},
    **{"256p": 65, "283k": 73, "283r": 73},
}


def order_bytes(curve: str) -> int:
    return _ORDER_BYTES[curve]


def field_bytes(curve: str) -> int:
    """Bytes of a coordinate."""
    return (_POINT_BYTES[curve] - 1) // 2


def signature_bytes(key: str) -> int:
    """Bytes of a signature: two numbers as long as the curve's order, or as long as the modulus."""
    return int(key[3:]) // 8 if key.startswith("rsa") else 2 * _ORDER_BYTES[key]


def public_bytes(key: str) -> int:
    """Bytes of a public key: an uncompressed point (SEC 1), or the modulus."""
    return int(key[3:]) // 8 if key.startswith("rsa") else _POINT_BYTES[key]


def handshake_bytes(thesis: Thesis, case: Case, authentication: Authentication) -> float:
    """Bytes by the law: a constant of the family, taken from its first case, and the sizes that change.

    Each certificate carries a signature of the CA and a public key; RSA adds the encrypted premaster secret
    and, mutual, the client's signature; ECDH adds the client's ephemeral point where the server alone is
    authenticated.
    """
    first = next(one for one in thesis.cases if one.family == case.family)
    signatures = 2 if authentication == "mutual" else 1
    publics = {"mutual": 4 if case.family == "rsa" else 2, "serverauth": 2}[authentication]
    return (
        thesis.size_bytes(first, authentication)
        + signatures * (signature_bytes(case.ca) - signature_bytes(first.ca))
        + publics * (public_bytes(case.end) - public_bytes(first.end))
    )
