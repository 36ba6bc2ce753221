"""Questions as first prompts: which answers are readable before the first reply.

Each group of a set is a store. Each of its questions begins a session on the day after its last memory (or when the
set says that it is asked). An answer counts as readable where a memory that the set names as one is shown, whole or in
part; a question that several memories answer by the share of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.importance import importance_of
from agent_memory.memory import MemoryService
from agent_memory.memory.briefing import TOKENS, Briefer
from agent_memory.models import Memory
from agent_memory.scratchpad import estimate_tokens, render
from agent_memory.settings import ScratchpadSettings, ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.harness import ManualClock, open_scratch
from benchmarks.retrieval.data import load_jsonl, load_locomo

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from benchmarks.retrieval.data import QuestionGroup, SetItem, SetQuery

_PATIENCE: Final = 5.0
_PAD: Final = 2_000
"""Tokens of the scratchpad."""
_PLACES: Final = 50
"""Entries of the scratchpad."""
_LINE: Final = 14
"""Tokens of what stands around an entry there: its id, its date, its category."""
_EACH: Final = 50
"""Questions of a group that are asked, evenly drawn: a conversation has some two hundred."""


@dataclass
class ReadableShares:
    """Shares of readable answers by way and question."""

    of: dict[str, list[float]] = field(default_factory=dict)

    def add(self, way: str, shown: set[str], gold: set[str]) -> None:
        """Note what one way shows of the answers of one question."""
        self.of.setdefault(way, []).append(len(shown & gold) / len(gold))


async def ask(path: Path, embedder: str) -> ReadableShares:
    """Ask the questions of a LoCoMo or JSON lines file."""
    groups = load_locomo(path, (), "turn") if path.suffix == ".json" else load_jsonl(path)
    shares = ReadableShares()
    for group in groups:
        with open_scratch() as root:
            await _ask_group(group, root, embedder, shares)
    return shares


async def _ask_group(group: QuestionGroup, root: Path, embedder: Any, shares: ReadableShares) -> None:
    clock = ManualClock(group.now)
    settings = ServiceSettings(storage_root=str(root), embedder=embedder)
    service = MemoryService(FileStorage("bench", settings=settings, clock=clock), settings, clock=clock)
    memories = {item.key: _memory(item) for item in group.items}
    try:
        await service.storage.store_many(list(memories.values()))
        await service.storage.prepare(None)
        briefers = {
            f"briefing, {tokens:,}": Briefer(service, clock=clock, tokens=tokens, patience=_PATIENCE)
            for tokens in (TOKENS, _PAD, _PAD + TOKENS)
        }
        for query in group.queries[:: max(1, len(group.queries) // _EACH)]:
            clock.now = query.now or group.now
            gold = {memories[key].id for key in query.gold}
            await _compare(service, briefers, query, gold, shares)
            shares.add(f"fifty by importance, {_PAD:,}", _important(list(memories.values()), clock.now), gold)
    finally:
        await service.close()


def _memory(item: SetItem) -> Memory:
    memory = Memory(agent_id="bench", content=item.text, timestamp=item.when, category=item.category)
    return memory.model_copy(update={"created_by_session": item.session})


async def _compare(
    service: MemoryService, briefers: dict[str, Briefer], query: SetQuery, gold: set[str], shares: ReadableShares
) -> None:
    entries = (await service.scratchpad()).entries
    text = render(entries, "bench", ScratchpadSettings(token_budget=_PAD)).text
    last = {entry.id for entry in entries if " ".join(entry.content.split())[:60] in " ".join(text.split())}
    shares.add(f"last fifty, {_PAD:,}", last, gold)
    for name, briefer in briefers.items():
        briefed = {memory.id for memory in (await briefer.brief(query.text)).memories}
        shares.add(name, briefed, gold)
        if name == f"briefing, {TOKENS:,}":
            briefed_beside_pad = {memory.id for memory in (await briefer.brief(query.text, known=last)).memories}
            shares.add(f"both, {_PAD:,} and {TOKENS:,}", last | briefed_beside_pad, gold)


def _important(memories: list[Memory], now: datetime) -> set[str]:
    """Return the fifty most important memories, as many as fit."""
    shown, remaining = set[str](), _PAD
    for memory in sorted(memories, key=lambda each: (-importance_of(each, now), -each.timestamp.timestamp()))[:_PLACES]:
        cost = estimate_tokens(memory.content) + _LINE
        if cost <= remaining:
            shown.add(memory.id)
            remaining -= cost
    return shown
