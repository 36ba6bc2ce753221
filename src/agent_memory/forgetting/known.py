"""A request as memories write it: which of its words are names there, which of its pieces one identifier. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.forgetting.matching import capitalised
from agent_memory.forgetting.words import (
    Identifier,
    canonical,
    codes_in,
    folded,
    holds_identifier,
    places_of,
    sounds_alike,
    words_of,
)

if TYPE_CHECKING:
    from agent_memory.forgetting.matching import Parsed
    from agent_memory.forgetting.request import Request, Term

_LEAST_SPELT: Final = 3
_LEAST_JOINED: Final = 6
"""Letters of a word that may be another's pieces joined."""


def as_known(request: Request, parsed: list[Parsed]) -> Request:
    """Return a request with names and identifiers as the memories have them."""
    return _with_known_codes(_with_known_names(request, parsed), parsed)


def _with_known_names(request: Request, parsed: list[Parsed]) -> Request:
    """Take for names those words, too, that memories have with a capital within a sentence ("ann's badge")."""
    if not request.terms:
        return request
    known = {folded(word.text) for each in parsed for word in capitalised(each.memory.content)}
    lower = {folded(word.text) for each in parsed for word in words_of(each.memory.content) if not word.is_capitalised}
    terms = []
    for term in request.terms:
        plain = folded(term.word)
        if not term.is_name and plain in known - lower:
            terms.append(replace(term, is_name=True))
        elif term.is_name and term.word.islower() and plain in lower:
            terms.append(replace(term, is_name=False))  # "the doctor's visit"
        else:
            terms.append(term)
    return replace(request, terms=tuple(terms))


def _with_known_codes(request: Request, parsed: list[Parsed]) -> Request:
    """Read a request's identifiers as memories have them: "user name 42" where one says `user_name_42`."""
    texts = [each.memory.content for each in parsed]
    found = []
    for each in request.identifiers:
        held = next((form for form in each.forms if any(holds_identifier(text, form) for text in texts)), None)
        spelt = None if held else next((code for form in each.forms for code in _spelt(texts, form)), None)
        found.append(each if not (held or spelt) else each._replace(forms=(held or spelt or "",)))
    known = {code for text in texts for code in codes_in(text, numbers=True)}
    numbers = known - {code for text in texts for code in codes_in(text)}
    own = {form for each in found for form in each.forms}
    is_held = any(form in own and any(holds_identifier(text, form) for text in texts) for form in own)
    for code in sorted(known - own, key=len, reverse=True):
        places = places_of(request.text, code) if code not in numbers else []
        if not (places or is_held) and _has_digits(code):
            loose = places_of(request.text, code, loose=True)
            places = [(start, end) for start, end in loose if any(map(str.isalpha, request.text[start:end]))]
        for start, end in places[:1]:
            said = request.text[start:end]
            inner = [each for each in found if each.forms and all(form in code for form in each.forms)]
            found = [each for each in found if each not in inner]
            found.append(Identifier(start, end, (code,)))
            words = {folded(word.text) for word in words_of(said)}
            request = replace(request, terms=tuple([t for t in request.terms if folded(t.word) not in words]))
    request = replace(request, identifiers=tuple(found))
    return _with_joined_words(replace(request, terms=_with_whole_names(request.terms, texts)), texts)


def _spelt(texts: list[str], form: str) -> list[str]:
    """Return an identifier as texts have it that spell digits out, or have letters that look like some."""
    if len(form) < _LEAST_SPELT:
        return []
    places = ((text, place) for text in texts for place in places_of(text, form, loose=True))
    return [canonical(text[start:end]) for text, (start, end) in places]


def _has_digits(code: str) -> bool:
    return any(each.isdigit() for each in code)


def _with_joined_words(request: Request, texts: list[str]) -> Request:
    """Take a word for an identifier that no memory has, but that some write in pieces ("bluefalcon": Blue Falcon)."""
    known = {folded(word.text) for text in texts for word in words_of(text)}
    for term in request.terms:
        form = canonical(term.word)
        if len(form) < _LEAST_JOINED or folded(term.word) in known or not any(places_of(text, form) for text in texts):
            continue
        at = max(request.text.find(term.word), 0)
        found = Identifier(at, at + len(term.word), (form,))
        left = tuple([each for each in request.terms if each is not term])
        request = replace(request, identifiers=(*request.identifiers, found), terms=left)
    return request


def _with_whole_names(terms: tuple[Term, ...], texts: list[str]) -> tuple[Term, ...]:
    """Join two names that memories write as one in another script, in either order."""
    names = [term for term in terms if term.is_name]
    if len(names) < 2 or all(text.isascii() for text in texts):  # noqa: PLR2004
        return terms
    words = {word.text for text in texts for word in words_of(text) if not word.text.isascii()}
    for one, other in pairwise(names):
        for joined in (one.word + other.word, other.word + one.word):
            for word in words:
                if sounds_alike(joined, word):
                    return tuple([replace(one, word=word) if t is one else t for t in terms if t is not other])
    return terms
