"""Requests about storing: "don't store any of this", "you can store again".

Pure; opens nothing. A request is a sentence that the user typed, made of words from `patterns/consent.yaml` and of
nothing else. A sentence that names anything else, such as a file or a cache, is about that.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from agent_memory.capture.rules import read_patterns
from agent_memory.capture.spoken import is_question, own_sentences

StoringRequest = Literal["stop", "resume"]

_MOST_CHARS: Final = 40_000
"""Characters of a prompt that are read; a longer one was pasted."""
_LONGEST: Final = 200
"""Characters of a sentence; a longer one says more than a request."""
_CLAUSE_END: Final = re.compile(
    r"[,;:\N{FULLWIDTH COMMA}\N{IDEOGRAPHIC COMMA}\N{FULLWIDTH SEMICOLON}\N{FULLWIDTH COLON}]"
    r"|\s[-\N{EN DASH}\N{EM DASH}]\s"
)


_PIECE_END: Final = re.compile(r"[.!?\n\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH EXCLAMATION MARK}]|" + _CLAUSE_END.pattern)
_WORD_END: Final = r"(?:\b|(?<=['\N{RIGHT SINGLE QUOTATION MARK}]))"
"""An elided article or denial ("n'enregistre") ends in its apostrophe, directly before the next word."""


@dataclass(frozen=True, slots=True)
class _WordLists:
    """Compiled word lists of one language; `patterns/consent.yaml` explains the keys."""

    deny: re.Pattern[str]
    store: re.Pattern[str]
    talk: re.Pattern[str]
    thing: re.Pattern[str]
    stop: re.Pattern[str]
    whole: re.Pattern[str]
    allow: re.Pattern[str]
    again: re.Pattern[str]
    resume: re.Pattern[str]
    ask: re.Pattern[str]
    to_stop: re.Pattern[str]
    """All words that a request to stop may consist of."""
    to_resume: re.Pattern[str]
    only_words: re.Pattern[str]
    """Any of these words, one after another; fails at the first other word."""

    def stops(self, sentence: str, *, is_clause: bool, is_alone: bool) -> bool:
        """Return True if a sentence or clause asks to store nothing."""
        if not _has_only(self.to_stop, sentence) or (is_question(sentence) and not self.ask.search(sentence)):
            return False
        if self.stop.search(sentence) or (self.whole.search(sentence) and not is_clause):
            rest = self.whole.sub(" ", self.stop.sub(" ", sentence))
            return self.deny.search(rest) is None or any(map(self._denies, _CLAUSE_END.split(rest)))
        if not self._denies(sentence):
            return False
        return self.talk.search(sentence) is not None or (is_alone and self.thing.search(sentence) is not None)

    def _denies(self, clause: str) -> bool:
        return self.deny.search(clause) is not None and self.store.search(clause) is not None

    def permits(self, sentence: str) -> bool:
        """Return True if a sentence has only words of a permission."""
        return not is_question(sentence) and not self.deny.search(sentence) and _has_only(self.to_resume, sentence)

    def resumes(self, sentence: str) -> bool:
        """Return True if a sentence allows storing again."""
        if not self.permits(sentence):
            return False
        parts = (self.allow, self.store, self.again)
        return self.resume.search(sentence) is not None or all(part.search(sentence) for part in parts)


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
    clause = _CLAUSE_END.split(sentence, maxsplit=1)[0]
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


def _has_only(words: re.Pattern[str], sentence: str) -> bool:
    return re.search(r"\w", words.sub(" ", sentence)) is None


@functools.cache
def _wordings() -> tuple[_WordLists, ...]:
    return tuple(_compile(data) for data in read_patterns("consent").values())


def _compile(data: dict[str, Any]) -> _WordLists:
    is_spaced = data.get("spaced", True)

    def join_lists(*keys: str) -> re.Pattern[str]:
        words = "|".join(f"(?:{word})" for key in keys for word in data[key])
        return re.compile(rf"\b(?:{words}){_WORD_END}" if is_spaced else words, re.IGNORECASE)

    keys = ("deny", "store", "talk", "thing", "stop", "whole", "allow", "again", "resume", "ask")
    lists = {key: join_lists(key) for key in keys}
    to_stop = join_lists("stop", "whole", "talk", "deny", "store", "ask", "filler", "thing")
    to_resume = join_lists("resume", "allow", "again", "store", "filler")
    only_words = re.compile(
        "|".join(rf"(?:\W*+(?>{words.pattern}))++\W*+" for words in (to_stop, to_resume)), re.IGNORECASE
    )
    return _WordLists(**lists, to_stop=to_stop, to_resume=to_resume, only_words=only_words)
