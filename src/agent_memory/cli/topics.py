"""`agent-memory knowledge topics` and `knowledge topic`."""

import re
import shlex
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.knowledge import open_knowledge, process_due_texts
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import minute
from agent_memory.errors import CategoryExistsError, UnknownIdError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.knowledge.pages.assignment import count_passages, count_unfiled, describe_missing_page
from agent_memory.knowledge.pages.page import join_claims, unescape
from agent_memory.knowledge.pages.page_items import get_title
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pages.subjects import build_name, is_derived
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import Topic, to_text, visible
from agent_memory.models.text import one_line
from agent_memory.redaction import quoted
from agent_memory.times import describe_saying

if TYPE_CHECKING:
    from agent_memory.knowledge.pages.page_files import PageFiles

_COLUMNS: Final = ("name", "items", "consolidated_at", "edited", "title")
_NAMED: Final = 10
_DATED: Final = re.compile(r"- \((\d{4}-\d\d-\d\d)\) ")
_BLOCK: Final = re.compile(r"[-*+|>`]|\d+[.)] ")
"""Begins a list, table, quote or code, which needs no bullet."""
_LEAST: Final = 10
_MOST: Final = 500
"""Characters of a description, as the record of a topic has them."""


@command(rows=True)
async def topics(run: AgentContext) -> None:
    """List topics, and how many items are on no page."""
    async with open_knowledge(run) as knowledge:
        pages = Pages(knowledge, run.service)
        shown = sorted(await pages.list_shown(), key=lambda topic: (-len(topic.item_ids), topic.name))
        unfiled = await count_unfiled(run.service, shown)
        pages_kept = [await pages.get_files(topic) for topic in shown]
    rows = [_to_document(topic, page_kept) for topic, page_kept in zip(shown, pages_kept, strict=True)]
    head = {"agent_id": run.service.agent_id, "count": len(rows), "unfiled": unfiled}
    run.screen.rows({**head, "topics": rows}, "topics", _COLUMNS)
    for topic, page_kept in zip(shown, pages_kept, strict=True):
        run.screen.show(f"{topic.name} · {counted(len(topic.item_ids), 'item')}{_state(topic, page_kept)}", style="dim")
        run.screen.show(topic.description, indent=2, max_lines=2)
    if not shown:
        run.screen.hint(
            f"{run.service.agent_id} has no topics yet. Run `agent-memory ingest FILE` for pages of documents, "
            "conversations and people, or `agent-memory knowledge topic NAME --declare TEXT` for a topic of your own."
        )
    if unfiled:
        sentence = f"{counted(unfiled, 'item')} on no page; `agent-memory search` finds them, too."
        run.screen.show(sentence, style="dim")


@command(may_be_new="declare")
async def topic(
    run: AgentContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, title or file of a topic.")],
    *,
    declare: Annotated[
        str | None,
        typer.Option("--declare", help="Declare the topic by a description of 10 to 500 characters.", metavar="TEXT"),
    ] = None,
) -> None:
    """Show the page of a topic, or declare one."""
    async with open_knowledge(run) as knowledge:
        pages = Pages(knowledge, run.service)
        if declare is not None:
            await _declare(run, knowledge, pages, name, declare)
            return
        matches = await pages.find(name)
        if len(matches) != 1:
            raise _build_ambiguous(name, matches) if matches else await _build_unknown(run, pages, name)
        [chosen] = matches
        page, page_kept = await pages.get_text(chosen), await pages.get_files(chosen)
    run.screen.document({**_to_document(chosen, page_kept), "page": page})
    if run.screen.out:
        _show_page(run, page)
    else:
        for line in page.splitlines():
            run.screen.show(visible(line))
    if not page:
        run.screen.note(f"{chosen.name} has no page yet: it has no items.")
    elif page_kept.proposed is not None:
        proposal = f"The new page is in {page_kept.proposed.name}. Move it over the page to accept it."
        run.screen.note(f"This page was changed by hand. {proposal}")


def _build_ambiguous(name: str, topics: list[Topic]) -> UnknownIdError:
    """Return the error for a title or file that several pages have."""
    names = ", ".join(topic.name for topic in topics[:_NAMED])
    return UnknownIdError(
        f"{len(topics)} pages are called {quoted(name)}: {names}{' …' if len(topics) > _NAMED else ''}.",
        code="ambiguous_id",
        recovery="Run `agent-memory knowledge topic NAME` with one of them; `knowledge topics` describes them.",
    )


def _show_page(run: AgentContext, page: str) -> None:
    """Print a page without the escapes of Markdown.

    A claim shows its day of saying if its words depend on that.
    """
    for line in join_claims(page).split("\n"):
        text = unescape(line)
        if not line.startswith("- "):
            run.screen.show(text)
            continue
        if dated := _DATED.match(text):
            said_day = describe_saying(text, datetime.combine(date.fromisoformat(dated[1]), time(12), UTC))
            text = text.replace(dated[1], f"said {said_day}", 1) if said_day else text
        words = text.removeprefix("- ")
        bullet = "  " if _BLOCK.match(words) else "- "
        for position, part in enumerate(run.screen.wrap(words, len(bullet))):
            run.screen.show(StyledText("  " if position else bullet) + part)


async def _build_unknown(run: AgentContext, pages: Pages, name: str) -> UnknownIdError:
    """Return the error for a name that has no page."""
    passages = await count_passages(run.service, name)
    word = shlex.quote(one_line(name))
    recovery = f"Run `agent-memory search {word}` to read them, or" if passages else "Run"
    recovery += f" `agent-memory knowledge topic {word} --declare TEXT` to give it a page."
    names = [topic.name for topic in await pages.list_shown()]
    if names:
        recovery += f" Pages: {', '.join(names[:_NAMED])}{' …' if len(names) > _NAMED else ''}."
    return UnknownIdError(describe_missing_page(one_line(name), passages), recovery=recovery)


async def _declare(run: AgentContext, knowledge: Knowledge, pages: Pages, title: str, description: str) -> None:
    """Store a topic that a person declares, and file similar items there."""
    name = build_name(title)
    if not name:
        raise ValidationError(
            f"{quoted(title)} has no letter a to z or digit; nothing was declared.",
            code="invalid",
            recovery="Use Latin letters or digits in the name. The description may use any script.",
        )
    if await pages.get_by_name(name) is not None:
        raise CategoryExistsError(name)
    if not _LEAST <= len(description.strip()) <= _MOST:
        raise ValidationError(
            f"A description has {_LEAST} to {_MOST} characters; nothing was declared.",
            code="invalid",
            recovery="Describe in detail what belongs to the topic.",
        )
    declared = await pages.declare(name, description)
    run.screen.note(f"Declared {declared.name}. Items similar to its description will be filed there.", style="")
    worked = await process_due_texts(run, knowledge)
    run.screen.document({"agent_id": run.service.agent_id, "declared": declared.name, **worked})


def _to_document(topic: Topic, page: "PageFiles") -> dict[str, Any]:
    return {
        "id": topic.id,
        "name": topic.name,
        "title": get_title(topic),
        "description": topic.description,
        "items": len(topic.item_ids),
        "declared": not is_derived(topic),
        "trust": topic.trust,
        "consolidated_at": None if topic.consolidated_at is None else to_text(topic.consolidated_at),
        "edited": page.is_edited or bool(topic.edited_by),
        "proposed": None if page.proposed is None else str(page.proposed),
        "files": [str(path) for path in page.files],
    }


def _state(topic: Topic, page: "PageFiles") -> str:
    state = f" · {minute(topic.consolidated_at)}" if topic.consolidated_at is not None else " · no page yet"
    edited = " · changed by hand" if page.is_edited or topic.edited_by else ""
    untrusted = " · low trust" if topic.trust == "low" else ""
    return f"{state}{untrusted}{edited}{' · a proposal exists' if page.proposed else ''}"
