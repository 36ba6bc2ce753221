"""Measure what summaries without a model keep of a conversation.

    python -m benchmarks.summaries --locomo FILE [--turns 20] [--json]

Each conversation of LoCoMo is cut into windows of 20 turns; each window has a summary of at most 30 % of its
characters, who speaks included, each sentence a quote. Beside it stand as many characters of
sentences drawn at random, and of the first ones (lead). The columns:

- `characters`: of the summary as a share of those of the turns.
- `kept`: share of the pairs of a question and a turn that its makers name as evidence of which the turn has a sentence
  in the summary, with a 95 % interval (Wilson).

LoCoMo is not part of the project (see `benchmarks.retrieval`).
"""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.summaries import WINDOW_SHARE, SummaryTurn, as_lines, choose_quotes
from agent_memory.language.sentences import find_sentences
from benchmarks.harness import build_parser, get_wilson_interval, print_report
from benchmarks.retrieval.data import QuestionGroup, load_locomo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_EVIDENCE: Final = re.compile(r"D\d+:\d+")
_ADVERSARIAL: Final = 5


@dataclass
class SummarizedTalk:
    """Conversation with its turns, speakers, and the turns that are named as evidence."""

    group: QuestionGroup
    speakers: Mapping[str, str]
    evidence: list[str] = field(default_factory=list)


Kept = list[tuple[str, str]]
"""Texts, each with the key of its turn."""


def main() -> int:
    """Measure and print."""
    parser = build_parser("summaries", __doc__, "--json")
    parser.add_argument("--locomo", type=Path, required=True, help="data/locomo10.json of snap-research/locomo")
    parser.add_argument("--turns", type=int, default=20, help="of a window")
    args = parser.parse_args()
    talks = _locomo(args.locomo)
    drawn = random.Random(1)
    ways: dict[str, Callable[[Sequence[SummaryTurn], int], Kept]] = {
        "summaries": _ours,
        "random sentences": partial(_random, drawn),
        "lead": _lead,
    }
    rows = {name: _measured(talks, way, args.turns) for name, way in ways.items()}
    print_report(rows, as_json=args.json)
    return 0


def _locomo(path: Path) -> list[SummarizedTalk]:
    talks = []
    for group, data in zip(load_locomo(path, "none"), json.loads(path.read_text("utf-8")), strict=True):
        turns = [turn for value in data["conversation"].values() if isinstance(value, list) for turn in value]
        speakers = {turn["dia_id"]: turn["speaker"] for turn in turns}
        talk = SummarizedTalk(group, speakers)
        for question in data["qa"]:
            gold = [key for text in question["evidence"] for key in _EVIDENCE.findall(text)]
            if question["category"] != _ADVERSARIAL:
                talk.evidence += [key for key in gold if key in speakers]
        talks.append(talk)
    return talks


def _windows(talk: SummarizedTalk, turns: int) -> Iterator[list[SummaryTurn]]:
    passages = [SummaryTurn(item.key, item.text, talk.speakers[item.key]) for item in talk.group.items]
    for number in range(0, len(passages), turns):
        yield passages[number : number + turns]


def _measured(
    talks: Sequence[SummarizedTalk], way: Callable[[Sequence[SummaryTurn], int], Kept], turns: int
) -> dict[str, float]:
    pairs = kept = chars = whole = windows = 0
    spent = 0.0
    for talk in talks:
        held: set[str] = set()
        for passages in _windows(talk, turns):
            own = sum(len(passage.text) for passage in passages)
            began = time.process_time()
            said = way(passages, int(WINDOW_SHARE * own))
            spent += time.process_time() - began
            whole, windows = whole + own, windows + 1
            chars += sum(len(text) + 1 for text, _ in said)
            held |= {key for _, key in said}
        pairs += len(talk.evidence)
        kept += sum(key in held for key in talk.evidence)
    low, high = get_wilson_interval(kept, pairs)
    share = {"characters": chars / whole, "kept": kept / pairs, "low": low, "high": high}
    return {**share, "ms": 1000 * spent / windows, "windows": windows, "pairs": pairs}


def _ours(passages: Sequence[SummaryTurn], most: int) -> Kept:
    quotes = choose_quotes(passages, most)
    assert len(as_lines(quotes)) <= most
    return [(words, turn.id) for turn, words in quotes]


def _every(passages: Sequence[SummaryTurn]) -> Kept:
    spans = [(passage, *span) for passage in passages for span in find_sentences(passage.text)]
    return [(passage.text[start:end], passage.id) for passage, start, end in spans]


def _lead(passages: Sequence[SummaryTurn], most: int) -> Kept:
    kept, left = [], most
    for text, key in _every(passages):
        if len(text) > left:
            break
        kept.append((text, key))
        left -= len(text)
    return kept


def _random(drawn: random.Random, passages: Sequence[SummaryTurn], most: int) -> Kept:
    every, left = _every(passages), most
    kept = []
    for number in drawn.sample(range(len(every)), len(every)):
        if len(every[number][0]) <= left:
            kept.append(number)
            left -= len(every[number][0])
    return [every[at] for at in sorted(kept)]


if __name__ == "__main__":
    raise SystemExit(main())
