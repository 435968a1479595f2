"""Generates, issues and describes certificates."""

from __future__ import annotations

import os
import time
from typing import Any

from shakedown import native
from shakedown.errors import InputError
from shakedown.reporting.rows import Rows
from shakedown.schema import convert
from shakedown.schema.arguments import checked
from shakedown.schema.certificates import CertificateProfile, DescribedFile, GeneratedChain


@checked
def certs(do: str, **request: object) -> Rows[Any]:
    """Generates, issues or describes certificates: `do` is `show`, `make`, `issue` or `profiles`.

    The other arguments are the options of the command: `certs("show", files=["chain.pem"])`,
    `certs("make", keys="p256@rsa2048", out="folder")`. Returns objects of `shakedown.schema.certificates`.
    Raises `InputError`.
    """
    kinds = {
        "show": DescribedFile,
        "make": GeneratedChain,
        "issue": GeneratedChain,
        "profiles": CertificateProfile,
    }
    if do not in kinds:
        raise InputError(f'"{do}" is not a command of certs; accepted: {", ".join(kinds)}')
    now = {} if do == "profiles" else {"now": int(time.time())}
    given = {key: _as_text(value) for key, value in request.items() if value is not None}
    if isinstance(given.get("files"), str):
        given["files"] = [given["files"]]
    found = native.certs({"do": do, **now, **given})
    return Rows(convert(found, list[kinds[do]]))  # type: ignore[valid-type]  # a type from a table


def _as_text(value: object) -> object:
    """Converts a path, or the paths in a list, to text."""
    if isinstance(value, list | tuple):
        return [_as_text(one) for one in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
