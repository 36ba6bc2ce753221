"""`agent-memory restore`: restore memories, or list forgotten ones."""

from typing import Annotated, Any, Final

import typer

from agent_memory.cli.archive import in_archive, restore_archived
from agent_memory.cli.options import Yes, complete_id, resolve_ids
from agent_memory.cli.render import show_forgotten, show_traces
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnsupportedError
from agent_memory.files.wording import counted
from agent_memory.memory.views import view_whole_memory
from agent_memory.models import to_text

_FORGOTTEN_COLUMNS: Final = ("id", "forgotten_at", "category", "content", "reason")
_MAX_SHOWN: Final = 20

_MAX_NAMED: Final = 3
"""Most memory IDs in one sentence."""


@command(rows=True)
async def restore(
    run: AgentContext,
    memory_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A memory, or an agent to restore from its newest backup. Without it: list forgotten memories.",
            autocompletion=complete_id,
        ),
    ] = None,
    *,
    version: Annotated[
        int | None, typer.Option("--version", metavar="SEQ", help="Restore this version; `show --history` lists them.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Restore what was forgotten, replaced, changed or archived.

    A forgotten memory returns with its older versions. A replaced one is valid again, next to its replacement. A
    changed one gets its former values. This works for at least 30 days, unless `archive compact --now` was run.
    """
    if memory_id is None:
        if version is not None:
            raise typer.BadParameter("a version is one of a memory: name its ID", param_hint="--version")
        await _list_forgotten(run)
        return
    if version is None and await in_archive(run, memory_id) is not None:
        await restore_archived(run, [memory_id])
        return
    (memory_id,) = await resolve_ids(run.service, [memory_id], forgotten=True)
    if version is None and not yes:
        await _confirm_older(run, memory_id)
    done = await run.service.history.restore(memory_id, run.caller, seq=version)
    ids = [memory.id for memory in done.memories]
    document: dict[str, Any] = {"memory_id": memory_id, "was": done.what, "restored": ids, "fields": list(done.fields)}
    run.screen.document({**document, "replaced_by": done.replaced_by})
    if done.what == "forgotten":
        run.screen.show(f"{memory_id} is back{await _describe_restored(run, memory_id, ids[1:])}.")
    elif done.what == "replaced":
        run.screen.show(f"{memory_id} counts again. {done.replaced_by}, which had replaced it, stays as well.")
    else:
        linked = await _describe_restored(run, memory_id, ids[1:])
        run.screen.show(f"{memory_id} is what it was before: {', '.join(done.fields)}{linked}.")


async def _describe_restored(run: AgentContext, memory_id: str, restored: list[str]) -> str:
    """Describe the records that were restored with a memory; empty if none."""
    versions = set(await run.service.storage.older_versions(memory_id))
    more = [restored_id for restored_id in restored if restored_id not in versions]
    parts = [counted(len(restored) - len(more), "older version")] if len(restored) > len(more) else []
    parts += [", ".join(more)] if len(more) <= _MAX_NAMED and more else []
    parts += [f"{len(more)} others"] if len(more) > _MAX_NAMED else []
    return f", and {' and '.join(parts)} with it" if parts else ""


async def _confirm_older(run: AgentContext, memory_id: str) -> None:
    """Ask before undoing a text change older than the last forget.

    Raises:
        ValidationError: No terminal to ask on.
        typer.Exit: The answer was no.
    """
    older = await run.service.history.find_version_before_forget(memory_id)
    if older is None or older.record is None:
        return
    now = (await run.service.get(memory_id)).content
    run.screen.note(f"{memory_id} was not forgotten. An older version would change its text.")
    run.screen.note(f"Now: {now}")
    run.screen.note(f"Then: {older.record.content}")
    question = f"Restore version {older.seq}?"
    run.confirm(question, "Nothing was changed.", recovery=f"Add --version {older.seq}.")


async def _list_forgotten(run: AgentContext) -> None:
    traces = {trace.id: trace for trace in await run.service.history.traces()}
    try:
        forgotten_memories = await run.service.history.forgotten()
    except UnsupportedError:
        if not traces:
            raise
        forgotten_memories = []
    rows: list[dict[str, Any]] = []
    for memory, moment in forgotten_memories:
        trace = traces.pop(memory.id, None)
        reason_field = {} if trace is None else {"reason": trace.reason}
        rows.append({**view_whole_memory(memory), "forgotten_at": to_text(moment), **reason_field})
    rows += [{"id": entry.id, "forgotten_at": to_text(entry.at), "reason": entry.reason} for entry in traces.values()]
    run.screen.rows({"agent_id": run.service.agent_id, "forgotten": rows}, "forgotten", _FORGOTTEN_COLUMNS)
    reasons = {row["id"]: str(row["reason"]) for row in rows if "reason" in row}
    show_forgotten(run.screen, forgotten_memories[:_MAX_SHOWN], reasons)
    show_traces(run.screen, list(traces.values())[:_MAX_SHOWN])
    if not rows:
        run.screen.note("No forgotten memory can be restored; name the ID of a changed one.")
    elif (hidden := max(len(forgotten_memories), len(traces)) - _MAX_SHOWN) > 0 and run.screen.form == "text":
        run.screen.note(f"… and {hidden} more; --format table lists them all.")
