"""Owners: whose thing a text is about, as far as its form says it. Pure.

Read from a genitive ("Ann's badge"), the first person ("my address", "the user") or a name at the beginning. Shown to
whoever decides. Where the form leaves a doubt there is no owner.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agent_memory.index.names import capitalised_in
from agent_memory.language.words import query_terms

USER: Final = "the user"
_READ_CHARS: Final = 400
_OWNER_WORDS: Final = 4
"""Words of an owner up to the first genitive: "the old staging server's"."""
_FIRST_PERSON: Final = frozenset({"i", "we", "me", "us", "mine", "ours"})
_FIRST_PERSON_GENITIVE: Final = frozenset({"my", "our"})
_GENITIVE: Final = re.compile(r"[^\W_][\w.&-]*?(?:['\u2019]s|(?<=s)['\u2019])")
_ENDING: Final = re.compile(r"['\u2019]s?$")
_EDGES: Final = re.compile(r"^[^\w'\u2019]+|[^\w'\u2019]+$")


class Ownership(NamedTuple):
    """Owner and thing that a text names.

    Attributes:
        owner: "the user", a name or a noun phrase; empty if unclear.
        thing: Of a memory the word after a genitive, of a request all its words.
    """

    owner: str = ""
    thing: str = ""

    def names(self, memory: Ownership) -> bool:
        """Return True if this request names the owner, and the thing if there is one, of a memory."""
        if not self.owner or self.owner.casefold() != memory.owner.casefold():
            return False
        return not memory.thing or not set(query_terms(self.thing)).isdisjoint(query_terms(memory.thing))


def list_names(*texts: str) -> frozenset[str]:
    """Return the folded words that a capital inside of `texts` marks as names."""
    return frozenset(name for text in texts for name in capitalised_in(text[:_READ_CHARS]))


def read_request_ownership(request: str, names: frozenset[str]) -> Ownership:
    """Return the owner that a request to forget names, anywhere in it, and its words.

    Args:
        request: What to forget.
        names: Folded words that are names, from `list_names`.
    """
    words = _split(request)
    ownerships = (_read_at(words, position, names) for position in range(len(words)))
    owner = next((ownership.owner for ownership in ownerships if ownership is not None), "")
    return Ownership(owner, " ".join(words))


def read_ownership(text: str, names: frozenset[str]) -> Ownership:
    """Return the owner that a memory names at its beginning, and the thing after a genitive.

    Args:
        text: Content of the memory.
        names: Folded words that are names, from `list_names`.
    """
    words = _split(text)
    ownership = _read_at(words, 0, names) if words else None
    if ownership is None and len(words) > 1 and words[0].casefold() == "the":
        ownership = _read_at(words, 1, names)
    if ownership is None and words[:1] == ["User"]:  # how models begin what they store of the user
        ownership = Ownership(USER)
    return ownership or Ownership()


def _read_at(words: list[str], position: int, names: frozenset[str]) -> Ownership | None:
    """Return the ownership that begins at a word, or None."""
    word = words[position].casefold()
    if end := _find_genitive_end(words, position):
        owner = _ENDING.sub("", " ".join(words[position:end]))
        return Ownership(_normalize(owner), "".join(words[end : end + 1]))
    if word in _FIRST_PERSON_GENITIVE:
        return Ownership(USER, "".join(words[position + 1 : position + 2]))
    is_user = word == "the" and [following.casefold() for following in words[position + 1 : position + 2]] == ["user"]
    if is_user or re.split("['\u2019]", word)[0] in _FIRST_PERSON:
        return Ownership(USER)
    return Ownership(words[position]) if word in names else None


def _find_genitive_end(words: list[str], position: int) -> int:
    """Return the position after the last genitive of an owner that begins at a word; 0 without a genitive."""
    first = words[position].casefold()
    may_be_lower = first == "the" or first in _FIRST_PERSON_GENITIVE
    end = 0
    for index in range(position, min(len(words), position + _OWNER_WORDS)):
        if _is_genitive(words[index]):
            end = index + 1
            break
        if not (may_be_lower or words[index][:1].isupper()):
            return 0
    while end and (further := next((n for n in (end, end + 1) if n < len(words) and _is_genitive(words[n])), None)):
        end = further + 1
    return end


def _is_genitive(word: str) -> bool:
    """Return True for "Ann's", not for "it's" or "that's"."""
    return _GENITIVE.fullmatch(word) is not None and bool(query_terms(_ENDING.sub("", word)))


def _normalize(owner: str) -> str:
    """Return an owner without its article, the first person as the user."""
    first, _, rest = owner.partition(" ")
    if first.casefold() in _FIRST_PERSON_GENITIVE:
        return f"{USER}'s {rest}"
    if owner.casefold() in {"user", USER}:
        return USER
    if owner.casefold().startswith(f"{USER}'s "):
        return f"{USER}{owner[len(USER) :]}"
    return rest if first.casefold() == "the" else owner


def _split(text: str) -> list[str]:
    """Return the words of the beginning of a text without punctuation around them."""
    return [bare for word in text[:_READ_CHARS].split() if (bare := _EDGES.sub("", word))]
