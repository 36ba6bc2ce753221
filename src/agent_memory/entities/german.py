"""Names in German, where every noun has a capital: what a list, a title or a place behind "in" confirms. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.entities.languages import is_common
from agent_memory.entities.mention import Mention
from agent_memory.entities.tagger import known_names

if TYPE_CHECKING:
    from agent_memory.entities.mention import Kind

TITLE: Final = re.compile(
    r"\b(?:Herrn?|Frau|Dr\.|Prof\.|Kolleg(?:e|en|in)|Chefin|Chef|Se\u00f1ora?|Sra?\.|Don|Do\u00f1a|Monsieur|Madame|Mme|M\.|"
    r"Signora?|Sig\.|Dott\.|Meneer|Mevrouw|Senhora?)\s+$",
    re.IGNORECASE,
)
PLACE_BEFORE: Final = re.compile(
    r"\b(?:in|nach|aus|bei|\u00fcber|von|en|desde|a|hacia|\u00e0|vers|depuis|naar|uit|em|da|para)\s+$"
)
JOINING: Final = r"de la|de los|de las|del|de|da|do|dos|das|di|von der|von|van der|van den|van|der|le|la|du|des|zu"
OF: Final = frozenset(JOINING.replace("|", " ").split())
_NO_GIVEN_WORDS: Final = """
    mark rose ernst wolf heide linde kai tag tage in an la du will long short her pearl winston réunion
"""
NO_GIVEN: Final = frozenset(_NO_GIVEN_WORDS.split())
"""Given names that are also a word."""
_ARTICLE: Final = re.compile(
    r"(?:\b(?:der|die|das|den|dem|des|ein|eine|einen|einem|einer|kein|keine|im|am|zum|zur)\s+"
    r"(?:[a-z\u00df-\u00ff]+e[nmrs]?\s+)?|\d\s+|-\s*)$",
    re.IGNORECASE,
)
_NOUN: Final = re.compile(
    r"(?:ung|heit|keit|schaft|tion|t\u00e4t|nis|ment|chen|lein|ungen|ion|ismus|tum|ling|gabe|arbeit)$"
)
_REGIONS: Final = frozenset({"EU", "USA", "UK", "DDR", "BRD"})
_LOOK_BACK: Final = 32
_LONGEST_NAME: Final = 6
_LONGEST_PLACE: Final = 3
_SHORTEST_CITY: Final = 3


def german_in(text: str, start: int, end: int) -> list[Mention]:
    """Return the names in a run of words that have capitals, but for what joins them."""
    words = text[start:end].split(" ")
    found = []
    at = 0
    while at < len(words):
        begin = start + len(" ".join(words[:at])) + bool(at)
        kind, size = _named(words[at : at + _LONGEST_NAME], text[max(0, begin - _LOOK_BACK) : begin])
        if kind is not None:
            last = begin + len(" ".join(words[at : at + size]))
            rule = "given name" if kind == "person" else "place"
            found.append(Mention(text[begin:last], kind, begin, last, 0.8, rule))
        at += max(size, 1)
    return found


def _named(words: list[str], before: str) -> tuple[Kind | None, int]:
    """Return the kind of the name that words begin with and of how many it is; None where they begin with none."""
    first, small = words[0], words[0].lower()
    if first == small or is_common(small, "de"):
        return None, 1
    if first in _REGIONS:
        return "place", 1
    is_titled = TITLE.search(before) is not None
    is_noun = _ARTICLE.search(before) is not None
    place = _place_size(words)
    is_given = small in known_names()["given"] and small not in NO_GIVEN and not is_noun
    if is_titled or (is_given and not (place and PLACE_BEFORE.search(before))):
        return "person", 1 + _family_size(words[1:], sure=is_titled)
    return ("place", place) if place and not is_noun else (None, 1)


def _place_size(words: list[str]) -> int:
    """Return how many words from the first on are a known place, also of which something is: Deutschlands."""
    names = known_names()
    for size in range(min(_LONGEST_PLACE, len(words)), 0, -1):
        small = " ".join(words[:size]).lower()
        if small in names["country"] or small.removesuffix("s") in names["country"]:
            return size
        if small in names["city"] and len(small) >= _SHORTEST_CITY:
            return size
    return 0


def _family_size(words: list[str], *, sure: bool) -> int:
    """Return how many words behind a given name belong to it: a family name, with what joins it."""
    joining = 0
    while joining < len(words) and words[joining] in OF:
        joining += 1
    if joining < len(words):
        word = words[joining]
        if word.lower() in known_names()["family"] or joining or (sure and not _NOUN.search(word)):
            return joining + 1
        if word.lower() in known_names()["given"]:
            return joining + 1 + _family_size(words[joining + 1 :], sure=sure)
    return 0
