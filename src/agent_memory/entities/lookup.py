"""Finds listed names in the words of a text, the longest first. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from agent_memory.entities.tagger import word_lists
from agent_memory.entities.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from agent_memory.entities.mention import Gazetteer, Kind
    from agent_memory.entities.tokens import Token

_EVERYDAY: Final = 5
"""Power of ten from which on a word is so frequent that its small form is likely no name."""
_IN_USE: Final = 3
"""Power of ten from which on a word is in use."""
_PERSONS: Final = ("given", "family")
_TABLE: Final = "table"


@dataclass(frozen=True, slots=True)
class Listed:
    """A listed name: its words, small; its kind; how it has to be written, if that matters; how many parts it has."""

    words: tuple[str, ...]
    kind: Kind
    written: str
    parts: int


Table = dict[str, list[Listed]]


def table_of(kinds: Mapping[str, Kind]) -> Table:
    """Return names of somebody's own by their first word, longer ones first."""
    table: Table = {}
    add_to(table, kinds, as_written=False, everyday=_is_in_use)
    return table


def add_to(table: Table, kinds: Mapping[str, Kind], *, as_written: bool, everyday: Callable[[str], bool]) -> None:
    """Add names to a table.

    Args:
        table: Which.
        kinds: The names, with their kinds.
        as_written: Whether they count only as they are written here.
        everyday: Tells a word, small, that is likely no name where it is written small.
    """
    for name, kind in kinds.items():
        words = tuple(token.word.lower() for token in tokens_of(name))
        if words:
            exact = as_written or (len(words) == 1 and everyday(words[0]))
            table.setdefault(words[0], []).append(Listed(words, kind, name if exact else "", len(name.split())))
    for listed in table.values():
        listed.sort(key=lambda each: -len(each.words))


def is_frequent(small: str) -> bool:
    """Whether a word is so frequent that its small form is likely no name, though it may be one otherwise."""
    return word_lists().frequency.get(small, 0) >= _EVERYDAY


def stands_out(name: str) -> bool:
    """Whether a name that was found once can be told from other words wherever it stands.

    A number cannot, nor can a word in use that is written small: the folder `data`, the package `api`.
    """
    if not any(letter.isalpha() for letter in name):
        return False
    return not (name.islower() and name.isalpha() and _is_in_use(name))


def _is_in_use(small: str) -> bool:
    """Whether a word is in use, and no given or family name."""
    names = word_lists().names
    in_use = word_lists().frequency.get(small, 0) >= _IN_USE and not any(small in names[each] for each in _PERSONS)
    return in_use or is_frequent(small)


def table_for(gazetteer: Gazetteer) -> Table:
    """Return the table of an agent's own names, made when first asked for."""
    if _TABLE not in gazetteer.index:
        gazetteer.index[_TABLE] = table_of(gazetteer.kinds)
    return cast("Table", gazetteer.index[_TABLE])


def listed_in(text: str, tokens: Sequence[Token], table: Table) -> Iterable[tuple[int, int, Kind]]:
    """Yield where listed names stand and their kinds; what is part of a path or a longer word is none."""
    at = 0
    while at < len(tokens):
        size = 1
        for listed in table.get(tokens[at].word.lower(), ()):
            if found := _matched(text, tokens, at, listed):
                size = len(listed.words)
                yield found[0], found[1], listed.kind
                break
        at += size


def _matched(text: str, tokens: Sequence[Token], at: int, listed: Listed) -> tuple[int, int] | None:
    inside = tokens[at : at + len(listed.words)]
    if tuple(token.word.lower() for token in inside) != listed.words:
        return None
    start, end = inside[0].start, inside[-1].end
    if (listed.written and text[start:end] != listed.written) or len(text[start:end].split()) != listed.parts:
        return None
    return None if is_part(text, start, end) else (start, end)


def is_part(text: str, start: int, end: int) -> bool:
    """Whether a stretch belongs to a path or a longer word."""
    before, behind = text[max(0, start - 1) : start], text[end : end + 2]
    return (
        before in {"/", "@", "_", "-", "\\", "#"}
        or behind[:1] in {"/", "_", "-", "\\", "@"}
        or (behind[:1] in {".", ":"} and behind[1:2].isalnum())
    )
