"""The command `undo`: list the last changes, or revert some."""

import re
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.care.change_undo import ChangeUndo, find_version
from agent_memory.cli.archive import in_archive
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import Yes, complete_id, resolve_ids
from agent_memory.cli.restore import restore
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.source_import import count_imported, list_text_imports, withdraw_imported
from agent_memory.cli.text import minute
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.knowledge.plan_view import list_counts
from agent_memory.memory.history import DECISION, History, MemoryChange, UndoneChange
from agent_memory.models.identifiers import IMPORT_PREFIX
from agent_memory.models.record import view_fields
from agent_memory.models.text import brief, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLUMNS: Final = ("change", "at", "session", "what", "memories", "content")
_LISTED_CHANGES: Final = 20
_SHOWN_CONFLICTS: Final = 10
_CHANGE: Final = re.compile(r"#?(\d{1,15})")


@command(rows=True)
async def undo(
    run: AgentContext,
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
        str | None, typer.Option("--session", metavar="ID", help="Undo all changes of this session.")
    ] = None,
    import_id: Annotated[
        str | None, typer.Option("--import", metavar="ID", help="Undo everything that this import stored.")
    ] = None,
    yes: Yes = False,
) -> None:
    """List the last 20 changes, or undo one.

    A memory that was changed again later is left as it is. An undo is a change too, so it can be undone.
    """
    if sum(chosen is not None for chosen in (change, session, import_id)) > 1:
        raise typer.BadParameter("a change, --session and --import exclude each other", param_hint="CHANGE")
    _check_named(run, session=session, import_id=import_id, change=change)
    history = run.service.history
    if change is None and session is None and import_id is None:
        changes = await history.list_changes(_LISTED_CHANGES)
        await _show_list(run, changes, imports=await list_text_imports(run))
        return
    if change is not None and not _CHANGE.fullmatch(change):
        await _undo_memory(run, history, change)
        await ChangeUndo(run.service).show_documents()
        return
    ingested = await count_imported(run, import_id) if import_id is not None else []
    chosen = await _find_changes(history, change, session, import_id, is_known=bool(ingested))
    is_import = import_id is not None or chosen[0].session_id.startswith(IMPORT_PREFIX)
    if len(chosen) > 1 and not ingested and all([await history.is_taken_back(listed) for listed in chosen]):
        chosen = []
    if (len(chosen) > 1 or ingested) and not yes:
        await _show_list(run, chosen[:_LISTED_CHANGES], has_hint=False)
        what = ", ".join([*_count_changes(chosen, is_import=is_import), *ingested])
        run.screen.note(f"{what} would be taken back.")
        run.confirm(f"Take back {what}?", "Nothing was changed.")
    if is_import:
        run.begin_import()
    withdrawn = await withdraw_imported(run, import_id) if import_id is not None and ingested else {}
    undone = []
    with run.screen.progress() as progress:
        bar = progress.add_task("Taking back", total=len(chosen))
        async for outcome in ChangeUndo(run.service).take_back(chosen, run.caller, is_import=bool(withdrawn)):
            undone.append(outcome)
            progress.advance(bar)
    _show_outcome(run, undone, withdrawn=withdrawn)


def _check_named(run: AgentContext, **values: str | None) -> None:
    """Refuse an empty argument, such as an unset shell variable.

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


async def _undo_memory(run: AgentContext, history: History, word: str) -> None:
    """Revert the last change of a memory.

    Unlike `restore`, this also reverts storing.
    """
    if await in_archive(run, word) is not None:
        await restore(run, word)
        return
    (memory_id,) = await resolve_ids(run.service, [word], forgotten=True)
    last = await history.find_last(memory_id)
    is_taken_back = last is not None and (last.verb == "stored" or DECISION in last.fields or find_version(last) != "")
    if last is None or not is_taken_back or await history.is_replaced(memory_id):
        await restore(run, memory_id)
        return
    single = replace(last, parts=tuple(part for part in last.parts if part.record_id == memory_id))
    sentence = ""
    if last.verb == "stored":
        was_forgotten = any(version.op == "delete" for version in await run.service.history.history(memory_id))
        reason = " again; it had been brought back" if was_forgotten else "; its last change was that it was stored"
        sentence = f"Forgot {memory_id}{reason}."
    undone = [outcome async for outcome in ChangeUndo(run.service).take_back([single], run.caller)]
    _show_outcome(run, undone, sentence)


async def _find_changes(
    history: History, change: str | None, session: str | None, import_id: str | None, *, is_known: bool = False
) -> list[MemoryChange]:
    """Return the changes to take back, newest first.

    Args:
        history: History of the agent's memories.
        change: Number of a change, or None.
        session: Session ID, or None.
        import_id: ID of an import, or None.
        is_known: True if the import stored other records, so that it need not have changes.

    Raises:
        UnknownIdError: There are none.
    """
    hint = "Run agent-memory undo to list the last changes; older ones are in agent-memory show --history ID."
    if change is not None:
        number = int(change.lstrip("#"))
        if (single := await history.find_change(number)) is None:
            raise UnknownIdError(f"No change has the number {number}.", recovery=hint)
        return [single]
    if not (changes := await history.list_session(session or import_id or "")) and not is_known:
        source = f"session {session!r}" if session is not None else f"import {import_id!r}"
        raise UnknownIdError(f"No change is known of the {source}.", recovery=hint)
    return changes


def _count_changes(changes: "Sequence[MemoryChange]", *, is_import: bool) -> list[str]:
    """Return the counted changes; for an import, its counted memories."""
    if not is_import:
        return [counted(len(changes), "change")] if changes else []
    parts = [part for change in changes for part in change.parts]
    memory_ids = {
        part.record_id for part in parts if not any(state and state.is_item for state in (part.before, part.after))
    }
    return [counted(len(memory_ids), "memory", "memories")] if memory_ids else []


async def _show_list(
    run: AgentContext,
    changes: "Sequence[MemoryChange]",
    *,
    imports: "Sequence[Mapping[str, Any]] | None" = None,
    has_hint: bool = True,
) -> None:
    """Print changes, and imports that no change is part of."""
    versions, withdrawn = await ChangeUndo(run.service).name_documents(changes)
    versions, withdrawn = ({seq: one_line(title) for seq, title in titles.items()} for titles in (versions, withdrawn))
    changes = [change for change in changes if versions.get(change.seq) != ""]
    names = [{"version_of": versions.get(change.seq), "withdrawn": withdrawn.get(change.seq)} for change in changes]
    rows = [
        _describe(change) | {key: name for key, name in named.items() if name is not None}
        for change, named in zip(changes, names, strict=True)
    ]
    listed = {change.session_id for change in changes}
    text_imports = [row for row in imports or () if row["import"] not in listed][:_LISTED_CHANGES]
    unlisted = {} if imports is None else {"imports": text_imports}
    run.screen.rows({"agent_id": run.service.agent_id, "changes": rows, **unlisted}, "changes", _COLUMNS)
    for change in changes:
        count = len(change.parts)
        what = change.parts[0].record_id if count == 1 else counted(count, "memory", "memories")
        fields = f": {', '.join(change.fields)}" if change.fields else ""
        done = f"{what} {change.label}{fields}"
        if change.seq in versions:
            done = f"new version of {versions[change.seq]}"
        elif change.seq in withdrawn:
            done = f"{withdrawn[change.seq]} taken back; ingest the file to restore it"
        run.screen.show(f"#{change.seq}  {minute(change.at)}  {change.session_id}  {done}")
        run.screen.show(brief(_get_content(change)), indent=2, max_lines=1)
    for row in text_imports:
        counts = [counted(row[f"{noun}s"], noun) for noun in ("conversation", "document") if row[f"{noun}s"]]
        moment = datetime.fromisoformat(row["at"])
        run.screen.show(f"{row['import']}  {minute(moment)}  {', '.join(counts)} stored")
    if text_imports:
        run.screen.note(f"Take one back: {run.build_undo('--import ID')}", style="dim")
    numbers = [change.seq for change in changes if has_hint and change.seq not in withdrawn]
    if not changes and not text_imports:
        run.screen.note("No changes of memories yet.")
    elif numbers and run.screen.form == "text":
        run.screen.note(f"Take one back: {run.build_undo(str(numbers[0]))}", style="dim")


def _show_outcome(
    run: AgentContext,
    undone: "Sequence[UndoneChange]",
    sentence: str = "",
    withdrawn: "Mapping[str, int]" = MappingProxyType({}),
) -> None:
    """Print what was taken back and what was not.

    Args:
        run: Context of the command.
        undone: Outcomes, in their order.
        sentence: Names what was taken back; if empty, changes are counted.
        withdrawn: Counts of texts of an import that were withdrawn before.

    Raises:
        typer.Exit: A memory was left as it is.
    """
    restored = list(dict.fromkeys(memory_id for outcome in undone for memory_id in outcome.changed_ids))
    conflicts = {memory_id: reason for outcome in undone for memory_id, reason in outcome.conflicts.items()}
    numbers = [outcome.change.seq for outcome in undone]
    fields = {"withdrawn": dict(withdrawn)} if withdrawn else {}
    run.screen.document({"undone": numbers, "memories": restored, "conflicts": conflicts, **fields})
    versions = [outcome for outcome in undone if find_version(outcome.change) and outcome.memory_ids]
    is_import = run.caller.session_id.startswith(IMPORT_PREFIX)
    if len(versions) == len(undone) == 1:
        run.screen.show("The version before is current again. Ingest the file to restore the new one.")
    elif restored or withdrawn:
        what = restored[0] if len(restored) == 1 else counted(len(restored), "memory", "memories")
        if is_import:
            sentence = f"Took back {', '.join(list_counts({**withdrawn, 'memories': len(restored)}))}."
        run.screen.show(sentence or f"Took back {counted(len(undone), 'change')}: {what}.")
        if is_import and withdrawn:
            run.screen.hint("Import the same files again to restore all of it.")
        elif is_import:
            run.hint_undo(f"--import {run.caller.session_id}")
        else:
            run.hint_undo(restored[0] if len(restored) == len(undone) == 1 else "")
    elif not conflicts:
        run.screen.note("Nothing was changed: this was taken back already.", style="")
    for memory_id, reason in list(conflicts.items())[:_SHOWN_CONFLICTS]:
        run.screen.note(f"{memory_id} is left as it is: {reason}.")
    if len(conflicts) > _SHOWN_CONFLICTS:
        run.screen.note(f"… and {len(conflicts) - _SHOWN_CONFLICTS} more.")
    if conflicts:
        raise typer.Exit(FAILED)


def _describe(change: MemoryChange) -> dict[str, Any]:
    return {
        **view_fields(change, change="seq", at="at", session="session_id", what="label", fields="fields"),
        "memories": [part.record_id for part in change.parts],
        "content": _get_content(change),
    }


def _get_content(change: MemoryChange) -> str:
    memory = change.parts[0].after or change.parts[0].before
    return "" if memory is None else memory.content
