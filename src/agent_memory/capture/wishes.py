"""Detection of requests for an agent, such as "start as bob". Pure.

Reads the languages that capture knows. A name alone is not a request. It has to be next to a word of wishing, in a
sentence of the user's own that neither denies it, nor asks about it, nor reports what another person did or said. In
doubt the result is False: then the model asks, and the user says it again. After untrusted text only the printed phrase
counts, alone in its sentence.
The words are in `patterns/wishes.yaml`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final

from agent_memory.capture.rules import any_of, read_patterns
from agent_memory.capture.spoken import is_question, own_sentences
from agent_memory.language.sentences import CLAUSE_END

_LEFT: Final = r"(?<![0-9A-Za-z_\u00c0-\u024f/\\@.#:~-])"
_RIGHT: Final = r"(?![0-9A-Za-z_\u00c0-\u024f/\\@-]|['\u2019]|[.:][0-9A-Za-z\\/])"
_GENITIVE: Final = r"(?:['\u2019]s?|s)"
_PART_END: Final = re.compile(rf"(?<=[?\uff1f])|[.!\u3002\uff01]|{CLAUSE_END.pattern}")
"""End of a part of a sentence; a question mark stays with what it ends."""
_LABELLED: Final = r"^\W*(?:(?:%s)\W*)+[:\uff1a][^:\uff1a]*$"
"""Labels that the user's own words may follow; before any other colon stands who or what says them."""
_PRINTED: Final = (
    r"(?:(?:please|now|ok|okay|yes|hi|hello)[\s,.:!]+)*start as {n}(?: with memory enabled)?"
    r"(?:[\s,]+(?:please|now|thanks))*[\s.!]*"
)
"""The phrase that tools and pages print, with nothing else in its sentence."""


@dataclass(frozen=True, slots=True)
class _Language:
    """How a language wishes for an agent; the keys are explained in `patterns/wishes.yaml`."""

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
    sentences = own_sentences(prompt)
    if in_doubt:
        phrase = re.compile(_PRINTED.replace("{n}", re.escape(agent_id)), re.IGNORECASE)
        is_reported = any_of("wishes", "reported").search(prompt) is not None
        return not is_reported and any(phrase.fullmatch(sentence) for sentence in sentences)
    return any(_wishes(language, sentence, agent_id) for sentence in sentences for language in _languages())


def _wishes(language: _Language, sentence: str, agent_id: str) -> bool:
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


def _is_meant(language: _Language, sentence: str, match: re.Match[str], *, is_literal: bool) -> bool:
    """Return True if the wish is neither denied, nor reported, nor a condition or a question."""
    before, after = sentence[: match.start()], sentence[match.end() :]
    if any_of("wishes", "labels", _LABELLED).search(before) is None and (":" in before or "\uff1a" in before):
        return False
    begins = max((found.end() for found in any_of("wishes", "new_clause").finditer(before)), default=0)
    rest = _PART_END.split(after, maxsplit=1)[0]
    if is_question(rest if is_literal else after) and not language.request.search(sentence):
        return False
    if language.denied.search(before[begins:]):
        return False
    return language.denied_after.search(sentence[begins : match.end()] + rest) is None


@functools.cache
def _languages() -> tuple[_Language, ...]:
    data = read_patterns("wishes")
    return tuple(_language(part) for part in data.values() if "literal" in part)


def _language(data: dict[str, Any]) -> _Language:
    literal, loose, switch = (
        tuple(form.replace("{end}", data["end"]) for form in data[key]) for key in ("literal", "loose", "switch")
    )
    denied, denied_after, request = (
        re.compile(data[key], re.IGNORECASE) for key in ("denied", "denied_after", "request")
    )
    return _Language(literal, loose, switch, denied, denied_after, request, frozenset(data["no_names"]))
