"""Kinds of secrets from `kinds.jsonl`, each filled at random from a seed: no secret is stored.

A shape such as `ghp_{a36}` stands for random characters of an alphabet, `{w}` for a word. A row has one of these forms:

- `shapes` and `frames`: a token with a form of its own, and the sentences around it
- `frames` and `value`: a frame around `{S}`; a value is a shape, or a generator such as `@strong` (the default)
- `frame`, `value`, `count`, `glue`: several values in one frame
- `draw`, `wear`, `text`, `secrets`: drawn values, encoded ones, then templates in which `<2:0:8>` is a part of value 2
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import string
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HERE: Final = Path(__file__).parent
WORDS: Final = (HERE / "words.txt").read_text("ascii").split()
GROUPS: Final = (
    "provider, main", "provider, rarer", "PEM", "connection strings", "configuration", "command line", "environment",
    "codes", "passwords, strong", "passwords, letters", "passwords, no label", "numbers", "obfuscated", "encoded",
)  # fmt: skip
PROSE: Final = (
    "we use {} for the deployment",
    "Remember: {}",
    "the CI runs with {} since March, ask Dana",
    "{} is what the billing job sends",
    "Paste {} into the settings page.",
    "key for staging -> {}",
)
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
    "p": "abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#%&*+-=?@",
}
_SHAPE: Final = re.compile(r"\{(uuid|bytes|[aAlhHbudxX3spwW])(\d*)\}")
_PART: Final = re.compile(r"<(\d+)(?::([^:>]*):([^:>]*))?>")


class PlantedSecret(NamedTuple):
    """A text, and the parts of it that must not be left over."""

    text: str
    secrets: tuple[str, ...]


class SecretKind(NamedTuple):
    """One way in which a secret is written down."""

    group: str
    name: str
    row: dict[str, Any]

    def make(self, rng: random.Random) -> PlantedSecret:
        """Return a text with a new secret of this kind."""
        row = self.row
        if "draw" in row:
            return _compose(row, rng)
        if "shapes" in row:
            secret = fill(rng.choice(row["shapes"]), rng)
            return PlantedSecret(rng.choice(row.get("frames", PROSE)).format(secret), (secret,))
        value = row.get("value", "@strong")
        if "count" in row:
            values = [draw(value, rng) for _ in range(row["count"])]
            return PlantedSecret(row["frame"].format(row["glue"].join(values)), tuple(values))
        secret = draw(value, rng)
        before, *rest = fill(rng.choice(row["frames"]).replace("{S}", "\0"), rng).split("\0")
        return PlantedSecret(secret.join([before, *rest]), (secret,))


def fill(shape: str, rng: random.Random) -> str:
    """Return `shape` with each `{a36}` replaced by 36 random characters of that alphabet, `{w}` by a word."""

    def replace(match: re.Match[str]) -> str:
        kind, count = match[1], int(match[2] or 1)
        if kind in "wW":
            word = rng.choice(WORDS)
            return word.title() if kind == "W" else word
        if kind == "uuid":
            return str(uuid.UUID(int=rng.getrandbits(128), version=4))
        if kind == "bytes":
            return base64.b64encode(rng.randbytes(count)).decode()
        return "".join(rng.choices(ALPHABETS[kind], k=count))

    return _SHAPE.sub(replace, shape)


def make_strong(rng: random.Random) -> str:
    """Return a password as people choose them, with digits and mostly with a sign."""
    word, second = rng.choice(WORDS), rng.choice(WORDS)
    sign, number = rng.choice("!#$%&*@?+-_."), rng.randrange(10, 9999)
    return rng.choice(
        (
            f"{word.title()}{sign}{number}",
            f"{word}{number}{sign}",
            f"{word.title()}{second.title()}{number}",
            f"{word}{sign}{second}{number}",
            f"{number}{word.title()}{sign}",
            fill("{a12}", rng) + str(number),
            word.replace("a", "@", 1).replace("o", "0", 1).title() + sign + str(number),
        )
    )


def make_letters(rng: random.Random) -> str:
    """Return a password of letters alone."""
    word, second = rng.choice(WORDS), rng.choice(WORDS)
    return rng.choice((word + second, word.title() + second.title(), word.title() + second, fill("{x10}", rng)))


def make_browser_password(rng: random.Random) -> str:
    """Return a password as the generator of a browser makes it."""
    signs = "-!#%&*+=?@^~"
    first, second = (fill(shape, rng) + rng.choice(signs) for shape in ("{a5}", "{a6}"))
    return first + second + fill("{a4}", rng)


GENERATORS: Final[dict[str, Callable[[random.Random], str]]] = {
    "@strong": make_strong,
    "@letters": make_letters,
    "@browser": make_browser_password,
    "@phrase": lambda rng: rng.choice((" ", "-", ".")).join(rng.sample(WORDS, 5)),
    "@seed phrase": lambda rng: " ".join(rng.sample(WORDS[:30], 12)),
    "@joined words": lambda rng: "-".join(rng.sample(WORDS, 4)),
    "@capitals": lambda rng: " ".join(rng.sample(WORDS, 4)).title(),
    "@12 words": lambda rng: " ".join(rng.sample(WORDS, 12)),
    "@24 words": lambda rng: " ".join(rng.sample(WORDS, 24)),
}
ENCODERS: Final[dict[str, Callable[[str], str]]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 of gzip": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex spaced": lambda text: text.encode().hex(" "),
    "hex in capitals": lambda text: text.encode().hex().upper(),
    "bytes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "quote": lambda text: quote(text, safe=""),
    "escapes": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "references": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "codes": lambda text: ",".join(str(ord(letter)) for letter in text),
    "wide": lambda text: "".join(chr(ord(letter) + 0xFEE0) for letter in text),
    "Cyrillic": lambda text: text.translate({ord("a"): 0x430, ord("e"): 0x435}),
    "reversed": lambda text: text[::-1],
    "groups": lambda text: " ".join(_cut(text, 4)),
    "rows": lambda text: "\n".join(_cut(text, 64)),
    "numbered": lambda text: " ".join(f"{number}. {word}" for number, word in enumerate(text.split(), 1)),
}


def draw(value: str, rng: random.Random) -> str:
    """Return a random value: of a generator, one of `?a|b`, a number of `#least most`, or a filled shape."""
    if value in GENERATORS:
        return GENERATORS[value](rng)
    if value.startswith("?"):
        return rng.choice(value[1:].split("|"))
    if value.startswith("#"):
        return str(rng.randrange(*map(int, value[1:].split())))
    return fill(value, rng)


def _compose(row: dict[str, Any], rng: random.Random) -> PlantedSecret:
    """Draw values, encode some of them, and write the text with its secrets."""
    values = [draw(value, rng) for value in row["draw"]]
    for encoder, template in row.get("wear", ()):
        values.append(_encode(encoder, _write(template, values)))
    text = row["text"] if isinstance(row["text"], str) else rng.choice(row["text"])
    return PlantedSecret(_write(text, values), tuple(_write(secret, values) for secret in row.get("secrets", ("<0>",))))


def _encode(encoder: str, text: str) -> str:
    if encoder.startswith("spread by "):
        return encoder[len("spread by ") :].join(text)
    if encoder.startswith("words "):
        start, end = map(int, encoder.split()[1:])
        return " ".join(text.split()[start:end])
    return ENCODERS[encoder](text)


def _write(template: str, values: list[str]) -> str:
    def read_bound(text: str | None) -> int | None:
        return (int(values[int(text[1:])]) if text.startswith("$") else int(text)) if text else None

    return _PART.sub(lambda match: values[int(match[1])][read_bound(match[2]) : read_bound(match[3])], template)


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def load_kinds() -> dict[str, tuple[SecretKind, ...]]:
    """Return the kinds by set, and those of all sets as `all`."""
    sets: dict[str, tuple[SecretKind, ...]] = {}
    for line in (HERE / "kinds.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line.replace("~KEY", " KEY"))  # a scanner takes the whole line for a private key
        kind = SecretKind(row["group"], row["name"], row)
        sets[row["set"]] = (*sets.get(row["set"], ()), kind)
    return sets | {"all": tuple(kind for kinds in sets.values() for kind in kinds)}


SETS: Final = load_kinds()


def plant(kinds: Iterable[SecretKind], seed: int, count: int) -> Iterator[tuple[SecretKind, PlantedSecret]]:
    """Yield `count` secrets of every kind, the same for the same seed and kind."""
    for kind in kinds:
        rng = random.Random(f"{seed} {kind.group} {kind.name}")
        for _ in range(count):
            yield kind, kind.make(rng)
