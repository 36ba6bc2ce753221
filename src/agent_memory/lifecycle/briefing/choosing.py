"""Choosing what is shown of what was found: the sentences that say the most, each thing once, within a budget. Pure."""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.items.sentences import spans_of
from agent_memory.lifecycle.briefing.weighing import Place, worth
from agent_memory.scratchpad import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from agent_memory.models import Record

_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD: Final = re.compile(r"\w{3,}")
_NOTE_CHARS: Final = 300
"""A note of so many characters is shown whole: its sentences were written to stand together."""
_NOTE_WORTH: Final = 3.0
"""What a note counts that somebody wrote down; a sentence of talk counts 1 to 8."""
_KNOWN: Final = 0.7
"""What a sentence loses whose words were all read already, in the prompt or in what was chosen before."""
_SHORTEST: Final = 15
"""Characters added to a length: what is very short says little by itself."""
_LEAST_TOKENS: Final = 5


@dataclass(frozen=True, slots=True)
class Passage:
    """What a record says, its place in a conversation, and how near it is to what is asked.

    Attributes:
        record: It.
        text: Its words, without who speaks.
        at: When they were said.
        talk: The conversation; empty for a note of its own.
        by_person: Whether a person said it.
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
        """The record's."""
        return self.record.id


@dataclass(frozen=True, slots=True)
class Chosen:
    """A sentence, or a short note, that is shown.

    Attributes:
        passage: Where it stands.
        number: The place of its passage among all, and of the sentence in it: the order of reading.
        text: It.
    """

    passage: Passage
    number: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class _Weighed:
    chosen: Chosen
    weight: float
    words: frozenset[str]


def choose(passages: Sequence[Passage], asked: str, room: int) -> list[Chosen]:
    """Return what is shown, in the order of reading.

    Args:
        passages: What was found, in that order: talks one after the other, turns as they were said.
        asked: What the reader knows already: their own prompt.
        room: Tokens at most, see `estimate_tokens`; each piece costs two more for what stands around it.
    """
    every = list(_weighed(passages))
    seen = set(_words(asked))
    waiting = [(-_gain(each, seen), number) for number, each in enumerate(every)]
    heapq.heapify(waiting)
    chosen: list[Chosen] = []
    while waiting and room >= _LEAST_TOKENS:
        number = heapq.heappop(waiting)[1]
        best = every[number]
        now = (-_gain(best, seen), number)  # a gain only falls as more is told: the others need no second look
        if waiting and now > waiting[0]:
            heapq.heappush(waiting, now)
            continue
        cost = estimate_tokens(best.chosen.text) + 2
        if cost <= room:
            room -= cost
            chosen.append(best.chosen)
            seen |= best.words
    return sorted(chosen, key=lambda each: each.number)


def _gain(each: _Weighed, seen: set[str]) -> float:
    """Return what a sentence adds, for its length: the root, so that what is long must say more."""
    known = len(each.words & seen) / max(1, len(each.words))
    return float(each.weight * (1 - _KNOWN * known) / (len(each.chosen.text) + _SHORTEST) ** 0.5)


def _weighed(passages: Sequence[Passage]) -> Iterator[_Weighed]:
    sizes: dict[str, int] = {}
    for each in passages:
        sizes[each.talk] = sizes.get(each.talk, 0) + 1
    turns: dict[str, int] = {}
    for number, passage in enumerate(passages):
        turn = turns[passage.talk] = turns.get(passage.talk, -1) + 1
        if not passage.talk:
            yield from _of_note(passage, number)
            continue
        after = passages[number + 1].text if turn + 1 < sizes[passage.talk] else ""
        place = Place(turn, sizes[passage.talk], passage.by_person, after.lstrip())
        for at, sentence in enumerate(_sentences(passage.text)):
            weight = worth(sentence, place) * passage.nearness
            if weight:
                yield _Weighed(Chosen(passage, (number, at), sentence), weight, _words(sentence))


def _of_note(passage: Passage, number: int) -> Iterator[_Weighed]:
    whole = " ".join(passage.text.split())
    if len(whole) <= _NOTE_CHARS:
        yield _Weighed(Chosen(passage, (number, 0), whole), _NOTE_WORTH * passage.nearness, _words(whole))
        return
    for at, sentence in enumerate(_sentences(passage.text)):
        weight = worth(sentence, Place()) * passage.nearness
        if weight:
            yield _Weighed(Chosen(passage, (number, at), sentence), weight, _words(sentence))


def _sentences(text: str) -> Iterable[str]:
    """Return the sentences of a text without code in fences, each on one line."""
    bare = _CODE.sub("\n", text)
    return (" ".join(bare[start:end].split()) for start, end in spans_of(bare))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
