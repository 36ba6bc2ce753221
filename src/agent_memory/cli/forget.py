"""`agent-memory forget`: forget memories by ID, words or all."""

from datetime import datetime
from typing import Annotated, Any

import typer

from agent_memory.cli.archive import forget_archived
from agent_memory.cli.compact import NO_RESTORE, compact_all
from agent_memory.cli.forget_candidates import are_words, forget_all, forget_matching
from agent_memory.cli.options import Yes, complete_id, resolve_ids
from agent_memory.cli.runtime import AgentContext
from agent_memory.cli.text import day
from agent_memory.knowledge.passages.items import get_source_id
from agent_memory.models import Memory


async def forget(
    run: AgentContext,
    memory_id: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID|WORDS", help='IDs, or words such as "Ann\'s badge".', autocompletion=complete_id),
    ] = None,
    *,
    matching: Annotated[
        str | None, typer.Option("--matching", metavar="WORDS", help="The same as WORDS without the option.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All memories; asks first, and can be undone.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: kept as a trace.")] = "",
    now: Annotated[bool, typer.Option("--now", help="Take the text out of the journal at once: no restore.")] = False,
    yes: Yes = False,
) -> None:
    """Forget memories and the older versions they replaced.

    Searches no longer find them. The text stays in the journal for 30 days at least, so that `restore` can bring it
    back; `--now`, or `compact --now` later, ends that. Words list candidates; on a terminal, type the numbers of those
    to forget. Without one, `--yes` forgets only a single strong match whose owner is the one named. With `--reason`, a
    trace stays: storing the same text again warns.
    """
    if [bool(memory_id), matching is not None, everything].count(True) != 1:
        raise typer.BadParameter("name one of: an ID, --matching WORDS without an ID, WORDS, or --all", param_hint="ID")
    if memory_id and await are_words(run, memory_id):
        matching, memory_id = " ".join(memory_id), None
    if everything:
        undo_args, until = await forget_all(run, reason=reason, yes=yes, now=now)
    elif matching is not None:
        undo_args, until = await forget_matching(run, matching, reason=reason, yes=yes, now=now)
    else:
        undo_args, until = await _forget_named(run, memory_id or [], reason=reason, yes=yes, now=now)
    if now:
        await compact_all(run)
    elif until is not None:
        run.hint_undo(undo_args)
        run.screen.hint(
            f"Undo is possible until {day(until)} at least; the text stays in memories.yaml until then. "
            "`agent-memory archive compact --now` ends that.",
            style="dim",
        )


async def _forget_named(
    run: AgentContext, memory_ids: list[str], *, reason: str, yes: bool, now: bool
) -> tuple[str, datetime | None]:
    memory_ids = await forget_archived(run, memory_ids, reason=reason, yes=yes, now=now)
    if not memory_ids:
        return "", None
    resolved_ids = await resolve_ids(run.service, memory_ids)
    memories = [await run.service.get(memory_id) for memory_id in resolved_ids]
    if not yes:
        await _confirm(run, memories, now=now)
    older = {memory.id: list(await run.service.storage.older_versions(memory.id)) for memory in memories}
    outcome = await run.service.writer.deletion.forget(resolved_ids, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    documents: list[dict[str, Any]] = [
        {"memory_id": memory.id, "forgotten": True, "older_versions": older[memory.id]} for memory in outcome.memories
    ]
    if until is not None:
        documents = [{**document, "kept_until": until.isoformat()} for document in documents]
    for key, forgotten in (("talk", outcome.talk), ("statements", outcome.statements)):
        documents[0] |= {key: [memory.id for memory in forgotten]} if forgotten else {}
    run.screen.document(documents[0] if len(documents) == 1 else {"memories": documents})
    for memory in outcome.memories:
        run.screen.show(f"Forgot {memory.id}.")
        if older[memory.id]:
            run.screen.show(f"Also forgot its older versions: {', '.join(older[memory.id])}.")
        if source := get_source_id(memory):
            run.screen.hint(
                f"What it was drawn from is kept: {source}. `agent-memory ingest --undo` forgets a resource with all "
                "that was drawn from it.",
                style="dim",
            )
    for description, forgotten in (
        ("the same words in talk", outcome.talk),
        ("what an agent made of it", outcome.statements),
    ):
        if forgotten:
            run.screen.show(f"Also forgot {description}: {', '.join(memory.id for memory in forgotten)}.")
    return outcome.memories[0].id, until


async def _confirm(run: AgentContext, memories: list[Memory], *, now: bool) -> None:
    run.need_terminal("Nothing was forgotten.", "Forgetting")
    for memory in memories:
        older = await run.service.storage.older_versions(memory.id)
        if len(memories) > 1:
            run.screen.note(f"{memory.id}:", style="dim")
        run.screen.note(memory.content, style="")
        if older:
            run.screen.note(f"It replaced {', '.join(older)}; that would be forgotten, too.")
    what = memories[0].id if len(memories) == 1 else f"these {len(memories)}"
    if now:
        run.screen.note(NO_RESTORE)
    run.confirm(f"Forget {what}{' for good' if now else ''}?", "Nothing was forgotten.")
