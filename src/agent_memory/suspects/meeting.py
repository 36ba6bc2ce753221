"""Two statements that meet: whether they speak of one matter of one subject, and whether they say the same of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.suspects.frames import fit
from agent_memory.suspects.subjects import subject_of
from agent_memory.suspects.turned import are_turned
from agent_memory.suspects.wording import LIGHT_TERMS, MANY_VALUED, MOVING, PLACING, is_said_plainly

if TYPE_CHECKING:
    from agent_memory.suspects.quantities import Amount
    from agent_memory.suspects.statements import Statement

LONG_NAME: Final = 3
"""A subject of so many words is hardly ever named by chance: any word beside it that both statements have counts."""
_QUARTER, _THIRD, _HALF = 0.25, 0.34, 0.5
_FEW: Final = 2
_SHORT: Final = 3
_SENTENCE: Final = 6
"""A run of so many words in both is a name with what is said of it."""
_EVIDENCE_CHARS: Final = 160

Kind = Literal["value", "denial", "change", "other"]
Hint = Literal["replace", "conflict"]
Verdict = Literal["past", "same", "apart"]
"""Why two statements are harmless: one was so in the past, they say the same, or they are not about one matter."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why two memories are suspected of not being right together.

    Attributes:
        kind: `value` (another amount), `denial` (one denies what the other says), `change` (the newer says that
            something was left that the older speaks of) or `other` (they say different things of one matter).
        evidence: A short text for whoever decides.
        hint: `replace` when the newer looks like an update of the older, else `conflict`.
        attribute: The matter that both speak of, as stems; empty when it is the subject itself.
    """

    kind: Kind
    evidence: str
    hint: Hint
    attribute: str


class Meeting:
    """A statement of the newer memory and one of the older.

    Args:
        new: The one.
        old: The other.
        title: What both texts speak of; stands for the subject where a statement does not name it.
    """

    def __init__(self, new: Statement, old: Statement, title: frozenset[str] | None) -> None:
        self._new, self._old, self._title = new, old, title
        self._shared = new.terms & old.terms
        self._about = self._subject()
        self._clash = clashing(new, old)

    def of_heads(self) -> Suspicion | Verdict:
        """Return why two first lines are suspect."""
        about = self._about
        place = fit(self._new.text, self._old.text)
        if are_turned(self._new.text, self._old.text):
            return self._suspicion(about or frozenset())
        if place == "value":
            return self._verdict(about or frozenset())
        is_other = place == "others" or (place == "apart" and self._clash is None)
        if about is None or (is_other and len(about) < LONG_NAME):
            return self._left()
        names_both = about <= self._shared
        is_same = self._is_one_matter(about) if names_both else self._is_one_item(about, is_topic=False)
        return self._verdict(about) if is_same and self._is_telling(about) else self._left()

    def of_items(self, *, is_topic: bool, is_label: bool = False) -> Suspicion | Verdict:
        """Return why two statements are suspect of which one stands below the first line.

        Args:
            is_topic: The first lines only name what is spoken of.
            is_label: They are values of one label below the same first line.
        """
        about = self._about
        if is_label:
            return self._verdict(about or frozenset())
        if about is None or (self._title is None and len(about) < LONG_NAME):
            return self._left()
        return self._verdict(about) if self._is_one_item(about, is_topic=is_topic) else self._left()

    def of_wholes(self) -> Suspicion | Verdict:
        """Return why two texts are suspect whose statements are taken together."""
        about = self._title or frozenset()
        matter, fewest = self._shared - about, self._fewest(about)
        if not self._clash and len(matter) < max(_FEW, _QUARTER * fewest):
            return "apart"
        return self._verdict(about)

    def of_near(self) -> Suspicion | Verdict:
        """Return why two statements about one matter are suspect."""
        are_others = fit(self._new.text, self._old.text) == "others"
        return self._verdict(self._about or frozenset()) if self._shared and not are_others else "apart"

    def _subject(self) -> frozenset[str] | None:
        """Return the texts' subject where both name it, else what they name themselves, else the texts' again."""
        title = self._title
        if title is not None and len(title) >= LONG_NAME and title <= self._shared:
            return title
        if self._new.person and self._old.person:
            return frozenset()
        own = subject_of(self._new, self._old, leads=(self._new.lead, self._old.lead))
        return title if own is None else own

    def _fewest(self, about: frozenset[str]) -> int:
        return min(len(self._new.terms - about), len(self._old.terms - about))

    def _is_one_matter(self, about: frozenset[str]) -> bool:
        """Whether two statements that name their subject speak of one matter of it."""
        new, old = self._new, self._old
        matter, fewest = self._shared - about, self._fewest(about)
        nouns = new.nouns | old.nouns
        is_thing = len(about) > 1 or bool(about & nouns)
        if self._clash and (len(about) >= LONG_NAME or matter or (is_thing and fewest <= _FEW)):
            return True
        if not fewest and len(about) > 1:
            return _denials(new, about) != _denials(old, about)
        if not matter:
            return len(about) >= _SENTENCE or self._has_one_frame(about)
        share = _QUARTER if len(about) > 1 else _HALF
        is_much = len(about) >= LONG_NAME or len(matter) >= share * fewest
        return is_much or (is_said_plainly(new.text) and bool(matter & nouns))

    def _is_telling(self, about: frozenset[str]) -> bool:
        """Whether words in common say more than that both are about one person or thing: of those is much to say."""
        new, old = self._new, self._old
        matter = self._shared - about
        if len(about) >= LONG_NAME or not matter or self._clash or new.gone & old.terms or is_said_plainly(new.text):
            return True
        rests = sorted((len(new.terms - about), len(old.terms - about)))
        if _denials(new, self._shared) != _denials(old, self._shared):
            return len(matter) >= _HALF * rests[0]
        is_thing = len(about) > 1 or bool(about & (new.nouns | old.nouns))
        return rests[1] <= _SHORT + is_thing and len(matter) >= _HALF * rests[0]

    def _has_one_frame(self, about: frozenset[str]) -> bool:
        """Whether both begin alike up to what they say of it: "Anna lives in", "the owner of the desk is"."""
        new, old = self._new, self._old
        if new.is_defined and old.is_defined:
            is_value = len(new.terms - about) == 1 == len(old.terms - about) and bool(about & (new.nouns | old.nouns))
            if is_value or (new.lead == old.lead and len(new.lead) > 1 and about.issuperset(_telling(new.lead))):
                return True
        if _has_moved(new, old, about):
            return True
        leads = {*new.lead, *old.lead}
        if not about or _telling(new.lead) != _telling(old.lead) or not about.issuperset(_telling(new.lead)):
            return False
        if not MANY_VALUED.isdisjoint(leads) or LIGHT_TERMS.isdisjoint(leads):
            return False
        return new.lead == old.lead or (new.links == old.links and not PLACING.isdisjoint(new.links))

    def _is_one_item(self, about: frozenset[str], *, is_topic: bool) -> bool:
        """Whether two statements that leave their subject to the first line speak of one matter of it."""
        matter, fewest = self._shared - about, self._fewest(about)
        if self._clash:
            return len(matter) >= _HALF * fewest if is_topic else len(matter) > 1
        return len(matter) > 1 and len(matter) >= _THIRD * fewest

    def _verdict(self, about: frozenset[str]) -> Suspicion | Verdict:
        """Return the suspicion, unless something says that it is harmless."""
        if self._new.is_past != self._old.is_past:
            return "past"
        if _are_elsewhere(self._new, self._old):
            return "apart"
        return "same" if self._restates(about) else self._suspicion(about)

    def _restates(self, about: frozenset[str]) -> bool:
        """Whether one statement holds nothing that the other does not say: words, amounts and denials."""
        new, old = self._new, self._old
        says_more = old.words - about <= new.words and not new.gone and not is_said_plainly(new.text)
        if self._clash is not None or not (new.words - about <= old.words or says_more):
            return False
        if any(one.equals(other) for one in new.amounts for other in old.amounts if one.dimension == other.dimension):
            return _denials(new, self._shared) == _denials(old, self._shared)
        return _denials(new) == _denials(old)

    def _left(self) -> Suspicion | Verdict:
        """Return a suspicion where the newer says that something was left which the older speaks of."""
        new, old = self._new, self._old
        left = new.gone & old.terms
        is_named = bool(left & (new.names | old.names)) or len(left) > 1
        if not is_named or left <= old.gone or new.is_past != old.is_past:
            return "apart"
        return Suspicion("change", _evidence(new, old), "replace", " ".join(sorted(left)))

    def _suspicion(self, about: frozenset[str]) -> Suspicion:
        new, old, matter = self._new, self._old, self._shared - about
        kind: Kind = "other"
        if self._clash is not None:
            kind = "value"
        elif new.gone & old.terms:
            kind = "change"
        elif _denials(new, self._shared) != _denials(old, self._shared):
            kind = "denial"
        said = is_said_plainly(new.text)
        is_update = kind in {"value", "change"}
        return Suspicion(
            kind,
            _evidence(new, old),
            "replace" if said or is_update else "conflict",
            " ".join(dict.fromkeys(term for run in new.runs for term in run if term in matter)),
        )


def clashing(new: Statement, old: Statement) -> tuple[Amount, Amount] | None:
    """Return two amounts of one dimension where neither statement has the other's."""
    for one in new.amounts:
        beside = [other for other in old.amounts if other.dimension == one.dimension]
        if beside and not any(one.equals(other) for other in beside):
            return one, beside[0]
    return None


def _has_moved(new: Statement, old: Statement, about: frozenset[str]) -> bool:
    """Whether the newer says where something moved to, and the older where it is."""
    is_one = about and {*_telling(new.lead)} - MOVING == {*_telling(old.lead)} <= about
    return bool(is_one and new.links[:1] == ("to",) and MOVING & {*new.lead} and PLACING & {*old.links})


def _denials(statement: Statement, common: frozenset[str] | None = None) -> int:
    """Return how often a statement denies something, in clauses that have one of the words when some are given."""
    return sum(number for words, number in statement.clauses if common is None or words & common)


def _are_elsewhere(new: Statement, old: Statement) -> bool:
    """Whether a name right after the same beginning tells two things apart: "the desk in Rostock" and "in Kiel"."""
    if new.lead != old.lead or len(new.lead) > 1 or new.is_defined or PLACING.isdisjoint(new.links):
        return False
    one, other = (each.runs[1][0] if len(each.runs) > 1 else "" for each in (new, old))
    return one != other and one in new.names and other in old.names


def _evidence(new: Statement, old: Statement) -> str:
    return f"now: {_cut(new.text)} / before: {_cut(old.text)}"


def _telling(run: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(term for term in run if term not in LIGHT_TERMS)


def _cut(text: str) -> str:
    return text if len(text) <= _EVIDENCE_CHARS else text[: _EVIDENCE_CHARS - 1].rstrip() + "\u2026"
