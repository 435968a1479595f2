"""The report's devices and primitives, the corresponding suites, and handshakes as sums of primitives."""

from __future__ import annotations

from dataclasses import dataclass

from shakedown.models import primitives
from shakedown.papers.load import PaperData

SLUG = "wtls-palm"

DEVICES = {
    "palm_vii_new_20mhz_ms": "Palm VII, 20 MHz",
    "palm_v_16_6mhz_ms": "Palm V, 16.6 MHz",
    "palm_vii_old_16_6mhz_ms": "Palm VII (old), 16.6 MHz",
}
NEW, *OLDER = DEVICES
CLOCKS_MHZ = {NEW: 20.0, OLDER[0]: 16.6, OLDER[1]: 16.6}

ECC_SERVER, ECC_MUTUAL = "wtls/ecdh_ecdsa/163k/server", "wtls/ecdh_ecdsa/163k/mutual"
RSA_SERVER, RSA_MUTUAL = "wtls/rsa/rsa1024/server", "wtls/rsa/rsa1024/mutual"
RSA3_SERVER, RSA3_MUTUAL = "wtls/rsa/rsa1024e3/server", "wtls/rsa/rsa1024e3/mutual"
TLS_ECC = "tls1.0/ecdhe_ecdsa+sect163k1/sect163k1/mutual"
TLS_RSA, TLS_RSA3 = "tls1.0/rsa/rsa1024/mutual", "tls1.0/rsa/rsa1024e3/mutual"
SUITES = (
    ECC_SERVER,
    ECC_MUTUAL,
    RSA_SERVER,
    RSA_MUTUAL,
    RSA3_SERVER,
    RSA3_MUTUAL,
    TLS_ECC,
    TLS_RSA,
    TLS_RSA3,
)

FLOWS = {
    "figure 1, server authenticated": (
        ("client", "ClientHello"),
        ("server", "ServerHello, Certificate, ServerHelloDone"),
        ("client", "ClientKeyExchange, ChangeCipherSpec, Finished"),
        ("server", "Finished"),
    ),
    "figure 2, mutual": (
        ("client", "ClientHello"),
        ("server", "ServerHello, Certificate, CertificateRequest, ServerHelloDone"),
        ("client", "Certificate, ClientKeyExchange, CertificateVerify, ChangeCipherSpec, Finished"),
        ("server", "Finished"),
    ),
}
"""The flights in the report's two diagrams."""


@dataclass(frozen=True)
class Times:
    """The primitives of one device, in seconds (figure 3)."""

    keygen_s: float
    expansion_s: float
    agreement_s: float
    sign_s: float
    verify_s: float
    private_s: float
    rsa_verify_s: dict[str, float]
    rsa_encrypt_s: float

    def total_s(
        self, family: str, authentication: str, exponent: str = "", *, expanded: bool = False
    ) -> float:
        """A client's time by the additive model (figures 4 to 7; section 5 if the CA key is expanded)."""
        if family == "ecc163" and authentication == "server":
            return float(
                primitives.ecc_server_authenticated_s(
                    self.expansion_s, self.verify_s, self.keygen_s, self.agreement_s, ca_key_expanded=expanded
                )
            )
        if family == "ecc163":
            return float(
                primitives.ecc_mutual_s(
                    self.expansion_s, self.verify_s, self.agreement_s, self.sign_s, ca_key_expanded=expanded
                )
            )
        verify_s = self.rsa_verify_s[exponent]
        if authentication == "server":
            return float(primitives.rsa_server_authenticated_s(verify_s, self.rsa_encrypt_s))
        return float(primitives.rsa_mutual_s(verify_s, self.rsa_encrypt_s, self.private_s))


def times(data: PaperData, device: str) -> Times:
    """One device's column of figure 3."""
    table = data.tables["figure_3_primitive_times"]

    def of(primitive: str, exponent: str = "") -> float:
        return float(table.one(primitive=primitive, rsa_public_exponent=exponent)[device]) / 1e3

    return Times(
        of("key_generation"),
        of("key_expansion"),
        of("dh_key_agreement"),
        of("ecdsa_sign"),
        of("ecdsa_verify"),
        of("private_encrypt"),
        {exponent: of("public_decrypt", exponent) for exponent in ("3", "65537")},
        of("public_encrypt"),
    )
