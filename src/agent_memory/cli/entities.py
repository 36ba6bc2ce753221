"""`agent-memory knowledge entities`, `entity`, `episodes` and `summaries`."""

import shlex
from dataclasses import asdict
from typing import Annotated, Any, Final, get_args

import typer

from agent_memory.cli.knowledge import get_resource, open_knowledge
from agent_memory.cli.options import parse_moment
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import day, minute
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.knowledge.entities.entity_repository import EntityReader, MergedEntity, TimelineEntry
from agent_memory.knowledge.pages.assignment import count_passages, describe_passages
from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
from agent_memory.memory.views import describe_day, describe_said_day
from agent_memory.models import PART_OF, EntityType, Episode, Summary, visible
from agent_memory.models.record import view_fields
from agent_memory.models.text import one_line

_COLUMNS: Final = ("name", "entity_type", "mentions", "also", "id")
_EPISODE_COLUMNS: Final = ("id", "timestamp", "speaker", "content")
_SHOWN: Final = 30
_NAMED: Final = 3
_GroupOption = Annotated[
    str, typer.Option("--group", help="Group (tenant:session); without it, ungrouped records.", metavar="GROUP")
]


@command(rows=True)
async def entities(
    run: AgentContext,
    *,
    kind: Annotated[
        str | None, typer.Option("--type", help=f"One of {', '.join(get_args(EntityType))}.", metavar="TYPE")
    ] = None,
    maybe: Annotated[bool, typer.Option("--maybe", help="Only entities that may be the same as another one.")] = False,
    group: _GroupOption = "",
    shows_all: Annotated[bool, typer.Option("--all", help=f"List all, not only the first {_SHOWN}.")] = False,
) -> None:
    """List people and things, the most often named first."""
    if kind is not None and kind not in get_args(EntityType):
        raise ValidationError(f"No type {kind!r}; the types are {', '.join(get_args(EntityType))}.", code="invalid")
    async with open_knowledge(run) as knowledge:
        everything = await EntityReader(knowledge, group).all()
    names = {merged.entity.id: merged.entity.name for merged in everything}
    of_kind = [merged for merged in everything if kind in {None, merged.entity.entity_type}]
    matching = [merged for merged in of_kind if merged.maybe or not maybe]
    shown = matching if shows_all else matching[:_SHOWN]
    head = {"agent_id": run.service.agent_id, "count": len(shown), "total": len(matching)}
    run.screen.rows({**head, "entities": [_to_document(merged) for merged in shown]}, "entities", _COLUMNS)
    for merged in shown:
        also = _also(merged.names[1:])
        run.screen.show(visible(f"{merged.entity.name}{also}"))
        details = f"{merged.entity.entity_type} · {counted(merged.mentions, 'text')} · {merged.entity.id}"
        run.screen.show(details, indent=2, style="dim")
        if merged.maybe:
            similar = ", ".join(names.get(entity_id, entity_id) for entity_id in merged.maybe)
            run.screen.show(visible(f"maybe the same as {similar}"), indent=2, style="yellow")
    if not matching:
        run.screen.hint(
            f"{run.service.agent_id} knows no {'such ' if kind or maybe else ''}entities"
            f"{f' in {group}' if group else ''}. `agent-memory ingest FILE` extracts them from a file."
        )
    elif len(matching) > len(shown):
        run.screen.note(f"{len(shown):,} of {len(matching):,}; --all shows more.", style="dim")


@command()
async def entity(  # noqa: PLR0913 - the options of a command
    run: AgentContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Any of its names, or its ID.")],
    *,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="Show what was true on this day, e.g. 2026-01-30.", metavar="DATE")
    ] = None,
    merge: Annotated[str | None, typer.Option("--merge", help="Merge another entity into it.", metavar="OTHER")] = None,
    split: Annotated[bool, typer.Option("--split", help="Split what was merged into it.")] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Forget it for good, after a question; texts that name it stay.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget it without asking.")] = False,
    group: _GroupOption = "",
    shows_all: Annotated[bool, typer.Option("--all", help=f"Show all facts, not only the last {_SHOWN}.")] = False,
) -> None:
    """Show one entity and its facts in order of time."""
    if (merge is not None) + split + forget > 1:
        raise ValidationError("--merge, --split and --forget exclude each other; nothing was changed.", code="invalid")
    async with open_knowledge(run) as knowledge:
        reader = EntityReader(knowledge, group)
        shown = await _find(run, reader, name)
        if forget:
            await _forget(run, reader, shown, yes=yes)
            return
        if merge is not None:
            merged = await reader.get(merge)
            await reader.merge(merged, shown)
            run.screen.note(visible(f"{merged.entity.name} is the same as {shown.entity.name} now. --split undoes it."))
        elif split:
            apart = await reader.split(shown)
            names_apart = ", ".join(entity_known.name for entity_known in apart)
            run.screen.note(visible(f"Apart again: {names_apart}." if apart else "Nothing was merged into it."))
        shown = await reader.get(shown.entity.id)
        moments = await reader.timeline(shown, parse_moment(as_of, "--as-of", end=True, is_ahead=None))
        names = {entity_known.entity.id: entity_known.entity.name for entity_known in await reader.all()}
    _show(run, shown, moments, names, shows_all=shows_all)


async def _find(run: AgentContext, reader: EntityReader, name: str) -> MergedEntity:
    """Return the entity of a name.

    Raises:
        UnknownIdError: No entity or several have that name.
        StorageError: The entities cannot be read.
    """
    try:
        return await reader.get(name)
    except UnknownIdError as error:
        passages = await count_passages(run.service, name, reader.group or None)
        if error.code != "unknown_entity" or not passages:
            raise
        message = f"{error.message} {describe_passages(passages)}"
        recovery = f"Run `agent-memory search {shlex.quote(one_line(name))}` to read them. {error.recovery}"
        raise UnknownIdError(message, code=error.code, recovery=recovery) from None


async def _forget(run: AgentContext, reader: EntityReader, shown: MergedEntity, *, yes: bool) -> None:
    name = visible(shown.entity.name)
    if not yes:
        named = counted(shown.mentions, "text")
        run.confirm(f"Forget {name} (named in {named}) and its relations for good?", "Nothing was forgotten.")
    gone = await reader.forget(shown)
    run.screen.document({"forgotten": shown.entity.id, "name": shown.entity.name, **asdict(gone)})
    run.screen.hint(
        f"Forgot {name} and {counted(gone.relations, 'relation')}. Texts that name it stay, and will not create it "
        "again. Run `agent-memory forget --matching WORDS` to forget these texts."
    )


@command(rows=True)
async def episodes(
    run: AgentContext,
    conversation: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="ID or title of one conversation, whose turns are listed in order.", show_default=False
        ),
    ] = None,
    *,
    group: _GroupOption = "",
    shows_all: Annotated[bool, typer.Option("--all", help=f"List all, not only the newest {_SHOWN}.")] = False,
) -> None:
    """List turns of conversations, newest first; or one conversation in order."""
    async with open_knowledge(run) as knowledge:
        if conversation is not None:
            talk = await get_resource(knowledge, conversation)
            turns = sorted(await knowledge.episodes.linked_to(talk.id), key=lambda turn: turn.order)
        else:
            turns = [turn for turn in await knowledge.episodes.valid() if turn.group == group or not group]
            turns = sorted(turns, key=lambda turn: (turn.moment, turn.order), reverse=True)
        turns[:] = await ForgottenTexts(knowledge, run.service).filter_turns(turns)
    total = len(turns)
    shown = turns if shows_all or conversation is not None else turns[:_SHOWN]
    head = {"agent_id": run.service.agent_id, "count": len(shown), "total": total}
    run.screen.rows({**head, "episodes": [_episode(turn) for turn in shown]}, "episodes", _EPISODE_COLUMNS)
    for turn in shown:
        who = turn.speaker or (turn.event_type or turn.role)
        run.screen.show(visible(f"{turn.id} · {minute(turn.moment)} · {who}"), style="dim")
        run.screen.show(visible(turn.content), indent=2, max_lines=2)
    if not total:
        run.screen.hint("No turns. Run `agent-memory knowledge resources` to list conversations.")
    elif total > len(shown):
        run.screen.note(f"{len(shown):,} of {total:,}; --all shows more.", style="dim")


def _show(
    run: AgentContext, shown: MergedEntity, moments: list[TimelineEntry], names: dict[str, str], *, shows_all: bool
) -> None:
    run.screen.document({**_to_document(shown), "timeline": [_to_moment(item) for item in moments]})
    run.screen.show(visible(shown.entity.name))
    also = _also(shown.names[1:])
    details = f"{shown.entity.entity_type}{also} · {counted(shown.mentions, 'text')} · {shown.entity.id}"
    run.screen.show(visible(details), indent=2, style="dim")
    for key, value in shown.entity.attributes.items():
        run.screen.show(visible(f"{key}: {value}"), indent=2)
    for item in shown.merged:
        run.screen.show(visible(f"same as {item.name}{_why(item.metadata.get('merge'))}"), indent=2, style="dim")
    for similar_id in shown.maybe:
        similar = names.get(similar_id, similar_id)
        details = f"maybe the same as {similar}; if it is, say --merge {shlex.quote(similar)}"
        run.screen.show(visible(details), indent=2, style="yellow")
    for moment in moments if shows_all else moments[-_SHOWN:]:
        run.screen.show(visible(_line(moment, shown.entity.name)), indent=2, max_lines=2)
    if not shows_all and len(moments) > _SHOWN:
        run.screen.note(f"The last {_SHOWN} of {len(moments):,}; --all shows more.", style="dim")
    if not moments:
        run.screen.note("Nothing is known about it at that time.")


def _also(names: tuple[str, ...]) -> str:
    return f" · also {', '.join(names[:_NAMED])}{' …' if names[_NAMED:] else ''}" if names else ""


def _why(merge: object) -> str:
    """Return why two entities were merged, and how to split them."""
    evidence = merge.get("evidence") if isinstance(merge, dict) else None
    reasons = ", ".join(map(str, evidence)) if isinstance(evidence, list) else ""
    return f": {reasons}; --split takes them apart" if reasons else "; --split takes them apart"


def _line(moment: TimelineEntry, name: str) -> str:
    until = f" to {day(moment.until)}" if moment.until is not None else ""
    words, source = " ".join(moment.text.split()), moment.source
    if moment.trust == "low":
        source += " (untrusted)"
    if moment.record is not None:
        said_day = describe_said_day(moment.record, words)
        words += f" (said {said_day})" if said_day else ""
        return f"{describe_day(moment.record, moment.at.astimezone())}  {words} · {source}"
    relation = moment.what.replace("_", " ")
    if moment.until == moment.at:
        until, relation = "", f"no longer {relation}"
    sentence = f"{relation} {moment.other}" if moment.is_subject else f"{moment.other} {relation} {name}"
    return f"{day(moment.at)}{until}  {sentence}: “{words}” · {source}"


def _to_document(entity_known: MergedEntity) -> dict[str, Any]:
    return {
        **view_fields(entity_known.entity, "id", "name", "entity_type"),
        "also": list(entity_known.names[1:]),
        "mentions": entity_known.mentions,
        **view_fields(entity_known.entity, "attributes", "trust", "group"),
        "merged": [
            {**view_fields(merged, "id", "name"), "why": merged.metadata.get("merge")} for merged in entity_known.merged
        ],
        "maybe": list(entity_known.maybe),
    }


def _to_moment(moment: TimelineEntry) -> dict[str, Any]:
    return view_fields(moment, "at", "until", "what", "other", "is_subject", "text", "source", "trust")


def _episode(episode: Episode) -> dict[str, Any]:
    return {
        **view_fields(episode, "id", timestamp="moment"),
        "speaker": episode.speaker or episode.role,
        **view_fields(episode, "content", "content_type", "conversation", "order", "group", "trust"),
    }


_SUMMARY_COLUMNS: Final = ("id", "level", "timestamp", "conversation", "content")
_SUMMARIES_SHOWN: Final = 10


@command(rows=True)
async def summaries(
    run: AgentContext,
    conversation: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="ID or title of one conversation.", show_default=False),
    ] = None,
    *,
    shows_all: Annotated[
        bool, typer.Option("--all", help=f"List all, not only the newest {_SUMMARIES_SHOWN}.")
    ] = False,
) -> None:
    """List summaries of conversations, the newest first; or those of one."""
    async with open_knowledge(run) as knowledge:
        if conversation is None:
            matching = list(await knowledge.summaries.valid())
        else:
            matching = await knowledge.summaries.linked_to((await get_resource(knowledge, conversation)).id)
        matching.sort(key=lambda summary: (summary.moment, summary.level, summary.id), reverse=True)
        shown = matching if shows_all else matching[:_SUMMARIES_SHOWN]
        talks = await knowledge.resources.valid_among([_describe_talk(summary) for summary in shown])
    head = {"agent_id": run.service.agent_id, "count": len(shown), "total": len(matching)}
    run.screen.rows({**head, "summaries": [_view_summary(summary) for summary in shown]}, "summaries", _SUMMARY_COLUMNS)
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


def _view_summary(summary: Summary) -> dict[str, Any]:
    return {
        **view_fields(summary, "id", "level", timestamp="moment"),
        "conversation": _describe_talk(summary),
        **view_fields(summary, "content", "covers", "group", "trust"),
    }
