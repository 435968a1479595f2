"""Every dependency, Rust and Python, must have a licence that deny.toml allows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata

from tools.pages import ROOT, status

# Names in Python packages' classifiers or free texts, with the SPDX names.
PYTHON_NAMES = {
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "public domain": "LicenseRef-public-domain",
    "gnu general public license (gpl)": "GPL-2.0-or-later",
}

# Packages whose metadata contains no licence, with the licence in their licence file.
FROM_LICENCE_FILES = {"ciw": "MIT"}


def allowed(expression: str, allow: set[str]) -> bool:
    """Whether allowed licences alone satisfy an SPDX expression: AND needs all, OR needs one."""

    parts = re.split(r"([()]|\s+(?:AND|OR)\s+)", expression.replace("/", " OR "), flags=re.IGNORECASE)
    words = [part.strip() for part in parts if part.strip()]
    known = [
        word.lower() if word.upper() in ("(", ")", "AND", "OR") else str(word in allow) for word in words
    ]
    # The expression consists of True, False, `and`, `or` and brackets, with the same precedence in Python.
    return bool(known) and bool(eval(" ".join(known)))


def rust_packages() -> dict[str, str]:
    """Every crate in the lock file with its licence expression."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"error: cargo metadata: {listed.stderr.strip()}")
    return {f"{p['name']} {p['version']}": p["license"] or "" for p in json.loads(listed.stdout)["packages"]}


def python_packages() -> dict[str, str]:
    """Every locked distribution that is installed, with its licence expression."""
    found = {}
    for name in ("requirements.lock", "requirements-dev.lock"):
        for package in re.findall(r"^([\w.-]+)==", (ROOT / name).read_text(), re.MULTILINE):
            with suppress(PackageNotFoundError):
                about = metadata(package)
                licence = python_licence(about) or FROM_LICENCE_FILES.get(package, "")
                found[f"{package} {about['Version']}"] = licence
    return found


def python_licence(about: PackageMetadata) -> str:
    """The expression, or the one equivalent to the classifiers or the free text."""
    if expression := about.get_all("License-Expression"):
        return str(expression[0])
    classifiers = about.get_all("Classifier") or []
    words = [line.rsplit("::", 1)[1].strip() for line in classifiers if line.startswith("License ::")]
    words = [word for word in words if word not in ("OSI Approved", "DFSG approved")]
    words = words or about.get_all("License") or []
    return " OR ".join(PYTHON_NAMES.get(word.lower(), word) for word in words if word)


def main() -> int:
    """Print packages whose licence is not allowed; the exit status is 1 if there are any."""
    allow = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    packages = {**rust_packages(), **python_packages()}
    refused = {name: licence for name, licence in packages.items() if not allowed(licence, allow)}
    print(f"licences: {len(packages) - len(refused)} of {len(packages)} packages allowed")
    return status(
        f"error: {name}: licence {licence or '(none)'}; accepted: those in deny.toml"
        for name, licence in sorted(refused.items())
    )


if __name__ == "__main__":
    sys.exit(main())
