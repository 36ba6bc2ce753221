"""Run of one set: stored, and asked of product and rivals."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory import storage as backends
from agent_memory.settings import ServiceSettings
from benchmarks.harness import ManualClock, open_scratch, store_items
from benchmarks.retrieval.metrics import DEPTH, AnswerRanks, outcome
from benchmarks.retrieval.profiles import profiled
from benchmarks.retrieval.rivals import RankedKeys, RivalRankings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.embeddings import Embedder
    from agent_memory.storage import FileStorage, MemoryStorage
    from benchmarks.retrieval.data import QuestionGroup, SetQuery

PRODUCT: Final = "product"


@dataclass
class RetrievalRun:
    """Figures of a run.

    Attributes:
        outcomes: Of each ranker, question by question in one order.
        groups: Which group each of these questions is of.
        tops: Of each ranker, the number of the first hit for each of these questions.
        unanswerable: The same for questions that nothing answers.
        current: Of each ranker and question with outdated answers: 1 where an answer is found above all of these.
        relevance: Of each labelled hit that the product found, in the profile `weighted`.
        modes: How the product answered.
        milliseconds: What its searches took.
    """

    outcomes: dict[str, list[AnswerRanks]] = field(default_factory=lambda: defaultdict(list))
    groups: list[str] = field(default_factory=list)
    tops: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    unanswerable: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    current: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    relevance: list[float] = field(default_factory=list)
    modes: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class _AskedGroup:
    """Stored group with the systems that answer its questions."""

    run: RetrievalRun
    group: QuestionGroup
    storage: MemoryStorage
    key_of: Mapping[str, str]
    clock: ManualClock
    rivals: RivalRankings


async def measure(groups: Sequence[QuestionGroup], backend: str, embedder: Embedder | None) -> RetrievalRun:
    """Store each group as an agent of its own; ask its questions.

    Args:
        groups: What to store and to ask.
        backend: `file` or `vector`.
        embedder: None finds by words alone.
    """
    run = RetrievalRun()
    settings = ServiceSettings.model_validate({} if embedder else {"embedder": "none"})
    # By name: the vector backend comes with the engine.
    kind: type[FileStorage] = getattr(backends, "FileStorage" if backend == "file" else "VectorStorage")
    with open_scratch() as folder:
        for number, group in enumerate(groups):
            clock = ManualClock(group.now)
            storage = kind(f"bench-{number}", folder, settings=settings, embedder=embedder, clock=clock)
            try:
                key_of = await store_items(storage, group.items)
                await _measure_group(
                    _AskedGroup(run, group, storage, key_of, clock, RivalRankings(group.items, embedder))
                )
            finally:
                await storage.close()
    return run


async def _measure_group(asked: _AskedGroup) -> None:
    run, group = asked.run, asked.group
    for query in [*group.queries, *group.unanswerable]:
        asked.clock.now = query.now or group.now
        began = time.perf_counter()
        hits = await asked.storage.search(query.text, limit=DEPTH)
        run.milliseconds.append(1000 * (time.perf_counter() - began))
        run.modes[hits.mode] += 1
        ours = RankedKeys([asked.key_of[hit.memory.id] for hit in hits], _top(hits))
        profiles = profiled(query.text, hits, asked.key_of, asked.clock.now)
        rankings = {PRODUCT: ours, **asked.rivals.search(query.text), **profiles.rankings}
        run.relevance += [value for key, value in profiles.relevance.items() if key in query.gold]
        for name, ranking in rankings.items():
            _note(run, name, query, ranking)
        if query.gold:
            run.groups.append(group.name)


def _top(found: Any) -> float:
    """Return the confidence of an answer, else its best score."""
    answer: float | None = getattr(found, "answer_confidence", None)
    if answer is not None:
        return answer
    return float(found[0].relevance_score) if len(found) else 0.0


def _note(run: RetrievalRun, name: str, query: SetQuery, ranking: RankedKeys) -> None:
    if not query.gold:
        run.unanswerable[name].append(ranking.top)
        return
    run.outcomes[name].append(outcome(ranking.keys, query.gold, query.category))
    run.tops[name].append(ranking.top)
    if query.stale:
        first, outdated = (
            min((ranking.keys.index(key) for key in keys if key in ranking.keys), default=DEPTH)
            for keys in (query.gold, query.stale)
        )
        run.current[name].append(float(first < outdated))
