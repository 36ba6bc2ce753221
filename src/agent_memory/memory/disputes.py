"""`Disputes`: conflicts of memories, and the decisions about them.

A pair is a link of the newer memory with the relation `_suspect`. That both stay gives the link another relation; that
one replaces the other is said by its `supersedes` alone, so that restoring the other takes all of it back. So the
journal knows all of it, and a list of the pairs reads no other memories.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.language.conflicts import TextConflict, find_conflict
from agent_memory.memory.caller import NOBODY
from agent_memory.memory.looking import Looking
from agent_memory.memory.results import Suspect
from agent_memory.memory.seeing import check_seen, is_seen
from agent_memory.models import BESIDE, DISTINCT, REPLACES, SUSPECT, may_conflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator

    from agent_memory.memory.caller import Caller, Report
    from agent_memory.memory.path import WritePath
    from agent_memory.memory.scratchpad_sync import ScratchpadSync
    from agent_memory.models import Link, Memory

Decision = Literal["replace", "keep", "not_same"]
_RELS: Final[dict[Decision, str]] = {"keep": BESIDE, "not_same": DISTINCT}
_OF_PAIRS: Final = frozenset({SUSPECT, REPLACES, *_RELS.values()})


class Disputes:
    """One agent's suspect pairs; part of its `MemoryService`.

    Args:
        writing: The write path to the memories.
        report: Sends events.
        pad: Has the scratchpad's file rendered.
    """

    def __init__(self, writing: WritePath, report: Report, pad: ScratchpadSync) -> None:
        self._storage, self._writing = writing.storage, writing
        self._report, self._pad = report, pad
        self._looking = Looking(writing.comparing)

    async def undecided(self, caller: Caller = NOBODY, among: Collection[str] | None = None) -> list[Suspect]:
        """Return the pairs that wait for a decision, the latest first, of those that a caller may see.

        Args:
            caller: The session that asks.
            among: Only pairs of which one is among these ids; of any when omitted.

        One whose memories have changed meanwhile so that both can be right, or of which the older was replaced or one
        was forgotten or has expired, is left out. What has replaced the newer stands for it.

        Raises:
            StorageError: The memories cannot be read.
        """
        newer = [pair for pair in await self._storage.undecided() if all(is_seen(one, caller) for one in pair)]
        wanted = list(dict.fromkeys(link.id for one, _ in newer for link in one.links if link.rel == SUSPECT))
        valid = await self._storage.valid_among(wanted)
        older = {one: memory for one, memory in valid.items() if is_seen(memory, caller)}
        if among is not None:
            newer = [pair for pair in newer if _ids_of(pair) & {*among}]
        found = await asyncio.to_thread(lambda: {(each.newer.id, each.older.id): each for each in _pairs(newer, older)})
        return sorted(found.values(), key=lambda each: each.newer.timestamp, reverse=True)

    async def how_many(self, caller: Caller = NOBODY, *, vouched: bool = False) -> int:
        """Return how many pairs wait for a decision.

        Args:
            caller: Session that asks; pairs that it may not see are left out.
            vouched: Leave out pairs with a memory of low trust.

        Raises:
            StorageError: The memories cannot be read.
        """
        pairs = await self.undecided(caller)
        return sum(not vouched or "low" not in {pair.newer.trust, pair.older.trust} for pair in pairs)

    async def decide(
        self, memory_id: str, other_id: str, decision: Decision, caller: Caller = NOBODY
    ) -> Suspect | None:
        """Settle a pair: `replace` lets the first replace the other; both stay with `keep` and `not_same`.

        What was replaced decides nothing until `past.restore` brings it back, which has the pair wait again. Otherwise
        another decision may follow.

        Returns:
            The pair as it was, if it was waiting.

        Raises:
            UnknownIdError: There is no such memory.
            ValidationError: They are no pair that was ever suspect; one has replaced the other (`replaced_already`); or
                the caller may not (`needs_user`).
            StorageError: Nothing was changed.
        """
        await check_seen(self._storage, caller, [memory_id, other_id])
        waiting = [
            each for each in await self.undecided(caller) if {each.newer.id, each.older.id} == {memory_id, other_id}
        ]
        replaced = {one: await self._storage.older_versions(one) for one in (memory_id, other_id)}
        holder, end = await self._ends(replaced)
        concerned = {one: await self._storage.get(one) for one in (memory_id, other_id, holder.id)}
        await self._writing.gate.check("change", [each for each in concerned.values() if each is not None], caller)
        if decision == "replace" and other_id in replaced[memory_id]:
            return None
        for one, other in ((memory_id, other_id), (other_id, memory_id)):
            if other in replaced[one]:
                raise _replaced(one, other)
        if decision == "replace":
            await self._replace([memory_id, *replaced[memory_id]][-1], other_id, caller)
        else:
            links = [_renamed(link, _RELS[decision]) if _is_of(link, end) else link for link in holder.links]
            await self._storage.update(holder.id, {"links": links})
        outcome = {"replace": "replaced"}.get(decision, decision)
        ids = {"memory_id": holder.id, "older_id": end}
        await self._report("memory:suspect", caller, **ids, kind=None, hint=None, outcome=outcome)
        self._pad.schedule(caller)
        return next(iter(waiting), None)

    async def restore_decisions(self, before: Memory, after: Memory, caller: Caller) -> str:
        """Take the decisions between two versions of a memory back.

        Args:
            before: Version whose pairs are restored.
            after: Version that changed them.
            caller: Session that asks.

        Returns:
            Why nothing was changed, or an empty text.

        Raises:
            StorageError: Nothing was changed.
        """
        memory = await self._storage.get(before.id)
        old, new = list_decisions(before), list_decisions(after)
        if memory is None or any(list_decisions(memory).get(other) != new.get(other) for other in {*old, *new}):
            return "it was decided again since; take that back first"
        rels = {other: old.get(other, SUSPECT) for other in {*old, *new} if old.get(other) != new.get(other)}
        links = [
            _renamed(link, rels[link.id]) if link.id in rels and link.rel in _OF_PAIRS else link
            for link in memory.links
        ]
        await self._storage.update(memory.id, {"links": links})
        for other in rels:
            ids = {"memory_id": memory.id, "older_id": other}
            await self._report("memory:suspect", caller, **ids, kind=None, hint=None, outcome="queued")
        return ""

    async def look(self, caller: Caller = NOBODY) -> int:
        """Compare all memories with those that share most with them; return how many pairs were found.

        Takes some milliseconds for each.

        Raises:
            StorageError: What was found before stays.
        """
        comparing = self._writing.comparing
        places = {memory.id: place async for place, memory in _numbered(self._storage.iter_all())}
        return sum([await comparing.behind(memory_id, places, caller) for memory_id in places])

    async def look_behind(self, memory_ids: Iterable[str], caller: Caller = NOBODY) -> None:
        """Compare stored memories with others in the background.

        Args:
            memory_ids: Their IDs, in the order of storing.
            caller: The session that asks.

        Raises:
            StorageError: The memories cannot be read or changed.
        """
        if self._writing.comparing.is_on:
            await self._looking.look(memory_ids, caller)

    async def _ends(self, replaced: dict[str, list[str]]) -> tuple[Memory, str]:
        """Return the memory whose link makes two a pair, one of them or what it has replaced, and the id of the other.

        Args:
            replaced: The two, with what each has replaced.
        """
        memory_id, other_id = replaced
        for one, other in ((memory_id, other_id), (other_id, memory_id)):
            for version in (one, *replaced[one]):
                holder = await self._storage.get(version)
                if holder is not None and any(_is_of(link, other) for link in holder.links):
                    return holder, other
        raise ValidationError(
            f"{memory_id} and {other_id} were never listed as a conflict; nothing was changed.",
            code="no_such_pair",
            recovery="`agent-memory conflicts` lists pairs; `agent-memory edit` lets one replace another: supersedes.",
        )

    async def _replace(self, memory_id: str, other_id: str, caller: Caller) -> None:
        """Let a memory that replaces nothing yet replace another."""
        await self._storage.update(memory_id, {"supersedes": other_id})
        await self._writing.changed(memory_id, ["supersedes"], (), caller)


def list_decisions(memory: Memory) -> dict[str, str]:
    """Return the relation of each older memory that was decided to hold, too, or to be about another matter."""
    return {link.id: link.rel for link in memory.links if link.rel in _RELS.values()}


async def _numbered(memories: AsyncIterator[Memory]) -> AsyncIterator[tuple[int, Memory]]:
    number = 0
    async for memory in memories:
        yield number, memory
        number += 1


def _replaced(newer_id: str, older_id: str) -> ValidationError:
    return ValidationError(
        f"{newer_id} has replaced {older_id}, so there is nothing to decide between them; nothing was changed.",
        code="replaced_already",
        recovery=f"`agent-memory undo {older_id}` brings it back; then decide.",
    )


def _renamed(link: Link, rel: str) -> Link:
    return link.model_copy(update={"rel": rel})


def _is_of(link: Link, other_id: str) -> bool:
    return link.id == other_id and link.rel in _OF_PAIRS


def _ids_of(pair: tuple[Memory, Memory]) -> set[str]:
    return {each.id for each in pair} | {link.id for link in pair[0].links if link.rel == SUSPECT}


def _pairs(newer: Iterable[tuple[Memory, Memory]], older: dict[str, Memory]) -> Iterator[Suspect]:
    """Yield the pairs that still conflict."""
    for one, current in newer:
        for link in one.links:
            other = older.get(link.id) if link.rel == SUSPECT else None
            if other is None or other.id == current.id or not may_conflict(current, other):
                continue
            if other.id in list_decisions(current) or current.id in list_decisions(other):
                continue  # decided for the memory that replaced this one
            conflict = _find_conflict(one, current, other)
            if conflict is not None:
                yield Suspect(current, other, conflict.kind, conflict.hint, conflict.evidence)


def _find_conflict(one: Memory, current: Memory, other: Memory) -> TextConflict | None:
    """Return why a memory, or the one it replaced, conflicts with an older one."""
    conflict = find_conflict(current.content, other.content)
    if conflict is not None or one.id == current.id:
        return conflict
    before = find_conflict(one.content, other.content)
    return before and replace(before, evidence=f"{one.id}, which it replaces: {before.evidence}")
