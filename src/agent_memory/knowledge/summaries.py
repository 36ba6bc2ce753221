"""Summaries of conversations by quotes, and their background stage.

The next quoted sentence is the one with the most words that the summary does not have: a matter is quoted once.
"""

from __future__ import annotations

import asyncio
import functools
import heapq
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from agent_memory.capture.typed_text import is_partly_pasted
from agent_memory.errors import StorageError, SummarizationError
from agent_memory.files.processes import ReaderDiedError
from agent_memory.knowledge.pipeline.ingestion_config import EXTRACTION_LATENCY, SUMMARIES_CREATED
from agent_memory.knowledge.pipeline.stages import RECORD_ERRORS, Batch
from agent_memory.language.languages import load_patterns
from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.language.sentences import find_sentences
from agent_memory.logs import get_logger, span
from agent_memory.memory.trust import lowest
from agent_memory.models import COVERS, EPISODE, PART_OF, SUMMARY, Episode, derived_id, to_text
from agent_memory.store.record_redaction import Redacted, make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.pipeline.ingestion_config import SummarizationConfig, SummaryType
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Summary, Trust

WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
ASKS: Final = re.compile(r"[?\uff1f][\"')\]!?\u201d]{0,4}$")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
"""Writing without spaces between words."""
_NAMED: Final = 3.0
"""Weight of a number or a name; of another word 1."""
_LENGTH_POWER: Final = 0.7
"""On five conversations of LoCoMo .856 of the evidence is quoted, with .5 .840."""
_LEAST_WEIGHT: Final = 2.0
_LEAST_CHARS: Final = 15
"""Weight of the words and length of a quote: greetings and exclamations have less."""
_AGAIN: Final = 0.5
"""Factor of a sentence's value for each sentence of its turn that the summary has already."""
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
    return word.replace("\u2019", "'").partition("'")[0] in _load_common_words()


@functools.cache
def _load_common_words() -> frozenset[str]:
    """Return the words that tell nothing, in English and German."""
    return frozenset(load_patterns("agent_memory.knowledge", "summaries")["common_words"].split())


class _Sentence(NamedTuple):
    """Sentence of a turn with the weights of its words."""

    turn: int
    start: int
    end: int
    weights: Mapping[str, float]


def choose_quotes(passages: Sequence[SummaryTurn], most: int) -> list[tuple[SummaryTurn, str]]:
    """Return the most telling sentences with their turns, in order.

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
    chosen.sort(key=lambda sentence: sentence[:2])
    return [(passages[turn], passages[turn].text[start:end]) for turn, start, end, _ in chosen]


def as_lines(quotes: Iterable[tuple[SummaryTurn, str]]) -> str:
    """Return quotes as lines, one for each turn with its speaker."""
    lines: dict[str, str] = {}
    for turn, words in quotes:
        begun = lines.get(turn.id, f"{turn.speaker}:" if turn.speaker else "")
        lines[turn.id] = f"{begun} {' '.join(words.split())}".lstrip()
    return "\n".join(lines.values())


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


log = get_logger(__name__)
STAGE: Final = "summaries"
WINDOW_SHARE: Final = 0.3
META_SHARE: Final = 0.6
"""Most characters of a meta summary, as a share of the summarized ones."""
_MOST_CONVERSATIONS: Final = 8
"""Conversations that a summary links to, at most."""
NOTHING: Final = "nothing_to_summarise"
"""Code of the error for turns that state nothing."""
RULES: Final = "quotes"
"""`source.detail` of a summary that was made without a language model."""


class SummaryStage:
    """Task stage that summarizes conversations. See `agent_memory.knowledge.pipeline.stages.Stage`.

    Args:
        knowledge: Records of the agent.
        config: Number of turns from which on a summary is due.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = STAGE
    version = 1
    source = EPISODE.name

    def __init__(self, knowledge: Knowledge, config: SummarizationConfig) -> None:
        self._knowledge, self._config = knowledge, config
        self._open: dict[str, UncoveredTurns] = {}

    async def gone(self) -> Collection[str]:
        """See `Stage.gone`. Summaries of forgotten turns are gone, too."""
        return ()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        turns: dict[str, list[Episode]] = {}
        for record in batch.records:
            if record.conversation is not None and record.content_type == "message":
                turns.setdefault(record.conversation, []).append(record)
        for conversation, new in turns.items():
            uncovered = self._open.get(conversation)
            if uncovered is not None:
                uncovered.add(new)
            elif await self._may_be_due(conversation, new):
                uncovered = self._open[conversation] = await UncoveredTurns.read(
                    self._knowledge, conversation, batch.never
                )
            if uncovered is not None:
                await uncovered.summarise(self._knowledge, self._config, batch.run)
        return {}

    async def _may_be_due(self, conversation: str, new: Sequence[Episode]) -> bool:
        """Return True if enough turns follow the last summary."""
        summaries = await self._knowledge.summaries.linked_to(conversation)
        through = max((_through(record) for record in summaries), default=-1)
        return max(record.order for record in new) - through >= self._config.window.turns_per_summary


class UncoveredTurns:
    """Turns and summaries of a conversation that no summary covers.

    Args:
        turns: Turns of the conversation.
        summaries: Summaries of the conversation.
        never: IDs of turns with forgotten parts, left out of summaries.
    """

    def __init__(
        self, turns: Iterable[Episode], summaries: Sequence[Summary], never: Collection[str] = frozenset()
    ) -> None:
        self._covered = {*never, *(covered_id for summary in summaries for covered_id in summary.covers)}
        self._waiting: dict[str, Episode] = {}
        self._count = 0
        self._windows = [
            summary for summary in summaries if summary.level == "window" and summary.id not in self._covered
        ]
        self.add(turns)

    @classmethod
    async def read(cls, knowledge: Knowledge, conversation: str, never: Collection[str] = frozenset()) -> Self:
        """Return the present state of a conversation.

        Raises:
            StorageError: It cannot be read.
        """
        turns = await knowledge.episodes.linked_to(conversation)
        summaries = await knowledge.summaries.linked_to(conversation)
        return cls([turn for turn in turns if turn.content_type == "message"], summaries, never)

    def add(self, turns: Iterable[Episode]) -> None:
        """Note turns that came in."""
        for turn in turns:
            if turn.id not in self._covered and turn.id not in self._waiting:
                self._waiting[turn.id] = turn
                self._count += 1

    async def summarise(
        self, knowledge: Knowledge, config: SummarizationConfig, run: Callable[..., Awaitable[Any]] = asyncio.to_thread
    ) -> list[Summary]:
        """Store the summaries that are due; return them.

        Raises:
            StorageError: What was kept before is on the disk; doing it again does the rest.
        """
        size = config.window.turns_per_summary
        new: list[Summary] = []
        waiting = sorted(self._waiting.values(), key=_order)
        for start in range(0, len(waiting) - size + 1, size):
            covered = waiting[start : start + size]
            summaries = await _store_summary(
                knowledge, await summarize_window(knowledge, covered, config, is_due=True, run=run)
            )
            self._covered |= {record.id for record in covered}
            self._waiting = {
                turn_id: record for turn_id, record in self._waiting.items() if turn_id not in self._covered
            }
            self._windows += summaries
            new += summaries
        if self._count + len(self._covered) < config.meta.enabled_at_turn_count:
            return new
        self._windows.sort(key=lambda record: (record.moment, record.id))
        count = config.meta.summaries_per_meta
        while len(self._windows) >= count:
            windows, self._windows = self._windows[:count], self._windows[count:]
            new += await _store_summary(knowledge, await summarize_summaries(knowledge, windows, config))
            self._covered |= {record.id for record in windows}
        return new


async def summarize_window(
    knowledge: Knowledge,
    episodes: Sequence[Episode],
    config: SummarizationConfig,
    *,
    is_due: bool = False,
    run: Callable[..., Awaitable[Any]] = asyncio.to_thread,
) -> Redacted[Summary]:
    """Return a summary of these turns without storing it.

    Args:
        knowledge: Records of the agent.
        episodes: Turns to summarize.
        config: Maximum length of the summary.
        is_due: Make one also of turns that state nothing, or on which a reader dies alone: of their first words.
        run: Runs the rules, off the event loop: see `agent_memory.knowledge.pipeline.stages.Batch`.

    Raises:
        SummarizationError: They state nothing, or are of several groups.
        StorageError: A text cannot be read.
    """
    with _measure("window", len(episodes)):
        texts = [await _read_text(knowledge, episode) for episode in episodes]
        passages = build_turns(episodes, texts)
        most = get_limit(texts, WINDOW_SHARE, config.window.max_tokens)
        content = await _quote(passages, most, run)
        if not content and is_due:
            content = " ".join(" ".join(texts).split())[: max(1, most)]
        return build_summary("window", episodes, content, sum(map(len, texts)), knowledge.clock())


async def _quote(passages: Sequence[SummaryTurn], most: int, run: Callable[..., Awaitable[Any]]) -> str:
    """Return quotes of turns, none if the reader died."""
    try:
        return as_lines(await run(choose_quotes, passages, most))
    except ReaderDiedError as error:
        log.warning("summary_without_quotes", covered=len(passages), reason=error.reason)
        return ""


async def summarize_summaries(
    knowledge: Knowledge, summaries: Sequence[Summary], config: SummarizationConfig
) -> Redacted[Summary]:
    """Return the summary of some summaries, not kept.

    Raises:
        SummarizationError: They are of several groups.
    """
    with _measure("meta", len(summaries)):
        texts = [summary.content for summary in summaries]
        most = get_limit(texts, META_SHARE, config.meta.max_tokens)
        content = choose_lines(texts, most)
        return build_summary("meta", summaries, content, sum(map(len, texts)), knowledge.clock())


@contextmanager
def _measure(level: SummaryType, covered: int) -> Iterator[None]:
    """Report a span and the latency of a summary."""
    began = time.perf_counter()
    with span(f"memory.summarize_{level}", covered=covered):
        yield
    EXTRACTION_LATENCY.observe((time.perf_counter() - began) * 1000, operation=f"summarize_{level}")


async def _read_text(knowledge: Knowledge, episode: Episode) -> str:
    """Return the text of a turn, its beginning without the blob."""
    try:
        return await knowledge.text_of(episode)
    except StorageError as error:
        if error.code not in RECORD_ERRORS:
            raise
        return episode.content


async def _store_summary(knowledge: Knowledge, draft: Redacted[Summary] | None) -> list[Summary]:
    """Keep a summary, unless it is there; return it."""
    if draft is None or await knowledge.summaries.get(draft.value.id) is not None:
        return []
    began = time.perf_counter()
    await knowledge.summaries.store_many([draft])
    SUMMARIES_CREATED.add(summary_type=draft.value.level)
    log.info(
        "summary_created",
        group_id=draft.value.group,
        summary_type=draft.value.level,
        episodes_covered=len(draft.value.covers),
        summary_id=draft.value.id,
        compression_ratio=draft.value.metadata["compression_ratio"],
        latency_ms=round((time.perf_counter() - began) * 1000, 3),
    )
    return [draft.value]


def _order(episode: Episode) -> tuple[int, datetime, str]:
    return episode.order, episode.moment, episode.id


def _through(summary: Summary) -> int:
    """Return the position of the last covered turn, or -1."""
    through = summary.metadata.get("through")
    return through if isinstance(through, int) else -1


def build_turns(episodes: Sequence[Episode], texts: Sequence[str]) -> list[SummaryTurn]:
    """Return turns as what is read, given the whole text of each."""
    return [
        SummaryTurn(episode.id, text, episode.speaker or episode.role)
        for episode, text in zip(episodes, texts, strict=True)
    ]


def get_limit(texts: Sequence[str], share: float, max_tokens: int) -> int:
    """Return the maximum of characters of a summary."""
    chars = sum(map(len, texts))
    tokens = sum(map(estimate_tokens, texts))
    return min(int(share * chars), int(max_tokens * chars / max(1, tokens)))


def build_summary(
    level: SummaryType, covered: Sequence[Episode | Summary], content: str, characters: int, now: datetime
) -> Redacted[Summary]:
    """Return a summary as it would be stored.

    Args:
        level: Of turns, or of summaries.
        covered: What it is of: records of one group.
        content: What it says.
        characters: Of what it covers.
        now: Present moment, UTC.

    Raises:
        SummarizationError: It says nothing, or is of several groups.
    """
    group = _check_group(level, covered, content)
    moments = [covered_record.moment for covered_record in covered]
    orders = [covered_record.order for covered_record in covered if isinstance(covered_record, Episode)]
    values: dict[str, Any] = {
        "level": level,
        "content": content,
        "group": group,
        "timestamp": now,
        "observed_at": max(moments),
        "source": {"kind": "extraction", "detail": RULES},
        "trust": lowest(*map(_get_trust, covered)),
        "links": _build_links(covered),
        "metadata": {
            "since": to_text(min(moments)),
            "until": to_text(max(moments)),
            "compression_ratio": round(len(content) / max(1, characters), 3),
            "tokens": estimate_tokens(content),
            **({"through": max(orders)} if orders else {}),
        },
    }
    record = make_record(SUMMARY, values, covered[0].agent_id)
    return with_fields(record, id=derived_id(SUMMARY.prefix, level, *(covered_record.id for covered_record in covered)))


def _get_trust(record: Episode | Summary) -> Trust:
    """Return a record's trust, low for a partly pasted turn."""
    return "low" if isinstance(record, Episode) and is_partly_pasted(record) else record.trust


def _check_group(level: SummaryType, covered: Sequence[Episode | Summary], content: str) -> str:
    """Return the group of the covered records; raises as `build_summary`."""
    groups = {record.group for record in covered}
    group = next(iter(groups), "")
    if not content or len(groups) > 1:
        what = "has nothing that states anything" if not content else "is of several groups"
        raise SummarizationError(
            f"No summary was made: what it is to cover {what}. Nothing was changed.",
            group_id=group or None,
            summary_type=level,
            code=NOTHING if not content else "several_groups",
            recovery="Give turns of one conversation with statements; questions and greetings are left out.",
        )
    return group


def _build_links(covered: Sequence[Episode | Summary]) -> list[dict[str, str]]:
    """Return links to the first conversations and all covered records."""
    conversations = dict.fromkeys(link.id for record in covered for link in record.links if link.rel == PART_OF)
    return [
        *({"rel": PART_OF, "id": conversation} for conversation in [*conversations][:_MOST_CONVERSATIONS]),
        *({"rel": COVERS, "id": record.id} for record in covered),
    ]
