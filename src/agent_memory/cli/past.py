"""Commands that take away and bring back: forget, compact, history, restore."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_memory.cli.archive import bring_back, compact_archive, forget_archived, in_archive
from agent_memory.cli.forget_candidates import are_words, forget_all, forget_matching
from agent_memory.cli.options import MemoryId, Yes, complete_id, resolved
from agent_memory.cli.render import show_forgotten, show_traces, show_versions
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import day
from agent_memory.errors import UnknownIdError, UnsupportedError
from agent_memory.files.entries import names_in
from agent_memory.files.layout import folder_of
from agent_memory.files.names import TOPICS, classify_name
from agent_memory.files.wording import counted
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.items import get_source_id
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.topics.page_files import NO_PAGE
from agent_memory.memory.views import view_whole_memory
from agent_memory.models import ACCESS, EPISODE, TOPIC, Memory, RecordVersion, to_text

_VERSION_COLUMNS: Final = ("seq", "at", "what", "fields", "content")
_GONE_COLUMNS: Final = ("id", "forgotten_at", "category", "content", "reason")
_WHAT: Final = {"put": "stored", "patch": "changed", "delete": "forgotten", "move": "archived"}
_SHOWN: Final = 20
_NAMED: Final = 3
"""Memories that are named by their ids in one sentence, at most."""


@command(rows=True)
async def history(run: AgentContext, memory_id: MemoryId) -> None:
    """Show the earlier versions of a memory, oldest first.

    As far as the files still know: 30 days at least. Also of one that was forgotten.
    """
    (memory_id,) = await resolved(run.service, [memory_id], forgotten=True, read_only=True)
    versions = await run.service.history.history(memory_id)
    if not versions:
        raise UnknownIdError(f"Nothing is known of {memory_id}.")
    rows = _version_rows(versions)
    run.screen.rows({"memory_id": memory_id, "versions": rows}, "versions", _VERSION_COLUMNS)
    show_versions(run.screen, memory_id, rows)


@command(rows=True)
async def restore(
    run: AgentContext,
    memory_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Memory, or agent to restore from its newest backup; lists forgotten memories without.",
            autocompletion=complete_id,
        ),
    ] = None,
    *,
    version: Annotated[
        int | None, typer.Option("--version", metavar="SEQ", help="Make it what it was then, by `history`.")
    ] = None,
) -> None:
    """Restore what was forgotten, replaced, changed or archived.

    A forgotten memory comes back with the older versions that went with it; one that was replaced counts again; one
    that was changed is what it was before. Possible for 30 days at least, unless `compact --now` ended that.
    """
    if memory_id is None:
        if version is not None:
            raise typer.BadParameter("a version is one of a memory: name its ID", param_hint="--version")
        await _list_forgotten(run)
        return
    if version is None and await in_archive(run, memory_id) is not None:
        await bring_back(run, [memory_id])
        return
    (memory_id,) = await resolved(run.service, [memory_id], forgotten=True)
    if version is None:
        await _confirm_older(run, memory_id)
    done = await run.service.history.restore(memory_id, run.caller, seq=version)
    ids = [memory.id for memory in done.memories]
    document: dict[str, Any] = {"memory_id": memory_id, "was": done.what, "restored": ids, "fields": list(done.fields)}
    run.screen.document({**document, "replaced_by": done.replaced_by})
    if done.what == "forgotten":
        run.screen.show(f"{memory_id} is back{await _with_it(run, memory_id, ids[1:])}.")
    elif done.what == "replaced":
        run.screen.show(f"{memory_id} counts again. {done.replaced_by}, which had replaced it, stays as well.")
    else:
        linked = await _with_it(run, memory_id, ids[1:])
        run.screen.show(f"{memory_id} is what it was before: {', '.join(done.fields)}{linked}.")


async def _with_it(run: AgentContext, memory_id: str, restored: list[str]) -> str:
    """Return records restored together with a memory."""
    versions = set(await run.service.storage.older_versions(memory_id))
    more = [one for one in restored if one not in versions]
    parts = [counted(len(restored) - len(more), "older version")] if len(restored) > len(more) else []
    parts += [", ".join(more)] if len(more) <= _NAMED and more else []
    parts += [f"{len(more)} others"] if len(more) > _NAMED else []
    return f", and {' and '.join(parts)} with it" if parts else ""


async def _confirm_older(run: AgentContext, memory_id: str) -> None:
    """Ask before undoing a text change older than the last forget.

    Raises:
        ValidationError: There is no terminal to ask on.
        typer.Exit: The answer was no.
    """
    older = await run.service.history.find_version_before_forget(memory_id)
    if older is None or older.record is None:
        return
    now = (await run.service.get(memory_id)).content
    run.screen.note(f"{memory_id} is there. Going back further would change its text.")
    run.screen.note(f"Now: {now}")
    run.screen.note(f"Then: {older.record.content}")
    run.need_terminal("Nothing was changed.", recovery=f"Say --version {older.seq}.")
    run.confirm(f"Make it what it was then (version {older.seq})?", "Nothing was changed.")


async def _list_forgotten(run: AgentContext) -> None:
    past = run.service.history
    traces = {trace.id: trace for trace in await past.traces()}
    try:
        gone = await past.forgotten()
    except UnsupportedError:
        if not traces:
            raise
        gone = []
    rows: list[dict[str, Any]] = []
    for memory, moment in gone:
        left = traces.pop(memory.id, None)
        why = {} if left is None else {"reason": left.reason}
        rows.append({**view_whole_memory(memory), "forgotten_at": to_text(moment), **why})
    rows += [{"id": entry.id, "forgotten_at": to_text(entry.at), "reason": entry.reason} for entry in traces.values()]
    run.screen.rows({"agent_id": run.service.agent_id, "forgotten": rows}, "forgotten", _GONE_COLUMNS)
    reasons = {row["id"]: str(row["reason"]) for row in rows if "reason" in row}
    show_forgotten(run.screen, gone[:_SHOWN], reasons)
    show_traces(run.screen, list(traces.values())[:_SHOWN])
    if not rows:
        run.screen.note("Nothing that was forgotten can be brought back; of what was only changed, name its id.")
    elif max(len(gone), len(traces)) > _SHOWN and run.screen.form == "text":
        run.screen.note(f"… and {max(len(gone), len(traces)) - _SHOWN} more; --format table lists them all.")


def _version_rows(versions: "list[RecordVersion[Memory]]") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before: Memory | None = None
    for version in versions:
        memory = version.record
        changed = [] if memory is None or before is None else _changed(before, memory)
        what = "brought back" if version.op == "put" and before is None and rows else _WHAT.get(version.op, version.op)
        rows.append(
            {
                "seq": version.seq,
                "at": to_text(version.at),
                "what": "changed" if changed and version.op == "put" else what,
                "fields": changed,
                "content": None if memory is None else memory.content,
                "memory": None if memory is None else memory.model_dump(mode="json"),
            }
        )
        before = memory
    return rows


def _changed(before: Memory, after: Memory) -> list[str]:
    names = [name for name in type(after).model_fields if name not in ACCESS]
    return [name for name in names if getattr(before, name) != getattr(after, name)]


_FOR_GOOD = "Nothing that was forgotten or changed, lately or now, can be brought back after that."


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
        await _fold_all(run)
    elif until is not None:
        run.hint_undo(undo_args)
        run.screen.hint(
            f"Undo is possible until {day(until)} at least; the text stays in memories.yaml until then. "
            "`agent-memory archive compact --now` ends that.",
            style="dim",
        )


async def _forget_named(
    run: AgentContext, named: list[str], *, reason: str, yes: bool, now: bool
) -> tuple[str, datetime | None]:
    named = await forget_archived(run, named, reason=reason, yes=yes, now=now)
    if not named:
        return "", None
    wanted = await resolved(run.service, named)
    memories = [await run.service.get(memory_id) for memory_id in wanted]
    if not yes:
        await _confirm(run, memories, now=now)
    older = {memory.id: list(await run.service.storage.older_versions(memory.id)) for memory in memories}
    outcome = await run.service.writer.deletion.forget(wanted, run.caller, reason=reason)
    until = None if now else outcome.kept_until
    documents: list[dict[str, Any]] = [
        {"memory_id": memory.id, "forgotten": True, "older_versions": older[memory.id]} for memory in outcome.memories
    ]
    if until is not None:
        documents = [{**document, "kept_until": until.isoformat()} for document in documents]
    for key, went in (("talk", outcome.talk), ("statements", outcome.statements)):
        documents[0] |= {key: [memory.id for memory in went]} if went else {}
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
    for what, went in (("the same words in talk", outcome.talk), ("what an agent made of it", outcome.statements)):
        if went:
            run.screen.show(f"Also forgot {what}: {', '.join(memory.id for memory in went)}.")
    return outcome.memories[0].id, until


async def compact(
    run: AgentContext,
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Also what was forgotten or changed a moment ago: no restore.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete from the files what was forgotten or changed over 30 days ago."""
    journal = folder_of(run.service.agent_id, run.root).journal
    if now and not yes:
        run.need_terminal("Nothing was changed.")
        run.confirm(f"{_FOR_GOOD}\nRemove all of that from {journal.name}?", "Nothing was changed.")
    before = journal.stat().st_size if journal.exists() else 0
    if before and now:
        await _fold_all(run)
    else:
        if before:
            await run.service.writer.compact()
            await compact_archive(run)
        await _compact_knowledge(run, timedelta(0) if now else None)
    after = journal.stat().st_size if before else 0
    run.screen.document({"bytes_before": before, "bytes_after": after})
    run.screen.show(f"{journal.name}: {counted(before, 'byte')} before, {counted(after, 'byte')} now.")


async def _compact_knowledge(run: AgentContext, grace: timedelta | None) -> None:
    """Delete unneeded records and long texts of knowledge from its files."""
    if run.service.settings.backend == "server" or not _was_given(run):
        return
    knowledge = Knowledge(run.service.agent_id, run.service.settings)
    try:
        await Pages(knowledge, run.service).catch_up()
        await knowledge.compact(grace)
    finally:
        await knowledge.close()


def _was_given(run: AgentContext) -> bool:
    """Return True if there is anything but memories."""
    folder = folder_of(run.service.agent_id, run.root)
    return folder.blobs.exists() or any((folder.path / kind.journal).exists() for kind in (TOPIC, EPISODE))


async def _fold_all(run: AgentContext) -> None:
    """Compact all journals; return names of files that were skipped."""
    await run.service.settle()
    await run.service.writer.compact(timedelta(0))
    await compact_archive(run, timedelta(0))
    await _compact_knowledge(run, timedelta(0))
    folder = folder_of(run.service.agent_id, run.root)
    run.screen.show(f"The text is gone from {folder.journal.name} and from what is made of it.")
    if copies := _copies(folder.path):
        run.screen.note(f"Not looked into, and perhaps still with it: {', '.join(copies)}.")
    run.screen.note("Exports, backups and what a model was shown are beyond reach.", style="dim")


def _copies(folder: Path) -> list[str]:
    """Return names of other files that may contain deleted texts."""
    names = (name for name in names_in(folder) if name.startswith(("memories", "scratchpad")))
    pages = (f"{TOPICS}/{name}" for name in names_in(folder / TOPICS) if NO_PAGE in name)
    return [*(name for name in names if classify_name(name) != "ours"), *pages]


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
        run.screen.note(_FOR_GOOD)
    run.confirm(f"Forget {what}{' for good' if now else ''}?", "Nothing was forgotten.")
