"""The command that shows what was said in fewer words."""

from typing import Annotated, Any, Final

import typer

from agent_memory.cli.knowledge import get_resource, open_knowledge
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import day
from agent_memory.files.wording import counted
from agent_memory.models import PART_OF, Summary, visible
from agent_memory.models.record import view_fields

_COLUMNS: Final = ("id", "level", "timestamp", "conversation", "content")
_SHOWN: Final = 10


@command(rows=True)
async def summaries(
    run: AgentContext,
    conversation: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="ID or title of one conversation.", show_default=False),
    ] = None,
    *,
    shows_all: Annotated[bool, typer.Option("--all", help=f"List all, not only the newest {_SHOWN}.")] = False,
) -> None:
    """List summaries of conversations, the newest first; or those of one."""
    async with open_knowledge(run) as knowledge:
        if conversation is None:
            matching = list(await knowledge.summaries.valid())
        else:
            matching = await knowledge.summaries.linked_to((await get_resource(knowledge, conversation)).id)
        matching.sort(key=lambda summary: (summary.moment, summary.level, summary.id), reverse=True)
        shown = matching if shows_all else matching[:_SHOWN]
        talks = await knowledge.resources.valid_among([_describe_talk(summary) for summary in shown])
    head = {"agent_id": run.service.agent_id, "count": len(shown), "total": len(matching)}
    run.screen.rows({**head, "summaries": [_to_document(summary) for summary in shown]}, "summaries", _COLUMNS)
    for position, summary in enumerate(shown):
        if position:
            run.screen.show()
        talk = talks.get(_describe_talk(summary))
        name = (talk.title or talk.content) if talk is not None else _describe_talk(summary)
        run.screen.show(visible(f"{name} · {_describe_coverage(summary)} · {summary.id}"), style="dim")
        run.screen.show(visible(summary.content), indent=2)
    if not matching:
        run.screen.note("No summaries yet: a conversation gets one after twenty turns.")
    elif len(matching) > len(shown):
        run.screen.note(f"{len(shown):,} of {len(matching):,}; --all shows more.", style="dim")


def _describe_coverage(summary: Summary) -> str:
    """Return a summary's coverage, its end, and untrusted speakers."""
    what = counted(len(summary.covers), *(("turn",) if summary.level == "window" else ("summary", "summaries")))
    untrusted = " (untrusted)" if summary.trust == "low" else ""
    return f"{what} until {day(summary.moment)}{untrusted}"


def _describe_talk(summary: Summary) -> str:
    return next((link.id for link in summary.links if link.rel == PART_OF), "")


def _to_document(summary: Summary) -> dict[str, Any]:
    return {
        **view_fields(summary, "id", "level", timestamp="moment"),
        "conversation": _describe_talk(summary),
        **view_fields(summary, "content", "covers", "group", "trust"),
    }
