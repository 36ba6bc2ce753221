"""Requests of the user about storing, and for an agent. Pure.

A request about storing, such as "don't store any of this", is a typed sentence of words from `patterns/consent.yaml`
and of nothing else: a sentence that names a file or a cache is about that.

A request for an agent, such as "start as bob", has its name next to a word of `patterns/wishes.yaml`, in a sentence of
the user's own that neither denies, asks nor reports it. In doubt there is none: then the model asks the user. After
untrusted text only the printed phrase counts, alone in its sentence.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.capture.rules import get_pattern, read_patterns
from agent_memory.capture.typed_text import MAX_MESSAGE_CHARS, is_question, list_own_sentences
from agent_memory.language.sentences import CLAUSE_END, COLONS

if TYPE_CHECKING:
    from collections.abc import Mapping

StoringRequest = Literal["stop", "resume"]

_LONGEST: Final = 200
"""Characters of a sentence; a longer one says more than a request."""
_PIECE_END: Final = re.compile(rf"[.!?\n。\uff01]|{CLAUSE_END.pattern}")
_WORD_END: Final = r"(?:\b|(?<=['\N{RIGHT SINGLE QUOTATION MARK}]))"
"""An elided article or denial ("n'enregistre") ends in its apostrophe, directly before the next word."""


_STOPPING: Final = ("stop", "whole", "talk", "deny", "store", "ask", "filler", "thing")
"""Lists of all words that a request to stop may consist of."""
_RESUMING: Final = ("resume", "allow", "again", "store", "filler")
"""Lists of all words that a permission may consist of."""
_DECIDING: Final = ("stop", "whole", "deny", "resume", "allow")
"""Word lists; a request or a permission has a word of one of them."""


class _ConsentWords:
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

    def may_decide(self, prompt: str) -> bool:
        """Return True if a prompt has a deciding word."""
        return self._find(*_DECIDING).search(prompt) is not None

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
    joined = " ".join(prompt[:MAX_MESSAGE_CHARS].split())
    wordings = [wording for wording in _load_consent_words() if wording.may_decide(joined)]
    pieces = {piece.strip() for piece in _PIECE_END.split(prompt[:MAX_MESSAGE_CHARS])}
    short_pieces = [piece for piece in pieces if 1 < len(piece) <= _LONGEST]
    if not any(wording.only_words.fullmatch(piece) for wording in wordings for piece in short_pieces):
        return None  # most prompts: finding the sentences of a long one costs more
    sentences = [sentence for sentence in list_own_sentences(prompt, strict=False) if len(sentence) <= _LONGEST]
    is_alone = sentences == [" ".join(prompt.split())]
    if any(_stops(wording, sentence, is_alone=is_alone) for sentence in sentences for wording in wordings):
        return "stop"
    return "resume" if any(_is_permission(wording, prompt) for wording in wordings) else None


def _stops(wording: _ConsentWords, sentence: str, *, is_alone: bool) -> bool:
    clause = CLAUSE_END.split(sentence, maxsplit=1)[0]
    return wording.stops(sentence, is_clause=False, is_alone=is_alone) or (
        clause != sentence and wording.stops(clause, is_clause=True, is_alone=False)
    )


def _is_permission(wording: _ConsentWords, prompt: str) -> bool:
    """Return True if the whole message is the user's own permission."""
    sentences = list_own_sentences(prompt)
    is_whole = " ".join(sentences) == " ".join(prompt.split())
    return is_whole and any(map(wording.resumes, sentences)) and all(map(wording.permits, sentences))


@functools.cache
def _load_consent_words() -> tuple[_ConsentWords, ...]:
    return tuple(_ConsentWords(data) for data in read_patterns("consent").values())


_LEFT: Final = r"(?<![0-9A-Za-z_\u00c0-\u024f/\\@.#:~-])"
_RIGHT: Final = r"(?![0-9A-Za-z_\u00c0-\u024f/\\@-]|['\u2019]|[.:][0-9A-Za-z\\/])"
_GENITIVE: Final = r"(?:['\u2019]s?|s)"
_PART_END: Final = re.compile(rf"(?<=[?\uff1f])|[.!。\uff01]|{CLAUSE_END.pattern}")
"""End of a part of a sentence; a question mark stays with what it ends."""
_LABELLED: Final = r"^\W*(?:(?:%s)\W*)+[:\uff1a][^:\uff1a]*$"
"""Labels that the user's own words may follow; any other label names another author."""
_PRINTED: Final = (
    r"(?:(?:please|now|ok|okay|yes|hi|hello)[\s,.:!]+)*start as {n}(?: with memory enabled)?"
    r"(?:[\s,]+(?:please|now|thanks))*[\s.!]*"
)
"""The phrase that tools and pages print, with nothing else in its sentence."""


@dataclass(frozen=True, slots=True)
class _RequestWording:
    """Wording of requests for an agent in one language.

    `patterns/wishes.yaml` explains the keys.
    """

    literal: tuple[str, ...]
    loose: tuple[str, ...]
    switch: tuple[str, ...]
    denied: re.Pattern[str]
    denied_after: re.Pattern[str]
    request: re.Pattern[str]
    no_names: frozenset[str]


def is_wished(agent_id: str, prompt: str, *, in_doubt: bool) -> bool:
    """Return True if the user asks for this agent themselves.

    Args:
        agent_id: Name of the agent.
        prompt: What the user typed in this turn.
        in_doubt: Whether untrusted text is in the conversation: then only the printed phrase counts, in a sentence of
            its own.
    """
    if agent_id.lower() not in prompt.lower():
        return False
    sentences = list_own_sentences(prompt)
    if in_doubt:
        phrase = re.compile(_PRINTED.replace("{n}", re.escape(agent_id)), re.IGNORECASE)
        is_reported = get_pattern("wishes", "reported").search(prompt) is not None
        return not is_reported and any(phrase.fullmatch(sentence) for sentence in sentences)
    return any(_wishes(language, sentence, agent_id) for sentence in sentences for language in _load_wordings())


def _wishes(language: _RequestWording, sentence: str, agent_id: str) -> bool:
    further = language.switch + (() if agent_id.lower() in language.no_names else language.loose)
    name = re.escape(agent_id)
    return any(
        _is_meant(language, sentence, match, is_literal=form in language.literal)
        for form in (*language.literal, *further)
        for match in re.finditer(
            form.replace("{n}", f"{_LEFT}{name}{_RIGHT}").replace("{own}", f"{_LEFT}{name}{_GENITIVE}"),
            sentence,
            re.IGNORECASE,
        )
    )


def _is_meant(language: _RequestWording, sentence: str, match: re.Match[str], *, is_literal: bool) -> bool:
    """Return True if a request is neither denied, reported, conditional nor asked."""
    before, after = sentence[: match.start()], sentence[match.end() :]
    if get_pattern("wishes", "labels", _LABELLED).search(before) is None and any(colon in before for colon in COLONS):
        return False
    begins = max((clause.end() for clause in get_pattern("wishes", "new_clause").finditer(before)), default=0)
    rest = _PART_END.split(after, maxsplit=1)[0]
    if is_question(rest if is_literal else after) and not language.request.search(sentence):
        return False
    if language.denied.search(before[begins:]):
        return False
    return language.denied_after.search(sentence[begins : match.end()] + rest) is None


@functools.cache
def _load_wordings() -> tuple[_RequestWording, ...]:
    data = read_patterns("wishes")
    return tuple(_read_wording(part) for part in data.values() if "literal" in part)


def _read_wording(data: dict[str, Any]) -> _RequestWording:
    literal, loose, switch = (
        tuple(form.replace("{end}", data["end"]) for form in data[key]) for key in ("literal", "loose", "switch")
    )
    denied, denied_after, request = (
        re.compile(data[key], re.IGNORECASE) for key in ("denied", "denied_after", "request")
    )
    return _RequestWording(literal, loose, switch, denied, denied_after, request, frozenset(data["no_names"]))
