"""The product as a system for a drift world: all that the benchmark knows of it is here.

Notes are stored and searched through the service, as the tools do it, and what counts as shown is the text that
`memory_search` answers. What the product cannot do yet is asked for by the names it would have, so that each ability
shows its gain as soon as it exists.

Each memory that a store lists as similar to the new note makes a pair, marked as such. A bulk import lists none, so its
notes are compared after it, one by one, by the call that lists similar memories of captured notes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.memories import FileStorage
from agent_memory.memory import NOBODY, Caller, MemoryService, views
from agent_memory.models import Memory
from agent_memory.scratchpad import render
from benchmarks.drift.grade import tokens
from benchmarks.drift.system import RecallAnswer, ShownNote, SuspectPair, SystemAbilities, WriteAnswer
from benchmarks.harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agent_memory.memory.results import Suspect
    from agent_memory.settings import ServiceSettings

_CATEGORIES: Final = {
    "Decision": "decision", "Caution": "discovery", "Principle": "pattern", "Problem": "bugfix", "Insight": "insight",
}  # fmt: skip
_MOMENT: Final = timedelta(microseconds=1)


class ProductSystem:
    """One agent's memory, told by keys.

    Args:
        folder: Where it keeps its files.
        settings: As shipped when omitted by the caller of the benchmark.
        now: The world's present, in seconds since 1970.
    """

    def __init__(self, folder: Path, settings: ServiceSettings, now: float) -> None:
        self._present = datetime.fromtimestamp(now, UTC)
        self._clock = ManualClock(self._present)
        storage = FileStorage("drift", folder, settings=settings, clock=self._clock)
        self.service = MemoryService(storage, settings, clock=self._clock)
        self._ids: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._waiting: list[tuple[str, Memory]] = []
        self._uncompared: list[str] = []
        self._import_pairs: list[SuspectPair] = []

    @property
    def can(self) -> SystemAbilities:
        """Abilities of the product."""
        return SystemAbilities(suspects=True, trace=True, temporal=True)

    async def inscribe(self, record: dict[str, Any], mode: str) -> WriteAnswer:
        """Import or store a note."""
        if mode == "import":
            memory = Memory(agent_id="drift", timestamp=_moment(record["created_at"]), **_values(record))
            self._waiting.append((record["key"], memory))
            return WriteAnswer()
        return await self._store(record)

    async def _store(self, record: dict[str, Any], **more: Any) -> WriteAnswer:
        await self._imported()
        return await self.store(record["key"], {**_values(record), **more}, _moment(record["created_at"]))

    async def store(self, key: str, values: dict[str, Any], when: datetime) -> WriteAnswer:
        """Store values at a moment, as `memory_store` does."""
        self._clock.now = when
        try:
            stored = await self.service.store(values)
        finally:
            self._clock.now = self._present
        matched = self._keys.get(stored.memory.id) if stored.duplicate else None
        self._name(key, stored.memory.id)
        similar = tuple(self.key_of(memory.id) for memory in stored.similar)
        pairs = (*self._pairs(stored.suspects), *(SuspectPair(key, older, is_similar=True) for older in similar))
        return WriteAnswer(matched, bool(getattr(stored, "released", False)), pairs, similar)

    async def replace(self, newer: str, older: str, prompt: str) -> bool:
        """Replace a note in a turn with this prompt; return True if allowed."""
        caller = Caller(trust="medium", prompt=prompt)
        try:
            await self.service.update(self._ids[newer], {"supersedes": self._ids[older]}, caller)
        except ValidationError:  # needs the user
            return False
        return True

    def key_of(self, memory_id: str) -> str:
        """Return the key of a memory."""
        return self._keys.get(memory_id, memory_id)

    async def replaced(self) -> set[tuple[str, str]]:
        """Return pairs of a note and the note that it replaced."""
        superseded = await self.service.storage.superseded()
        return {(self.key_of(new), self.key_of(old)) for old, new in superseded.items()}

    async def _imported(self) -> None:
        """Bring in what waits, at once, as an import does."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        done: list[Any] = []
        await self.service.writer.import_memories([memory for _, memory in waiting], done.append, NOBODY, trusted=True)
        for key, memory in waiting:
            self._name(key, memory.id)
            self._uncompared.append(memory.id)

    def _name(self, key: str, memory_id: str) -> None:
        self._ids[key] = memory_id
        self._keys.setdefault(memory_id, key)

    async def link(self, start: str, end: str, verb: str) -> None:
        """Link two notes, once memories have links."""
        await self._imported()
        if "links" not in Memory.model_fields:
            return
        memory = await self.service.get(self._ids[start])
        links = [*getattr(memory, "links", ()), {"rel": verb, "id": self._ids[end]}]
        await self.service.update(memory.id, {"links": links})

    async def supersede(self, old: str, new: dict[str, Any]) -> WriteAnswer:
        """Store a note that replaces another."""
        await self._imported()
        return await self._store(new, supersedes=self._ids[old])

    async def settle(self) -> None:
        """Wait for background work, vectors too; then compare imported notes."""
        await self._imported()
        await self.service.settle()
        await self.service.storage.prepare()
        imported, self._uncompared = self._uncompared, []
        for memory_id in imported:
            similar = await self.service.searcher.find_similar(await self.service.get(memory_id), NOBODY)
            key = self.key_of(memory_id)
            self._import_pairs += [SuspectPair(key, self.key_of(memory.id), is_similar=True) for memory in similar]

    async def recall(self, query: str, k: int, window: tuple[float, float] | None) -> RecallAnswer:
        """Search as `memory_search` does, and return what it shows."""
        filters = None
        if window is not None:
            last = _moment(window[1]) - _MOMENT
            filters = {"date_range": {"start": _moment(window[0]), "end": last}}
        found = await self.service.search(query, k, filters)
        hits = [(hit, views.view_brief_hit(hit)) for hit in found.near]
        return RecallAnswer(
            tuple(
                ShownNote(
                    self._keys.get(hit.memory.id, hit.memory.id),
                    shown_text(view),
                    hit.memory.timestamp.timestamp(),
                    neighbors=self._neighbors(view),
                )
                for hit, view in hits
            ),
            declined=found.match != "strong",  # a weak answer says that nothing matches well
        )

    def _neighbors(self, view: dict[str, Any]) -> tuple[str, ...]:
        ids = (each["id"] if isinstance(each, dict) else each for each in view.get("links", ()))
        return tuple(self._keys[one] for one in ids if one in self._keys)

    async def recall_path(self, path: str, k: int) -> RecallAnswer:
        """Search for the path."""
        return await self.recall(path, k, None)

    async def lineage(self, key: str) -> list[str] | None:
        """Return the notes that a note replaced."""
        older = await self.service.storage.older_versions(self._ids[key])
        return [self._keys[each] for each in older]

    async def suspects(self) -> list[SuspectPair]:
        """Return the pairs that wait for a decision, and the similar ones of imported notes."""
        return self._pairs(await self.service.suspects()) + self._import_pairs

    def _pairs(self, raised: Iterable[Suspect]) -> list[SuspectPair]:
        """Return pairs of keys, the newer first."""
        pairs = []
        for each in raised:
            one, other = (self._keys.get(memory.id, memory.id) for memory in (each.newer, each.older))
            pairs.append(SuspectPair(one, other, each.hint))
        return pairs

    async def release(self, key: str, reason: str) -> None:
        """Forget, with the reason once that is kept."""
        more: dict[str, Any] = {"reason": reason} if self.can.trace else {}
        await self.service.forget(self._ids[key], **more)

    async def purge(self, key: str) -> None:
        """Forget: nothing of it is shown."""
        await self.service.forget(self._ids[key])

    async def standing_tokens(self) -> int:
        """Return the tokens of the scratchpad, which every prompt has."""
        pad = await self.service.scratchpad()
        return tokens(render(pad.entries, pad.agent_id).text)

    async def close(self) -> None:
        """Finish."""
        await self.service.close()


def shown_text(view: dict[str, Any]) -> str:
    """Return the shown text of a hit, with titles of linked memories."""
    linked = (each.get("title", "") for each in view.get("links", ()) if isinstance(each, dict))
    return "\n".join(part for part in chain([view["content"]], linked) if part)


def text_of(record: dict[str, Any]) -> str:
    """Return a note as one text: title, body, and the files that it is about."""
    files = list(dict.fromkeys(record["code_refs"]))
    return "\n".join([record["title"], record["body"], *([f"Files: {', '.join(files)}"] if files else [])])


def _values(record: dict[str, Any]) -> dict[str, Any]:
    return {"content": text_of(record), "category": _CATEGORIES.get(record["kind"], "note")}


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
