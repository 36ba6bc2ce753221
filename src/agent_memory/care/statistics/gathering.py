"""How the figures are gathered: one pass over the memories, one over the log, a look at the files. Changes nothing."""

from __future__ import annotations

import asyncio
import heapq
import sqlite3
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.agents import summary_of
from agent_memory.care.statistics.figures import Captures, Embedded, Statistics, Used, by_weeks
from agent_memory.embeddings import text_hash
from agent_memory.embeddings.hashes import Hashes
from agent_memory.embeddings.inspection import cache_files, inspect_cache
from agent_memory.files.entries import size_of
from agent_memory.files.names import AUDIT, BLOBS, DERIVED, INDEX, OLDER_AUDIT, SCRATCHPAD, TOPICS, may_be_journal
from agent_memory.language.text_forms import embedded_texts
from agent_memory.memory.events import read_audit

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory

MOST_USED: Final = 10
_PARTS: Final = {
    SCRATCHPAD: "scratchpad",
    BLOBS: "long texts",
    TOPICS: "pages of topics",
    DERIVED: "index",
    INDEX: "index",
    AUDIT: "log of changes",
    OLDER_AUDIT: "log of changes",
}
"""What a file or a folder holds, by its name; journals and vectors are told by theirs, too."""


async def statistics_of(service: MemoryService, now: datetime, *, most_used: int = MOST_USED) -> Statistics:
    """Return how much one agent knows, how that grew and what of it is used.

    Args:
        service: Its memory.
        now: The present, UTC.
        most_used: How many of the memories that are used most are named.

    Raises:
        StorageError: The memories cannot be read.
    """
    tally, counted = await service.storage.tally(), _Counting(most_used)
    async for memory in service.storage.iter_all():
        counted.add(memory)
    folder, settings = service.folder, service.settings
    log = _Log() if folder is None else await asyncio.to_thread(_read_log, folder)
    of_files: dict[str, Any] = {}
    if folder is not None:
        of_files["sizes"] = await asyncio.to_thread(_sizes, folder.path)
        of_files["embedded"] = await asyncio.to_thread(_embedded, folder, counted.texts)
        summary = await asyncio.to_thread(summary_of, service.agent_id, settings.storage_root)
        of_files["others"] = dict(summary.others)
    return Statistics(
        service.agent_id,
        tally.records,
        tally.items,
        tally.superseded,
        tally.expired,
        tally.pinned,
        **counted.shares(),
        accesses=counted.accesses,
        never_used=counted.never_used,
        most_used=counted.most_used(),
        weeks=by_weeks(counted.stored, counted.used, log.forgotten_at, now),
        captures=log.captures(counted.ids),
        **of_files,
    )


class _Counting:
    """What is counted of memories, one after the other; of their texts only hashes are kept.

    Args:
        most_used: How many are named.
    """

    def __init__(self, most_used: int) -> None:
        self.by = {name: Counter[str]() for name in ("category", "trust", "source", "project", "group")}
        self.accesses = self.never_used = 0
        self.stored: list[datetime] = []
        self.used: list[datetime] = []
        self.ids: set[str] = set()
        self.texts: set[bytes] = set()
        self._limit = most_used
        self._most: list[tuple[int, int, Used]] = []

    def add(self, memory: Memory) -> None:
        """Count one."""
        self.by["category"][memory.category] += 1
        self.by["trust"][memory.trust] += 1
        self.by["source"][memory.source.kind] += 1
        self.by["project"].update([memory.project] if memory.project else [])
        self.by["group"].update([memory.belongs_to] if memory.belongs_to else [])
        self.accesses += memory.access_count
        self.never_used += not memory.access_count
        self.stored.append(memory.timestamp)
        self.used += [memory.last_accessed] if memory.last_accessed is not None else []
        self.ids.add(memory.id)
        self.texts.update(map(text_hash, embedded_texts(memory.content)))
        if memory.access_count:  # among equals the one stored last
            entry = (memory.access_count, len(self.stored), Used(memory.id, memory.access_count, memory.content))
            heapq.heappush(self._most, entry)
            if len(self._most) > self._limit:
                heapq.heappop(self._most)

    def shares(self) -> dict[str, Any]:
        """Return how many there are by category, trust, source, project and group, as `Statistics` takes it."""
        return {f"by_{name}": dict(counts.most_common()) for name, counts in self.by.items()}

    def most_used(self) -> tuple[Used, ...]:
        """Return those that were used most."""
        return tuple(used for *_, used in sorted(self._most, key=lambda entry: entry[:2], reverse=True))


class _Log:
    """What the log of changes says: ids that were captured, and when which were forgotten."""

    def __init__(self) -> None:
        self.captured: set[str] = set()
        self.forgotten: set[str] = set()
        self.forgotten_at: list[datetime] = []

    def captures(self, known: set[str]) -> Captures:
        """Return what became of captures, with the ids of the memories there are."""
        kept = self.captured & known
        return Captures(len(self.captured), len(kept), len((self.captured - kept) & self.forgotten))


def _read_log(folder: AgentFolder) -> _Log:
    """Return what the log says; nothing where it cannot be read, which the doctor explains."""
    log = _Log()
    try:
        for entry in read_audit(folder.audit):
            event, memory_id = entry.get("event"), str(entry.get("memory_id"))
            if event == "memory:captured":
                log.captured.add(memory_id)
            elif event == "memory:forgotten":
                log.forgotten.add(memory_id)
                log.forgotten_at += _moments(entry.get("at"))
    except OSError:
        return _Log()
    return log


def _moments(text: object) -> list[datetime]:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return []
    return [moment] if moment.tzinfo is not None else []


def _sizes(folder: Path) -> dict[str, int]:
    sizes = Counter[str]()
    if not folder.is_dir():
        return {}
    vectors = {path.name for path in cache_files(folder / "embeddings.sqlite3")}
    for path in folder.iterdir():
        name = path.name
        part = "journals" if may_be_journal(name) else "vectors" if name in vectors else _PARTS.get(name, "others")
        sizes[part] += size_of(path)
    return {part: size for part, size in sizes.most_common() if size}


def _embedded(folder: AgentFolder, texts: set[bytes]) -> Embedded:
    """Return how many texts have a vector of the embedder that has most of them; none where no cache can be read."""
    try:
        facts = inspect_cache(folder.vectors)
    except (OSError, sqlite3.DatabaseError, UnicodeDecodeError):
        return Embedded(len(texts))
    spoilt = Hashes.of(facts.spoilt)
    found = [sum(key in hashes and key not in spoilt for key in texts) for hashes in facts.hashes.values()]
    return Embedded(len(texts), max(found, default=0))
