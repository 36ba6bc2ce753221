"""How secrets of a benchmark are made: shapes such as `ghp_{a36}` filled at random, put into frames of words.

Nothing here is a real secret, and none is written down: each run makes its own from its seed.
"""

from __future__ import annotations

import base64
import re
import string
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

ALNUM: Final = string.ascii_letters + string.digits
ALPHABETS: Final = {
    "a": ALNUM,
    "l": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "b": ALNUM + "+/",
    "u": ALNUM + "-_",
    "d": string.digits,
    "x": string.ascii_lowercase,
    "X": string.ascii_uppercase,
    "3": string.ascii_uppercase + "234567",
    "s": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
}
WORDS: Final = [
    "mango",
    "falcon",
    "harbor",
    "violet",
    "cactus",
    "meadow",
    "rocket",
    "lantern",
    "walnut",
    "pepper",
    "glacier",
    "tunnel",
    "saddle",
    "orchid",
    "copper",
    "marble",
    "pirate",
    "thunder",
    "willow",
    "basket",
    "candle",
    "dragon",
    "ember",
    "forest",
    "garnet",
    "hazel",
    "island",
    "jasmine",
    "kettle",
    "lemon",
    "magnet",
    "nectar",
    "olive",
    "pebble",
    "quartz",
    "raven",
    "salmon",
    "timber",
    "umbrella",
    "velvet",
    "winter",
    "zephyr",
    "anchor",
    "breeze",
    "cobalt",
    "dune",
]
GROUPS: Final = (
    "provider, main",
    "provider, rarer",
    "PEM",
    "connection strings",
    "configuration",
    "command line",
    "environment",
    "codes",
    "passwords, strong",
    "passwords, letters",
    "passwords, no label",
    "numbers",
    "obfuscated",
    "encoded",
)
PROSE: Final = (
    "we use {} for the deployment",
    "Remember: {}",
    "the CI runs with {} since March, ask Dana",
    "{} is what the billing job sends",
    "Paste {} into the settings page.",
    "key for staging -> {}",
)


class Planted(NamedTuple):
    """A text, and the parts of it that must not be left over."""

    text: str
    secrets: tuple[str, ...]


class Kind(NamedTuple):
    """One way in which a secret is written down."""

    group: str
    name: str
    make: Callable[[random.Random], Planted]


def fill(shape: str, rng: random.Random) -> str:
    """Return `shape` with each `{a36}` replaced by 36 random characters of that alphabet, `{w}` by a word."""

    def one(match: re.Match[str]) -> str:
        kind, count = match[1], int(match[2] or 1)
        if kind == "w":
            return rng.choice(WORDS)
        if kind == "W":
            return rng.choice(WORDS).title()
        if kind == "uuid":
            return str(uuid.UUID(int=rng.getrandbits(128), version=4))
        if kind == "bytes":
            return base64.b64encode(rng.randbytes(count)).decode()
        return "".join(rng.choices(ALPHABETS[kind], k=count))

    return re.sub(r"\{(uuid|bytes|[aAlhHbudxX3swW])(\d*)\}", one, shape)


def strong(rng: random.Random) -> str:
    """Return a password as people choose them, with digits and mostly with a sign."""
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    sign, number = rng.choice("!#$%&*@?+-_."), rng.randrange(10, 9999)
    return rng.choice(
        (
            f"{word.title()}{sign}{number}",
            f"{word}{number}{sign}",
            f"{word.title()}{other.title()}{number}",
            f"{word}{sign}{other}{number}",
            f"{number}{word.title()}{sign}",
            fill("{a12}", rng) + str(number),
            word.replace("a", "@", 1).replace("o", "0", 1).title() + sign + str(number),
        )
    )


def letters(rng: random.Random) -> str:
    """Return a password of letters alone."""
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    return rng.choice((word + other, word.title() + other.title(), word.title() + other, fill("{x10}", rng)))


def token(group: str, name: str, *shapes: str, frames: tuple[str, ...] = PROSE) -> Kind:
    """Return a kind whose secret has a form of its own; `frames` are the sentences around it."""

    def make(rng: random.Random) -> Planted:
        secret = fill(rng.choice(shapes), rng)
        return Planted(rng.choice(frames).format(secret), (secret,))

    return Kind(group, name, make)


def around(group: str, name: str, *frames: str, value: Callable[[random.Random], str] | str = strong) -> Kind:
    """Return a kind that its frame gives away: `{S}` is the secret, other shapes are filled as well."""

    def make(rng: random.Random) -> Planted:
        secret = fill(value, rng) if isinstance(value, str) else value(rng)
        before, *rest = fill(rng.choice(frames).replace("{S}", "\0"), rng).split("\0")
        return Planted(secret.join([before, *rest]), (secret,))

    return Kind(group, name, make)


def many(group: str, name: str, frame: str, secret: Callable[[random.Random], str], count: int, glue: str) -> Kind:
    """Return a kind that names several secrets at once."""

    def make(rng: random.Random) -> Planted:
        values = [secret(rng) for _ in range(count)]
        return Planted(frame.format(glue.join(values)), tuple(values))

    return Kind(group, name, make)


def key_lines(rng: random.Random, lines: int = 5) -> list[str]:
    """Return lines as in the body of a private key."""
    return [fill("{b64}", rng) for _ in range(lines)]
