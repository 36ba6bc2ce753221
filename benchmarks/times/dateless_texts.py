"""Sentences that name no time, made of templates: code, logs, versions, words that may be months, numbers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

DATELESS: Final[dict[str, tuple[str, ...]]] = {
    "may": (
        "You may {verb} the {noun} if it fails.",
        "It may {verb}, but the {noun} stays.",
        "May I {verb} the {noun}?",
        "What {name} may {verb} is the {noun}.",
        "The {noun} may not be empty.",
        "May {name} {verb} it?",
    ),
    "march": (
        "They march to the {noun} with {name}.",
        "The march was long and {name} was tired.",
        "We {verb} and march on.",
        "{name} will march with us.",
        "A march through the {noun} is planned by {name}.",
    ),
    "sun": (
        "The sun is up and {name} sat down.",
        "Sun and rain {verb} the {noun}.",
        "The cat sat on the {noun}.",
        "The newly wed {name} moved.",
        "{name} sat by the {noun}, in the sun.",
    ),
    "second": (
        "The second {noun} is wrong.",
        "Take the first {noun} and the second one.",
        "{name} was third to {verb} it.",
        "One second, please, {name}.",
        "The third quarter of the {noun} is missing.",
    ),
    "fall": (
        "They fall and {verb} again.",
        "Prices fall when {name} sells.",
        "A spring holds the {noun}.",
        "We spring into action and {verb}.",
        "Fall back to the {noun}.",
    ),
    "code": (
        "for i in range({n}): {noun}[i] += {small}",
        "def may_{verb}(self, second: int) -> None:",
        "x = {noun}.march({n})",
        "if now - last > {n}: return {noun}.day",
        "import {noun}; {noun}.second = {small}",
        "git reset HEAD~{small} -- {noun}.py",
        "assert len({noun}) == {n}",
        "margin: {small}px {small}px; z-index: {n}",
    ),
    "log": (
        "ERROR [{noun}] worker {small} failed with code {n}",
        "WARN pid={n} {noun} retries={small}/{small2}",
        "{noun}.py:{n}:{small}: error: undefined name",
        '  File "{noun}.py", line {n}, in {verb}',
        "INFO request {n} took {n} ms, {small} retries",
    ),
    "version": (
        "Upgrade {noun} to {small}.{small2}.{small}.",
        "We use {noun} v{small}.{small2} with Python 3.{small}.",
        "{noun}=={small}.{small2}.{n}",
        "Requires Node {small}.{small2}.0 or later.",
        "Release {small}.{small2}-rc{small} is out.",
    ),
    "model": (
        "Claude 3.5 Sonnet wrote the {noun}.",
        "GPT-4o and Llama 3.1 {verb} it.",
        "The model Qwen2.5-{small}B is {name}'s.",
        "Use gpt-4-turbo or o1 for the {noun}.",
        "Gemini 1.5 Pro may {verb} it.",
    ),
    "size": (
        "The {noun} has {n} MB.",
        "It takes {small}.{small2} GB of memory.",
        "{n} tokens of {n} are used.",
        "The disk is {small} TB and {small2}% full.",
        "Resize it to {n}x{n}.",
    ),
    "price": (
        "It costs ${n}.{cents}.",
        "{name} paid {n} euros for the {noun}.",
        "€{small},{cents} for a {noun}",
        "A total of {n} USD.",
    ),
    "ratio": (
        "The score was {small}:{small2}.",
        "{small}/{n} tests pass.",
        "About 3/4 of the {noun} is done.",
        "A ratio of 16:9 fits.",
        "{small} out of {small2} {verb} it.",
    ),
    "phone": (
        "Call {name} at 555-{n4}.",
        "Phone: +1 ({n3}) {n3}-{n4}",
        "Tel. 0{n3} {n4} {n3}",
        "Her extension is {n4}.",
    ),
    "address": (
        "Ping 10.{small}.{small2}.{n3} from {noun}.",
        "It listens on 127.0.0.1:{n4}.",
        "ssh {name}@192.168.{small}.{small2}",
        "The host fe80::{small}:{small2} is down.",
    ),
    "id": (
        "Ticket ABC-{n} is {name}'s.",
        "Commit {hex} breaks the {noun}.",
        "Order no. {n4}-{n3}-{small}",
        "Issue #{n} and pull request #{small}.",
        "id: {hex}-{n4}-{n4}",
        "RFC {n} and ISO {n} differ.",
    ),
    "plain": (
        "{name} likes the {noun}.",
        "Please {verb} the {noun} and the other {noun}.",
        "There are {small} of them.",
        "{name} has {small} {noun}s and {small2} friends.",
        "Nobody can {verb} that {noun}.",
    ),
}
"""Templates by kind."""
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
    for at in range(count):
        kind = kinds[at % len(kinds)]
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
