"""Tables 4.1 to 4.10 from the thesis's own primitives.

A primitive's time is the median over all cases that contain it, so that each cell is compared with what the
other cases imply.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from shakedown.models.processing import processing_s
from shakedown.papers.thesis.inputs import Authentication, Case, Thesis
from shakedown.schema.base import Side

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
        return share_of_parts(column, parts, sum(parts.values()))


def share_of_parts(column: str, parts: Mapping[str, float], total: float) -> float:
    """A column of the percentage tables, in per cent, from the times of a side's parts and their total."""
    exchange = parts["public"] + parts["master secret"]
    if column == "others_pct":
        return 100.0 * parts["others"] / total
    if column in ("client_kx_pct", "server_kx_pct"):
        return 100.0 * exchange / total
    if column.startswith("master_secret"):
        return 100.0 * parts["master secret"] / exchange
    if column.startswith("verify"):
        return 100.0 * parts["certificate"] / total
    if column.startswith("certificate_verify"):
        return 100.0 * parts["CertificateVerify"] / total
    return 100.0 * parts["public"] / exchange


def _keys(case: Case, authentication: Authentication, side: Side) -> dict[str, tuple[str, ...]]:
    """The primitive of each part: its kind and its key."""
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

    exchange_s = total_s * share(f"{side}_kx_pct")
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
