"""More statements without a secret: 350 and more, by class, each class written before the rules were tuned on it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.secrets.frames import fill

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_COUNTS: Final = {
    "more sentences on authentication": 120,
    "more languages": 100,
    "more code": 120,
    "more logs": 90,
    "more identifiers and addresses": 120,
    "more talk": 70,
    "last statements": 170,
}


def statements() -> dict[str, list[str]]:
    """Return shapes of statements by class, from the file beside the benchmarks."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("harmless.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line[3:]] = []
        else:
            found[list(found)[-1]].append(line.replace("{{", "{").replace("}}", "}"))
    return found


def _lines(lines: list[str]) -> Callable[[random.Random], str]:
    return lambda rng: fill(rng.choice(lines), rng)


def _pictured(rng: random.Random) -> str:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + rng.randbytes(rng.randrange(40, 240))).decode()
    svg = f'<svg><image href="data:image/png;base64,{data}"/></svg>'
    drawing = base64.b64encode(svg.encode()).decode()
    return rng.choice(
        (
            f'<img alt="login" src="data:image/png;base64,{data}">',
            f"background-image: url(data:image/png;base64,{data})",
            f'"icon": "data:image/svg+xml;base64,{drawing}"',
        )
    )


def _signed(rng: random.Random) -> str:
    rows = "\n".join(fill("{b64}", rng) for _ in range(rng.randrange(3, 9)))
    return rng.choice(
        (
            f"-----BEGIN CERTIFICATE REQUEST-----\n{rows}\n-----END CERTIFICATE REQUEST-----",
            f"-----BEGIN CERTIFICATE-----\n{rows}\n-----END CERTIFICATE-----\n",
            f"-----BEGIN PUBLIC KEY-----\n{rows}\n-----END PUBLIC KEY-----",
            f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{fill('{b300}', rng)} {fill('{w}@{w}', rng)}",
            f"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI{fill('{b88}', rng)}= root@{fill('{w}', rng)}",
            f"{fill('{w}.io', rng)} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{fill('{b43}', rng)}",
        )
    )


HARMLESS: Final[dict[str, tuple[int, Callable[[random.Random], str]]]] = {
    **{name: (_COUNTS[name], _lines(lines)) for name, lines in statements().items()},
    "more pictures": (20, _pictured),
    "more certificates and public keys": (20, _signed),
}
"""Class to how many of it a run has, and how one is made."""
