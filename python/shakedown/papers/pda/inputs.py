"""The study's suites, files and network, and its printed figures."""

from __future__ import annotations

from shakedown.papers.load import PaperData
from shakedown.papers.replication import Transfers

SLUG = "ssl-pda"

RSA = "tls1.0/rsa/rsa1024/server"
RESUMED = "tls1.0/rsa/rsa1024/server/resumed"
DH = "tls1.0/dhe_rsa+dh1024/rsa1024/server"
SUITES = (RSA, RESUMED, DH)

FILE_SIZES_KIB = (130, 256, 512, 1024, 2048)
CIPHERS = {RSA: "AES-256", f"{RSA}/3des-sha": "3DES", f"{RSA}/rc4-sha": "RC4"}
TRANSFERS = Transfers(tuple(CIPHERS), ("open", "wep"), tuple(1024 * size for size in FILE_SIZES_KIB))

STEPS = (1, 2, 3, 4, 5, 6)
NETWORK_BITS_PER_S = 10e6
"""The rate of the study's network, as printed."""

NOT_PRINTED = "step times are only in bar charts without values"
DEVICE = "needs the device itself: an input"
BULK = (
    "needs transfers after the handshake, with and without WEP framing, which were not measured in this run"
)


class Study:
    """The figures that the text prints."""

    def __init__(self, data: PaperData) -> None:
        self._values = {
            row["quantity"]: float(row["value"])
            for row in data.tables["text_numbers"].rows
            if row["quantity"] != "transfer_file_size"
        }

    def __getitem__(self, quantity: str) -> float:
        return self._values[quantity]

    @property
    def laptop_ms(self) -> float:
        """The laptop's full handshake, from its printed ratio to the PDA's."""
        return self["pda_open_full_handshake_total"] * self["laptop_open_total_over_pda_open_total"] / 100

    @property
    def step_6_ms(self) -> float:
        """Step 6 from its two printed parts."""
        return self["pda_open_step6_symmetric_decrypt_and_hash"] + self["pda_open_step6_rest"]

    @property
    def blocking_ms(self) -> float:
        """The blocking read of step 6."""
        return self["pda_open_step6_rest"] * self["pda_open_step6_blocking_read_share_of_rest"] / 100
