"""The journal's memories as objects: what is known now, what replaced what, which texts are known or were forgotten.

Pure state: entries in, answers out. Reads no file.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import pydantic

from agent_memory.journal import Records, apply_change
from agent_memory.models import Memory, content_hash, describe, may_stand_for
from agent_memory.storage.changes import says_the_same

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from agent_memory.journal import Change, Entry

KIND: Final = "memory"


class Projection:
    """All memories of one agent.

    Attributes:
        memories: By id, in the order of storing.
        invalid: Ids whose record breaks the data model, with the reason; such a record is kept in the journal.
        circles: Memories that replace each other all around, or itself, by the newest of them, which counts as replaced
            by none of them: without that all would be hidden. No program of ours writes such a thing.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._before: tuple[Records, dict[str, Memory]] = ({}, {})
        self.memories: dict[str, Memory] = {}
        self.invalid: dict[str, str] = {}
        self._records: Records = {}
        self._replacements: dict[str, list[str]] = {}
        self.circles: dict[str, frozenset[str]] = {}
        self._expiring: set[str] = set()
        self._by_text: dict[str, dict[str, None]] | None = None
        self._forgotten: list[str] = []
        self._forgotten_hashes: tuple[int, frozenset[str]] = (0, frozenset())

    def begin_again(self) -> None:
        """Forget everything, before a replay from the beginning.

        What is found again in it, as after a compaction, need not be checked again: that takes most of a replay's time.
        """
        whole = {memory_id: memory for memory_id, memory in self.memories.items() if memory_id not in self.invalid}
        before = (self._records, whole)
        self.clear()
        self._before = before

    def apply(self, entries: Collection[Entry]) -> dict[str, Memory | None]:
        """Replay `entries`; return each memory that changed, None for one that is gone.

        A change that would break the data model leaves the memory as it was and is noted in `invalid`.
        """
        changed: dict[str, None] = {}
        for entry in entries:
            for change in entry.changes:
                if change.kind == KIND and change.op != "mark":
                    self._note_forgotten(change)
                    if apply_change(self._records, change, entry.at):
                        changed[change.id] = None
        rebuilt = {memory_id: self._rebuild(memory_id) for memory_id in changed}
        self._before = ({}, {})
        if broken := rebuilt.keys() & self.invalid.keys():
            rebuilt |= self._last_good(broken, entries)
        return rebuilt

    def replaced_by(self, memory_id: str, now: datetime) -> str | None:
        """Return the newest valid memory that supersedes this one, or None."""
        circle = self.circles.get(memory_id, ())
        for replacement in reversed(self._replacements.get(memory_id, [])):
            memory = self.memories.get(replacement)
            if (
                memory is not None
                and replacement not in circle
                and memory.supersedes == memory_id
                and not memory.is_expired(now)
                and _may_replace(memory, self.memories.get(memory_id))
            ):
                return replacement
        return None

    def superseded(self, now: datetime) -> dict[str, str]:
        """Return every replaced memory with the one that replaces it."""
        pairs = ((memory_id, self.replaced_by(memory_id, now)) for memory_id in self._replacements)
        return {memory_id: by for memory_id, by in pairs if by is not None and memory_id in self.memories}

    def older_versions(self, memory_id: str) -> list[str]:
        """Return the ids that a memory replaced, directly or through others, newest first."""
        chain: list[str] = []
        memory = self.memories.get(memory_id)
        while memory and memory.supersedes and memory.supersedes not in {memory_id, *chain}:
            older = self.memories.get(memory.supersedes)
            if older is not None and not _may_replace(memory, older):
                break
            if older is not None:
                chain.append(older.id)
            memory = older
        return chain

    def complaints(self) -> list[str]:
        """Return what is wrong with records and between them, a sentence each."""
        broken = [f"{memory_id}: {reason}" for memory_id, reason in self.invalid.items()]
        return broken + [_about_circle(newest, circle) for newest, circle in self.circles.items()]

    @property
    def hides_nothing(self) -> bool:
        """Whether every memory is valid whatever the time: nothing was ever superseded, nothing expires."""
        return not self._replacements and not self._expiring

    def has_expired(self, before: datetime) -> bool:
        """Tell whether there is a memory that expired before that moment."""
        expiring = (self.memories.get(memory_id) for memory_id in self._expiring)
        return any(memory is not None and memory.is_expired(before) for memory in expiring)

    def valid(self, now: datetime) -> list[Memory]:
        """Return what an agent may be shown: neither expired nor superseded, in the order of storing."""
        replaced = self.superseded(now)
        return [
            memory
            for memory_id, memory in self.memories.items()
            if memory_id not in replaced and (memory.expires_at is None or memory.expires_at > now)
        ]

    def still_true(self, shown: Iterable[Memory], now: datetime) -> bool:
        """Tell whether memories that were shown say the same now, and are neither expired nor superseded."""

        def stands(memory: Memory) -> bool:
            known = self.memories.get(memory.id)
            if known is None or known.is_expired(now) or self.replaced_by(memory.id, now) is not None:
                return False
            return says_the_same(memory, known)

        return all(map(stands, shown))

    def same_text(self, content: str, now: datetime) -> Memory | None:
        """Return the valid memory that says the same (ignoring case and white space), if there is one."""
        for memory in self._with_text(content):
            if not memory.is_expired(now) and self.replaced_by(memory.id, now) is None:
                return memory
        return None

    def was_forgotten(self, content: str) -> bool:
        """Tell whether a memory with this text was deleted and nothing with it is known now."""
        counted, hashes = self._forgotten_hashes
        if counted != len(self._forgotten):
            hashes |= {content_hash(text) for text in self._forgotten[counted:]}
            self._forgotten_hashes = (len(self._forgotten), hashes)
        return content_hash(content) in hashes and not self._with_text(content)

    def _with_text(self, content: str) -> list[Memory]:
        """Return all memories that say this now, expired and replaced ones too, in the order of storing."""
        if self._by_text is None:
            self._by_text = {}
            for memory in self.memories.values():
                self._by_text.setdefault(content_hash(memory.content), {})[memory.id] = None
        wanted = content_hash(content)
        # An id stays listed when its memory is changed or deleted, so each one is looked at again.
        listed = (self.memories.get(memory_id) for memory_id in self._by_text.get(wanted, ()))
        return [memory for memory in listed if memory is not None and content_hash(memory.content) == wanted]

    def _note_forgotten(self, change: Change) -> None:
        record = self._records.get(change.id)
        if change.op == "delete" and record is not None and isinstance(record.get("content"), str):
            self._forgotten.append(record["content"])

    def _rebuild(self, memory_id: str) -> Memory | None:
        record = self._records.get(memory_id)
        if record is None:
            self.memories.pop(memory_id, None)
            self.invalid.pop(memory_id, None)
            self._look_around(memory_id)
            return None
        old_records, old_memories = self._before
        memory = old_memories.get(memory_id)
        if memory is None or old_records.get(memory_id) != record:
            try:
                memory = Memory.from_record(self._agent_id, memory_id, record)
            except pydantic.ValidationError as error:
                self.invalid[memory_id] = describe(error)
                return None
        self.invalid.pop(memory_id, None)
        return self._know(memory)

    def _last_good(self, broken: Collection[str], entries: Collection[Entry]) -> dict[str, Memory | None]:
        """Return each broken memory as it was before the change that broke it, None where it never was whole.

        No program of ours writes such a change, so replaying twice is no loss.
        """
        good: dict[str, Memory | None] = {memory_id: self.memories.get(memory_id) for memory_id in broken}
        records: Records = {memory_id: memory.to_record() for memory_id, memory in good.items() if memory}
        for entry in entries:
            for change in entry.changes:
                if change.kind != KIND or change.id not in good or not apply_change(records, change, entry.at):
                    continue
                with contextlib.suppress(pydantic.ValidationError):
                    record = records.get(change.id)
                    good[change.id] = Memory.from_record(self._agent_id, change.id, record) if record else None
        for memory_id, memory in good.items():
            if memory is None:
                self.memories.pop(memory_id, None)
            else:
                self._know(memory)
        return good

    def _know(self, memory: Memory) -> Memory:
        memory_id = memory.id
        self.memories[memory_id] = memory
        if memory.expires_at is not None:
            self._expiring.add(memory_id)
        if memory.supersedes and memory_id not in self._replacements.setdefault(memory.supersedes, []):
            self._replacements[memory.supersedes].append(memory_id)
        if self._by_text is not None:
            self._by_text.setdefault(content_hash(memory.content), {})[memory_id] = None
        self._look_around(memory_id)
        return memory

    def _look_around(self, memory_id: str) -> None:
        """Note whether a memory that has come, changed or gone closes a circle, or opens one."""
        opened = [newest for newest, circle in self.circles.items() if memory_id in circle] if self.circles else []
        near = {memory_id}.union(*(self.circles.pop(newest) for newest in opened))
        for each in near:
            if each in self._replacements and (circle := self._circle_of(each)):  # nobody replaces what is new
                newest = max(circle, key=lambda member: (self.memories[member].timestamp, member))
                self.circles[newest] = circle

    def _circle_of(self, memory_id: str) -> frozenset[str]:
        """Return the memories that are met on the way from one to what it replaced, if that leads back to it."""
        met: dict[str, None] = {}
        step: str | None = memory_id
        while step is not None and step not in met and (memory := self.memories.get(step)) is not None:
            met[step] = None
            older = memory.supersedes
            step = older if older is not None and _may_replace(memory, self.memories.get(older)) else None
        return frozenset(met) if step == memory_id else frozenset()


def _may_replace(memory: Memory, older: Memory | None) -> bool:
    """Tell whether a memory hides one it supersedes."""
    return older is None or may_stand_for(memory.trust, older.trust)


def _about_circle(newest: str, circle: frozenset[str]) -> str:
    if len(circle) == 1:
        return f"{newest}: it replaces itself; it is shown all the same"
    return f"{', '.join(sorted(circle))}: they replace each other all around; {newest}, the newest, is shown"
