"""Run of one set: stored, and asked of product and rivals."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.harness import ManualClock, open_scratch, store_items
from benchmarks.retrieval.metrics import DEPTH, AnswerRanks, outcome
from benchmarks.retrieval.rivals import RivalRankings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.embeddings import Embedder
    from agent_memory.storage import MemoryStorage
    from benchmarks.retrieval.data import QuestionGroup

PRODUCT: Final = "product"


@dataclass
class RetrievalRun:
    """Figures of a run.

    Attributes:
        outcomes: Of each ranker, question by question in one order.
        groups: Which group each of these questions is of.
        modes: How the product answered.
        milliseconds: What its searches took.
    """

    outcomes: dict[str, list[AnswerRanks]] = field(default_factory=lambda: defaultdict(list))
    groups: list[str] = field(default_factory=list)
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


async def measure(groups: Sequence[QuestionGroup], embedder: Embedder | None) -> RetrievalRun:
    """Store each group as an agent of its own; ask its questions.

    Args:
        groups: What to store and to ask.
        embedder: None finds by words alone.
    """
    run = RetrievalRun()
    settings = ServiceSettings.model_validate({} if embedder else {"embedder": "none"})
    with open_scratch() as folder:
        for number, group in enumerate(groups):
            clock = ManualClock(group.now)
            storage = FileStorage(f"bench-{number}", folder, settings=settings, embedder=embedder, clock=clock)
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
    for query in group.queries:
        asked.clock.now = query.now or group.now
        began = time.perf_counter()
        hits = await asked.storage.search(query.text, limit=DEPTH)
        run.milliseconds.append(1000 * (time.perf_counter() - began))
        run.modes[hits.mode] += 1
        rankings = {PRODUCT: [asked.key_of[hit.memory.id] for hit in hits], **asked.rivals.search(query.text)}
        for name, keys in rankings.items():
            run.outcomes[name].append(outcome(keys, query.gold, query.category))
        run.groups.append(group.name)
