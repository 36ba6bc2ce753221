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
from agent_memory.capture.spoken import own_sentences
from agent_memory.retrieval.tokens import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

Action = Literal["change", "forget", "pin"]

_SAID: Final = 0.65
"""Share of a text's telling words that are the user's own, from which the user said it."""

_QUESTION: Final = re.compile(r"[?\uff1f]\W*$|\u5417\W*$")
_VERBATIM: Final = re.compile(r"[^\s,;()\"']*[\d@/\\][^\s,;()\"']*")
"""Numbers, addresses, paths: of these each one counts, since each one can be the whole point."""

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
        is_question = _QUESTION.search(sentence) is not None and not _any("request").search(sentence)
        is_order = not is_question and _is_ordered(action, sentence)
        if memory_id in sentence.lower() and (is_order or not (is_question or _any("denies").search(sentence))):
            return True
        telling = word_set(sentence) - _VAGUE
        if is_order and (meant & (telling or before) or (was_shown and not telling)):
            return True
        before = telling
    return False


def says(prompt: str, content: str) -> bool:
    """Tell whether the user said, in this prompt and in words of their own, what `content` says.

    Most of its telling words have to be the user's, each number, address and path, and a denial on both sides or on
    neither.
    """
    sentences = own_sentences(prompt, strict=False)
    words = word_set(content)
    said = frozenset().union(*map(word_set, sentences))
    if not words or len(words & said) < _SAID * len(words):
        return False
    typed = " ".join(sentences).casefold()
    if any(piece.strip(".:!?").casefold() not in typed for piece in _VERBATIM.findall(content)):
        return False
    about = [sentence for sentence in sentences if words & word_set(sentence)]
    return bool(_any("denies").search(content)) == any(_any("denies").search(sentence) for sentence in about)


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
