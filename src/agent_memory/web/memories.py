"""Memories: search, filters, history, edits, forgetting, purges and undo."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.archive import find_stored_apart
from agent_memory.care.change_undo import ChangeUndo
from agent_memory.care.inventory import describe_purge
from agent_memory.care.privacy import Purging
from agent_memory.errors import ConflictError, UnknownIdError, UnsupportedError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.memory.views import shorten_line, view_links, view_versions, view_whole_memory
from agent_memory.models import CATEGORIES, Listing, filters_of, to_text
from agent_memory.models.clock import parse_bound
from agent_memory.models.record import normalise_tags
from agent_memory.redaction import quoted
from agent_memory.store.lookups import find_current
from agent_memory.web.page_view import ActResult, PageForm, PageNotice, PageView, compare_words, read_back
from agent_memory.web.time_lanes import load_past, view_past
from agent_memory.web.today import view_candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from agent_memory.memory import MemoryService
    from agent_memory.memory.results import ForgottenMany, Stored, Updated
    from agent_memory.models import Memory, RecordState, SearchFilters
    from agent_memory.models.record_lists import RecordCounts
    from agent_memory.web.page_view import PageSession

_PAGE: Final = 25
_HITS: Final = 50
_MAX_FACETS: Final = 12
MAX_CHOSEN: Final = 500
_QUOTED: Final = 80
_FILTERS: Final = ("category", "project", "tag", "trust", "since", "until", "state", "as_of")
_STATES: Final[dict[str, frozenset[RecordState]]] = {
    "": frozenset({"valid"}),
    "expired": frozenset({"expired"}),
    "replaced": frozenset({"superseded"}),
}
_EDITED: Final = ("content", "category", "tags", "project", "pinned", "expires_at")


async def list_memories(page: PageSession, request: Request) -> PageView:
    """List or search memories, or list those after an earlier change."""
    service = await page.open()
    asked = {name: request.query_params.get(name, "").strip() for name in ("q", *_FILTERS)}
    offset = _read_offset(request.query_params.get("offset", "0"))
    filters = _read_filters(asked)
    past, match, degraded = None, None, None
    records: Sequence[Memory]
    if asked["as_of"]:
        past = await load_past(service, asked["as_of"], offset=offset, limit=_PAGE)
        asked = {name: text if name == "as_of" else "" for name, text in asked.items()}
        records, total, replaced = past.memories, past.total, past.replaced_by
    elif asked["q"]:
        asked["state"] = ""  # words find valid memories; the other states are lists
        found = await service.search(asked["q"], _HITS, filters, caller=page.caller)
        hits = [hit for hit in found.results if asked["trust"] in {"", hit.memory.trust}]
        records, total, match = [hit.memory for hit in hits], len(hits), found.match
        degraded = found.degraded
    else:
        states, trust = _get_states(asked["state"]), asked["trust"] or None
        listed = await service.storage.browse(Listing("newest", filters, states, trust, offset=offset, limit=_PAGE))
        records, total = listed.records, listed.total
    if past is None:
        replaced = await find_current(service.storage.replaced_by, [memory.id for memory in records])
    return PageView(
        "memories",
        {
            "agent_id": page.agent_id,
            "asked": asked,
            "chosen": {name: asked[name] for name in _FILTERS if asked[name]},
            "offset": offset,
            "total": total,
            "page_size": _PAGE,
            "past": None if past is None else view_past(past),
            "match": match,
            "degraded": degraded,
            "memories": [view_whole_memory(memory, replaced.get(memory.id)) for memory in records],
            **({"facets": {}, "stored": total, "hidden": {}} if past is not None else await _count_stored(service)),
            "is_damaged": past is None and bool((await service.storage.health()).get("problems")),
        },
    )


async def _count_stored(service: MemoryService) -> dict[str, Any]:
    """Return the numbers of all memories, and the values of filters."""
    tally = await service.storage.tally()
    hidden = {"replaced": tally.superseded, "expired": tally.expired}
    facets, categories = _count_facets(tally), sorted(CATEGORIES)
    return {"facets": facets, "stored": tally.records, "hidden": hidden, "categories": categories}


def _read_offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004 - any number of memories


def _get_states(state: str) -> frozenset[RecordState]:
    if state not in _STATES:
        raise ValidationError(f"No state {quoted(state)}.", code="invalid_filter", recovery="Choose one of the list.")
    return _STATES[state]


def _read_filters(asked: dict[str, str]) -> SearchFilters:
    """Return the filters of an address.

    Raises:
        ValidationError: A day or another filter is invalid.
    """
    try:
        bounds = {
            name: parse_bound(asked[key], end=key == "until", is_ahead=False)
            for name, key in (("start", "since"), ("end", "until"))
            if asked[key]
        }
    except ValueError as error:
        raise ValidationError(f"{error}.", code="invalid_filter", recovery="Write a day as 2026-01-30.") from None
    named = {
        "category": asked["category"] or None,
        "project": asked["project"] or None,
        "all_tags": [asked["tag"]] if asked["tag"] else [],
        "date_range": bounds or None,
    }
    return filters_of({name: value for name, value in named.items() if value})


def _count_facets(tally: RecordCounts) -> dict[str, dict[str, int]]:
    """Return categories, projects and trust levels with the number of memories."""
    counts = {"trust": tally.by_trust, **{name: tally.by_facet.get(name) for name in ("category", "project")}}
    return {name: dict(counter.most_common(_MAX_FACETS)) if counter else {} for name, counter in counts.items()}


async def show_memory(page: PageSession, request: Request) -> PageView:
    """Show one memory: its fields to edit, links and earlier versions."""
    service, memory_id = await page.open(), request.path_params["memory_id"]
    return PageView("memory", await _view_memory(service, memory_id))


async def _view_memory(service: MemoryService, memory_id: str) -> dict[str, Any]:
    """Return everything known of a memory, also of a forgotten one.

    Raises:
        UnknownIdError: Nothing is known of it.
    """
    versions = await _list_versions(service, memory_id)
    memory = await service.storage.get(memory_id)
    if memory is None and not versions:
        raise UnknownIdError(
            f"No memory {quoted(memory_id)}.", recovery="It may have been purged. Search for its words."
        )
    data: dict[str, Any] = {"id": memory_id, "memory": None, "linked": [], "conflicts": []}
    if memory is not None:
        replaced = await find_current(service.storage.replaced_by, [memory_id])
        around = (await service.storage.surroundings([memory_id]))[memory_id]
        data["memory"] = view_whole_memory(memory, replaced.get(memory_id))
        data["expires_on"] = _view_editable(memory)["expires_at"]
        data["linked"] = view_links(around, "linked")["linked"]
        data["conflicts"] = [
            pair.older.id if pair.newer.id == memory_id else pair.newer.id
            for pair in await service.suspects(among=[memory_id])
        ]
    return {
        **data,
        "seq": versions[-1]["seq"] if versions else 0,
        "versions": versions[::-1],
        "categories": sorted({*CATEGORIES, *([memory.category] if memory else [])}),
    }


async def _list_versions(service: MemoryService, memory_id: str) -> list[dict[str, Any]]:
    """Return the versions of a memory with changed words, oldest first."""
    try:
        versions = view_versions(await service.history.history(memory_id))
    except UnsupportedError:  # a server keeps no versions
        return []
    before: str | None = None
    for version in versions:
        content = version["content"]
        version["spans"] = None
        if content is not None and before is not None and content != before:
            version["spans"] = compare_words(before, content)
        before = content if content is not None else before
        del version["memory"]
    return versions


async def store_edit(page: PageSession, form: PageForm) -> PageView | ActResult:
    """Store changed fields of a memory; show both versions if stale."""
    service, memory_id = await page.open(), form.get_text("id")
    memory = await service.get(memory_id)
    wanted = _read_edit(form)
    seq = form.get_number("seq")
    shown = _view_editable(memory)
    changes = {name: value for name, value in wanted.items() if value != shown[name]}
    try:
        if not changes:  # an update compares the numbers itself
            await _check_seq(service, memory_id, seq)
        updated = await service.update(memory_id, _to_fields(changes), page.caller, expect_seq=seq or None)
    except ConflictError as error:
        data = await _view_memory(service, memory_id)
        spans = compare_words(memory.content, wanted["content"])
        problem = {"code": error.code, "message": error.message, "recovery": error.recovery}
        versions = {"wanted": wanted, "shown": shown, "spans_now": spans[0], "spans_yours": spans[1]}
        return PageView("stale", {**data, "error": problem, **versions}, 409, f"/memories/{memory_id}")
    if not updated.fields:
        return ActResult(f"/memories/{memory_id}", PageNotice("Nothing was changed."))
    text = f"Changed {', '.join(updated.fields)}."
    return ActResult(f"/memories/{memory_id}", await _describe_written(page, updated, text))


async def store_memory(page: PageSession, form: PageForm) -> ActResult:
    """Store what a person typed on the page."""
    service, typed = await page.open(), _read_edit(form)
    fields = _to_fields({name: text for name, text in typed.items() if text and name != "content"})
    source = {"kind": "user", "detail": "page"}
    values = {**fields, "content": typed["content"], "source": source, "origin": "typed", "trust": "high"}
    stored = await service.store(values, page.caller)
    if stored.duplicate:
        return ActResult(f"/memories/{stored.memory.id}", PageNotice("This memory says that already."))
    return ActResult("/memories", await _describe_written(page, stored, f"Stored {_quote(stored.memory)}."))


async def _check_seq(service: MemoryService, memory_id: str, seq: int) -> None:
    """Refuse a form that another change has made stale.

    Raises:
        ConflictError: The memory's last change has another number.
    """
    versions = await _list_versions(service, memory_id)
    if versions and versions[-1]["seq"] != seq:
        raise ConflictError("The memory was changed after you opened this form. Nothing was stored.")


async def _describe_written(page: PageSession, written: Stored | Updated, text: str) -> PageNotice:
    hints = [f"A secret was removed ({', '.join(written.redacted)})."] if written.redacted else []
    hints += [f"It conflicts with {pair.older.id}: {_quote(pair.older)}" for pair in written.suspects]
    conflict_ids = {pair.older.id for pair in written.suspects}
    hints += [f"Similar: {memory.id} {_quote(memory)}" for memory in written.similar if memory.id not in conflict_ids]
    return PageNotice(text, await page.find_undo([written.memory.id]), tuple(hints))


def _quote(memory: Memory) -> str:
    return f"\u201c{shorten_line(memory.content, _QUOTED).removesuffix('.')}\u201d"


def _view_editable(memory: Memory) -> dict[str, Any]:
    """Return the fields of the form as text."""
    return {
        "content": memory.content,
        "category": memory.category,
        "tags": ", ".join(memory.tags),
        "project": memory.project,
        "pinned": "on" if memory.pinned else "",
        "expires_at": "" if memory.expires_at is None else f"{memory.expires_at.astimezone():%Y-%m-%d}",
    }


def _read_edit(form: PageForm) -> dict[str, str]:
    """Return the form's fields as `_view_editable` has them."""
    return {name: form.get_text(name) if name == "content" else form.get_text(name).strip() for name in _EDITED}


def _to_fields(changes: dict[str, str]) -> dict[str, Any]:
    """Return fields of a memory for changed texts of the form.

    Raises:
        ValidationError: A day, a tag or an empty text is refused.
    """
    fields: dict[str, Any] = {**changes}
    if "content" in fields and not fields["content"].strip():
        raise ValidationError("The text is empty; nothing was changed.", recovery="Forget the memory instead.")
    try:
        if "tags" in fields:
            fields["tags"] = normalise_tags([tag for tag in fields["tags"].split(",") if tag.strip()])
        if "expires_at" in fields:
            text = fields["expires_at"]
            fields["expires_at"] = parse_bound(text, end=True, is_ahead=True) if text else None
    except ValueError as error:
        raise ValidationError(f"{error}; nothing was changed.", code="usage") from None
    if "pinned" in fields:
        fields["pinned"] = bool(fields["pinned"])
    return fields


async def preview_forget(page: PageSession, request: Request) -> PageView:
    """Preview a deletion, with older versions and similar memories."""
    service = await page.open()
    ids = list(dict.fromkeys(request.query_params.getlist("id")))[:MAX_CHOSEN]
    memories = [await service.get(memory_id) for memory_id in ids]
    rows = [
        {**view_whole_memory(memory), "older": list(await service.storage.older_versions(memory.id))}
        for memory in memories
    ]
    similar = await service.searcher.find_similar(memories[0], page.caller) if len(memories) == 1 else []
    return PageView(
        "forget_preview",
        {
            "memories": rows,
            "similar": [view_whole_memory(memory) for memory in similar],
            "back": _read_return(request),
            "until": _get_restore_end(service),
        },
    )


def _get_restore_end(service: MemoryService) -> str | None:
    until = service.writer.deletion.get_restore_end()
    return None if until is None else to_text(until)


def _read_return(request: Request) -> str:
    return read_back(PageForm({"back": [request.query_params.get("back", "/memories")]}))


async def forget_memories(page: PageSession, form: PageForm) -> ActResult:
    """Forget the chosen memories as one change."""
    service, ids = await page.open(), form.get_all("id")
    if not ids:
        raise ValidationError("No memory was chosen; nothing was forgotten.", code="usage", recovery="Choose one.")
    outcome = await service.writer.deletion.forget(ids, page.caller, reason=form.get_text("reason"))
    return ActResult(read_back(form), await describe_forgotten(page, outcome))


async def describe_forgotten(page: PageSession, outcome: ForgottenMany) -> PageNotice:
    """Return the notice of a deletion, with similar memories that stay."""
    first = outcome.memories[0]
    what = _quote(first) if len(outcome.memories) == 1 else counted(len(outcome.memories), "memory", "memories")
    end = outcome.kept_until
    until = "" if end is None else f" It can be restored until {end.astimezone():%Y-%m-%d}."
    hints = [
        f"Also forgot {counted(len(gone), name)}."
        for gone, name in (
            (outcome.older, "older version"),
            (outcome.talk, "line of a conversation with the same words"),
            (outcome.statements, "statement made of it"),
        )
        if gone
    ]
    hints += [f"Kept: {memory.id} {_quote(memory)}" for memory in outcome.similar]
    return PageNotice(f"Forgot {what}.{until}", await page.find_undo([first.id]), tuple(hints))


async def undo_changes(page: PageSession, form: PageForm) -> ActResult:
    """Take changes back by their numbers."""
    service = await page.open()
    changes = []
    for text in form.get_all("change"):
        change = await service.history.find_change(PageForm({"change": [text]}).get_number("change"))
        if change is None:
            message = f"No change has the number {quoted(text)}; nothing was changed."
            raise UnknownIdError(message, recovery="See the history of the memory.")
        changes.append(change)
    undone = [outcome async for outcome in ChangeUndo(service).take_back(changes, page.caller)]
    ids = [memory_id for outcome in undone for memory_id in outcome.memory_ids]
    left = [
        f"{memory_id} is left as it is: {reason}."
        for outcome in undone
        for memory_id, reason in outcome.conflicts.items()
    ]
    if not ids:
        return ActResult(read_back(form), PageNotice("Nothing was taken back.", hints=tuple(left)))
    text = f"Took back {counted(len(undone), 'change')} of {counted(len(ids), 'memory', 'memories')}."
    notice = PageNotice(text, await page.find_undo(ids[:1]), tuple(left), undo_name="Redo")
    return ActResult(read_back(form), notice)


async def restore_memory(page: PageSession, form: PageForm) -> ActResult:
    """Restore a forgotten or replaced memory, or one of its versions."""
    service, memory_id = await page.open(), form.get_text("id")
    seq = form.get_number("version") if form.get_text("version") else None
    done = await service.history.restore(memory_id, page.caller, seq=seq)
    notice = PageNotice(f"Restored {memory_id}.", await page.find_undo([done.memories[0].id]))
    return ActResult(f"/memories/{memory_id}", notice)


_FIELDS: Final = ("category", "project", "tag", "pinned")
_NONE: Final = "-"
"""Answer of the form that empties a project."""


async def preview_changes(page: PageSession, request: Request) -> PageView:
    """Show the chosen memories, with what a change would make of them."""
    service, query = await page.open(), request.query_params
    asked = {name: query.get(name, "").strip() for name in _FIELDS}
    ids = list(dict.fromkeys(query.getlist("id")))[:MAX_CHOSEN]
    memories = [await service.get(memory_id) for memory_id in ids]
    tally = await service.storage.tally()
    return PageView(
        "bulk_change",
        {
            "asked": asked,
            "has_change": any(asked.values()),
            "memories": [{**view_whole_memory(memory), "changes": _list_changes(memory, asked)} for memory in memories],
            "categories": sorted({*CATEGORIES, *tally.by_facet.get("category", ())}),
            "projects": sorted(filter(None, tally.by_facet.get("project", ()))),
            "back": read_back(PageForm({"back": [query.get("back", "/memories")]})),
        },
    )


def _list_changes(memory: Memory, asked: dict[str, str]) -> dict[str, Any]:
    """Return new values of a memory's fields that differ now.

    Raises:
        ValidationError: A tag is invalid.
    """
    try:
        tags = normalise_tags([asked["tag"]]) if asked["tag"] else []
    except ValueError as error:
        raise ValidationError(f"{error}; nothing was changed.", code="usage") from None
    wanted = {
        **({"category": asked["category"]} if asked["category"] else {}),
        **({"project": asked["project"].removeprefix(_NONE)} if asked["project"] else {}),
        **({"pinned": asked["pinned"] == "on"} if asked["pinned"] else {}),
        "tags": [*memory.tags, *(tag for tag in tags if tag not in memory.tags)],
    }
    return {name: value for name, value in wanted.items() if getattr(memory, name) != value}


async def change_memories(page: PageSession, form: PageForm) -> ActResult:
    """Change the chosen memories one after the other; each can be undone."""
    service, ids = await page.open(), form.get_all("id")
    asked = {name: form.get_text(name).strip() for name in _FIELDS}
    if not ids or not any(asked.values()):
        raise ValidationError("No memory or no change was chosen; nothing was changed.", code="usage")
    changed, hints = list[str](), list[str]()
    for memory_id in ids[:MAX_CHOSEN]:
        try:
            if changes := _list_changes(await service.get(memory_id), asked):
                await service.update(memory_id, changes, page.caller)
                changed.append(memory_id)
        except UnknownIdError:
            hints.append(f"{memory_id} was forgotten meanwhile.")
    text = f"Changed {counted(len(changed), 'memory', 'memories')}."
    return ActResult(read_back(form), PageNotice(text, await page.find_undo(changed), tuple(hints)))


_SHOWN: Final = 50
_MAX_PURGED: Final = 100


async def show_deletion(page: PageSession, request: Request) -> PageView:
    """Show candidates for words, forgotten memories and past purges."""
    service, words = await page.open(), request.query_params.get("q", "").strip()
    found = await _find_candidates(page, service, words) if words else {"candidates": [], "archived": [], "waiting": []}
    forgotten = await _list_forgotten(service)
    return PageView(
        "deletion",
        {
            "agent_id": page.agent_id,
            "words": words,
            **found,
            "forgotten": forgotten[:_SHOWN],
            "forgotten_count": len(forgotten),
            "purges": await _list_purges(service),
            "stored": await service.storage.count(),
        },
    )


async def _find_candidates(page: PageSession, service: MemoryService, words: str) -> dict[str, Any]:
    """Return the memories, archived memories and waiting notes that words may mean."""
    found = await service.searcher.find_candidates(words, page.caller)
    candidates = [
        {**view_whole_memory(item.memory), "owner": item.ownership.owner, "match": item.match} for item in found.listed
    ]
    archived, waiting = await find_stored_apart(service, words)
    return {
        "candidates": candidates,
        "archived": [view_whole_memory(item.memory) for item in archived or ()],
        "waiting": [view_candidate(candidate) for candidate in waiting or ()],
    }


async def _list_forgotten(service: MemoryService) -> list[dict[str, Any]]:
    """Return memories that can be restored, the last forgotten first."""
    try:
        forgotten = await service.history.forgotten()
    except UnsupportedError:  # a server keeps nothing
        return []
    rows = [{**view_whole_memory(memory), "forgotten_at": to_text(moment)} for memory, moment in forgotten]
    return sorted(rows, key=lambda row: str(row["forgotten_at"]), reverse=True)


async def _list_purges(service: MemoryService) -> list[dict[str, Any]]:
    if service.folder is None:
        return []
    purges = await asyncio.to_thread(Purging(service).list.purges)
    return [describe_purge(purge) for purge in purges]


async def preview_purge(page: PageSession, request: Request) -> PageView:
    """Show every record and text that a purge would delete."""
    ids = list(dict.fromkeys(request.query_params.getlist("id")))[:_MAX_PURGED]
    if not ids:
        raise ValidationError("No record was chosen; nothing was purged.", code="usage", recovery="Choose one.")
    plan = await Purging(await page.open()).plan(ids)
    return PageView(
        "purge_preview",
        {"asked": ids, "ids": list(plan.ids), "texts": list(plan.texts), "same": list(plan.same)},
    )


async def purge_records(page: PageSession, form: PageForm) -> ActResult:
    """Purge the records of a preview that a person confirmed."""
    ids = form.get_all("id")
    if not ids or form.get_text("sure") != "on":
        raise ValidationError(
            "Nothing was purged: mark that it cannot be undone.", code="usage", recovery="Go back and mark it."
        )
    purging = Purging(await page.open())
    plan = await purging.plan(ids)
    if set(plan.ids) != set(form.get_all("planned")):
        raise ConflictError(
            "Nothing was purged: other records would be deleted than the preview showed.",
            recovery="Open the preview again.",
        )
    page.uploads.delete_all()
    receipt = await purging.run(plan, page.caller)
    state = "Every byte of every file was searched." if receipt.is_clean else "Not all of it is gone: see below."
    return ActResult(f"/purge/{receipt.purge_id}", PageNotice(f"Purged {counted(len(plan.ids), 'record')}. {state}"))


async def show_receipt(page: PageSession, request: Request) -> PageView:
    """Show the receipt of a purge, to print."""
    purge_id = request.path_params["purge_id"]
    purges = await asyncio.to_thread(Purging(await page.open()).list.purges)
    purge = next((purge for purge in purges if purge.id == purge_id), None)
    if purge is None:
        raise UnknownIdError(f"No purge {quoted(purge_id)}.", recovery="Forget and purge lists all of them.")
    data = {"agent_id": page.agent_id, **describe_purge(purge), "ids": list(purge.ids)}
    return PageView("receipt", {**data, "receipt": None if purge.receipt is None else dict(purge.receipt)})
