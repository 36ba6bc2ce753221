"""What a session that is bound to a group may name: memories of its group, and of none. Others are not there for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_memory.errors import UnknownIdError
from agent_memory.models import is_memory_id, sees
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.memory.caller import Caller
    from agent_memory.models import Memory
    from agent_memory.store.record_storage import RecordStorage


def is_seen(memory: Memory, caller: Caller) -> bool:
    """Return True if a memory is there for a caller."""
    return sees(caller.group, memory.facets)


async def check_seen(storage: RecordStorage[Memory], caller: Caller, ids: Iterable[object], outcome: str = "") -> None:
    """Refuse to name a memory of another group, as if there were none.

    Args:
        storage: Where memories are.
        caller: Who names them.
        ids: Which; what is no id of a memory is left to others.
        outcome: What the sentence goes on with.

    Raises:
        UnknownIdError: One of them belongs to another group.
    """
    if caller.group is None:
        return
    for one in ids:
        memory = await storage.get(one) if isinstance(one, str) and is_memory_id(one) else None
        if memory is not None and not is_seen(memory, caller):
            raise UnknownIdError(f"There is no memory {quoted(str(one))}{outcome}.")


async def check_referred(storage: RecordStorage[Memory], caller: Caller, values: object, aim: str) -> None:
    """Refuse fields of a memory that name one of another group.

    Raises:
        UnknownIdError: They do.
    """
    if caller.group is None or not isinstance(values, Mapping):
        return
    await check_seen(storage, caller, [values.get("supersedes")], f" to supersede; nothing was {aim}")
    links = values.get("links")
    ends = [_end(link) for link in links] if isinstance(links, list) else []
    await check_seen(storage, caller, ends, f" to link to; nothing was {aim}")


def _end(link: Any) -> object:
    return link.get("id") if isinstance(link, Mapping) else getattr(link, "id", None)
