"""What changes make of memories, and what differs between two of them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pydantic

from agent_memory.errors import ValidationError
from agent_memory.models import Memory, describe, may_stand_for, record_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def goes_in_a_circle(memory: Memory, known: Mapping[str, Memory]) -> bool:
    """Tell whether a memory replaces itself, directly or through others."""
    seen: set[str] = set()
    step = memory.supersedes
    while step is not None and step in known and step not in seen:
        if step == memory.id:
            return True
        seen.add(step)
        step = known[step].supersedes
    return step == memory.id


def lacking(agent_id: str, memories: Sequence[Memory], known: Mapping[str, Memory]) -> list[Memory]:
    """Return which of an agent's memories are not known.

    Raises:
        ValidationError: One of them cannot be kept.
    """
    together = dict(known)
    for memory in memories:
        if memory.agent_id != agent_id:
            raise ValidationError(f"A memory of agent {memory.agent_id!r} cannot be stored for {agent_id!r}.")
        if memory.id in together and together[memory.id].content != memory.content:
            raise ValidationError(f"The id {memory.id} is taken.", code="id_taken")
        together.setdefault(memory.id, memory)
    new = [together[memory.id] for memory in memories if memory.id not in known]
    for memory in new:
        if goes_in_a_circle(memory, together):
            raise ValidationError(f"{memory.id} cannot replace itself; nothing was stored.")
    return new


def same_but_for_accesses(memory: Memory, other: Memory | None) -> bool:
    """Tell whether two versions differ in nothing but how often they were found."""
    return other is not None and memory == other.model_copy(
        update={"access_count": memory.access_count, "last_accessed": memory.last_accessed}
    )


def lost_since(known: Mapping[str, Memory], now: Mapping[str, Memory]) -> dict[str, dict[str, Any]]:
    """Return the records of memories that are not there any more as they were."""
    return {
        memory_id: memory.to_record()
        for memory_id, memory in known.items()
        if not same_but_for_accesses(memory, now.get(memory_id))
    }


def expired_before(record: Mapping[str, Any], moment: datetime) -> bool:
    """Tell whether a memory's record says that it expired before `moment`."""
    try:
        return datetime.fromisoformat(record["expires_at"]) < moment
    except (KeyError, TypeError, ValueError):  # it never expires, or another program wrote what is no time
        return False


def says_the_same(shown: Memory, now: Memory | None) -> bool:
    """Tell whether a reader of one version was told what the other says; pins, places and counts do not matter."""
    if now is None or not may_stand_for(now.trust, shown.trust):
        return False
    return (shown.content, shown.category, shown.tags) == (now.content, now.category, now.tags)


def overlaid(memory: Memory, changes: Mapping[str, Any]) -> Memory:
    """Return a memory with some fields changed; None gives a field its default again.

    Raises:
        ValidationError: A value is wrong.
    """
    values = memory.model_dump()
    for field, value in changes.items():
        if value is None:
            values.pop(field)
        else:
            values[field] = value
    try:
        return Memory.model_validate(values)
    except pydantic.ValidationError as error:
        raise ValidationError(f"Nothing was changed: {describe(error)}.") from None


def difference(before: Memory, after: Memory) -> dict[str, Any]:
    """Return the patch that leads from one to the other: None removes a field, which then has its default."""
    old, new = before.to_record(), after.to_record()
    return record_of({key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)})
