"""What a text says of how two named things stand to each other: who works where, what depends on what. Pure.

A relation is read only where all that stands between two names says it. What is denied, asked, supposed, only heard or
past is none: a relation that is missing can be added, a wrong one misleads.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.entities.mention import KNOWN, Gazetteer, Mention
from agent_memory.entities.naming import mentions_in
from agent_memory.entities.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.entities.mention import Kind
    from agent_memory.entities.verbs import Saying, Verb

_SENTENCE: Final = re.compile(r"[^.!?\n\u3002\uff01\uff1f]+(?:[.!?](?=\w)[^.!?\n]*)*[.!?\u3002\uff01\uff1f]*")
_JOINING: Final = re.compile(
    r"\s*+(?:(?:,\s*)?(?:and|&|und|as well as|sowie)|,)\s*(?:the\s+|die\s+|der\s+|das\s+)?", re.IGNORECASE
)
_GOES_ON: Final = re.compile(
    r"(?:\s+[\w'\u2019]+){0,3}?\s*+(?:,(?=\s+\w)|(?:,\s*)?(?:and|but|und)(?=\s+\w))", re.IGNORECASE
)
_ASIDE: Final = re.compile(r"\s{0,20}(?:,[^,]{2,40},|\([^)]{2,40}\))(?=\s)")
_WHICH: Final = re.compile(r"\s{0,20}+(?:,\s{0,20})?(?:who|which|that)(?=\s)", re.IGNORECASE)
_CLAUSE: Final = re.compile(r"[;:]|\s-\s|\u2014|\b(?:and|but|while|und|aber|w\u00e4hrend)\b", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"\b(?:not|no|never|neither|nor|without|cannot|instead|anymore|nicht|kein\w*|nie|niemals|weder|ohne|statt)\b"
    r"|n['\u2019]t\b|\bno longer\b",
    re.IGNORECASE,
)
_SUPPOSED: Final = re.compile(
    r"\b(?:if|whether|unless|maybe|perhaps|probably|possibly|might|could|would|should|hopes?|wish(?:es)?|guess|thinks?|"
    r"believes?|doubts?|suppose|imagine|pretends?|claims?|rumou?rs?|allegedly|apparently|supposedly|false|untrue|wrong|"
    r"used\s+to|formerly|previously|once|wenn|falls|ob|vielleicht|vermutlich|angeblich|glaub\w*|denk[et]\w*|w\u00fcrde\w*|"
    r"k\u00f6nnte\w*|sollte\w*|fr\u00fcher|ehemals|stell\s+dir)\b",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"\W*(?:does|do|did|is|are|has|have|will|who|where|what|why|when|how|wer|wo|was|warum)\b", re.IGNORECASE
)
_SELF: Final = re.compile(r"(?<!\w)(?:I|Ich|ich)(?=\s+(?!am\s+not)\w)")
_LEARNT: Final = frozenset({"model of names", "capital", "capitals within"})
_LEAST: Final = 2
_MOVED_FROM: Final = re.compile(r"\b(?:moved|relocated)\s+(?:back\s+)?from\s+$")
_TO, _FROM = len(" to "), len("relocated back from ")


@dataclass(frozen=True, slots=True)
class Relation:
    """That a text says something of two things.

    Attributes:
        subject: Of whom or what it is said. For "I" it has the name of who speaks, and stands where "I" stands.
        name: Of the relation, `works_at`.
        object: The other.
        functional: Whether a thing has only one at a time, so that a new one ends the one before.
        start: Where the sentence begins that says it.
        end: Where that ends, exclusive.
        ended: Whether the sentence says that it is over.
    """

    subject: Mention
    name: str
    object: Mention
    functional: bool
    start: int
    end: int
    ended: bool = False


def relations_in(
    text: str,
    *,
    gazetteer: Gazetteer | None = None,
    speaker: str = "",
    mentions: Sequence[Mention] | None = None,
    verbs: Sequence[Verb] = VERBS,
) -> tuple[Relation, ...]:
    """Return the relations that a text states, in order.

    Args:
        text: Anything a person or an agent wrote.
        gazetteer: Names that are known already.
        speaker: Who says it; the subject of "I work at".
        mentions: The names in the text, where they are found already.
        verbs: The relations that are read and how they are said.
    """
    named = mentions_in(text, gazetteer=gazetteer, speaker=speaker) if mentions is None else mentions
    named = sorted(named, key=lambda each: each.start)
    starts = [mention.start for mention in named]
    found: list[Relation] = []
    for sentence in _SENTENCE.finditer(text):
        start, end = sentence.span()
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        inside = [each for each in named[first:last] if each.end <= end and not _is_left(text, each)]
        if speaker:
            inside = _with_speaker(text, inside, speaker, start, end)
        if len(inside) >= _LEAST and not sentence[0].rstrip().endswith(("?", "\uff1f")):
            found += _in_sentence(_Read(text, start, end, tuple(verbs)), inside)
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Read:
    """A sentence that is being read: `text[start:end]`."""

    text: str
    start: int
    end: int
    verbs: tuple[Verb, ...]


def _with_speaker(text: str, mentions: Sequence[Mention], speaker: str, start: int, end: int) -> list[Mention]:
    own = [
        Mention(speaker, "person", match.start(), match.end(), KNOWN, "speaker")
        for match in _SELF.finditer(text, start, end)
    ]
    return sorted([*mentions, *own], key=lambda each: each.start)


def _is_left(text: str, mention: Mention) -> bool:
    """Whether it is the place from which somebody "moved from Bern to" another one."""
    behind = text[mention.end : mention.end + _TO]
    return _MOVED_FROM.search(text[max(0, mention.start - _FROM) : mention.start]) is not None and behind == " to "


def _in_sentence(read: _Read, mentions: Sequence[Mention]) -> Iterator[Relation]:
    groups = _groups(read.text, mentions)
    carried: list[Mention] = []
    for left, right in pairwise(groups):
        between = read.text[left[-1].end : right[0].start]
        subjects = left
        if carried and (goes_on := _GOES_ON.match(between)):
            subjects, between = carried, between[goes_on.end() :]
        else:
            for aside in (_ASIDE, _WHICH):
                if passed := aside.match(between):
                    between = between[passed.end() :]
        carried = []
        for verb in read.verbs:
            if (said := _said(read, verb, between, right[-1].end)) is None:
                continue
            made = list(_made(read, verb, said, subjects, right))
            carried = [] if said.turned or not made else subjects
            yield from made
            break


def _groups(text: str, mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Return mentions that only "and" or a comma stands between as one group."""
    groups: list[list[Mention]] = []
    for mention in mentions:
        if groups and _JOINING.fullmatch(text, groups[-1][-1].end, mention.start):
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups


def _said(read: _Read, verb: Verb, between: str, end: int) -> Saying | None:
    for each in verb.sayings:
        if each.fits(between) and each.goes_on(read.text, end, read.end):
            return each
    return None


def _made(
    read: _Read, verb: Verb, said: Saying, subjects: Sequence[Mention], objects: Sequence[Mention]
) -> Iterator[Relation]:
    if _is_in_doubt(read, subjects[0].start, objects[-1].end):
        return
    first, second = (objects, subjects) if said.turned else (subjects, objects)
    for subject in first:
        for each in second[:1] if verb.functional else second:
            one, other = _of_kind(subject, verb.subject), _of_kind(each, verb.object)
            if one is None or other is None or one.name.casefold() == other.name.casefold():
                continue
            if one.kind not in verb.never and other.kind not in verb.never:
                yield Relation(one, verb.name, other, verb.functional, read.start, read.end, said.ends)


def _of_kind(mention: Mention, kind: Kind | None) -> Mention | None:
    """Return the mention with the kind that the verb asks for, if its own is only likely; None where it is another."""
    if kind is None or mention.kind == kind:
        return mention
    if mention.rule in _LEARNT or mention.kind == "other":
        return replace(mention, kind=kind)
    return None if kind == "person" else mention


def _is_in_doubt(read: _Read, start: int, end: int) -> bool:
    """Whether what is said is denied in its own clause, or supposed before it."""
    before = [match.end() for match in _CLAUSE.finditer(read.text, read.start, start)]
    behind = _CLAUSE.search(read.text, end, read.end)
    clause = read.text[before[-1] if before else read.start : behind.start() if behind else read.end]
    if _ASKED.match(read.text, read.start, start):
        return True
    return _DENIED.search(clause) is not None or _SUPPOSED.search(read.text, read.start, end) is not None
