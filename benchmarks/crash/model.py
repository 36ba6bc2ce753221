"""Expected state after a kill: all acknowledged, the pending operation whole or absent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import Record

Shown = dict[str, Any]
"""A memory as it is compared: without what reading it changes."""

_NOT_COMPARED: Final = {"agent_id", "id", "access_count", "last_accessed"}


def shown(record: Record) -> Shown:
    """Return the part of a record that nothing but a write may change."""
    return record.model_dump(mode="json", exclude=_NOT_COMPARED)


@dataclass(slots=True)
class PendingOperation:
    """The operation under way when the process died.

    Attributes:
        do: Its name; empty when there was none.
        changed: Memories it changes together, with the fields they get; None for those it forgets.
        extra: Fields of memories it adds, each for itself.
        must: It was acknowledged in another way (a person's edit is in the file): it has to be there in the end.
    """

    do: str = ""
    changed: dict[str, Shown | None] = field(default_factory=dict)
    extra: list[Shown] = field(default_factory=list)
    must: bool = False


@dataclass(slots=True)
class AcknowledgedState:
    """Acknowledged state so far."""

    memories: dict[str, Shown] = field(default_factory=dict)
    forgotten: dict[str, Shown] = field(default_factory=dict)

    def learn(self, now: Mapping[str, Shown | None]) -> None:
        """Take over an acknowledgement: ids with what they are now, None for gone."""
        for memory_id, value in now.items():
            if value is not None:
                self.memories[memory_id] = value
                self.forgotten.pop(memory_id, None)
            elif memory_id in self.memories:
                self.forgotten[memory_id] = self.memories.pop(memory_id)


@dataclass(slots=True)
class HeardMessages:
    """Messages of a process before its death."""

    pending: PendingOperation = field(default_factory=PendingOperation)
    under_way: bool = False
    working: bool = False
    began: int = 0
    calls: int = 0
    struck: str = ""
    damaged: list[str] = field(default_factory=list)
    file: str = ""
    every: list[dict[str, Any]] = field(default_factory=list)
    crashed: str = ""
    failed: int = 0

    def take(self, message: dict[str, Any], expected: AcknowledgedState) -> None:
        """Note one message; what was acknowledged is expected from now on."""
        if "pending" in message:
            self.pending, self.under_way, self.working = PendingOperation(**message["pending"]), True, True
            self.began += "begin" in message
        if "now" in message:
            expected.learn(message["now"])
            self.pending.extra = [each for each in self.pending.extra if each.get("id") not in message["now"]]
        if "done" in message:
            self.pending, self.under_way = PendingOperation(self.pending.do), False
        if "settled" in message:
            self.working, self.calls = False, int(message["calls"])
        self.damaged += [message["damaged"]] if "damaged" in message else []
        self.struck = message.get("struck", self.struck)
        self.file, self.every = message.get("file", self.file), message.get("every", self.every)
        self.crashed, self.failed = message.get("crashed", self.crashed), message.get("failed", self.failed)


@dataclass(slots=True)
class StateVerdict:
    """Result of a comparison.

    Attributes:
        lost: Acknowledged and not there, or forgotten and back.
        half: Neither before nor after the operation under way, or there twice, or there from nowhere.
        now: What the operation under way turned out to have done, to be learnt.
    """

    lost: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    now: dict[str, Shown | None] = field(default_factory=dict)


def compare(
    expected: AcknowledgedState, pending: PendingOperation, found: Mapping[str, Shown], *, settled: bool
) -> StateVerdict:
    """Compare what is there with what was acknowledged.

    Args:
        expected: Acknowledged.
        pending: Under way; may be there or not.
        found: Every memory there is.
        settled: Whether what `must` be there has had the time to.
    """
    verdict = StateVerdict()
    differing = {
        memory_id
        for memory_id in expected.memories.keys() | found.keys()
        if found.get(memory_id) != expected.memories.get(memory_id)
    }
    whole = all(_is(found.get(memory_id), after) for memory_id, after in pending.changed.items())
    touched = differing & pending.changed.keys()
    if pending.changed and whole:
        verdict.now |= {memory_id: found.get(memory_id) for memory_id in pending.changed}
    elif touched or (pending.must and settled and pending.changed):
        verdict.half.append(f"{pending.do}: {len(touched)} of {len(pending.changed)} changes are there")
    waiting = list(pending.extra)
    for memory_id in sorted(differing - pending.changed.keys()):
        _judge(memory_id, expected, found.get(memory_id), waiting, verdict)
    if pending.must and settled and waiting:
        verdict.half.append(f"{pending.do}: {len(waiting)} additions are not there")
    return verdict


def _judge(
    memory_id: str, expected: AcknowledgedState, now: Shown | None, waiting: list[Shown], verdict: StateVerdict
) -> None:
    if memory_id in expected.memories:
        what = "is gone" if now is None else f"differs in {_differing(now, expected.memories[memory_id])}"
        verdict.lost.append(f"{memory_id}, acknowledged, {what}")
        return
    if memory_id in expected.forgotten:
        verdict.lost.append(f"{memory_id}, forgotten, is back")
        return
    assert now is not None
    fitting = next((extra for extra in waiting if _is({**now, "id": memory_id}, extra)), None)
    if fitting is None:
        verdict.half.append(f"{memory_id} is there once more, from nowhere, or not whole: {str(now)[:80]}")
        return
    waiting.remove(fitting)
    verdict.now[memory_id] = now


def _is(now: Shown | None, after: Shown | None) -> bool:
    if now is None or after is None:
        return now is after
    return all(now.get(key) == value for key, value in after.items())


def _differing(one: Shown, other: Shown) -> list[str]:
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
