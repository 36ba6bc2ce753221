"""Commands about what was made of what an agent was given: topics, and the page of one."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.knowledge import opened_knowledge
from agent_memory.cli.running import Run, command
from agent_memory.cli.text import minute
from agent_memory.errors import UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.knowledge.pages.filing import is_entity, unfiled_of
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pages.paging import title_of
from agent_memory.models import Topic, to_text, visible
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from agent_memory.knowledge.topics.saves import Kept

_COLUMNS: Final = ("name", "items", "consolidated_at", "edited", "title")
_NAMED: Final = 10


@command(rows=True)
async def topics(run: Run) -> None:
    """List topics, those with the most items first, and how many items are on no page."""
    async with opened_knowledge(run) as knowledge:
        pages = Pages(knowledge, run.service)
        found = sorted(await pages.topics(), key=lambda topic: (-len(topic.item_ids), topic.name))
        unfiled = await unfiled_of(run.service, found)
        kept = [await pages.kept(topic) for topic in found]
    rows = [_document(topic, own) for topic, own in zip(found, kept, strict=True)]
    head = {"agent_id": run.service.agent_id, "count": len(rows), "unfiled": unfiled}
    run.screen.rows({**head, "topics": rows}, "topics", _COLUMNS)
    for topic, own in zip(found, kept, strict=True):
        run.screen.show(f"{topic.name} · {counted(len(topic.item_ids), 'item')}{_state(topic, own)}", style="dim")
        run.screen.show(topic.description, indent=2, max_lines=2)
    if not found:
        run.screen.note(
            f"{run.service.agent_id} has no topics yet. `agent-memory ingest FILE` makes pages of what many items "
            "speak of."
        )
    if unfiled:
        told = f"{counted(unfiled, 'item')} on no page; `agent-memory search --items` looks there, too."
        run.screen.show(told, style="dim")


@command()
async def topic(
    run: Run, name: Annotated[str, typer.Argument(metavar="NAME", help="Which, as `topics` lists it.")]
) -> None:
    """Show the page of a topic."""
    async with opened_knowledge(run) as knowledge:
        pages = Pages(knowledge, run.service)
        known = await pages.topic(name.strip().lower().replace(" ", "_"))
        if known is None:
            there = [each.name for each in await pages.topics()]
            some = ", ".join(there[:_NAMED]) + (" …" if len(there) > _NAMED else "")
            raise UnknownIdError(
                f"There is no topic {quoted(name)}.",
                recovery=f"There are: {some}." if there else "`agent-memory ingest FILE` makes pages.",
            )
        page, kept = await pages.shown(known), await pages.kept(known)
    run.screen.document({**_document(known, kept), "page": page})
    for line in page.splitlines():
        run.screen.show(visible(line))
    if not page:
        run.screen.note(f"{known.name} has no page yet: nothing is filed there.")
    elif kept.proposed is not None:
        run.screen.note(f"This page was changed by hand. What would be written now lies in {kept.proposed.name}.")


def _document(topic: Topic, kept: "Kept") -> dict[str, Any]:
    return {
        "id": topic.id,
        "name": topic.name,
        "title": title_of(topic),
        "description": topic.description,
        "items": len(topic.item_ids),
        "declared": not is_entity(topic),
        "consolidated_at": None if topic.consolidated_at is None else to_text(topic.consolidated_at),
        "edited": kept.is_edited or bool(topic.edited_by),
        "proposed": None if kept.proposed is None else str(kept.proposed),
        "files": [str(path) for path in kept.files],
    }


def _state(topic: Topic, kept: "Kept") -> str:
    said = f" · {minute(topic.consolidated_at)}" if topic.consolidated_at is not None else " · no page yet"
    edited = " · changed by hand" if kept.is_edited or topic.edited_by else ""
    return f"{said}{edited}{' · a proposal lies beside it' if kept.proposed else ''}"
