"""Candidates of a forgetting, and purges after the user's yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnknownIdError
from agent_memory.memory import views
from agent_memory.memory.caller import is_seen
from agent_memory.models import DIGEST, visible
from agent_memory.redaction import quoted
from agent_memory.registry import PRIVACY
from agent_memory.tools.consent import is_purge_ordered, propose_purge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory
    from agent_memory.tools.host_session import HostSession

_CHOOSE: Final = (
    "Nothing was forgotten. Call again with the ids that the user means; ask if that is not clear. To remove only a "
    "part of a memory, give memory_update its new text."
)
_NO_CANDIDATE: Final = "Nothing was forgotten: no memory matches. Try other words; the query 'everything' means all."
_ASK: Final = (
    "Nothing was purged. Show the user what goes, and that nothing can bring it back, with the id {proposal}. It is "
    "done by the same call in the turn in which they answer only yes, or with that id."
)


async def list_candidates(session: HostSession, query: str) -> dict[str, Any]:
    """Return the memories that a description may mean; forget nothing.

    Args:
        session: Session of the model.
        query: The user's words for what to forget.

    Raises:
        ValidationError, StorageError: As `Searcher.find_candidates`.
    """
    service = await session.require()
    candidates = await service.searcher.find_candidates(query, session.caller)
    session.note_returned(candidate.memory for candidate in candidates.listed)
    shown = views.view_candidates(candidates, session.caller.project)
    note = _CHOOSE if shown else _NO_CANDIDATE
    return {"forgotten": False, "count": len(shown), "candidates": shown, "note": note}


async def purge(session: HostSession, memory_ids: Sequence[str], query: str) -> dict[str, Any]:
    """Purge memories after the user's yes; before that, return what would go.

    Args:
        session: Session of the model.
        memory_ids: Memories to purge; without them the query's candidates are listed.
        query: The user's words for what to forget.

    Raises:
        UnknownIdError: One of them neither exists nor existed, or belongs to another group.
        ValidationError, StorageError, UnsupportedError: As `Purging.run`.
    """
    if not memory_ids:
        return {"purged": False, **await list_candidates(session, query)}
    service = await session.require()
    named = [await _find_memory(service, memory_id, session.caller) for memory_id in dict.fromkeys(memory_ids)]
    purging = PRIVACY.load("purging")(service)
    purging.check_caller(session.caller)
    plan = await purging.plan([memory.id for memory in named])
    if not await is_purge_ordered(session, named):
        session.note_returned(named)
        derived = [await service.storage.get(record_id) for record_id in plan.resting]
        listed = [*named, *(item for item in derived if item is not None and item.source.detail == DIGEST)]
        rest = len(plan.ids) - len(listed)
        return {
            "purged": False,
            "purge": [{"memory_id": memory.id, "content": visible(memory.content)} for memory in listed],
            **({"also": f"{rest} older, equal or derived"} if rest else {}),
            "ask": _ASK.format(proposal=propose_purge(session, named)),
        }
    return _render_receipt(await purging.run(plan, session.caller.as_person()))  # the user agreed to this very act


async def _find_memory(service: MemoryService, memory_id: str, caller: Caller) -> Memory:
    """Return a memory that the caller sees, which may be forgotten already."""
    memory = await service.storage.get(memory_id)
    if memory is None:
        memory = next((item for item, _ in await service.history.forgotten() if item.id == memory_id), None)
    if memory is None or not is_seen(memory, caller):
        raise UnknownIdError(f"No memory {quoted(memory_id)}; nothing was purged.")
    return memory


def _render_receipt(receipt: Any) -> dict[str, Any]:
    failures = {"still_in": list(receipt.found), "not_done": list(receipt.failed)}
    return {
        "purged": True,
        "memory_ids": [record_id for record_id in receipt.records["ids"] if record_id.startswith("mem-")],
        "count": len(receipt.records["ids"]),
        **{name: value for name, value in failures.items() if value},
        "not_reached": list(receipt.beyond),
    }
