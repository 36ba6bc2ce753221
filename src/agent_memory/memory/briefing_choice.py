"""Choice of the most telling sentences within a budget. No I/O."""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.language.budget import estimate_tokens
from agent_memory.language.sentences import find_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from agent_memory.models import Record

_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD: Final = re.compile(r"\w{3,}")
_NOTE_CHARS: Final = 300
"""Characters of a note that is shown whole: its sentences were written together."""
_NOTE_WORTH: Final = 3.0
"""Weight of a note; that of a sentence of talk is 1 to 8."""
_KNOWN: Final = 0.7
"""Share of the weight that a sentence loses if the prompt or chosen sentences have all its words."""
_SHORTEST: Final = 15
"""Characters added to a length: a very short sentence says little by itself."""
_LEAST_TOKENS: Final = 5


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of a record, its place in a conversation and its relevance.

    Attributes:
        record: Record of the text.
        text: Words without the speaker.
        at: Time of saying.
        talk: ID of the conversation; empty for a note.
        by_person: True if a person said it.
        speaker: Name of another speaker than the user and the agent; empty for these two.
        nearness: 0 to 1, best 1.
    """

    record: Record
    text: str
    at: datetime
    talk: str = ""
    by_person: bool = False
    speaker: str = ""
    nearness: float = 1.0

    @property
    def id(self) -> str:
        """ID of the record."""
        return self.record.id


@dataclass(frozen=True, slots=True)
class Chosen:
    """A sentence, or a short note, that is shown.

    Attributes:
        passage: Passage of the sentence.
        number: Position of the passage, and of the sentence in it: the order of reading.
        text: Text of the sentence.
    """

    passage: Passage
    number: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class _WeighedSentence:
    chosen: Chosen
    weight: float
    words: frozenset[str]


def choose(passages: Sequence[Passage], asked: str, room: int) -> list[Chosen]:
    """Return the chosen sentences, in the order of reading.

    Args:
        passages: Passages by talk, turns in their order.
        asked: Prompt of the user, whose words are known.
        room: Maximum tokens, see `estimate_tokens`; each sentence costs two more.
    """
    sentences = list(_weigh_all(passages))
    seen = set(_find_words(asked))
    waiting = [(-_get_gain(sentence, seen), number) for number, sentence in enumerate(sentences)]
    heapq.heapify(waiting)
    chosen: list[Chosen] = []
    while waiting and room >= _LEAST_TOKENS:
        number = heapq.heappop(waiting)[1]
        best = sentences[number]
        now = (-_get_gain(best, seen), number)  # gains only fall, so those of the others are upper bounds
        if waiting and now > waiting[0]:
            heapq.heappush(waiting, now)
            continue
        cost = estimate_tokens(best.chosen.text) + 2
        if cost <= room:
            room -= cost
            chosen.append(best.chosen)
            seen |= best.words
    return sorted(chosen, key=lambda sentence: sentence.number)


def _get_gain(sentence: _WeighedSentence, seen: set[str]) -> float:
    """Return the gain of a sentence for the root of its length."""
    known = len(sentence.words & seen) / max(1, len(sentence.words))
    return float(sentence.weight * (1 - _KNOWN * known) / (len(sentence.chosen.text) + _SHORTEST) ** 0.5)


def _weigh_all(passages: Sequence[Passage]) -> Iterator[_WeighedSentence]:
    sizes: dict[str, int] = {}
    for passage in passages:
        sizes[passage.talk] = sizes.get(passage.talk, 0) + 1
    turns: dict[str, int] = {}
    for number, passage in enumerate(passages):
        turn = turns[passage.talk] = turns.get(passage.talk, -1) + 1
        if not passage.talk:
            yield from _weigh_note(passage, number)
            continue
        after = passages[number + 1].text if turn + 1 < sizes[passage.talk] else ""
        place = Place(turn, sizes[passage.talk], passage.by_person, after.lstrip())
        for position, sentence in enumerate(_split(passage.text)):
            weight = get_worth(sentence, place) * passage.nearness
            if weight:
                yield _WeighedSentence(Chosen(passage, (number, position), sentence), weight, _find_words(sentence))


def _weigh_note(passage: Passage, number: int) -> Iterator[_WeighedSentence]:
    whole = " ".join(passage.text.split())
    if len(whole) <= _NOTE_CHARS:
        yield _WeighedSentence(Chosen(passage, (number, 0), whole), _NOTE_WORTH * passage.nearness, _find_words(whole))
        return
    for position, sentence in enumerate(_split(passage.text)):
        weight = get_worth(sentence, Place()) * passage.nearness
        if weight:
            yield _WeighedSentence(Chosen(passage, (number, position), sentence), weight, _find_words(sentence))


def _split(text: str) -> Iterable[str]:
    """Return the sentences of a text, one a line, without fenced code."""
    bare = _CODE.sub("\n", text)
    return (" ".join(bare[start:end].split()) for start, end in find_sentences(bare))


def _find_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


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
"""Words of one kind that count: a sentence with more of them is a list, not a decision."""
_SETTLING, _NAMING = 0.6, 0.3
_PERSON, _ANSWER = 1.6, 1.2
_OPENING: Final = 0.4
"""Factor of a first turn, which says the same as the prompt."""
_SUMMING: Final = 2.0
_SUMMING_PERSON: Final = 1.3
_BESIDES: Final = 0.2
_INTENDED: Final = 0.35
_EMPTY: Final = 0.4
"""Factor of a model's sentence without a decision or a name: "Understood."."""
_PROPOSED, _CORRECTED = 0.5, 0.3
_LAST_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a sentence in a conversation.

    Attributes:
        turn: Number of its turn, from 0.
        turns: Number of turns.
        by_person: True if a person said it, and not a model.
        answered: Beginning of the next turn.
    """

    turn: int = 0
    turns: int = 1
    by_person: bool = False
    answered: str = ""


def get_worth(sentence: str, place: Place) -> float:
    """Return the factor of a sentence about decisions: 0 for a question.

    Args:
        sentence: Text of the sentence.
        place: Position of the sentence; a conversation of one turn has no opening and no proposal.
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
        weight *= _get_model_factor(sentence, place, sums_up=sums_up, settles=settles + names > 0)
    if place.turn == 0:
        return weight * _OPENING
    return weight * _ANSWER if _ANSWERS.match(sentence) else weight


def _get_model_factor(sentence: str, place: Place, *, sums_up: bool, settles: bool) -> float:
    """Return the factor of a model's sentence: proposals and recaps count less."""
    factor = _SUMMING if sums_up else 1.0
    if not settles:
        factor *= _EMPTY
    if _INTENT.search(sentence):
        factor *= _INTENDED
    if not sums_up and place.turn < place.turns - _LAST_TURNS:
        factor *= _CORRECTED if _ANSWERS.match(place.answered) else _PROPOSED
    return factor
