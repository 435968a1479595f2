"""The thesis's 48 cases and their printed figures, as arrays for the models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from shakedown.models.arrays import Floats
from shakedown.papers.load import PaperData
from shakedown.schema.base import Side

SLUG = "wtls-nokia7650"

Authentication = Literal["mutual", "serverauth"]
AUTHENTICATIONS: tuple[Authentication, Authentication] = ("mutual", "serverauth")
WORDS = {"mutual": "mutual", "serverauth": "server-authenticated"}

CSD_BITS_PER_S = 9600.0

TIME_TABLES = {
    "mutual": ("4.1", "table_4_1_mutual_processing_times"),
    "serverauth": ("4.2", "table_4_2_serverauth_processing_times"),
}
SHARE_TABLES: dict[tuple[Authentication, str, Side], tuple[str, str]] = {
    ("mutual", "ecc", "client"): ("4.3", "table_4_3_mutual_ecdh_client_pct"),
    ("mutual", "rsa", "client"): ("4.4", "table_4_4_mutual_rsa_client_pct"),
    ("mutual", "ecc", "server"): ("4.5", "table_4_5_mutual_ecdh_server_pct"),
    ("mutual", "rsa", "server"): ("4.6", "table_4_6_mutual_rsa_server_pct"),
    ("serverauth", "ecc", "client"): ("4.7", "table_4_7_serverauth_ecdh_client_pct"),
    ("serverauth", "rsa", "client"): ("4.8", "table_4_8_serverauth_rsa_client_pct"),
    ("serverauth", "ecc", "server"): ("4.9", "table_4_9_serverauth_ecdh_server_pct"),
    ("serverauth", "rsa", "server"): ("4.10", "table_4_10_serverauth_rsa_server_pct"),
}
SIZES, DELAYS = "table_4_11_handshake_data_sizes", "table_4_12_csd_transmission_delays"

COLUMNS = {
    "others_pct": "others",
    "client_kx_pct": "key exchange",
    "server_kx_pct": "key exchange",
    "ecdh_of_client_kx_pct": "ECDH, of key exchange",
    "ecdh_of_server_kx_pct": "ECDH, of key exchange",
    "rsa_encrypt_of_client_kx_pct": "RSA encryption, of key exchange",
    "rsa_decrypt_of_server_kx_pct": "RSA decryption, of key exchange",
    "master_secret_of_client_kx_pct": "master secret, of key exchange",
    "master_secret_of_server_kx_pct": "master secret, of key exchange",
    "verify_server_cert_pct": "check of the server's certificate",
    "verify_client_cert_pct": "check of the client's certificate",
    "certificate_verify_sign_pct": "CertificateVerify signed",
    "certificate_verify_check_pct": "CertificateVerify checked",
}
"""The names used here for the columns of the percentage tables."""


@dataclass(frozen=True)
class Case:
    """One pair of certificates: the CA's key, and that of the end certificates."""

    category: int
    group: int
    ca: str
    end: str

    @property
    def name(self) -> str:
        """The thesis's name: CA key, then end key."""
        return f"{self.ca}/{self.end}"

    @property
    def family(self) -> str:
        """``ecc`` or ``rsa``."""
        return "rsa" if self.ca.startswith("rsa") else "ecc"

    def messages(self, authentication: Authentication) -> int:
        """n, the messages of one handshake that queue at the server (table 3.8 with 3.15, 3.18)."""
        if authentication == "serverauth":
            return 5
        return 6 if self.family == "rsa" else 4

    def suite(self, authentication: Authentication) -> str:
        """The suite of the case; for server authentication, the thesis's server received an empty list."""
        exchange = "rsa" if self.family == "rsa" else "ecdh_ecdsa"
        keys = self.end if self.end == self.ca else f"{self.end}@{self.ca}"
        return f"wtls/{exchange}/{keys}/{'mutual' if authentication == 'mutual' else 'requested'}"


class Thesis:
    """The printed tables by case."""

    def __init__(self, data: PaperData) -> None:
        self.data = data
        table = data.tables[TIME_TABLES["mutual"][1]]
        self.cases = [
            Case(int(row["category"]), int(row["group"]), row["ca_cert"], row["end_cert"])
            for row in table.rows
        ]

    def case(self, name: str) -> Case:
        """A case by ``CA/end``."""
        ca, end = name.split("/")
        return next(case for case in self.cases if (case.ca, case.end) == (ca, end))

    def printed(self, table: str, case: Case) -> dict[str, str]:
        return self._rows[table][case.ca, case.end]

    @cached_property
    def _rows(self) -> dict[str, dict[tuple[str, str], dict[str, str]]]:
        return {
            name: {(row["ca_cert"], row["end_cert"]): row for row in table.rows}
            for name, table in self.data.tables.items()
            if {"ca_cert", "end_cert"} <= set(table.columns)
        }

    def time_s(self, case: Case, authentication: Authentication, side: Side) -> float:
        """A side's processing time (tables 4.1, 4.2)."""
        return float(self.printed(TIME_TABLES[authentication][1], case)[f"{side}_ms"]) / 1e3

    def processing_s(self, case: Case, authentication: Authentication) -> float:
        return self.time_s(case, authentication, "client") + self.time_s(case, authentication, "server")

    def share(self, case: Case, authentication: Authentication, side: Side, column: str) -> float:
        """A share of tables 4.3 to 4.10, as a fraction; 0 if the table has no such column."""
        row = self.printed(SHARE_TABLES[authentication, case.family, side][1], case)
        return float(row.get(column, 0.0)) / 100.0

    def shares(self, authentication: Authentication, family: str, side: Side, column: str) -> list[float]:
        """A whole column of the percentage tables, in per cent."""
        return self.data.tables[SHARE_TABLES[authentication, family, side][1]].column(column)

    def size_bytes(self, case: Case, authentication: Authentication) -> float:
        """Handshake bytes (table 4.11)."""
        return float(self.printed(SIZES, case)[f"{authentication}_bytes"])

    def transmission_s(self, case: Case, authentication: Authentication) -> float:
        """Measured transmission delay on CSD (table 4.12)."""
        return float(self.printed(DELAYS, case)[f"{authentication}_ms"]) / 1e3

    def queued_s(self, case: Case, authentication: Authentication) -> Floats:
        """Server seconds of each queued message, shape ``(n,)``: the totals times the percentages.

        Certificate, ClientKeyExchange and CertificateVerify have their own times; the others, together half a
        millisecond, are printed as one figure and count as 0. Mutual ECDH sends no ClientKeyExchange, and the
        thesis omits its time.
        """
        total_s = self.time_s(case, authentication, "server")
        columns = ["verify_client_cert_pct"]
        if authentication == "serverauth":
            columns = ["server_kx_pct"]
        elif case.family == "rsa":
            columns += ["server_kx_pct", "certificate_verify_check_pct"]
        times = [total_s * self.share(case, authentication, "server", column) for column in columns]
        return np.array(times + [0.0] * (case.messages(authentication) - len(times)))

    def all(self) -> Iterator[tuple[Case, Authentication]]:
        """All 48 cases."""
        for authentication in AUTHENTICATIONS:
            for case in self.cases:
                yield case, authentication

    def level(self, case: Case) -> int:
        """The end certificate's level within its category: 1, 2 or 3."""
        same = [one for one in self.cases if (one.category, one.group) == (case.category, case.group)]
        return same.index(case) + 1

    def select(self, category: int, level: int) -> list[Case]:
        """The cases of a category at a level of end certificates, group by group."""
        return [one for one in self.cases if one.category == category and self.level(one) == level]


def share_cells(thesis: Thesis) -> Iterator[tuple[str, str, Case, Authentication, Side, str]]:
    """Each cell of the percentage tables: table number and name, case, authentication, side, column."""
    for (authentication, family, side), (number, table) in SHARE_TABLES.items():
        columns = [column for column in thesis.data.tables[table].columns if column in COLUMNS]
        for case in thesis.cases:
            if case.family == family:
                yield from ((number, table, case, authentication, side, column) for column in columns)
