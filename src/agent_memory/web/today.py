"""Today and decisions: changes since yesterday, and what waits for a person."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.change_undo import ChangeUndo
from agent_memory.care.consent_files import read_consent, view_consent
from agent_memory.errors import UnknownIdError, UnsupportedError, ValidationError
from agent_memory.memory.inbox_access import has_journal, opened_inbox
from agent_memory.memory.views import view_pair
from agent_memory.models import CANDIDATE, to_text
from agent_memory.redaction import quoted
from agent_memory.web.page_view import ActResult, PageForm, PageNotice, PageView, compare_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from agent_memory.memory import MemoryService, Suspect
    from agent_memory.memory.conflict_review import Decision
    from agent_memory.memory.history import MemoryChange
    from agent_memory.models import Candidate
    from agent_memory.web.page_view import PageSession

_MAX_CHANGES: Final = 200
_DAYS: Final = 1
"""Days before today whose changes are shown."""
_SHOWN_PARTS: Final = 3
_SHOWN: Final = 3
_GROUPS: Final = {"stored": "kept", "changed": "changed", "forgotten": "forgotten", "archived": "forgotten"}
"""Group of a change on the screen by its verb."""


async def show_today(page: PageSession, _request: Request) -> PageView:
    """Show the changes since yesterday, with what waits."""
    service = await page.open()
    changes = await _list_changes(service)
    status = await service.status(page.caller)
    waiting, conflicts = await list_waiting(service), await service.suspects(page.caller)
    groups: dict[str, list[dict[str, Any]]] = {"kept": [], "changed": [], "forgotten": []}
    for change in changes:
        groups[_GROUPS[change["what"]]].append(change)
    return PageView(
        "today",
        {
            "agent_id": page.agent_id,
            "changes": groups,
            "waiting": [view_candidate(candidate) for candidate in waiting[:_SHOWN]],
            "waiting_count": len(waiting),
            "conflicts": [view_pair(conflict) for conflict in conflicts[:_SHOWN]],
            "conflict_count": len(conflicts),
            "status": asdict(status),
            "consent": view_consent(await asyncio.to_thread(read_consent, page.root, page.agent_id)),
        },
    )


async def list_waiting(service: MemoryService) -> list[Candidate]:
    """Return the waiting notes and proposals of an agent."""
    if not has_journal(service.agent_id, service.settings, CANDIDATE):
        return []
    async with opened_inbox(service) as inbox:
        return await inbox.waiting()


def view_candidate(candidate: Candidate) -> dict[str, Any]:
    """Return a waiting note or proposal."""
    return {
        "id": candidate.id,
        "content": candidate.content,
        "category": candidate.category,
        "project": candidate.project,
        "trust": candidate.trust,
        "source": candidate.source.kind,
        "timestamp": to_text(candidate.timestamp),
        "replaces": candidate.replaces,
        "act": candidate.act,
        "act_ids": list(candidate.act_ids),
        "act_values": {name: str(value) for name, value in sorted(candidate.act_values.items())},
    }


async def _list_changes(service: MemoryService) -> list[dict[str, Any]]:
    """Return the changes since the beginning of yesterday, newest first."""
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        recent = await service.history.list_changes(_MAX_CHANGES, today - timedelta(days=_DAYS))
    except UnsupportedError:  # a server keeps no versions
        return []
    versions, withdrawn = await ChangeUndo(service).name_documents(recent)
    ids = {part.record_id for change in recent if change.verb == "stored" for part in change.parts}
    existing = (await service.storage.texts_of(ids)).keys()
    rows = []
    for change in recent:
        is_over = change.verb == "stored" and existing.isdisjoint(part.record_id for part in change.parts)
        if versions.get(change.seq) != "":
            document = versions.get(change.seq) or withdrawn.get(change.seq)
            can_undo = change.seq not in withdrawn and not is_over
            rows.append({**_view_change(change), "document": document, "can_undo": can_undo, "is_over": is_over})
    return rows


def _view_change(change: MemoryChange) -> dict[str, Any]:
    return {
        "change": change.seq,
        "at": to_text(change.at),
        "session": change.session_id,
        "what": change.verb,
        "fields": list(change.fields),
        "count": len(change.parts),
        "memories": _view_parts(change.parts[:_SHOWN_PARTS]),
    }


def _view_parts(parts: Sequence[Any]) -> list[dict[str, Any]]:
    memories = [part.after or part.before for part in parts]
    return [{"id": memory.id, "content": memory.content, "trust": memory.trust} for memory in memories if memory]


_MAX_DECISIONS: Final = 20
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
            "conflicts": [_view_conflict(pair) for pair in pairs[:_MAX_DECISIONS]],
            "conflict_count": len(pairs),
            "waiting": [await _view_waiting(service, candidate) for candidate in waiting[:_MAX_DECISIONS]],
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
