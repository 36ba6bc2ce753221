"""Whether two memories cannot both be right now, or look as if: by what they speak of and what they say of it.

First by structure: both speak of one thing, and of one matter of it once its name is taken out. Such a pair is suspect
unless something says that it is harmless: the same words, amounts and denials, or that one of the two was so in the
past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.suspects.frames import fit, label_of
from agent_memory.suspects.meeting import LONG_NAME, Meeting, Suspicion
from agent_memory.suspects.statements import Statement, joined, statements_of
from agent_memory.suspects.subjects import are_numbered_apart, are_siblings, are_told_apart, long_subject, subject_of
from agent_memory.suspects.wording import is_said_plainly

if TYPE_CHECKING:
    from agent_memory.models import Memory

NEAR: Final = 0.65
"""Cosine, with the local model, from which on two facts may be about one matter whatever their words."""
RELATED: Final = 0.55
"""The same where the newer says plainly that something has changed: then there is something older to be found."""
_MOST_SUBJECTS: Final = 8
_CLAIM: Final = 3
"""A first line with so many words beside the subject says something itself."""
_SAME_LINES: Final = 2
_CARD: Final = 4
"""On a card a fact is spread over so many lines."""


def subjects_of(memory: Memory) -> tuple[str, ...]:
    """Return what a memory speaks of, as stems in a row; to look up others that may speak of the same."""
    found: dict[str, None] = {}
    statements = statements_of(memory.content)
    for statement in statements:
        runs = statement.runs if statement is statements[0] else (statement.lead,)
        found |= dict.fromkeys(" ".join(run) for run in runs if run)
        found |= dict.fromkeys(sorted(statement.names))
    return tuple(found)[:_MOST_SUBJECTS]


def compare(newer: Memory, older: Memory, nearness: float = 0.0) -> Suspicion | None:
    """Return why two memories are suspect together, or None.

    Args:
        newer: The one.
        older: The other.
        nearness: The cosine of their vectors, where it is known. Of near ones two facts of a sentence each need only
            one word in common, for what they speak of may be worded differently.
    """
    first, second = statements_of(newer.content), statements_of(older.content)
    if not first or not second:
        return None
    if are_numbered_apart(first[0], second[0]) or are_told_apart(first[0], second[0]):
        return None
    about = _subject(first, second)
    if about is None and (_are_different(first, second) or are_siblings(first[0], second[0])):
        return None
    are_single = len(first) == 1 == len(second)
    found = _Texts(first, second, about).suspicion()
    if found is None and are_single and nearness >= (RELATED if is_said_plainly(first[0].text) else NEAR):
        near = Meeting(first[0], second[0], about).of_near()
        return near if isinstance(near, Suspicion) else None
    return found


def _are_different(first: tuple[Statement, ...], second: tuple[Statement, ...]) -> bool:
    """Whether two notes name things by several words and not the same."""
    same = {each.text for each in first} & {each.text for each in second}
    if len(same) >= max(_SAME_LINES, len(first) - 1, len(second) - 1) and first[0].text in same:
        return False  # one note, of which one line is another
    return len(first) > 1 and len(second) > 1 and long_subject(first, second) == frozenset()


def _subject(first: tuple[Statement, ...], second: tuple[Statement, ...]) -> frozenset[str] | None:
    """Return what both texts speak of: a long name, or what one begins with and the other names anywhere."""
    long = long_subject(first, second)
    if long or (long is not None and len(first) > 1 and len(second) > 1):
        return long or None
    head, other = first[0], second[0]
    found = subject_of(head, other, leads=(head.lead, other.lead))
    places = [(head, each, head.lead) for each in second[1:]] + [(each, other, other.lead) for each in first[1:]]
    for one, beside, lead in places:
        if found is not None:
            break
        found = subject_of(one, beside, leads=(lead,))
    return found


class _Texts:
    """Two texts about one thing."""

    def __init__(
        self, first: tuple[Statement, ...], second: tuple[Statement, ...], about: frozenset[str] | None
    ) -> None:
        self._first, self._second, self._about = first, second, about
        self._same = {one.text for one in first} & {one.text for one in second}

    def suspicion(self) -> Suspicion | None:
        """Return why they are suspect: by their first lines, by any two statements, or taken together."""
        head, other = self._first[0], self._second[0]
        found = Meeting(head, other, self._about).of_heads()
        if isinstance(found, Suspicion):
            return found
        if found == "past":
            return None
        is_repeated = found == "same"
        is_topic = self._about is not None and (is_repeated or self._about >= head.terms & other.terms)
        labelled = self._of_labels() if is_repeated or head.words == other.words else None
        said = labelled or self._of_items(is_repeated=is_repeated, is_topic=is_topic)
        if isinstance(said, Suspicion) or said == "past":
            return said if isinstance(said, Suspicion) else None
        return self._of_wholes(is_repeated=is_repeated) if is_topic else None

    def _of_labels(self) -> Suspicion | None:
        """Compare lines such as "owner: Ivo" below one title, by what stands before the mark."""
        older, newer = _labelled(self._second), _labelled(self._first)
        for label, one in newer.items():
            beside = older.get(label)
            if beside is None or one.text == beside.text or fit(one.text, beside.text) != "value":
                continue
            said = Meeting(one, beside, self._about).of_items(is_topic=True, is_label=True)
            if isinstance(said, Suspicion):
                return said
        return None

    def _of_items(self, *, is_repeated: bool, is_topic: bool) -> Suspicion | str | None:
        """Compare all statements but those that both have: a note's fixed words say nothing."""
        head, other = self._first[0], self._second[0]
        are_equal = head.words == other.words
        for one in self._first:
            for beside in self._second:
                if one.text in self._same or beside.text in self._same or (one is head and beside is other):
                    continue
                if not (one.gone or (one.amounts and beside.amounts) or len(one.terms & beside.terms) > 1):
                    continue
                said = Meeting(one, beside, self._about).of_items(is_topic=is_topic)
                is_below = are_equal and one is not head and beside is not other
                if isinstance(said, Suspicion) and (not is_repeated or said.kind != "other" or is_below):
                    return said
                if said == "past" and one.terms & beside.terms - (self._about or frozenset()):
                    return said
        return None

    def _of_wholes(self, *, is_repeated: bool) -> Suspicion | None:
        """Compare the beginnings of texts whose first line only names what they speak of."""
        about = self._about
        if about is None or len(about) < LONG_NAME:
            return None
        heads = (self._first[0], self._second[0])
        if heads[0].words == heads[1].words and len(heads[0].words - about) >= _CLAIM:
            return None
        is_claim = is_repeated and min(len(each.words - about) for each in heads) >= _CLAIM
        said = Meeting(self._beginning(self._first), self._beginning(self._second), about).of_wholes()
        return said if isinstance(said, Suspicion) and not (is_claim and said.kind == "other") else None

    def _beginning(self, statements: tuple[Statement, ...]) -> Statement:
        parts = [each for each in statements[:_CARD] if each.text not in self._same]
        return joined(parts or [statements[0]])


def _labelled(statements: tuple[Statement, ...]) -> dict[str, Statement]:
    """Return the lines below the first that give a label its only value."""
    found: dict[str, Statement] = {}
    twice: set[str] = set()
    for each in statements[1:]:
        label = label_of(each.text)
        if label and label in found:
            twice.add(label)
        elif label:
            found[label] = each
    return {label: each for label, each in found.items() if label not in twice}
