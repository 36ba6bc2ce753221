"""Reading a journal, or a copy of one, as the product does, without its lock and without mending anything."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pydantic

from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.entries import described, kind_of
from agent_memory.journal.format import MalformedLineError, decode_entry, decode_header
from agent_memory.journal.reader import JournalReader, Problem, Update
from agent_memory.models import MEMORY, Memory, describe
from agent_memory.storage.state import State

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.journal import Change, Entry
    from agent_memory.storage import AgentFolder


@dataclass(slots=True)
class JournalFacts:
    """What is in a journal file.

    Attributes:
        path: The file.
        agent_id: Whose memories these are.
        trouble: Why nothing of it could be read, or None. A missing file is no trouble.
        size: Its bytes; None when there is no file.
        lines: Whole lines.
        entries: Those that are entries, in the order of the file.
        bad: Lines that are none, the first one included if it should be a header and is not.
        tail: Bytes behind the last line end.
        tail_is_whole: Whether these would be a line, were it not for the missing end.
        has_header: Whether the first line is a header.
        newer: Whether only a newer version may write it.
        watermark: (generation, seq) of its end.
        projection: The memories.
    """

    path: Path
    agent_id: str
    projection: State[Memory]
    trouble: str | None = None
    size: int | None = None
    lines: int = 0
    entries: list[Entry] = field(default_factory=list)
    bad: list[Problem] = field(default_factory=list)
    tail: bytes = b""
    tail_is_whole: bool = False
    has_header: bool = False
    newer: bool = False
    watermark: tuple[str, int] = ("", 0)

    @property
    def memories(self) -> dict[str, Memory]:
        """The memories by id."""
        return self.projection.records

    @property
    def readable(self) -> bool:
        """Whether there is a file with something in it."""
        return self.trouble is None and bool(self.size)

    @property
    def last_seq(self) -> int:
        """The number of the last change, also of one that lacks only its line end."""
        tail = decode_entry(self.tail).seq if self.tail_is_whole and self.has_header else 0
        return max(self.watermark[1], tail)

    def circles(self) -> dict[str, str]:
        """Return memories that replace, directly or through others, one that replaces them: id and what it replaces."""
        found = {}
        for memory_id, memory in self.memories.items():
            passed, next_id = {memory_id}, memory.supersedes
            while next_id is not None and next_id not in passed and next_id in self.memories:
                passed.add(next_id)
                next_id = self.memories[next_id].supersedes
            if next_id == memory_id and memory.supersedes is not None:
                found[memory_id] = memory.supersedes
        return found

    def ids_ever(self) -> set[str]:
        """Return the ids of all memories of which the file still knows something, forgotten ones included."""
        return {change.id for entry in self.entries for change in entry.changes if change.kind == MEMORY.name}

    def forgotten(self) -> int:
        """Return how many memories were forgotten whose text is still in the file."""
        puts: set[str] = set()
        deletes: set[str] = set()
        for entry in self.entries:
            for change in entry.changes:
                if change.kind == MEMORY.name and change.op in {"put", "delete"}:
                    (puts if change.op == "put" else deletes).add(change.id)
        return len((puts & deletes) - self.memories.keys() - self.projection.invalid.keys())

    def refused(self) -> dict[int, tuple[str, str]]:
        """Return the entries that are no memories, by their position: id and reason. A compaction moves them aside."""
        changes = Counter(change.id for entry in self.entries for change in entry.changes if change.op != "touch")
        good = self.memories.keys() - self.projection.invalid.keys()
        found = {}
        for position, entry in enumerate(self.entries):
            if entry.opaque or any(change.id in good and changes[change.id] == 1 for change in entry.changes):
                continue  # what is a memory now, and was written once, need not be judged again
            reasons = [refusal(self.agent_id, change) for change in entry.changes]
            if reasons and all(reasons):
                found[position] = (entry.changes[0].id, str(reasons[0]))
        return found

    def disorder(self) -> tuple[int, int]:
        """Return how many sequence numbers occur twice, and how many are lower than the one before."""
        seen: set[int] = set()
        twice = back = last = 0
        for entry in self.entries:
            twice += entry.seq in seen
            back += entry.seq < last
            seen.add(entry.seq)
            last = entry.seq
        return twice, back


def refusal(agent_id: str, change: Change) -> str | None:
    """Return why a `put` is no memory, or None; the same rule as the store's own."""
    try:
        if change.op == "put" and change.kind == MEMORY.name:
            Memory.from_record(agent_id, change.id, change.data)
    except pydantic.ValidationError as error:
        return describe(error)
    return None


def read_journal(path: Path, agent_id: str) -> JournalFacts:
    """Return what is in a journal, or in a copy of one."""
    facts = JournalFacts(path, agent_id, State(MEMORY, agent_id))
    kind = kind_of(path)
    if kind == "missing":
        return facts
    if kind != "file":
        facts.trouble = f"it is {described(kind)}"
        return facts
    reader = JournalReader(path)
    try:
        facts.entries = reader.poll().entries
        content = path.read_bytes()
    except StorageError as error:
        facts.trouble = error.message
        return facts
    except OSError as error:
        facts.trouble = error.strerror or str(error)
        return facts
    facts.size = len(content)
    facts.lines = content.count(b"\n", 0, reader.offset)
    facts.tail = content[max(reader.offset, content.rfind(b"\n") + 1) :]
    facts.tail_is_whole = _is_line(facts.tail, first=reader.offset == 0)
    facts.bad, facts.has_header, facts.newer = reader.problems, reader.header is not None, reader.too_new
    facts.watermark = reader.watermark
    facts.projection.absorb(Update(facts.entries))
    return facts


def rejected_items(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return what a rejected file holds, and how many of its lines cannot be read themselves.

    Raises:
        OSError: It cannot be read.
    """
    if (kind := kind_of(path)) != "file":
        raise OSError(f"it is {described(kind)}")
    items, bad = [], 0
    for line in path.read_bytes().split(b"\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line.removeprefix(b"--- "))
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            items.append(value)
        else:
            bad += 1
    return items, bad


def not_in(copy: JournalFacts, journal: JournalFacts) -> list[Memory]:
    """Return the memories of a copy of which the journal knows nothing: neither there, nor forgotten."""
    known = journal.ids_ever()
    return [memory for memory_id, memory in copy.memories.items() if memory_id not in known]


def salvaged(path: Path, folder: AgentFolder) -> list[Memory]:
    """Return the memories of a copy of an agent's journal of which the journal itself knows nothing.

    Raises:
        ValidationError: It is no copy of a journal.
        StorageError: It cannot be read.
    """
    copy = read_journal(path, folder.agent_id)
    if copy.trouble is not None:
        raise StorageError(f"{path.name} cannot be read: {copy.trouble}.")
    if copy.size is None:
        raise ValidationError(f"There is no file {path}.", code="no_file", recovery="Check the name.")
    if not copy.entries:
        raise ValidationError(
            f"{path.name} is no copy of a journal.",
            code="not_a_journal",
            recovery="Exports and scratchpads are taken by `agent-memory import`.",
        )
    return not_in(copy, read_journal(folder.journal, folder.agent_id))


def _is_line(tail: bytes, *, first: bool) -> bool:
    try:
        (decode_header if first else decode_entry)(tail)
    except MalformedLineError:
        return False
    return True
