"""Requests about memories, and statements that a text repeats. Pure.

Asked where a model needs the user's words: after untrusted text, and in the modes `ask` and `manual`.
The words are in `patterns/orders.yaml`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.capture.rules import any_of, read_patterns
from agent_memory.capture.spoken import is_question, own_sentences
from agent_memory.language.message_sentences import split_sentences
from agent_memory.language.similarity import list_telling_terms
from agent_memory.language.words import query_terms

if TYPE_CHECKING:
    from collections.abc import Collection

_any: Final = functools.partial(any_of, "orders")

_VERBATIM: Final = re.compile(r"(?<![^\s,;()\"'])[^\s,;()\"']*[\d@/\\][^\s,;()\"']*")
"""Numbers, addresses, paths: these have to be equal character by character, not by their stems."""
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_MIN_STEM: Final = 4
_MIN_SHARED: Final = 2
_FEW_WORDS: Final = 3
UNSPACED: Final = "\u2e80"
"""From here on scripts have no spaces: what follows a word directly belongs to another as often as not."""

CLAUSE: Final = re.compile(
    r"[,;\uff0c\uff1b\u3001](?!\s*(?:that|dass|da\u00df|was|dat|wat|\u017ce|co|\u0447\u0442\u043e)\b)\s*"
    r"|\s(?:and|then|but|so|und|dann|aber|et|puis|mais|y|luego|pero|e|depois|mas|poi|ma|daarna|maar|potem|ale"
    r"|\u0438|\u043f\u043e\u0442\u043e\u043c|\u043d\u043e)\s",
    re.IGNORECASE,
)
"""Where a clause ends; a comma before "that" does not end one."""

_VAGUE: Final = frozenset(
    query_terms(
        "forget unlearn delete remove erase update change correct replace fix edit pin promote scratchpad memory "
        "memories fact facts rule thing things entry old new first second third last one all everything anything "
        "never not no about what said told says wrong true actually now please page text"
    )
)
"""Words of ordering and pointing: they do not say which memory is meant."""


def names_memory(prompt: str, memory_id: str) -> bool:
    """Return True if a typed sentence has the ID of a memory and neither asks nor denies."""
    sentences = [sentence for sentence in own_sentences(prompt) if memory_id in sentence.lower()]
    return any(
        not _any("denies").search(sentence) and (_any("request").search(sentence) or not is_question(sentence))
        for sentence in sentences
    )


def denies(sentence: str) -> bool:
    """Return True if a sentence holds a word of denial."""
    return _any("denies").search(sentence) is not None


def supposes(sentence: str) -> bool:
    """Return True if a sentence supposes or limits ("if", "only")."""
    return _any("supposes").search(sentence) is not None


def list_telling_words(text: str) -> frozenset[str]:
    """Return the telling words of a text, without the function words of any language."""
    return frozenset(word for word in list_telling_terms(text) if len(word) > 1) - _VAGUE - _function_words()


def list_content_words(text: str) -> frozenset[str]:
    """Return all words of a text except function words of any language."""
    return frozenset(query_terms(text)) - (_function_words() - _small_words()[0])


@functools.cache
def _function_words() -> frozenset[str]:
    asking, languages = _small_words()
    return asking.union(query_terms(" ".join(read_patterns("orders")["beside"])), *languages)


def says(prompt: str, content: str) -> bool:
    """Return True if the user's own words say what `content` says.

    Each sentence of it has to be one of theirs, which neither asks nor supposes: every telling word, in whatever tense
    and person, in the user's order and with little between; each number, address and path to the letter; a denial
    before the same word on both sides. Free are words of asking, of the third person that a model puts a user's "I"
    into, and function words of a language that the user writes.
    """
    typed = [sentence for sentence in own_sentences(prompt, strict=False) if not asks(sentence)]
    stated = [sentence.text for sentence in split_sentences(content)]
    return bool(stated) and all(any(_says(sentence, claim) for sentence in typed) for claim in stated)


def asks_to_keep(prompt: str, content: str) -> bool:
    """Return True if the user's own words ask to keep `content`.

    A sentence has to order it ("remember that …"), neither denied nor asked. It has to be about the content: they share
    two telling words, or one where one of them has no more; or it only points ("please remember that").
    """
    words = list_telling_words(content)
    for sentence in own_sentences(prompt, strict=False):
        if asks(sentence) or not _is_ordered("keep", sentence):
            continue
        named = list_telling_words(_any("keep").sub(" ", sentence))
        if len(named & words) >= min(_MIN_SHARED, len(named), max(1, len(words))):
            return True
    return False


def _is_ordered(key: str, sentence: str) -> bool:
    return any(
        not _any("contrary_before").search(sentence[: match.start()])
        and not _any("contrary_after").search(sentence[match.end() :])
        for match in _any(key).finditer(sentence)
    )


def asks(sentence: str) -> bool:
    """Return True if a sentence asks.

    "Could you remember that" does not, nor does "we use it, ok?".
    """
    if _any("request").search(sentence) and _any("remembering").search(sentence):
        return False
    return is_question(_any("tags").sub("", sentence)) or _any("asks").search(sentence) is not None


def _says(sentence: str, claim: str) -> bool:
    if supposes(sentence) and not supposes(claim):
        return False
    pieces = [piece.strip(".:!?") for piece in _VERBATIM.findall(claim)]
    if any(piece.casefold() not in sentence.casefold() for piece in pieces):
        return False
    theirs = [piece.strip(".:!?") for piece in _VERBATIM.findall(sentence)]
    if len(pieces) == len(theirs) == 1:  # one number alone may stand anywhere; two could change places
        sentence, claim = sentence.replace(theirs[0], " "), claim.replace(pieces[0], " ")
    free = _free_words(frozenset(list_telling_terms(_HYPHEN.sub(" ", sentence))))
    said, claimed = _marked(sentence, free), _marked(_any("frames").sub(" ", claim), free)
    if not claimed.words or len(claimed.words) > len(said.words):
        return False
    orders_of_words = [claimed]
    if _any("verb_last").search(sentence):
        last = said.words[-1:]
        orders_of_words += [claimed.with_last(n) for n, word in enumerate(claimed.words) if _is_said(word, last)]
    return any(said.holds(order) for order in orders_of_words)


class _Marked(NamedTuple):
    """The telling words of a sentence, and which of the gaps around them hold a denial or end a clause."""

    words: list[str]
    denied: frozenset[int]
    """Gaps with a denial; gap n stands before word n."""

    ends: frozenset[int]

    def with_last(self, position: int) -> _Marked:
        """Return the same with one word at the end, where some languages put a verb."""
        words = [*self.words[:position], *self.words[position + 1 :], self.words[position]]
        length = len(words)
        moved = frozenset(min(gap if gap <= position else gap - 1, length - 1) for gap in self.denied)
        return _Marked(words, moved, frozenset())

    def holds(self, other: _Marked) -> bool:
        """Return True if this text has the words of `other`.

        They are in the same order, close together and denied alike.
        """
        return any(self._holds_from(start, other) for start in range(len(self.words)))

    def _holds_from(self, start: int, other: _Marked) -> bool:
        at = start
        before = self._denied_between(max((gap for gap in self.ends if gap <= start), default=0), start)
        for position, word in enumerate(other.words):
            found = next((n for n in range(at, len(self.words)) if _is_said(word, self.words[n : n + 1])), None)
            if found is None or (position == 0 and found != start):
                return False
            if position:
                before = self._denied_between(at, found)
            if before != (position in other.denied):
                return False
            at = found + 1
        skipped = at - start - len(other.words)
        after = self._denied_between(at, min((gap for gap in self.ends if gap >= at), default=len(self.words)))
        return skipped <= max(1, len(other.words) // _FEW_WORDS) and after == (len(other.words) in other.denied)

    def _denied_between(self, first: int, last: int) -> bool:
        return any(first <= gap <= last for gap in self.denied)


def _marked(text: str, free: frozenset[str]) -> _Marked:
    words: list[str] = []
    denied: set[int] = set()
    ends: set[int] = set()
    for piece in _marks().split(_HYPHEN.sub(" ", text)):
        if CLAUSE.fullmatch(piece):
            ends.add(len(words))
        elif _any("denies").search(piece) and _marks().fullmatch(piece):
            denied.add(len(words))
        else:
            words += [word for word in list_telling_terms(piece) if word not in free]
    return _Marked(words, frozenset(denied), frozenset(ends))


@functools.cache
def _marks() -> re.Pattern[str]:
    """Denials, with the verb that a contracted one hangs on, and the ends of clauses."""
    return re.compile(rf"((?:\w+n['\u2019]t\b|{_any('denies').pattern})|{CLAUSE.pattern})", re.IGNORECASE)


def _is_said(word: str, said: Collection[str]) -> bool:
    """Return True if the user said a stem, or another form of it."""
    return word in said or any(differ_in_ending(word, other) for other in said if other[:_MIN_STEM] == word[:_MIN_STEM])


def differ_in_ending(first: str, second: str) -> bool:
    """Return True if two words differ only in their endings."""
    if not (first.isalpha() and second.isalpha()):
        return False
    pairs = enumerate(zip(first, second, strict=False))
    common = next((position for position, (a, b) in pairs if a != b), min(len(first), len(second)))
    return common >= _MIN_STEM and {first[common:], second[common:]} <= _endings()


@functools.cache
def _endings() -> frozenset[str]:
    return frozenset({"", *read_patterns("orders")["endings"]})


def _free_words(said: frozenset[str]) -> frozenset[str]:
    """Return the words that say nothing of a fact: those of asking, and function words of the user's languages."""
    asking, languages = _small_words()
    return asking.union(*(words for words in languages if words & said))


@functools.cache
def _small_words() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    data = read_patterns("orders")
    languages = tuple(frozenset(query_terms(words)) for words in data["function_words"])
    return frozenset(query_terms(" ".join(data["asking"]))), languages
