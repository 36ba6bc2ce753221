"""The command `undo`: list the last changes, or revert some."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.archive import in_archive
from agent_memory.cli.knowledge import opened_knowledge
from agent_memory.cli.options import Yes, complete_id, resolved
from agent_memory.cli.past import restore
from agent_memory.cli.running import FAILED, Run, command
from agent_memory.cli.text import brief, minute
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted
from agent_memory.knowledge.items.replaced_passages import show_documents
from agent_memory.models import RESOURCE, to_text
from agent_memory.service.recent_changes import DECISION, MemoryChange, RecentChanges, UndoneChange

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS: Final = ("change", "at", "session", "what", "memories", "content")
_LISTED_CHANGES: Final = 20
_SHOWN_CONFLICTS: Final = 10
_CHANGE: Final = re.compile(r"#?(\d{1,15})")


@command(rows=True)
async def undo(
    run: Run,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="CHANGE",
            help="Number of a change, or ID of a memory whose last change it is; without it, changes are listed.",
            autocompletion=complete_id,
        ),
    ] = None,
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Take back all changes of this session.")
    ] = None,
    import_id: Annotated[
        str | None, typer.Option("--import", metavar="ID", help="Take back all that this import stored.")
    ] = None,
    yes: Yes = False,
) -> None:
    """List the last 20 changes: who, what, when; or take one back.

    A memory that was changed again since is left as it is. Taking back is a change itself, so it can be taken back.
    """
    if sum(chosen is not None for chosen in (change, session, import_id)) > 1:
        raise typer.BadParameter("name a change, --session or --import, not several", param_hint="CHANGE")
    _check_named(run, session=session, import_id=import_id, change=change)
    recent = RecentChanges(run.service, folder_of(run.service.agent_id, run.root).audit)
    if change is None and session is None and import_id is None:
        _show_list(run, await recent.list_changes(_LISTED_CHANGES))
        return
    if change is not None and not _CHANGE.fullmatch(change):
        await _undo_memory(run, recent, change)
        await _show_documents(run)
        return
    chosen = await _find_changes(recent, change, session, import_id)
    if len(chosen) > 1 and not yes:
        _show_list(run, chosen[:_LISTED_CHANGES])
        run.screen.note(f"{counted(len(chosen), 'change')} would be taken back.")
        run.need_terminal("Nothing was changed.")
        run.confirm(f"Take back {counted(len(chosen), 'change')}?", "Nothing was changed.")
    undone = []
    with run.screen.progress() as progress:
        bar = progress.add_task("Taking back", total=len(chosen))
        for each_change in chosen:
            undone.append(await recent.take_back(each_change, run.caller))
            progress.advance(bar)
    await _show_documents(run)
    _show_outcome(run, undone)


async def _show_documents(run: Run) -> None:
    """Make withdrawn documents current whose passages were taken back."""
    async with opened_knowledge(run) as knowledge:
        if (knowledge.folder.path / RESOURCE.journal).exists():
            await show_documents(knowledge, run.service)


def _check_named(run: Run, **values: str | None) -> None:
    """Refuse an empty argument, as a shell makes it of a variable without a value.

    Raises:
        ValidationError: One is empty; nothing was changed.
    """
    names = {"session": "--session", "import_id": "--import", "change": "CHANGE"}
    for key, value in values.items():
        if value is not None and not value.strip():
            raise ValidationError(
                f"{names[key]} is empty; nothing was changed.",
                code="usage",
                recovery=f"Run {run.build_undo('')} to list the last changes, and give what is to be taken back.",
            )


async def _undo_memory(run: Run, recent: RecentChanges, word: str) -> None:
    """Revert the last change of a memory.

    Unlike `restore`, this also reverts storing.
    """
    if await in_archive(run, word) is not None:
        await restore(run, word)
        return
    (memory_id,) = await resolved(run.service, [word], forgotten=True)
    last = await recent.find_last(memory_id)
    is_taken_back = last is not None and (last.verb == "stored" or DECISION in last.fields)
    if last is None or not is_taken_back or await recent.is_replaced(memory_id):
        await restore(run, memory_id)
        return
    single = replace(last, parts=tuple(part for part in last.parts if part.record_id == memory_id))
    sentence = ""
    if last.verb == "stored":
        was_forgotten = any(version.op == "delete" for version in await run.service.past.history(memory_id))
        reason = " again; it had been brought back" if was_forgotten else "; its last change was that it was stored"
        sentence = f"Forgot {memory_id}{reason}."
    _show_outcome(run, [await recent.take_back(single, run.caller)], sentence)


async def _find_changes(
    recent: RecentChanges, change: str | None, session: str | None, import_id: str | None
) -> list[MemoryChange]:
    """Return the changes to take back, newest first.

    Raises:
        UnknownIdError: There are none.
    """
    hint = "Run agent-memory undo to list the last changes; older ones are in agent-memory history ID."
    if change is not None:
        number = int(change.lstrip("#"))
        if (single := await recent.find(number)) is None:
            raise UnknownIdError(f"No change has the number {number}.", recovery=hint)
        return [single]
    if not (changes := await recent.list_session(session or import_id or "")):
        source = f"session {session!r}" if session is not None else f"import {import_id!r}"
        raise UnknownIdError(f"No change is known of the {source}.", recovery=hint)
    return changes


def _show_list(run: Run, changes: "Sequence[MemoryChange]") -> None:
    rows = [_describe(change) for change in changes]
    run.screen.rows({"agent_id": run.service.agent_id, "changes": rows}, "changes", _COLUMNS)
    for change in changes:
        count = len(change.parts)
        what = change.parts[0].record_id if count == 1 else counted(count, "memory", "memories")
        fields = f": {', '.join(change.fields)}" if change.fields else ""
        run.screen.show(f"#{change.seq}  {minute(change.at)}  {change.session_id}  {what} {change.verb}{fields}")
        run.screen.show(brief(_get_content(change)), indent=2, max_lines=1)
    if not changes:
        run.screen.note("No change of a memory is recorded.")
    elif run.screen.form == "text":
        run.screen.note(f"Take one back: {run.build_undo(str(changes[0].seq))}", style="dim")


def _show_outcome(run: Run, undone: "Sequence[UndoneChange]", sentence: str = "") -> None:
    """Print what was taken back and what was not.

    Args:
        run: Context of the command.
        undone: Outcomes, in their order.
        sentence: Names what was taken back; if empty, changes are counted.

    Raises:
        typer.Exit: A memory was left as it is.
    """
    restored = list(dict.fromkeys(memory_id for outcome in undone for memory_id in outcome.memory_ids))
    conflicts = {memory_id: reason for outcome in undone for memory_id, reason in outcome.conflicts.items()}
    numbers = [outcome.change.seq for outcome in undone]
    run.screen.document({"undone": numbers, "memories": restored, "conflicts": conflicts})
    if restored:
        what = restored[0] if len(restored) == 1 else counted(len(restored), "memory", "memories")
        run.screen.show(sentence or f"Took back {counted(len(undone), 'change')}: {what}.")
        run.hint_undo(restored[0] if len(restored) == len(undone) == 1 else "")
    for memory_id, reason in list(conflicts.items())[:_SHOWN_CONFLICTS]:
        run.screen.note(f"{memory_id} is left as it is: {reason}.")
    if len(conflicts) > _SHOWN_CONFLICTS:
        run.screen.note(f"… and {len(conflicts) - _SHOWN_CONFLICTS} more.")
    if conflicts:
        raise typer.Exit(FAILED)


def _describe(change: MemoryChange) -> dict[str, Any]:
    return {
        "change": change.seq,
        "at": to_text(change.at),
        "session": change.session_id,
        "what": change.verb,
        "fields": list(change.fields),
        "memories": [part.record_id for part in change.parts],
        "content": _get_content(change),
    }


def _get_content(change: MemoryChange) -> str:
    memory = change.parts[0].after or change.parts[0].before
    return "" if memory is None else memory.content
