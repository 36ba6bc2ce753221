"""Summarize a conversation by quotes. Pure, no model.

The next sentence is the one with the most words that the summary does not have: a matter is quoted once.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.knowledge.summaries.sentence_value import ASKS, WORD, get_value, weigh_words
from agent_memory.language.sentences import find_sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from agent_memory.knowledge.summaries.sentence_value import SummaryTurn

_LEAST_WEIGHT: Final = 2.0
_LEAST_CHARS: Final = 15
"""Weight of the words and length of a quote: greetings and exclamations have less."""
_AGAIN: Final = 0.5
"""Of what a sentence counts for each one that its turn has in the summary already."""
_LOOKED_AT: Final = 50_000
"""Characters of a turn, its first: a longer one is a document, whose items say more."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a turn: `SummaryTurn.text[start:end]`."""

    passage: SummaryTurn
    start: int
    end: int

    @property
    def text(self) -> str:
        """Its words."""
        return self.passage.text[self.start : self.end]


class _Sentence(NamedTuple):
    """Sentence of a turn with the weights of its words."""

    turn: int
    start: int
    end: int
    weights: Mapping[str, float]


def quotes_of(passages: Sequence[SummaryTurn], most: int) -> list[Quote]:
    """Return sentences that tell the most of a conversation, in its order.

    Args:
        passages: Its turns.
        most: Characters that `as_lines` makes of them, at most.
    """
    speakers = {name.casefold() for passage in passages for name in WORD.findall(passage.speaker)}
    sentences = [sentence for turn in range(len(passages)) for sentence in _cut_turn(passages, turn, speakers)]
    chosen: list[_Sentence] = []
    quoted: dict[int, int] = {}
    covered: set[str] = set()
    left = most

    def get_rank(sentence: _Sentence) -> float:
        value = get_value(sentence.weights, covered, sentence.end - sentence.start)
        return -value * _AGAIN ** quoted.get(sentence.turn, 0)

    waiting = [(get_rank(sentence), place) for place, sentence in enumerate(sentences)]
    heapq.heapify(waiting)
    while waiting:
        rank, place = heapq.heappop(waiting)
        best = sentences[place]
        if (now := get_rank(best)) > rank:  # its words, or its turn, were quoted since it was weighed
            if now < 0:
                heapq.heappush(waiting, (now, place))
        elif (cost := _get_cost(passages, best, is_first=best.turn not in quoted)) <= left:
            chosen.append(best)
            quoted[best.turn] = quoted.get(best.turn, 0) + 1
            covered |= best.weights.keys()
            left -= cost
    return [Quote(passages[turn], start, end) for turn, start, end, _ in sorted(chosen, key=lambda one: one[:2])]


def as_lines(quotes: Iterable[Quote]) -> str:
    """Return quotes as lines, one for each turn with its speaker."""
    lines: dict[str, list[str]] = {}
    who: dict[str, str] = {}
    for quote in quotes:
        lines.setdefault(quote.passage.id, []).append(" ".join(quote.text.split()))
        who[quote.passage.id] = quote.passage.speaker
    return "\n".join(f"{who[key]}: {' '.join(words)}" if who[key] else " ".join(words) for key, words in lines.items())


def lines_of(summaries: Sequence[str], most: int) -> str:
    """Return the most telling lines of summaries, at least one of each.

    Args:
        summaries: Texts made by `as_lines`.
        most: Characters at most; one line of each stays even where these are more.
    """
    lines = [(number, line) for number, text in enumerate(summaries) for line in text.splitlines() if line.strip()]
    ranked = sorted(range(len(lines)), key=lambda place: -_get_line_value(lines[place][1]))
    first = {lines[place][0]: place for place in reversed(ranked)}.values()
    chosen = set(first)
    left = most - sum(len(lines[place][1]) + 1 for place in chosen)
    for place in ranked:
        if place not in chosen and len(lines[place][1]) + 1 <= left:
            chosen.add(place)
            left -= len(lines[place][1]) + 1
    return "\n".join(lines[place][1] for place in sorted(chosen))


def _cut_turn(passages: Sequence[SummaryTurn], turn: int, speakers: Collection[str]) -> Iterator[_Sentence]:
    """Yield the sentences of a turn that tell enough, no questions."""
    text = passages[turn].text
    for start, end in find_sentences(text, 0, min(len(text), _LOOKED_AT)):
        sentence = text[start:end]
        weights = weigh_words(sentence, speakers)
        is_long = end - start >= _LEAST_CHARS or " " not in sentence  # a word, or writing without spaces
        if is_long and sum(weights.values()) >= _LEAST_WEIGHT and not ASKS.search(sentence):
            yield _Sentence(turn, start, end, weights)


def _get_cost(passages: Sequence[SummaryTurn], sentence: _Sentence, *, is_first: bool) -> int:
    """Return how many characters a sentence adds, who speaks included."""
    speaker = passages[sentence.turn].speaker
    return sentence.end - sentence.start + 1 + (len(speaker) + 2 if is_first and speaker else 0)


def _get_line_value(line: str) -> float:
    words = line.partition(": ")[2] or line
    return get_value(weigh_words(words), (), len(line))
