"""Bulk change: project, category, a tag or a pin of chosen memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.memory.views import view_whole_memory
from agent_memory.models import CATEGORIES
from agent_memory.models.record import normalise_tags
from agent_memory.web.memories import MAX_CHOSEN
from agent_memory.web.page_session import PageNotice
from agent_memory.web.page_view import ActResult, PageForm, PageView, read_back

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_memory.models import Memory
    from agent_memory.web.page_session import PageSession

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
