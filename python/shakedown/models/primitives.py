"""The additive model of primitives: a client's time is the sum of its public-key operations.

N. Daswani, "Cryptographic Execution Time for WTLS Handshakes on Palm OS Devices", Stanford University, 2000
(figures 3 to 8). Elliptic-curve public keys are expanded before use; a CA key stored expanded saves one
expansion.
"""

from __future__ import annotations

from shakedown.models.arrays import Floats, Numbers, floats


def ecc_server_authenticated_s(
    expansion_s: Numbers,
    verify_s: Numbers,
    keygen_s: Numbers,
    agreement_s: Numbers,
    *,
    ca_key_expanded: bool = False,
) -> Floats:
    """Client time with ECC, server authenticated (figure 4): expand CA key, verify, keygen, expand server
    key, agree.

    All in seconds; with ``ca_key_expanded`` the CA key needs no expansion (section 5).
    """
    expansions = (1.0 if ca_key_expanded else 2.0) * floats(expansion_s)
    return expansions + floats(verify_s) + floats(keygen_s) + floats(agreement_s)


def ecc_mutual_s(
    expansion_s: Numbers,
    verify_s: Numbers,
    agreement_s: Numbers,
    sign_s: Numbers,
    *,
    ca_key_expanded: bool = False,
) -> Floats:
    """Client time with ECC, mutual (figure 6): agreement with the certified key, no keygen, one signature."""
    expansions = (1.0 if ca_key_expanded else 2.0) * floats(expansion_s)
    return expansions + floats(verify_s) + floats(agreement_s) + floats(sign_s)


def rsa_server_authenticated_s(verify_s: Numbers, encrypt_s: Numbers) -> Floats:
    """Client time with RSA, server authenticated (figure 5): verify the certificate, encrypt the
    premaster.
    """
    return floats(verify_s) + floats(encrypt_s)


def rsa_mutual_s(verify_s: Numbers, encrypt_s: Numbers, private_s: Numbers) -> Floats:
    """Client time with RSA, mutual (figure 7): as server-authenticated, and one private-key operation."""
    return rsa_server_authenticated_s(verify_s, encrypt_s) + floats(private_s)


def clock_scaled_s(time_s: Numbers, clock_hz: Numbers, new_clock_hz: Numbers) -> Floats:
    """Time at another clock rate if only the clock rate mattered: t f / f' (section 5).

    The report's own three devices contradict it: times differ by 1.26 to 1.50 at a clock ratio of 1.205.
    """
    return floats(time_s) * floats(clock_hz) / floats(new_clock_hz)
