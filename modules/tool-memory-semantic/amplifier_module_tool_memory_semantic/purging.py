"""`memory_forget` with `permanently`: a purge, which the user orders in words of their own once they saw what goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnknownIdError
from agent_memory.host.consent import is_purge_ordered, purge_proposal
from agent_memory.models import visible
from agent_memory.privacy import Purging
from agent_memory.redaction import quoted
from agent_memory.service import views

if TYPE_CHECKING:
    from agent_memory.host import MemorySession
    from agent_memory.models import Memory
    from agent_memory.privacy import Receipt
    from agent_memory.service import MemoryService

_ASK: Final = (
    "Nothing was purged. Show the user what goes, and that nothing can bring it back. It is done by the same call in a "
    "turn in which they say in words of their own, for instance: purge {named} for good."
)
_ASK_AGAIN: Final = (
    "Nothing was purged. Show the user what goes, and that nothing can bring it back, with the id {proposal}. It is "
    "done by the same call in the turn in which they answer only yes, or with that id."
)


async def purge(session: MemorySession, memory_id: str | None, query: str, confirm: str | None) -> dict[str, Any]:
    """Purge memories, or tell what would go and what the user has to say.

    Args:
        session: In which it is asked for.
        memory_id: Which memory, if it is named.
        query: What the memories are about, if none is named.
        confirm: From the preview of the query.

    Raises:
        UnknownIdError: There is no such memory, nor was there one.
        ValidationError, StorageError, UnsupportedError: As `Purging.run`.
    """
    service = await session.require()
    if memory_id is not None:
        named, view, is_confirmed = [await _known(service, memory_id)], dict[str, Any](), True
    else:
        preview = await service.requests.preview(query, session.caller)
        named, view = [*preview.gone], views.preview(preview)
        is_confirmed = bool(confirm) and confirm == preview.confirm
        if preview.cut:
            view["note"] = "Of those under change only whole memories can be purged, by their ids."
    purging = Purging(service)
    if not named or not is_confirmed or not await is_purge_ordered(session, named):
        session.note_returned(named)
        also = len((await purging.plan([memory.id for memory in named])).ids) - len(named) if named else 0
        shown = view or {
            "purge": [
                {"memory_id": named_memory.id, "content": visible(named_memory.content)} for named_memory in named
            ]
        }
        ask = {"ask": _ask(session, named)} if named else {}
        return {"purged": False, **shown, **({"also": f"{also} older, equal or derived"} if also else {}), **ask}
    receipt = await purging.run(await purging.plan([memory.id for memory in named]), session.caller)
    return _told(receipt)


def _ask(session: MemorySession, named: list[Memory]) -> str:
    if session.taint.by is None:
        return _ASK.format(named=named[0].id if len(named) == 1 else "these")
    return _ASK_AGAIN.format(proposal=purge_proposal(session, named))


async def _known(service: MemoryService, memory_id: str) -> Memory:
    """Return a memory, which may be forgotten already."""
    if (memory := await service.admin.get(memory_id)) is not None:
        return memory
    found = next((each for each, _ in await service.past.forgotten() if each.id == memory_id), None)
    if found is None:
        raise UnknownIdError(f"There is no memory {quoted(memory_id)}; nothing was purged.")
    return found


def _told(receipt: Receipt) -> dict[str, Any]:
    left = {"still_in": list(receipt.found), "not_done": list(receipt.failed)}
    return {
        "purged": True,
        "memory_ids": [one for one in receipt.records["ids"] if one.startswith("mem-")],
        "count": len(receipt.records["ids"]),
        **{name: value for name, value in left.items() if value},
        "not_reached": list(receipt.beyond),
    }
