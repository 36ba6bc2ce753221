"""What is meant by way of another memory, and what refers to what is meant. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.forgetting.lexicon import SMALL
from agent_memory.forgetting.matching import capitalised, seen_in
from agent_memory.forgetting.request import Term
from agent_memory.forgetting.words import folded, identifiers_in, stems, words_of

if TYPE_CHECKING:
    from agent_memory.forgetting.matching import Parsed, Seen
    from agent_memory.forgetting.request import Request
    from agent_memory.forgetting.words import Word


def through_another(request: Request, parsed: list[Parsed], meant: list[Seen]) -> list[Seen]:
    """Return what is meant by way of another memory: "the badge of Ann's manager" where Ann's manager is Bob."""
    bridges = [one for one in meant if one.score]
    asked_for = [term for term in _heads(request) if not any(_has(term, one) for one in bridges)]
    if not (bridges and asked_for):
        return []
    known = {folded(term.word) for term in request.terms}
    found: list[Seen] = []
    for bridge in bridges:
        names = [word for word in capitalised(bridge.unit.text) if folded(word.text) not in known]
        ways = [replace(request, terms=(_named(word), term), identifiers=()) for word in names for term in asked_for]
        for code in identifiers_in(bridge.unit.text, SMALL):
            kind = words_of(bridge.unit.text[: code.start])[-1:]
            ways += [
                replace(request, terms=(*(_named(word) for word in kind), term), identifiers=(code,))
                for term in asked_for
                if kind
            ]
        seen = [one for way in ways for each in parsed for one in seen_in(way, each) if one.has_hard and one.score]
        found += [one for one in seen if one.unit is not bridge.unit]
    return found


def _heads(request: Request) -> list[Term]:
    """Return the words for what is asked of something: before an "of", and the last."""
    soft = request.soft
    if len(soft) < 2 and not (soft and request.names):  # noqa: PLR2004
        return []
    led = _OF.search(request.text)
    before = [term for term in soft if led and request.text.find(term.word) < led.start()]
    return list(dict.fromkeys([*before[-1:], soft[-1]]))


_OF: Final = re.compile(r"\b(?:of|for|to|in|with|from)\b")


def _has(term: Term, one: Seen) -> bool:
    return any(term.stems & stems(word.text) for word in one.words)


def _named(word: Word) -> Term:
    return Term(word.text, stems(word.text), is_name=True)


def followed(chosen: dict[str, set[int]], parsed: list[Parsed]) -> dict[str, set[int]]:
    """Add the memories that refer to what is meant, by its id or a link, and those that refer to these, and so on."""
    found = dict(chosen)
    new = set(chosen)
    while new:
        links = {
            each.memory.id
            for each in parsed
            if each.memory.id not in found
            and (
                any(link.id in new for link in each.memory.links)
                or any(one in each.memory.content for one in new)
                or _shares_name(each, [other for other in parsed if other.memory.id in new])
            )
        }
        for each in parsed:
            if each.memory.id in links:
                found[each.memory.id] = {unit.number for unit in each.clauses.units}
        new = links
    return found


def _shares_name(one: Parsed, others: list[Parsed]) -> bool:
    own = [word.text for word in capitalised(one.memory.content)]
    own += [word.text for word in words_of(one.memory.content)[:1] if word.is_capitalised]
    theirs = {folded(word.text) for other in others for word in capitalised(other.memory.content)}
    theirs |= {folded(word.text) for other in others for word in words_of(other.memory.content)[:1]}
    return bool({folded(each) for each in own} & theirs - SMALL)
