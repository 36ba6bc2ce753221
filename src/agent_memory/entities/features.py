"""What a statistical model sees of each word: how it is written, its neighbours, its class, known lists. Pure.

Training and use read the same functions, so a feature cannot mean two things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

_UPPER: Final = re.compile(r"[A-Z\u00c0-\u00de]")
_LOWER: Final = re.compile(r"[a-z\u00df-\u00ff]")
_DIGIT: Final = re.compile(r"\d")
_REPEATED: Final = re.compile(r"(.)\1\1+")
_SAME: Final = re.compile(r"(.)\1+")
_CAMEL: Final = re.compile(r"[a-z][A-Z]")
_ENDS: Final = frozenset({".", "!", "?", ":", ";", '"', "\u2026", "...", "..", "\u201c", "\n"})
_PREFIXES: Final = (4, 6, 8, 10, 20)
_FAR_PREFIXES: Final = (6, 20)
_MOST_WORDS: Final = 3
_LOUD: Final = 0.6
_FEW: Final = 2


@dataclass(frozen=True, slots=True)
class WordLists:
    """What is known of words before a text is read.

    Attributes:
        classes: A path in a tree of classes by word, small: words used alike share a beginning.
        frequency: How frequent a word is, by powers of ten; 0 for what is not there.
        names: Lists by name, of words or of phrases of up to three words, small.
    """

    classes: Mapping[str, str]
    frequency: Mapping[str, int]
    names: Mapping[str, AbstractSet[str]]


Part = tuple[Any, ...]
"""A function that returns features of a word, and what it is called with; the same part has the same features."""


def features_of(words: Sequence[str], lists: WordLists) -> list[list[str]]:
    """Return the features of each word of a sentence."""
    return [[feature for part in parts for feature in read_part(part)] for parts in parts_of(words, lists, {})]


def read_part(part: Part) -> list[str]:
    """Return the features of one part."""
    features: list[str] = part[0](*part[1:])
    return features


def parts_of(words: Sequence[str], lists: WordLists, looks: dict[str, WordLook]) -> Iterator[list[Part]]:
    """Yield the features of each word: its own and its neighbours'.

    Args:
        words: Words and signs of the sentence.
        lists: Classes, frequencies and names.
        looks: Words of the same text that were read before; new ones are added.
    """
    for word in words:
        if word not in looks:
            looks[word] = _look_of(word, lists)
    seen = [looks[word] for word in words]
    known, mode = _known([look.small for look in seen], lists), _mode(words)
    for at, look in enumerate(seen):
        begins = "1" if at == 0 or words[at - 1] in _ENDS else "0"
        parts: list[Part] = [(_own, words[at], look, known[at], begins, mode)]
        for away in (-2, -1, 0, 1, 2):
            place = at + away
            is_inside = 0 <= place < len(seen)
            parts.append((_around, away, seen[place], known[place]) if is_inside else (_outside, away))
        if at:
            parts.append((_joined, "<", seen[at - 1], look))
        if at + 1 < len(seen):
            parts.append((_joined, ">", seen[at + 1], look))
        yield parts


class WordLook(NamedTuple):
    """Spelling, class and frequency of a word, independent of its place."""

    small: str
    shape: str
    case: str
    group: str
    often: int


def _look_of(word: str, lists: WordLists) -> WordLook:
    small = word.lower()
    return WordLook(small, _shape(word), _case(word), class_of(small, lists), lists.frequency.get(small, 0))


def class_of(small: str, lists: WordLists) -> str:
    """Return the class of a word, also of its hashtag and without drawn-out letters; empty where it is not known."""
    known = lists.classes
    return known.get(small) or known.get(small.strip("#")) or known.get(_REPEATED.sub(r"\1", small)) or ""


def _shape(word: str) -> str:
    return _SAME.sub(r"\1\1", _DIGIT.sub("d", _LOWER.sub("x", _UPPER.sub("X", word))))


def _case(word: str) -> str:
    first = word[:1]
    if len(word) > 1 and word.isupper():
        return "U"
    return "C" if first.isupper() else "l" if first.islower() else "d" if first.isdigit() else "o"


def _mode(words: Sequence[str]) -> str:
    """Return how the sentence is written: shouting, as a headline, all small, or as usual."""
    letters = [word for word in words if word[:1].isalpha()]
    capitals = sum(word[0].isupper() for word in letters)
    loud = sum(len(word) > 1 and word.isupper() for word in letters)
    if len(letters) > _FEW and loud > _LOUD * len(letters):
        return "U"
    if len(letters) > _FEW and capitals > _LOUD * len(letters):
        return "T"
    return "M" if capitals else "N"


def _known(small: Sequence[str], lists: WordLists) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()] * len(small)
    for at in range(len(small)):
        for size in range(1, min(_MOST_WORDS, len(small) - at) + 1):
            phrase = " ".join(small[at : at + size])
            for name, entries in lists.names.items():
                if phrase in entries:
                    for within in range(at, at + size):
                        if name not in found[within]:
                            found[within] += (name,)
    return found


def _own(word: str, look: WordLook, known: Sequence[str], begins: str, mode: str) -> list[str]:
    small, _, case, group, often = look
    found = [
        "b", f"k={case}{begins}{mode}", f"k={case}", f"k={case}{begins}", f"kq={case}{often}",
        f"kqm={case}{often}{mode}{begins}", f"q={often}",
    ]  # fmt: skip
    for size in range(1, 5):
        found += (f"p={small[:size]}", f"x={small[-size:]}")
    if group:
        found += (f"kc={case}{group[:6]}", f"kc={case}{group[:10]}", f"kc={case}{group}")
    for name in known:
        found += (f"kg={case}{name}", f"kgm={case}{name}{mode}{begins}")
    if small[0] in "@#":
        found.append(f"tw={small[0]}")
    if small.startswith(("http", "www.")):
        found.append("url")
    if _DIGIT.search(word) and (_UPPER.search(word) or _LOWER.search(word)):
        found.append("mix")
    if _CAMEL.search(word):
        found.append("camel")
    return found


def _outside(away: int) -> list[str]:
    return [f"e{away}"]


def _around(away: int, look: WordLook, known: Sequence[str]) -> list[str]:
    near = -1 <= away <= 1
    found = [f"s{away}={look.shape if near else look.shape[:2]}"]
    if near:
        found.append(f"w{away}={look.small}")
    if group := look.group:
        found += [f"c{away}={group[:size]}" for size in (_PREFIXES if near else _FAR_PREFIXES)]
    return found + [f"g{away}={name}" for name in known]


def _joined(mark: str, neighbour: WordLook, look: WordLook) -> list[str]:
    found = [f"sh{mark}={neighbour.shape}|{look.shape}", f"wk{mark}={neighbour.small}|{look.case}"]
    if look.group and neighbour.group:
        found.append(f"cc{mark}={neighbour.group[:6]}|{look.group[:6]}")
    return found
