"""Requests about storing: "don't store any of this", "you can store again".

Pure; opens nothing. A request is a sentence that the user typed, made of words from `patterns/consent.yaml` and of
nothing else. A sentence that names anything else, such as a file or a cache, is about that.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.capture.rules import read_patterns
from agent_memory.capture.spoken import is_question, own_sentences
from agent_memory.language.sentences import CLAUSE_END

if TYPE_CHECKING:
    from collections.abc import Mapping

StoringRequest = Literal["stop", "resume"]

_MOST_CHARS: Final = 40_000
"""Characters of a prompt that are read; a longer one was pasted."""
_LONGEST: Final = 200
"""Characters of a sentence; a longer one says more than a request."""
_PIECE_END: Final = re.compile(rf"[.!?\n\u3002\uff01]|{CLAUSE_END.pattern}")
_WORD_END: Final = r"(?:\b|(?<=['\N{RIGHT SINGLE QUOTATION MARK}]))"
"""An elided article or denial ("n'enregistre") ends in its apostrophe, directly before the next word."""


_STOPPING: Final = ("stop", "whole", "talk", "deny", "store", "ask", "filler", "thing")
"""Lists of all words that a request to stop may consist of."""
_RESUMING: Final = ("resume", "allow", "again", "store", "filler")
"""Lists of all words that a permission may consist of."""


class _WordLists:
    """Word lists of one language, each compiled at its first use.

    Most prompts need one of thirteen.

    Args:
        data: Lists by key; `patterns/consent.yaml` explains the keys.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._compiled: dict[tuple[str, ...], re.Pattern[str]] = {}

    @functools.cached_property
    def only_words(self) -> re.Pattern[str]:
        """Words of a request or permission in a row; fails at others."""
        patterns = (self._join_lists(*keys) for keys in (_STOPPING, _RESUMING))
        return re.compile("|".join(rf"(?:\W*+(?>{words}))++\W*+" for words in patterns), re.IGNORECASE)

    def _find(self, *keys: str) -> re.Pattern[str]:
        """Return the pattern of the words of some lists."""
        if keys not in self._compiled:
            self._compiled[keys] = re.compile(self._join_lists(*keys), re.IGNORECASE)
        return self._compiled[keys]

    def _join_lists(self, *keys: str) -> str:
        words = "|".join(f"(?:{word})" for key in keys for word in self._data[key])
        return rf"\b(?:{words}){_WORD_END}" if self._data.get("spaced", True) else words

    def stops(self, sentence: str, *, is_clause: bool, is_alone: bool) -> bool:
        """Return True if a sentence or clause asks to store nothing."""
        if not self._has_only(_STOPPING, sentence) or (is_question(sentence) and not self._has("ask", sentence)):
            return False
        if self._has("stop", sentence) or (self._has("whole", sentence) and not is_clause):
            rest = self._find("whole").sub(" ", self._find("stop").sub(" ", sentence))
            return not self._has("deny", rest) or any(map(self._denies, CLAUSE_END.split(rest)))
        if not self._denies(sentence):
            return False
        return self._has("talk", sentence) or (is_alone and self._has("thing", sentence))

    def _has(self, key: str, text: str) -> bool:
        return self._find(key).search(text) is not None

    def _has_only(self, keys: tuple[str, ...], sentence: str) -> bool:
        return re.search(r"\w", self._find(*keys).sub(" ", sentence)) is None

    def _denies(self, clause: str) -> bool:
        return self._has("deny", clause) and self._has("store", clause)

    def permits(self, sentence: str) -> bool:
        """Return True if a sentence has only words of a permission."""
        return not is_question(sentence) and not self._has("deny", sentence) and self._has_only(_RESUMING, sentence)

    def resumes(self, sentence: str) -> bool:
        """Return True if a sentence allows storing again."""
        if not self.permits(sentence):
            return False
        parts = ("allow", "store", "again")
        return self._has("resume", sentence) or all(self._has(part, sentence) for part in parts)


def find_storing_request(prompt: str, agent_id: str = "") -> StoringRequest | None:
    """Return the request in the words of the user, or None.

    A request to stop precedes a permission. A permission has to be the whole message.

    Args:
        prompt: Message of the user, as it was typed.
        agent_id: Name by which the user may address the agent, or empty.
    """
    if agent_id:
        name = re.escape(agent_id)
        prompt = re.sub(rf"\b{name}[,:]|,\s*{name}(?=[.!?]*\s*$)", " ", prompt, flags=re.IGNORECASE)
    pieces = {piece.strip() for piece in _PIECE_END.split(prompt[:_MOST_CHARS])}
    if not any(_is_of_words(piece) for piece in pieces if 1 < len(piece) <= _LONGEST):
        return None  # most prompts: finding the sentences of a long one costs more
    sentences = [sentence for sentence in own_sentences(prompt, strict=False) if len(sentence) <= _LONGEST]
    is_alone = sentences == [" ".join(prompt.split())]
    if any(_stops(wording, sentence, is_alone=is_alone) for sentence in sentences for wording in _wordings()):
        return "stop"
    return "resume" if any(_is_permission(wording, prompt) for wording in _wordings()) else None


def _stops(wording: _WordLists, sentence: str, *, is_alone: bool) -> bool:
    clause = CLAUSE_END.split(sentence, maxsplit=1)[0]
    return wording.stops(sentence, is_clause=False, is_alone=is_alone) or (
        clause != sentence and wording.stops(clause, is_clause=True, is_alone=False)
    )


def _is_permission(wording: _WordLists, prompt: str) -> bool:
    """Return True if the whole message is the user's own permission."""
    sentences = own_sentences(prompt)
    is_whole = " ".join(sentences) == " ".join(prompt.split())
    return is_whole and any(map(wording.resumes, sentences)) and all(map(wording.permits, sentences))


def _is_of_words(piece: str) -> bool:
    """Return True if a piece has only words of one language."""
    return any(wording.only_words.fullmatch(piece) for wording in _wordings())


@functools.cache
def _wordings() -> tuple[_WordLists, ...]:
    return tuple(_WordLists(data) for data in read_patterns("consent").values())
