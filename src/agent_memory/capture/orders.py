"""What the user's own words order to be done to a memory, and whether they say what is to be stored. Pure.

Asked only when a stranger's text is in the conversation: then a model may do to a person's memories what the person
says, and nothing else. The words are in `patterns/orders.yaml`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.capture.rules import read_patterns
from agent_memory.capture.sameness import word_set
from agent_memory.capture.spoken import is_question, own_sentences
from agent_memory.retrieval.tokens import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

Action = Literal["change", "forget", "pin"]

_VERBATIM: Final = re.compile(r"[^\s,;()\"']*[\d@/\\][^\s,;()\"']*")
"""Numbers, addresses, paths: these have to be the same to the letter, not by their stems."""
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_MIN_STEM: Final = 4

_VAGUE: Final = frozenset(
    query_terms(
        "forget unlearn delete remove erase update change correct replace fix edit pin promote scratchpad memory "
        "memories fact facts rule thing things entry old new first second third last one all everything anything "
        "never not no about what said told says wrong true actually now please page text"
    )
)
"""Words of ordering and pointing: they do not tell which memory is meant."""


def orders(action: Action, prompt: str, memory_id: str, texts: Iterable[str], *, was_shown: bool = False) -> bool:
    """Tell whether the user orders this to be done to this memory.

    They do by its id; or by a word of ordering, in a sentence that shares a telling word with the memory, or that says
    no more than "forget that" when the memory was shown to the model in the turn before.

    Args:
        action: What is to be done.
        prompt: What the user typed in this turn.
        memory_id: The memory's.
        texts: What it says: content, tags, category.
        was_shown: Whether the turn before brought it up.
    """
    meant = frozenset().union(*map(word_set, texts)) - _VAGUE
    before: frozenset[str] = frozenset()
    for sentence in own_sentences(prompt):
        is_asked = is_question(sentence) and not _any("request").search(sentence)
        is_order = not is_asked and _is_ordered(action, sentence)
        if memory_id in sentence.lower() and (is_order or not (is_asked or _any("denies").search(sentence))):
            return True
        telling = word_set(sentence) - _VAGUE
        if is_order and (meant & (telling or before) or (was_shown and not telling)):
            return True
        before = telling
    return False


def says(prompt: str, content: str) -> bool:
    """Tell whether the user said, in this prompt and in words of their own, what `content` says.

    Each of its telling words has to be the user's, in whatever tense and person, each number, address and path to the
    letter, and a denial on both sides or on neither. Free are words of asking, of the third person that a model puts a
    user's "I" into, and function words of a language that the user writes.
    """
    sentences = own_sentences(prompt, strict=False)
    said = frozenset().union(*(word_set(_HYPHEN.sub(" ", sentence)) for sentence in sentences))
    words = word_set(_HYPHEN.sub(" ", _any("frames").sub(" ", content))) - _free_words(said)
    if not words or not all(_is_said(word, said) for word in words):
        return False
    typed = " ".join(sentences).casefold()
    if any(piece.strip(".:!?").casefold() not in typed for piece in _VERBATIM.findall(content)):
        return False
    about = [sentence for sentence in sentences if words & word_set(sentence)]
    return bool(_any("denies").search(content)) == any(_any("denies").search(sentence) for sentence in about)


def _is_said(word: str, said: frozenset[str]) -> bool:
    """Tell whether a stem is among the user's, or one of theirs with another ending of a verb or an adjective."""
    return word in said or any(
        _differ_in_ending(word, other) for other in said if other[:_MIN_STEM] == word[:_MIN_STEM]
    )


def _differ_in_ending(one: str, other: str) -> bool:
    if not (one.isalpha() and other.isalpha()):
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= _MIN_STEM and {one[common:], other[common:]} <= _endings()


@functools.cache
def _endings() -> frozenset[str]:
    return frozenset({"", *read_patterns("orders")["endings"]})


def _free_words(said: frozenset[str]) -> frozenset[str]:
    """Return the words that tell nothing of a fact: those of asking, and function words of the user's languages."""
    asking, languages = _small_words()
    return asking.union(*(words for words in languages if words & said))


@functools.cache
def _small_words() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    data = read_patterns("orders")
    languages = tuple(frozenset(query_terms(words)) for words in data["function_words"])
    return frozenset(query_terms(" ".join(data["asking"]))), languages


def _is_ordered(action: Action, sentence: str) -> bool:
    if _any("contrary_anywhere").search(sentence):
        return False
    if action == "change" and _any("changed").search(sentence):
        return True
    return any(
        not _any("contrary_before").search(sentence[: match.start()])
        and not _any("contrary_after").search(sentence[match.end() :])
        for match in _any(action).finditer(sentence)
    )


@functools.cache
def _any(key: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in read_patterns("orders")[key]), re.IGNORECASE)
