"""The report's figures."""

from __future__ import annotations

from collections.abc import Mapping

from shakedown.papers.drawing import Drawing
from shakedown.papers.load import PaperData
from shakedown.papers.palm.inputs import DEVICES
from shakedown.papers.replication import Replication
from shakedown.reporting import charts


def figures(data: PaperData, replication: Replication) -> list[Drawing]:
    """Figure 3 as bars, and figures 4 to 7 as one stack for each handshake."""
    bars = [
        {
            "primitive": _short(row),
            "device": name,
            "time in ms": float(row[device]),
        }
        for row in data.tables["figure_3_primitive_times"].rows
        for device, name in DEVICES.items()
    ]
    parts = {
        "server_certificate_verification": "verify server certificate",
        "session_key_establishment": "establish key",
        "client_authentication": "authenticate client",
    }
    stacks: dict[tuple[str, str], float] = {}
    for row in data.tables["figures_4_to_7_handshake_steps"].rows:
        exponent = f" e={row['rsa_public_exponent']}" if row["rsa_public_exponent"] else ""
        name = f"{row['figure']}: {row['suite']}{exponent}"
        key = (name, parts[row["operation"]])
        stacks[key] = stacks.get(key, 0.0) + float(row["time_ms"]) / 1e3
    panels = {"4": "server authenticated", "5": "server authenticated", "6": "mutual", "7": "mutual"}
    values = [
        {
            "handshake": name,
            "part": part,
            "client time in s": round(value, 4),
            "authentication": panels[name[0]],
        }
        for (name, part), value in stacks.items()
    ]
    note = "From the report's own primitives."
    return [
        Drawing(
            "3",
            "Execution time of primitives (logarithmic)",
            "The report's figures.",
            "published",
            charts.grouped_bars(bars, "primitive", "device", "time in ms", log=True),
            bars,
        ),
        Drawing(
            "4 to 7",
            "Client's cryptographic time, sums of primitives",
            note,
            "modelled",
            charts.stacked_bars(
                values, "handshake", "part", "client time in s", facet="authentication", free=True
            ),
            values,
        ),
    ]


def _short(row: Mapping[str, str]) -> str:
    names = {
        "key_generation": "ECC keygen",
        "key_expansion": "ECC expand",
        "dh_key_agreement": "ECDH",
        "ecdsa_sign": "ECDSA sign",
        "ecdsa_verify": "ECDSA verify",
        "private_encrypt": "RSA private",
        "public_decrypt": f"RSA verify e={row['rsa_public_exponent']}",
        "public_encrypt": "RSA encrypt",
    }
    return names[row["primitive"]]
