"""What a statistical model sees of each word: how it is written, its neighbours, its class, known lists. Pure.

Training and use read the same functions, so a feature cannot mean two things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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


def features_of(words: Sequence[str], lists: WordLists) -> list[list[str]]:
    """Return the features of each word of a sentence."""
    seen = _Seen.of(words, lists)
    return [_own(seen, at) + _around(seen, at) + _joined(seen, at) for at in range(len(words))]


@dataclass(frozen=True, slots=True)
class _Seen:
    words: Sequence[str]
    small: list[str]
    shapes: list[str]
    cases: list[str]
    classes: list[str]
    frequencies: list[int]
    known: list[list[str]]
    mode: str

    @classmethod
    def of(cls, words: Sequence[str], lists: WordLists) -> _Seen:
        small = [word.lower() for word in words]
        return cls(
            words,
            small,
            [_shape(word) for word in words],
            [_case(word) for word in words],
            [class_of(word, lists) for word in small],
            [lists.frequency.get(word, 0) for word in small],
            _known(small, lists),
            _mode(words),
        )


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


def _known(small: Sequence[str], lists: WordLists) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in small]
    for at in range(len(small)):
        for size in range(1, min(_MOST_WORDS, len(small) - at) + 1):
            phrase = " ".join(small[at : at + size])
            for name, entries in lists.names.items():
                if phrase in entries:
                    for within in range(at, at + size):
                        if name not in found[within]:
                            found[within].append(name)
    return found


def _own(seen: _Seen, at: int) -> list[str]:
    word, small, case, mode = seen.words[at], seen.small[at], seen.cases[at], seen.mode
    begins = "1" if at == 0 or seen.words[at - 1] in _ENDS else "0"
    often, group = seen.frequencies[at], seen.classes[at]
    found = [
        "b", f"k={case}{begins}{mode}", f"k={case}", f"k={case}{begins}", f"kq={case}{often}",
        f"kqm={case}{often}{mode}{begins}", f"q={often}",
    ]  # fmt: skip
    for size in range(1, 5):
        found += (f"p={small[:size]}", f"x={small[-size:]}")
    if group:
        found += (f"kc={case}{group[:6]}", f"kc={case}{group[:10]}", f"kc={case}{group}")
    for name in seen.known[at]:
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


def _around(seen: _Seen, at: int) -> list[str]:
    found: list[str] = []
    for away in (-2, -1, 0, 1, 2):
        place = at + away
        if not 0 <= place < len(seen.words):
            found.append(f"e{away}")
            continue
        near = -1 <= away <= 1
        found.append(f"s{away}={seen.shapes[place] if near else seen.shapes[place][:2]}")
        if near:
            found.append(f"w{away}={seen.small[place]}")
        if group := seen.classes[place]:
            found += [f"c{away}={group[:size]}" for size in (_PREFIXES if near else _FAR_PREFIXES)]
        found += [f"g{away}={name}" for name in seen.known[place]]
    return found


def _joined(seen: _Seen, at: int) -> list[str]:
    found: list[str] = []
    shape, case, group = seen.shapes[at], seen.cases[at], seen.classes[at][:6]
    for mark, place in (("<", at - 1), (">", at + 1)):
        if not 0 <= place < len(seen.words):
            continue
        found += (f"sh{mark}={seen.shapes[place]}|{shape}", f"wk{mark}={seen.small[place]}|{case}")
        if group and seen.classes[place]:
            found.append(f"cc{mark}={seen.classes[place][:6]}|{group}")
    return found
