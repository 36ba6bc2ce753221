"""How much a sentence of a conversation says about what was decided. Pure, no model.

The words looked for are those by which people settle something, in English and German; in other languages figures,
names in code and the place in the conversation count. Weights were set on the conversations of sde-bench
(`benchmarks/briefing.py`); there is no second set of such conversations with labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SETTLES: Final = re.compile(
    r"\b(?:exactly|always|never|must|only|rules?|policy|settled|amend\w*|instead|decided|decision|wins?|cap(?:s|ped)?"
    r"|at (?:most|least)|no longer|supersed\w*|from now on|going forward|standard\w*|convention|agreed|pinned"
    r"|require[sd]?|deliberate\w*|source of truth|not \w+|don['\u2019]t|do not|keeps?|stays?|drops?|dropped|reject\w*"
    r"|before|after|first|then|unless|except|genau|immer|nie(?:mals)?|muss|m\u00fcssen|nur|regeln?|entschieden|entscheidung|statt"
    r"|stattdessen|mindestens|h\u00f6chstens|nicht mehr|ab jetzt|k\u00fcnftig|vereinbart|kein\w*|nicht \w+|zuerst"
    r"|danach|vor|nach|au\u00dfer|bleibt)\b",
    re.IGNORECASE,
)
_LITERAL: Final = re.compile(r"`[^`]+`|'[^' ]{1,30}'|\"[^\" ]{1,30}\"|\b\d+\b|\b[a-z]+_[a-z_]+\b|\b[A-Z_]{4,}\b|->|=\B")
_SUMS_UP: Final = re.compile(
    r"\b(?:final|full|amended|whole|definitive|project)\b[^.:]{0,40}\b(?:rule|policy|map|contract|convention)\b"
    r"|\bthe (?:rule|policy)\b|\bsettled\b|\bto (?:recap|sum up|summari[sz]e)\b|\brecap\b|\bgot it\b|\bsupersed\w*"
    r"|\b(?:die|unsere) regel\b|\bzusammengefasst\b|\bverstanden\b",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"\b(?:unrelated|flaky|heads-up|rerun|fair warning|by the way|oh, and|\u00fcbrigens|nebenbei)\b", re.IGNORECASE
)
_INTENT: Final = re.compile(
    r"\b(?:I['\u2019]ll|I will|let me|I['\u2019]d|I would|shall I|should I|want me|before I|I could|plan:|looking at"
    r"|reading|running|my (?:plan|inclination|instinct)|I was going|ich werde|ich w\u00fcrde|soll ich|lass mich)\b",
    re.IGNORECASE,
)
_ANSWERS: Final = re.compile(
    r"(?:no|not|never|exactly|absolutely not|careful|right|almost|neither|correct|yes|confirmed|nein|nicht|nie|genau|ja"
    r"|richtig|fast)\b",
    re.IGNORECASE,
)
_MOST: Final = 4
"""Words of one kind that count, at most: a sentence that has all of them is a list, not a decision."""
_SETTLING, _NAMING = 0.6, 0.3
_PERSON, _ANSWER = 1.6, 1.2
_OPENING: Final = 0.4
"""Of a first turn: it says what is asked, and the prompt says that too."""
_SUMMING: Final = 2.0
_SUMMING_PERSON: Final = 1.3
_BESIDES: Final = 0.2
_INTENDED: Final = 0.35
_EMPTY: Final = 0.4
"""Of what a model says without a word that settles or names anything: "Understood."."""
_PROPOSED, _CORRECTED = 0.5, 0.3
_LAST_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sentence stands.

    Attributes:
        turn: The number of its turn in the conversation, from 0.
        turns: How many there are.
        by_person: Whether a person said it, and no model.
        answered: The beginning of the next turn.
    """

    turn: int = 0
    turns: int = 1
    by_person: bool = False
    answered: str = ""


def worth(sentence: str, place: Place) -> float:
    """Return how much a sentence says about what was decided: 0 for a question, 1 for one that says nothing of it.

    Args:
        sentence: It.
        place: Where it stands; in a conversation of one turn nothing is an opening or a proposal.
    """
    if sentence.endswith(("?", "\uff1f")):
        return 0.0
    settles = min(_MOST, len(_SETTLES.findall(sentence)))
    names = min(_MOST, len(_LITERAL.findall(sentence)))
    weight = 1.0 + _SETTLING * settles + _NAMING * names
    sums_up = _SUMS_UP.search(sentence) is not None
    if _ASIDE.search(sentence):
        weight *= _BESIDES
    if place.turns == 1:
        return weight
    if place.by_person:
        weight *= (_PERSON if place.turn else 1.0) * (_SUMMING_PERSON if sums_up else 1.0)
    else:
        weight *= _of_a_model(sentence, place, sums_up=sums_up, settles=settles + names > 0)
    if place.turn == 0:
        return weight * _OPENING
    return weight * _ANSWER if _ANSWERS.match(sentence) else weight


def _of_a_model(sentence: str, place: Place, *, sums_up: bool, settles: bool) -> float:
    """Return the factor of what a model says: what it proposes may be turned down, what it sums up was said before."""
    factor = _SUMMING if sums_up else 1.0
    if not settles:
        factor *= _EMPTY
    if _INTENT.search(sentence):
        factor *= _INTENDED
    if not sums_up and place.turn < place.turns - _LAST_TURNS:
        factor *= _CORRECTED if _ANSWERS.match(place.answered) else _PROPOSED
    return factor
