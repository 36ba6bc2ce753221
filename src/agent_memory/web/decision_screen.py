"""Decisions: pairs of memories that conflict, waiting notes, and proposals of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.memory.views import view_pair
from agent_memory.redaction import quoted
from agent_memory.web.page_session import PageNotice
from agent_memory.web.page_view import ActResult, PageForm, PageView
from agent_memory.web.today import list_waiting, view_candidate
from agent_memory.web.word_differences import compare_words

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_memory.memory import MemoryService, Suspect
    from agent_memory.memory.conflict_review import Decision
    from agent_memory.models import Candidate
    from agent_memory.web.page_session import PageSession

_SHOWN: Final = 20
_VERDICTS: Final[dict[str, tuple[Decision, str]]] = {
    "newer": ("replace", "The newer memory replaces the older."),
    "older": ("replace", "The older memory replaces the newer."),
    "both": ("keep", "Both memories hold."),
    "different": ("not_same", "The memories are about different things."),
}
"""Decision and sentence by the answer of a form."""
_DONE: Final = {"forget": "Forgot", "store": "Stored", "update": "Changed"}


async def show_decisions(page: PageSession, _request: Request) -> PageView:
    """Show conflicts, proposals and notes that wait for a decision."""
    service = await page.open()
    pairs, waiting = await service.suspects(page.caller), await list_waiting(service)
    waiting = sorted(waiting, key=lambda candidate: not candidate.act)
    return PageView(
        "decisions",
        {
            "agent_id": page.agent_id,
            "conflicts": [_view_conflict(pair) for pair in pairs[:_SHOWN]],
            "conflict_count": len(pairs),
            "waiting": [await _view_waiting(service, candidate) for candidate in waiting[:_SHOWN]],
            "waiting_count": len(waiting),
        },
    )


def _view_conflict(pair: Suspect) -> dict[str, Any]:
    older, newer = compare_words(pair.older.content, pair.newer.content)
    view = view_pair(pair)
    for name, memory, spans in (("newer", pair.newer, newer), ("older", pair.older, older)):
        view[name] |= {"id": memory.id, "content": memory.content, "trust": memory.trust, "spans": spans}
    return view


async def _view_waiting(service: MemoryService, candidate: Candidate) -> dict[str, Any]:
    """Return a note or proposal with the texts that it would change."""
    ids = [*candidate.act_ids, *([candidate.replaces] if candidate.replaces else [])]
    memories = await service.storage.get_many(ids)
    targets = [{"id": memory.id, "content": memory.content} for memory in memories.values()]
    return {**view_candidate(candidate), "targets": targets}


async def decide_pair(page: PageSession, form: PageForm) -> ActResult:
    """Decide a pair of memories that conflict."""
    verdict = form.get_text("verdict")
    if verdict not in _VERDICTS:
        raise ValidationError(f"No decision {quoted(verdict)}; nothing was decided.", code="usage")
    decision, sentence = _VERDICTS[verdict]
    service, ids = await page.open(), (form.get_text("newer"), form.get_text("older"))
    first, second = ids if verdict != "older" else ids[::-1]
    await service.writer.conflicts.decide(first, second, decision, page.caller)
    versions = [version for memory_id in ids for version in await service.storage.older_versions(memory_id)]
    undo = await page.find_undo([*ids, *versions])  # the decision is the last change of one of them
    return ActResult("/decisions", PageNotice(sentence, undo[:1]))


async def decide_waiting(page: PageSession, form: PageForm) -> ActResult:
    """Accept or reject a note or proposal."""
    verdict, candidate_id = form.get_text("verdict"), form.get_text("id")
    if verdict not in {"accept", "reject"}:
        raise ValidationError(f"No decision {quoted(verdict)}; nothing was decided.", code="usage")
    service = await page.open()
    async with opened_inbox(service) as inbox:
        candidate = await inbox.get(candidate_id)
        if verdict == "reject":
            await inbox.reject([candidate_id], page.caller)
            page.rejected[candidate_id] = candidate
            again = "." if candidate.act else "; it is not offered again."
            return ActResult("/decisions", PageNotice(f"Rejected{again}", candidate_id=candidate_id))
        stored = await inbox.accept(candidate_id, page.caller, _read_changes(form, candidate))
    undo = () if stored.duplicate else await page.find_undo([stored.memory.id])
    text = "A memory says that already." if stored.duplicate else f"{_DONE[candidate.act or 'store']} it."
    return ActResult("/decisions", PageNotice(text, undo))


async def undo_rejection(page: PageSession, form: PageForm) -> ActResult:
    """Return a rejected note or proposal to the inbox.

    Raises:
        UnknownIdError: It was not rejected in this run of the page.
    """
    service, candidate_id = await page.open(), form.get_text("candidate")
    if candidate_id not in page.rejected:
        raise UnknownIdError(f"{quoted(candidate_id)} was not rejected here; nothing was changed.")
    async with opened_inbox(service) as inbox:
        await inbox.take_rejection_back(page.rejected[candidate_id], page.caller)
    del page.rejected[candidate_id]
    return ActResult("/decisions", PageNotice("It waits again."))


def _read_changes(form: PageForm, candidate: Candidate) -> dict[str, Any]:
    """Return the new text of an edited note, if any.

    Raises:
        ValidationError: The new text is empty.
    """
    content = form.get_text("content")
    if candidate.act or content == candidate.content:
        return {}
    if not content.strip():
        raise ValidationError("The text is empty; nothing was decided.", recovery="Reject the note instead.")
    return {"content": content, "origin": "typed"}
