"""Sentences without a time, made of the templates of `dateless.txt`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


def _load_templates() -> dict[str, list[str]]:
    """Return templates by kind."""
    templates: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("dateless.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            templates[line.removeprefix("# ")] = []
        else:
            templates[[*templates][-1]].append(line)
    return templates


DATELESS: Final = _load_templates()
_WORDS: Final = {
    "name": ("Anna", "Bob", "April Jones", "June Carter", "Mr. March", "Ms. May", "Jan", "Summer Lee", "August Wilson"),
    "noun": ("parser", "index", "file", "queue", "server", "table", "bridge", "garden", "letter"),
    "verb": ("read", "fix", "move", "test", "open", "delete", "rename"),
}


def dateless(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield the kinds and texts of sentences without a time.

    Args:
        count: How many.
        seed: Of the choice.
    """
    choose = random.Random(seed)
    kinds = list(DATELESS)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        numbers = {
            "n": choose.randint(32, 9000),
            "n3": choose.randint(100, 999),
            "n4": choose.randint(1000, 9999),
            "small": choose.randint(1, 31),
            "small2": choose.randint(1, 31),
            "cents": choose.randint(10, 99),
            "hex": f"{choose.getrandbits(40):010x}",
        }
        words = {name: choose.choice(some) for name, some in _WORDS.items()}
        yield kind, choose.choice(DATELESS[kind]).format(**words, **numbers)
