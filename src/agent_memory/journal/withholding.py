"""A journal without what was purged: its lines are left out, its words made unreadable in others. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnsupportedError
from agent_memory.journal.codec import IDENTITY, encoded_entry
from agent_memory.journal.compaction import Folded
from agent_memory.journal.format import ids_in, sealed
from agent_memory.models import CHOSEN_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agent_memory.journal.codec import Codec
    from agent_memory.journal.format import Change, Entry

BAR: Final = "\u2588"
"""Stands for each character that was made unreadable: places in a text stay what they were."""
_BARS: Final = re.compile(f"{BAR}+")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
"""What a field has whose values are declared, such as the type of an entity: another value could not be read."""
_WORDS: Final = frozenset({"content", "body", "name", "title", "tags", "aliases", "metadata", "attributes", "blob"})
"""Fields in which a name is a word like others, or names a text that lost some."""
_SIZED: Final = frozenset({"metadata", "attributes"})
"""Fields whose size in bytes is bounded."""


def without(
    entries: Sequence[Entry],
    record_ids: Collection[str],
    hide: Callable[[str], str] = lambda text: text,
    codec: Codec = IDENTITY,
    *,
    words_alone: bool = False,
) -> Folded:
    """Return the file without all that was ever written about some records, and with words of others made unreadable.

    Every line that is not concerned stays as it is; also one that only names such a record in another one, as a link
    does: an id says nothing.

    Args:
        entries: All of them, in the order of the file.
        record_ids: Of the records that go.
        hide: Returns a text without the words that must not be read any more.
        codec: What the fields of a record stand as in the lines.
        words_alone: Leave the records and their own words for now: they say which words the others have to lose.

    Raises:
        UnsupportedError: A newer version wrote something about one of them that this one does not understand.
    """
    gone, lines = set(record_ids), list[bytes]()
    named = {one.encode("utf-8", "surrogatepass") for one in gone}
    for entry in entries:
        if entry.opaque and not named.isdisjoint(ids_in(entry.raw)):
            raise UnsupportedError(
                f"Line {entry.seq} was written by a newer version of agent-memory and names a record that is to be "
                "purged; this journal was not changed.",
                code="newer_format",
                recovery="Upgrade amplifier-bundle-agent-memory, and purge again.",
            )
        kept = tuple(
            change if change.id in gone else _hidden(change, hide)
            for change in entry.changes
            if words_alone or change.id not in gone
        )
        if entry.opaque or kept == entry.changes:
            lines.append(sealed(entry.raw))
        elif kept:
            lines.append(encoded_entry(codec, entry.seq, entry.at, kept))
    last = max((entry.seq for entry in entries), default=0)
    return Folded(lines, gone, set(), last)


def hidden_fields(fields: Mapping[str, Any], hide: Callable[[str], str]) -> dict[str, Any]:
    """Return fields of a record with words made unreadable, such that its owner can still read it."""
    hidden = {name: _without_words(name, value, hide) for name, value in fields.items()}
    lost = {name for name in CHOSEN_NAMES & hidden.keys() if hide(str(hidden[name])) != str(hidden[name])}
    return {name: value for name, value in hidden.items() if name not in lost}


def _hidden(change: Change, hide: Callable[[str], str]) -> Change:
    return replace(change, data=hidden_fields(change.data, hide))


def _without_words(name: str, value: Any, hide: Callable[[str], str]) -> Any:
    if name in _SIZED:
        return _mapped(value, lambda text: _shorter(text, hide), keys=True)
    if name in _WORDS:
        return _mapped(value, hide)
    return _mapped(value, lambda text: text if _NAME.fullmatch(text) else hide(text))


def _mapped(value: Any, change: Callable[[str], str], *, keys: bool = False) -> Any:
    """Return a value with every text in it changed; keys, if they may be words, too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        inner = {key: _mapped(each, change, keys=keys) for key, each in value.items()}
        return _renamed(inner, change) if keys else inner
    return [_mapped(each, change, keys=keys) for each in value] if isinstance(value, list) else value


def _renamed(values: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return values under keys that may be read; two that would be the same stay two."""
    renamed: dict[str, Any] = {}
    for key, value in values.items():
        new = change(key)
        while new in renamed:
            new += BAR
        renamed[new] = value
    return renamed


def _shorter(text: str, hide: Callable[[str], str]) -> str:
    """Return a text with one sign for all that was made unreadable: the sign takes more bytes than most characters."""
    hidden = hide(text)
    return text if hidden == text else _BARS.sub(BAR, hidden)
