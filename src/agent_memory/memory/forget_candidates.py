"""Candidates of a request to forget, with their owners. No I/O.

An owner is read from a genitive ("Ann's badge"), the first person ("my address", "the user") or a name at the
beginning. A doubtful form has no owner. Who decides sees the owner.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from agent_memory.language.names import capitalised_in
from agent_memory.language.words import index_terms, query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.models import Match, Memory, MemorySearchResult

USER: Final = "the user"
_READ_CHARS: Final = 400
_OWNER_WORDS: Final = 4
"""Words of an owner up to the first genitive: "the old staging server's"."""
_FIRST_PERSON: Final = frozenset({"i", "we", "me", "us", "mine", "ours"})
_FIRST_PERSON_GENITIVE: Final = frozenset({"my", "our"})
_GENITIVE: Final = re.compile(r"[^\W_][\w.&-]*?(?:['\u2019]s|(?<=s)['\u2019])")
_ENDING: Final = re.compile(r"['\u2019]s?$")
_EDGES: Final = re.compile(r"^[^\w'\u2019]+|[^\w'\u2019]+$")
_MARKS: Final = ".,;:!\"'()[]“”。"
"""Marks at the end of a word that do not change it."""


class Ownership(NamedTuple):
    """Owner and thing that a text names.

    Attributes:
        owner: "the user", a name or a noun phrase; empty if unclear.
        thing: Of a memory the word after a genitive, of a request all its words.
    """

    owner: str = ""
    thing: str = ""

    def names(self, memory: Ownership) -> bool:
        """Return True if this request names the owner and thing of a memory."""
        if not self.owner or self.owner.casefold() != memory.owner.casefold():
            return False
        return not memory.thing or not set(query_terms(self.thing)).isdisjoint(query_terms(memory.thing))


@dataclass(frozen=True, slots=True)
class ForgetCandidate:
    """A memory that a request to forget may mean.

    Attributes:
        memory: As it is now.
        match: How well it matches the request.
        ownership: Whose thing it is about, read from its form.
    """

    memory: Memory
    match: Match
    ownership: Ownership


@dataclass(frozen=True, slots=True)
class ForgetCandidates:
    """Candidates of one request, best first.

    Attributes:
        ownership: Owner and thing that the request names.
        listed: The candidates, at most eight.
    """

    ownership: Ownership
    listed: tuple[ForgetCandidate, ...]

    def get_only_match(self) -> Memory | None:
        """Return the only strong candidate with the named owner, or None.

        A memory about a thing of that owner must hold every word of the request: "my blood type" is not "my blood
        pressure".
        """
        strong = [candidate for candidate in self.listed if candidate.match == "strong"]
        if len(strong) != 1 or not self.ownership.names(strong[0].ownership):
            return None
        memory, thing = strong[0].memory, strong[0].ownership.thing
        has_all = set(query_terms(self.ownership.thing)) <= set(index_terms(memory.content))
        return memory if has_all or not thing else None


@dataclass(frozen=True, slots=True)
class Preview:
    """Memories before they are forgotten.

    Attributes:
        memories: What would be forgotten.
        confirm: ID of the proposal to forget them; empty if there are none.
    """

    memories: tuple[Memory, ...]
    confirm: str = ""
    cut: ClassVar[tuple[Memory, ...]] = ()
    """Nothing is cut out of a memory; the name stays until 1.0."""

    def __bool__(self) -> bool:
        return bool(self.memories)

    @property
    def gone(self) -> tuple[Memory, ...]:
        """Earlier name of `memories`, until 1.0."""
        return self.memories


def list_names(*texts: str) -> frozenset[str]:
    """Return the folded words that have a capital inside of `texts`."""
    return frozenset(name for text in texts for name in capitalised_in(text[:_READ_CHARS]))


def read_request_ownership(request: str, names: frozenset[str]) -> Ownership:
    """Return the owner in a request to forget, and its words.

    Args:
        request: What to forget.
        names: Folded words that are names, from `list_names`.
    """
    words = _split(request)
    ownerships = (_read_at(words, position, names) for position in range(len(words)))
    owner = next((ownership.owner for ownership in ownerships if ownership is not None), "")
    return Ownership(owner, " ".join(words))


def read_ownership(text: str, names: frozenset[str]) -> Ownership:
    """Return the owner at the beginning of a memory, and the thing.

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
    """Return the position after the genitive of an owner, or 0."""
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
    """Return the first words of a text without outer punctuation."""
    return [bare for word in text[:_READ_CHARS].split() if (bare := _EDGES.sub("", word))]


def list_candidates(query: str, hits: Sequence[MemorySearchResult]) -> ForgetCandidates:
    """Return the results of a search for `query` as candidates for forgetting."""
    names = list_names(query, *(hit.memory.content for hit in hits))
    listed = [ForgetCandidate(hit.memory, hit.match or "weak", _read_owner(hit.memory, names)) for hit in hits]
    return ForgetCandidates(read_request_ownership(query, names), tuple(listed))


def _read_owner(memory: Memory, names: frozenset[str]) -> Ownership:
    """Return the ownership of a memory; the user's only in trusted notes."""
    ownership = read_ownership(memory.content, names)
    is_user_text = not memory.is_item and memory.trust != "low"
    return ownership if is_user_text or not ownership.owner.startswith(USER) else Ownership()


def is_mostly(text: str, notes: Iterable[str]) -> bool:
    """Return True if a note is at least half of a text.

    The words of the note are in the text in their order, with nothing between.
    """
    said = _join_words(text)
    return any(note in said and 2 * len(note) >= len(said) for note in map(_join_words, notes))


def _join_words(text: str) -> str:
    """Return the words of a text, without case and outer marks."""
    return f" {' '.join(word.strip(_MARKS) for word in text.casefold().split())} "
