"""What a conversation says in few sentences, each of them a quote. Pure, no model.

A sentence counts by what it tells (`sentence_value.worth`), less where its turn is quoted already, and by
the root of its length: what is long must tell more.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.ingestion.summaries.sentence_value import (
    ASKS,
    BEFORE,
    WIDE,
    WORD,
    Situation,
    bare,
    is_courtesy,
    situation_of,
    worth,
)
from agent_memory.knowledge.items.sentences import spans_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_memory.ingestion.summaries.sentence_value import Passage

_BASE: Final = 1.0
"""What any sentence counts that tells nothing in particular."""
_AGAIN: Final = 0.5
"""Of what a sentence counts for each one that its turn has in the summary already."""
_LOOKED_AT: Final = 50_000
"""Characters of a turn, its first: a longer one is a document, whose items say more."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a turn: `Passage.text[start:end]`."""

    passage: Passage
    start: int
    end: int

    @property
    def text(self) -> str:
        """Its words."""
        return self.passage.text[self.start : self.end]


class _Seen(NamedTuple):
    """A sentence, by the number of its turn, and what it tells."""

    turn: int
    start: int
    end: int
    worth: float


def quotes_of(passages: Sequence[Passage], most: int) -> list[Quote]:
    """Return sentences that tell the most of a conversation, in its order.

    Args:
        passages: Its turns.
        most: Characters that `as_lines` makes of them, at most.
    """
    waiting: list[tuple[float, _Seen, int]] = []
    quoted: dict[int, int] = {}
    for number in range(len(passages)):
        waiting += [(-_count(each, 0), each, 0) for each in _sentences(passages, number)]
    heapq.heapify(waiting)
    chosen: list[_Seen] = []
    left = most
    while waiting:
        _, best, before = heapq.heappop(waiting)
        times = quoted.get(best.turn, 0)
        if times != before:  # its turn was quoted since it was weighed
            heapq.heappush(waiting, (-_count(best, times), best, times))
        elif (cost := _cost(passages, best, times)) <= left:
            chosen.append(best)
            quoted[best.turn] = times + 1
            left -= cost
    return [Quote(passages[each.turn], each.start, each.end) for each in sorted(chosen)]


def as_lines(quotes: Iterable[Quote]) -> str:
    """Return quotes as text, a line for each turn: who speaks, and the sentences."""
    lines: dict[str, list[str]] = {}
    who: dict[str, str] = {}
    for each in quotes:
        lines.setdefault(each.passage.id, []).append(" ".join(each.text.split()))
        who[each.passage.id] = each.passage.speaker
    return "\n".join(f"{who[one]}: {' '.join(said)}" if who[one] else " ".join(said) for one, said in lines.items())


def lines_of(summaries: Sequence[str], most: int) -> str:
    """Return the lines of summaries that tell the most, in their order; the first choice is one of each of them.

    Args:
        summaries: Texts made by `as_lines`.
        most: Characters at most; one line of each stays even where these are more.
    """
    lines = [(number, line) for number, text in enumerate(summaries) for line in text.splitlines() if line.strip()]
    ranked = sorted(range(len(lines)), key=lambda at: -_worth_of_line(lines[at][1]))
    first = {lines[at][0]: at for at in reversed(ranked)}.values()
    kept = set(first)
    left = most - sum(len(lines[at][1]) + 1 for at in kept)
    for at in ranked:
        if at not in kept and len(lines[at][1]) + 1 <= left:
            kept.add(at)
            left -= len(lines[at][1]) + 1
    return "\n".join(lines[at][1] for at in sorted(kept))


def _sentences(passages: Sequence[Passage], number: int) -> Iterator[_Seen]:
    """Yield the sentences of a turn that state anything: no questions, no greetings."""
    passage, earlier = passages[number], passages[max(0, number - BEFORE) : number]
    situation = situation_of(passage, earlier)
    for start, end in spans_of(passage.text, 0, min(len(passage.text), _LOOKED_AT)):
        said = passage.text[start:end]
        core = bare(said, situation.others)
        if WIDE.search(core) and not ASKS.search(said):
            yield _Seen(number, start, end, 0.0)
            continue
        if ASKS.search(said) or not WORD.search(core) or is_courtesy(said, core, situation.others):
            continue
        here = replace(situation, is_answer=situation.is_answer and not start)
        yield _Seen(number, start, end, worth(said, core, here))


def _count(seen: _Seen, times: int) -> float:
    """Return what a sentence counts whose turn is quoted so many times."""
    return float(max(0.0, _BASE + seen.worth) * _AGAIN**times / (seen.end - seen.start) ** 0.5)


def _cost(passages: Sequence[Passage], seen: _Seen, times: int) -> int:
    """Return how many characters a sentence adds, who speaks included."""
    speaker = passages[seen.turn].speaker
    return seen.end - seen.start + 1 + (0 if times or not speaker else len(speaker) + 2)


def _worth_of_line(line: str) -> float:
    said = line.partition(": ")[2] or line
    return float(max(0.0, _BASE + worth(said, said, Situation())) / len(line) ** 0.5)
