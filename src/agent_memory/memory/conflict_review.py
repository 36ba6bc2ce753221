"""Conflicts of memories: `ConflictFinder` finds pairs, `ConflictReview` lists and decides them.

A pair is a link of the newer memory with the relation `_suspect`. A decision that both hold gives the link another
relation. A decision that one replaces the other is its `supersedes` alone, so restoring the other takes all of it back.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakKeyDictionary

from agent_memory.errors import StorageError, ValidationError
from agent_memory.language.similarity import TextConflict, find_conflict
from agent_memory.memory.caller import NOBODY, Caller, check_seen, is_seen
from agent_memory.memory.results import Suspect
from agent_memory.memory.similarity import choose_similar
from agent_memory.models import (
    BESIDE,
    DISTINCT,
    REPLACES,
    SUSPECT,
    Link,
    content_mark,
    filters_of,
    is_told,
    may_conflict,
)
from agent_memory.store.record_redaction import Redacted, with_own_links

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.memory.monitor import Monitor
    from agent_memory.memory.service_parts import ServiceParts
    from agent_memory.models import Memory
    from agent_memory.store.memory_storage import MemoryStorage
    from agent_memory.store.store import RecordNeighbors

Decision = Literal["replace", "keep", "not_same"]
_RELATIONS: Final[dict[Decision, str]] = {"keep": BESIDE, "not_same": DISTINCT}
_OF_PAIRS: Final = frozenset({SUSPECT, REPLACES, *_RELATIONS.values()})
CANDIDATES: Final = 12
"""Memories compared with one: those that share most words with it."""
CANDIDATES_AT_ONCE: Final = 6
"""The same while a store waits: comparing two takes some 0.3 ms if neither was read before."""
_MAX_CONFLICTS: Final = 2
"""Conflicts of one memory. With more, the texts are a series: "Ticket 1 of the import", "Ticket 2 of the import"."""


@dataclass(frozen=True, slots=True)
class ComparedDraft:
    """A new memory after its comparison with existing ones.

    Attributes:
        draft: Memory with links to the memories that it conflicts with.
        suspects: Conflicts that were found.
        similar: Memories to compare, best first; None if they are still to be found.
        is_done: False if the comparison is due after the store.
    """

    draft: Redacted[Memory]
    suspects: tuple[Suspect, ...] = ()
    similar: tuple[Memory, ...] | None = None
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class _DueComparison:
    """Memory to compare, the session that asks, and the order of storing."""

    memory_id: str
    caller: Caller
    positions: Mapping[str, int]


class ConflictFinder:
    """Compares the memories of one agent; never with all of them.

    Args:
        storage: Storage of the memories.
        monitor: Receiver of events.
        is_on: False to compare nothing.
    """

    def __init__(self, storage: MemoryStorage, monitor: Monitor, *, is_on: bool) -> None:
        self._storage, self._monitor, self.is_on = storage, monitor, is_on
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _DueComparison]] = WeakKeyDictionary()

    def compare_draft(self, draft: Redacted[Memory], neighbors: RecordNeighbors[Memory] | None) -> ComparedDraft:
        """Compare a new memory with its neighbors; None if that takes long."""
        new = draft.value
        if neighbors is None or new.is_item:
            return ComparedDraft(draft, is_done=new.is_item)
        first = list(islice(neighbors.worded, CANDIDATES_AT_ONCE))
        suspects = find_suspects(new, (memory for memory, _ in first)) if self.is_on else []
        similar = choose_similar(new, replace(neighbors, worded=chain(first, neighbors.worded)))
        linked = with_own_links(draft, link_suspects(new, suspects)) if suspects else draft
        return ComparedDraft(linked, tuple(suspects), tuple(similar))

    async def compare_change(self, before: Memory, content: str) -> list[Suspect]:
        """Compare the new text of a memory, unless that takes long."""
        if not self.is_on or before.is_item or content == before.content:
            return []
        changed = before.model_copy(update={"content": content})

        def compare(neighbors: RecordNeighbors[Memory]) -> list[Suspect]:
            return find_suspects(changed, (memory for memory, _ in islice(neighbors.worded, CANDIDATES_AT_ONCE)))

        try:
            return await self._storage.compare_neighbors(content, filters_of(None), compare) or []
        except StorageError:  # the write itself reports the error
            return []

    async def compare_stored(self, memory_ids: Iterable[str], caller: Caller = NOBODY) -> None:
        """Compare stored memories in order, or leave them to a running call.

        Two comparisons at a time could each report the same pair, or overwrite the other's links.

        Args:
            memory_ids: Their IDs, in the order of storing.
            caller: Session that asks for it.

        Raises:
            StorageError: The memories cannot be read or changed; other due comparisons are dropped.
        """
        if not self.is_on:
            return
        positions = {memory_id: position for position, memory_id in enumerate(memory_ids)}
        loop = asyncio.get_running_loop()
        due = {memory_id: _DueComparison(memory_id, caller, positions) for memory_id in positions}
        queue = self._queues.get(loop)
        if queue is not None:
            queue |= due
            return
        self._queues[loop] = due
        try:
            while due:
                task = due.pop(next(iter(due)))
                await self._compare_stored(task.memory_id, task.positions, task.caller)
        finally:
            self._queues.pop(loop, None)

    async def compare_all(self, caller: Caller = NOBODY) -> int:
        """Compare all memories; return the number of pairs found.

        Takes some milliseconds for each memory.

        Raises:
            StorageError: Pairs that were found before remain.
        """
        memory_ids = [memory.id async for memory in self._storage.iter_all()]
        positions = {memory_id: position for position, memory_id in enumerate(memory_ids)}
        return sum([await self._compare_stored(memory_id, positions, caller) for memory_id in positions])

    async def report_queued(self, suspects: Iterable[Suspect], caller: Caller) -> None:
        """Emit an event for each pair that waits for a decision now."""
        for suspect in suspects:
            ids = {"memory_id": suspect.newer.id, "older_id": suspect.older.id}
            fields = {"kind": suspect.kind, "hint": suspect.hint, "outcome": "queued"}
            await self._monitor.report("memory:suspect", caller, **ids, **fields)

    async def _compare_stored(self, memory_id: str, positions: Mapping[str, int], caller: Caller) -> int:
        """Compare a stored memory with similar ones; return the number of pairs.

        Of two memories the one of a later time is the newer; of equal times, the one with the higher position.

        Args:
            memory_id: ID of the memory.
            positions: Positions of all memories that are compared now, in the order of storing.
            caller: Session that asks for it.

        Raises:
            StorageError: The memories cannot be read or changed.
        """
        memory = await self._storage.get(memory_id) if self.is_on else None
        if memory is None or memory.is_item or await self._storage.replaced_by([memory_id]):
            return 0
        candidates = await self._storage.alike(memory.content, CANDIDATES) or []
        suspects = await asyncio.to_thread(_find_both_ways, memory, candidates, positions)
        for newer_id in dict.fromkeys(suspect.newer.id for suspect in suspects):
            of_newer = [suspect for suspect in suspects if suspect.newer.id == newer_id]
            newer = await self._storage.get(newer_id)
            if newer is not None:
                await self._storage.update(newer_id, {"links": link_suspects(newer, of_newer)})
                await self.report_queued(of_newer, caller)
        return len(suspects)


class ConflictReview:
    """Conflicts of one agent that wait for a decision."""

    def __init__(self, parts: ServiceParts) -> None:
        self._storage, self._gate = parts.storage, parts.gate
        self._scratchpad, self._monitor = parts.scratchpad, parts.monitor

    async def list_pairs(self, caller: Caller = NOBODY, among: Collection[str] | None = None) -> list[Suspect]:
        """Return the pairs that wait for a decision, the latest first.

        Pairs that no longer conflict are left out, and those with a replaced older, forgotten or expired memory. What
        replaced the newer takes its place.

        Args:
            caller: Session that asks; pairs that it may not see are left out.
            among: IDs of which a pair has at least one; None for all pairs.

        Raises:
            StorageError: The memories cannot be read.
        """
        pairs = [pair for pair in await self._storage.undecided() if all(is_seen(memory, caller) for memory in pair)]
        older_ids = dict.fromkeys(link.id for newer, _ in pairs for link in newer.links if link.rel == SUSPECT)
        valid = await self._storage.valid_among(list(older_ids))
        older = {memory_id: memory for memory_id, memory in valid.items() if is_seen(memory, caller)}
        if among is not None:
            pairs = [pair for pair in pairs if _get_pair_ids(pair) & {*among}]
        suspects = await asyncio.to_thread(
            lambda: {(pair.newer.id, pair.older.id): pair for pair in _list_conflicts(pairs, older)}
        )
        return sorted(suspects.values(), key=lambda suspect: suspect.newer.timestamp, reverse=True)

    async def count(self, caller: Caller = NOBODY, *, vouched: bool = False) -> int:
        """Return the number of pairs that wait for a decision.

        Args:
            caller: Session that asks; pairs that it may not see are left out.
            vouched: True to leave out pairs with a memory of low trust.

        Raises:
            StorageError: The memories cannot be read.
        """
        pairs = await self.list_pairs(caller)
        return sum(not vouched or "low" not in {pair.newer.trust, pair.older.trust} for pair in pairs)

    async def decide(
        self, memory_id: str, other_id: str, decision: Decision, caller: Caller = NOBODY
    ) -> Suspect | None:
        """Decide a pair.

        A replaced memory decides nothing until it is restored, after which the pair waits again. Any other decision may
        be changed by a later one.

        Args:
            memory_id: ID of one memory.
            other_id: ID of the other.
            decision: `replace`: the first replaces the other; `keep` and `not_same`: both hold.
            caller: Session that decides.

        Returns:
            The pair as it was, if it was waiting.

        Raises:
            UnknownIdError: No such memory.
            ValidationError: They were never a pair; one has replaced the other (`replaced_already`); or the caller may
                not decide (`needs_user`).
            StorageError: Nothing was changed.
        """
        ids = (memory_id, other_id)
        await check_seen(self._storage, caller, ids)
        waiting = [pair for pair in await self.list_pairs(caller) if {pair.newer.id, pair.older.id} == {*ids}]
        replaced = {version: await self._storage.older_versions(version) for version in ids}
        holder, end = await self._find_link(replaced)
        concerned = [await self._storage.get(version) for version in dict.fromkeys((*ids, holder.id))]
        await self._gate.check("change", [memory for memory in concerned if memory is not None], caller)
        if decision == "replace" and other_id in replaced[memory_id]:
            return None
        for newer_id, older_id in (ids, ids[::-1]):
            if older_id in replaced[newer_id]:
                raise ValidationError(
                    f"{newer_id} has replaced {older_id}, so there is nothing to decide between them; nothing was "
                    "changed.",
                    code="replaced_already",
                    recovery=f"`agent-memory undo {older_id}` brings it back; then decide.",
                )
        if decision == "replace":
            newer_id = [memory_id, *replaced[memory_id]][-1]  # the oldest version: it replaces nothing yet
            await self._storage.update(newer_id, {"supersedes": other_id})
            await self._monitor.report_changed(newer_id, ["supersedes"], (), caller)
        else:
            links = [_rename(link, _RELATIONS[decision]) if _is_pair_link(link, end) else link for link in holder.links]
            await self._storage.update(holder.id, {"links": links})
        outcome = {"replace": "replaced"}.get(decision, decision)
        await self._report_decision(holder.id, end, outcome, caller)
        self._scratchpad.schedule(caller)
        return next(iter(waiting), None)

    async def restore_decisions(self, before: Memory, after: Memory, caller: Caller) -> str:
        """Take back the decisions between two versions of a memory.

        Args:
            before: Version whose pairs are restored.
            after: Version that changed them.
            caller: Session that asks for it.

        Returns:
            Why nothing was changed, or an empty text.

        Raises:
            StorageError: Nothing was changed.
        """
        memory = await self._storage.get(before.id)
        old, new = list_decisions(before), list_decisions(after)
        older_ids = {*old, *new}
        if memory is None or any(list_decisions(memory).get(key) != new.get(key) for key in older_ids):
            return "it was decided again since; take that back first"
        relations = {key: old.get(key, SUSPECT) for key in older_ids if old.get(key) != new.get(key)}
        links = [
            _rename(link, relations[link.id]) if link.id in relations and link.rel in _OF_PAIRS else link
            for link in memory.links
        ]
        await self._storage.update(memory.id, {"links": links})
        for older_id in relations:
            await self._report_decision(memory.id, older_id, "queued", caller)
        return ""

    async def _report_decision(self, memory_id: str, older_id: str, outcome: str, caller: Caller) -> None:
        ids = {"memory_id": memory_id, "older_id": older_id}
        await self._monitor.report("memory:suspect", caller, **ids, kind=None, hint=None, outcome=outcome)

    async def _find_link(self, replaced: dict[str, list[str]]) -> tuple[Memory, str]:
        """Return the memory with a pair's link, and the other ID.

        Args:
            replaced: IDs of the two memories, with those of their older versions.
        """
        memory_id, other_id = replaced
        for newer_id, older_id in ((memory_id, other_id), (other_id, memory_id)):
            for version in (newer_id, *replaced[newer_id]):
                holder = await self._storage.get(version)
                if holder is not None and any(_is_pair_link(link, older_id) for link in holder.links):
                    return holder, older_id
        raise ValidationError(
            f"{memory_id} and {other_id} were never listed as a conflict; nothing was changed.",
            code="no_such_pair",
            recovery="`agent-memory conflicts` lists pairs; `agent-memory edit` lets one replace another: supersedes.",
        )


def find_suspects(newer: Memory, older: Iterable[Memory]) -> list[Suspect]:
    """Return the conflicts with older memories; none if they form a series."""
    pairs = find_pairs(newer, older)
    return pairs if len(pairs) <= _MAX_CONFLICTS else []


def find_pairs(newer: Memory, older: Iterable[Memory]) -> list[Suspect]:
    """Return the conflicts of a memory with older memories.

    Linked memories are left out, and those of other projects, groups and of higher trust.
    """
    linked_ids = {link.id for link in newer.links if not is_told(link.rel)} | {newer.supersedes, newer.id}
    pairs: list[Suspect] = []
    for memory in older:
        links_back = any(link.id == newer.id and not is_told(link.rel) for link in memory.links)
        if memory.id in linked_ids or links_back or not may_conflict(newer, memory):
            continue
        conflict = find_conflict(newer.content, memory.content)
        if conflict is not None:
            pairs.append(Suspect(newer, memory, conflict.kind, conflict.hint, conflict.evidence))
    return pairs


def link_suspects(memory: Memory, suspects: Sequence[Suspect]) -> list[Link]:
    """Return the links of a memory with those to its suspects."""
    new = [Link(rel=SUSPECT, id=pair.older.id, said=content_mark(pair.older.content)) for pair in suspects]
    return [*memory.links, *new]


def list_decisions(memory: Memory) -> dict[str, str]:
    """Return the decided relations to older memories, by ID."""
    return {link.id: link.rel for link in memory.links if link.rel in _RELATIONS.values()}


def _find_both_ways(memory: Memory, candidates: Sequence[Memory], positions: Mapping[str, int]) -> list[Suspect]:
    """Return the conflicts of a memory with older and later ones.

    Later ones that are due themselves are compared by themselves.
    """

    def get_order(record: Memory) -> tuple[datetime, int]:
        return record.moment, positions.get(record.id, -1)

    older = [candidate for candidate in candidates if get_order(candidate) < get_order(memory)]
    later = [candidate for candidate in candidates if get_order(candidate) > get_order(memory)]
    pairs = [*find_pairs(memory, older), *(pair for newer in later for pair in find_pairs(newer, [memory]))]
    is_series = len(pairs) > _MAX_CONFLICTS
    return [] if is_series else [pair for pair in pairs if pair.newer is memory or pair.newer.id not in positions]


def _list_conflicts(pairs: Iterable[tuple[Memory, Memory]], older: dict[str, Memory]) -> Iterator[Suspect]:
    """Yield the pairs that still conflict."""
    for newer, current in pairs:
        for link in newer.links:
            memory = older.get(link.id) if link.rel == SUSPECT else None
            if memory is None or memory.id == current.id or not may_conflict(current, memory):
                continue
            if memory.id in list_decisions(current) or current.id in list_decisions(memory):
                continue  # decided for the memory that replaced this one
            conflict = _find_conflict(newer, current, memory)
            if conflict is not None:
                yield Suspect(current, memory, conflict.kind, conflict.hint, conflict.evidence)


def _find_conflict(newer: Memory, current: Memory, older: Memory) -> TextConflict | None:
    """Return the conflict of a memory, or the one it replaced."""
    conflict = find_conflict(current.content, older.content)
    if conflict is not None or newer.id == current.id:
        return conflict
    before = find_conflict(newer.content, older.content)
    return before and replace(before, evidence=f"{newer.id}, which it replaces: {before.evidence}")


def _rename(link: Link, relation: str) -> Link:
    return link.model_copy(update={"rel": relation})


def _is_pair_link(link: Link, other_id: str) -> bool:
    return link.id == other_id and link.rel in _OF_PAIRS


def _get_pair_ids(pair: tuple[Memory, Memory]) -> set[str]:
    return {memory.id for memory in pair} | {link.id for link in pair[0].links if link.rel == SUSPECT}
