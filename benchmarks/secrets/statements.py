"""Statements without a secret, by class: what a redactor must leave as it is.

`harmless.txt` has a heading `## COUNT CLASS` and the shapes of the class below it; a class without shapes is made here.
"""

from __future__ import annotations

import base64
import hashlib
import random
from typing import TYPE_CHECKING, Final

from benchmarks.secrets.kinds import ALNUM, HERE, WORDS, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _make_picture(rng: random.Random) -> str:
    head = rng.choice((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0\0\x10JFIF", b"GIF89a"))
    return f"![logo](data:image/png;base64,{base64.b64encode(head + rng.randbytes(rng.randrange(60, 400))).decode()})"


def _make_certificate(rng: random.Random) -> str:
    kind = rng.choice(("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY"))
    lines = [fill("{b64}", rng) for _ in range(rng.randrange(4, 12))]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, fill("{b20}==", rng), f"-----END {kind}-----"])


def _make_hash(rng: random.Random) -> str:
    digest = hashlib.sha512(rng.randbytes(8)).digest()
    text = base64.b64encode(digest).decode()
    return rng.choice(
        (
            f'"integrity": "sha512-{text}"',
            f"--hash=sha256:{digest[:32].hex()}",
            f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{''.join(rng.choices(ALNUM, k=43))} bob@{rng.choice(WORDS)}",
        )
    )


def _make_embedded_picture(rng: random.Random) -> str:
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


def _make_public_key(rng: random.Random) -> str:
    rows = "\n".join(fill("{b64}", rng) for _ in range(rng.randrange(3, 9)))
    texts = (
        f"-----BEGIN CERTIFICATE REQUEST-----\n{rows}\n-----END CERTIFICATE REQUEST-----",
        f"-----BEGIN CERTIFICATE-----\n{rows}\n-----END CERTIFICATE-----\n",
        f"-----BEGIN PUBLIC KEY-----\n{rows}\n-----END PUBLIC KEY-----",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{b300} {w}@{w}",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAI{b88}= root@{w}",
        "{w}.io ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}",
    )
    return rng.choice([fill(text, rng) for text in texts])


_MAKERS: Final[dict[str, Callable[[random.Random], str]]] = {
    "pictures": _make_picture,
    "certificates and public keys": _make_certificate,
    "checksums and ssh public keys": _make_hash,
    "more pictures": _make_embedded_picture,
    "more certificates and public keys": _make_public_key,
}


def load_classes() -> dict[str, tuple[int, list[str]]]:
    """Return by class how many statements a run has, and their shapes."""
    classes: dict[str, tuple[int, list[str]]] = {}
    for line in (HERE / "harmless.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            count, name = line.removeprefix("## ").split(maxsplit=1)
            classes[name] = int(count), []
        else:
            classes[name][1].append(line)
    return classes


CLASSES: Final = load_classes()


def make_statements(seed: int) -> Iterator[tuple[str, str]]:
    """Yield class and text of each statement."""
    for name, (count, shapes) in CLASSES.items():
        rng = random.Random(f"{seed} {name}")
        for _ in range(count):
            yield name, fill(rng.choice(shapes), rng) if shapes else _MAKERS[name](rng)
