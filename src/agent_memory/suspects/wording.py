"""Words that say nothing of what a statement is about, and how people word change, denial and the past.

Only English is listed. A word that is missing here can raise a pair that is none, or leave one to be looked at by hand;
none of the lists is needed to see that two statements speak of the same thing and differ.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.retrieval.tokens import index_terms

_FUNCTION_WORDS: Final = """
    a about above across after against all along also although am among an and another any anybody anyone anything
    are around as at away be became because become been before behind being below beneath beside besides between
    beyond both but by can could despite did do does doing done down due during each either else enough even ever
    every everybody everyone everything everywhere few for from had has have having he hence her here hers him his
    how however i if in inside instead into is it its itself just least less like many may me might mine more most
    much must my myself near neither never no nobody none nor not nothing now nowhere of off often on once one only
    onto or other others otherwise our ours out outside over own per quite rather really s same shall she should
    since so some somebody someone something soon still such than that the their theirs them then there therefore
    these they this those though through throughout thus till to together too toward towards under unless until up
    upon us very via was we well were what whatever when whenever where whereas wherever whether which while who
    whoever whom whose why will with within without would yes yet you your yours yourself again already always
    almost anymore currently presently actually usually
"""
_OTHER_LANGUAGES: Final = """
    der das dem den des ein eine einen einem einer eines und oder aber ist sind waren wird werden wurde hat haben im als
    für mit von vom zu zum zur bei aus nach auf über unter ich wir sie er es nicht kein keine keinen keinem nie niemals
    le la les un une du de et ou est sont était être dans avec ne pas jamais nous vous il elle au aux
    el los las una del y o en por para es fue ser nunca se su sus lo gli nel della di che non è sono mai
    os um uma e do da dos das em não são foi no na
"""
"""The commonest of a few other languages; words that English has for something else are left out."""
FUNCTION_WORDS: Final = frozenset([*_FUNCTION_WORDS.split(), *_OTHER_LANGUAGES.split()])
"""They end a run of words that may be a name."""

_LIGHT_WORDS: Final = """
    use uses used using utilise utilize run runs running ran set sets setting keep keeps kept keeping have make
    makes made get gets got give gives given go goes going gone went come comes came put puts take takes taken took
    need needs needed want wants wanted like likes prefer prefers preferred work works worked working look looks see
    seen say says said tell call called know known think find found happen happens note notes noted record recorded
    thing things way ways day days time times case cases kind new old current latest previous former present recent
    first last next today change changes changed move moves moved switch switched replace replaces replaced update
    updates updated raise raised raises lower lowered upgrade upgraded return returned back become allow allows
    allowed permitted permit be stand stands lie lies live lives stay stays remain remains start starts started stop
    stops stopped begin end ends show shows shown reason reasons issue issues problem problems fact facts matter ask
    asks true false right wrong correct please remember user everyone team people
"""
LIGHT_WORDS: Final = frozenset(_LIGHT_WORDS.split())
LIGHT_TERMS: Final = frozenset(index_terms(_LIGHT_WORDS)) - {"call"}
"""Stems that two statements may share without speaking of the same matter."""

_NUMBERED: Final = """
    apartment box branch bus case chapter client cluster customer device disk episode exercise experiment figure flat
    flight floor gate group host instance invoice iteration item job lane layer lesson level lot machine milestone node
    order package page part partition phase platform player port question queue rack release request robot room round
    row run seat section sensor server service shard shelf site slot sprint stage station step store table task team
    tenant terminal ticket track train truck unit user volume ward week worker zone
"""
NUMBERED: Final = re.compile(
    r"^(?:(?:in|at|on|for|during)\s+)?(?:(?:the|a|an|our|my|this)\s+)?(?:(?:[\w-]+\s+){1,2}(?:of|for)\s+(?:the\s+)?)?"
    rf"(?P<what>{'|'.join(_NUMBERED.split())})\s+(?:#|no\.?\s*|number\s+)?(?P<number>\d+)\s+\w",
    re.IGNORECASE,
)
"""A thing among many of its kind that a sentence begins with, told apart by its number."""

_HARMLESS_WORDS: Final = """
    use uses used using set sets setting keep keeps kept keeping have has run runs running make makes made reason
    reasons fact thing way note notes noted record recorded remember please current currently configured describe
    describes mean means due since
"""
HARMLESS_TERMS: Final = frozenset(index_terms(_HARMLESS_WORDS))
"""Stems that a repetition may have beside what it repeats."""

_MANY_VALUED: Final = "use want like prefer need ask have own know say write read see love hate enjoy note find try"
MANY_VALUED: Final = frozenset(index_terms(_MANY_VALUED)) | {"use", "have"}
"""Stems of verbs of which one may say several things at a time: who wants one thing may want another."""

PLACING: Final = frozenset({"at", "in", "on", "to", "from"})
"""What follows these after a verb is where or when something is: of that there is one at a time."""

MOVING: Final = frozenset(index_terms("move moved relocate relocated transferred went"))
"""Stems of verbs after which "to" says where something is from now on."""

_NEGATIONS: Final = "not no never none cannot without neither nor nobody nothing nowhere hardly"
_OTHER_NEGATIONS: Final = "nicht kein keine keinen keinem nie niemals pas jamais nunca non mai não"
NEGATIONS: Final = frozenset([*_NEGATIONS.split(), *_OTHER_NEGATIONS.split()])

_MONTH: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_UP_TO: Final = rf"up to(?! \d{{1,3}} (?!(?:{_MONTH}))[a-z])"
"""Before a day or a year it says a time, before an amount it does not."""
PAST_SCOPE: Final = re.compile(
    rf"\b(?:until|till|{_UP_TO}|prior to|before|formerly|previously|originally|historically|back then|at the time"
    r"|used to|once was|had been|in (?:the )?past|in (?:19|20)\d\d|(?:last|that) (?:year|month|week)"
    r"|(?:years?|months?|weeks?) ago|(?:was|were)(?: \w+){1,6} (?:then|at first))\b",
    re.IGNORECASE,
)
"""What follows or stands beside it was so at a time, and need not be so now."""
NOT_YET_PAST: Final = re.compile(
    r"\b(?:must|may|will|shall|should|can|cannot|stays?|waits?|off|closed|blocked|valid|open|away|not|only)\b"
    r"(?: [\w-]+){0,6} (?:until|till)\b",
    re.IGNORECASE,
)
"""What lasts until something that is still to come."""

_NAME: Final = r"[\w.#/+-]{1,40}"
GONE: Final = re.compile(
    rf"\b(?P<gone>{_NAME}(?: and {_NAME})?(?: {_NAME})?) (?:was|were|is|are|has been|have been|got|gets)(?: now)?"
    r" (?:replaced|removed|dropped|retired|archived|abolished)\b"
    rf"|\bfrom (?:the )?(?P<left>{_NAME}(?: {_NAME})?)(?: {_NAME})? to\b"
    r"|\b(?:no longer(?: (?:on|in|at|with|by))?|instead of|rather than|away from|replac(?:es?|ing)|dropp?(?:ed|s|ing)"
    rf"|retired)\s+(?:the )?(?P<not>{_NAME}(?: {_NAME})?)",
    re.IGNORECASE,
)
"""Something that another has taken the place of."""

_SAID: Final = re.compile(
    r"\b(?:now|no longer|any ?more|as of (?:now|today)|from now on|instead of|took over|correction|the new"
    r"|(?:moved|switched|changed|migrated|went over|upgraded|relocated|renamed)(?: \w+){0,6} (?:to|into)"
    r"|(?:was|were|is|are|has been|have been) (?:replaced|renamed|raised|lowered|increased|reduced|extended|shortened"
    r"|moved|changed|switched|cut|set)(?: \w+){0,5} (?:by|to))\b",
    re.IGNORECASE,
)

_NOT_SAID: Final = re.compile(
    r"\?|\b(?:if|whether|should|could|would|might|may|maybe|perhaps|plans?|planned|planning|consider(?:s|ed|ing)?|propos"
    r"(?:e|es|ed|al)|will|going to|until now|up to now|by now|right now|just now|for now|now and then)\b",
    re.IGNORECASE,
)


def is_said_plainly(text: str) -> bool:
    """Tell whether the words of a text say themselves that something is not as it was: "now", "moved to", "no longer".

    False for what is asked, planned or only possible.
    """
    return _SAID.search(text) is not None and _NOT_SAID.search(text) is None
