"""Import of other programs' files: table, question, counts, interruptions."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.knowledge import open_knowledge, process_due_texts
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.files.layout import folder_of
from agent_memory.files.names import DERIVED
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.withdrawal import count_documents, list_session, restore_items, withdraw_import
from agent_memory.knowledge.plan_view import describe_stored, list_counts, list_problems, list_times, view_plan
from agent_memory.memory.inbox_access import has_journal, opened_inbox
from agent_memory.models import CANDIDATE, RESOURCE, to_text
from agent_memory.models.identifiers import IMPORT_PREFIX
from agent_memory.models.text import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.cli.runtime import AgentContext
    from agent_memory.knowledge.bulk_import import BulkImport, ImportedTalk, ImportPlan, PlanRow
    from agent_memory.knowledge.sources.source_files import SourceTree
    from agent_memory.models import Resource

_COLUMNS: Final = ("format", "what", "new", "known", "similar", "untrusted", "earliest", "latest")
_MAX_PROBLEMS: Final = 20
_MAX_NAMED: Final = 3
_MAX_SESSIONS: Final = 20
_NOTHING: Final = "Nothing was stored."


@dataclass(frozen=True, slots=True)
class BackfillScope:
    """Limits of a backfill.

    Attributes:
        since: Sessions that ended earlier are left out; None for no limit.
        limit: New turns after which no further session begins.
        build_proposals: Returns the function that proposes memories of a session, and counts them.
    """

    since: datetime | None
    limit: int
    build_proposals: Callable[[], Callable[[ImportedTalk], Awaitable[int]]]


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """Options of an import.

    Attributes:
        source: Path of the source, or its content.
        form: Name of a format that overrides detection, or None.
        dry_run: True to stop after the table.
        yes: True to store without a question.
        review: True to send memories to the inbox.
        scope: Limits of a backfill, or None for another import.
    """

    source: Path | bytes
    form: str | None
    dry_run: bool
    yes: bool
    review: bool = False
    scope: BackfillScope | None = None


async def import_source(run: AgentContext, tree: SourceTree, choices: ImportChoices) -> None:
    """Show what a source has, ask, and store it.

    Args:
        run: Context of the command.
        tree: Files of the source.
        choices: Options of the command.

    Raises:
        typer.Exit: Something could not be imported, or was declined.
    """
    from agent_memory.knowledge.bulk_import import BulkImport

    unfinished = UnfinishedImport(folder_of(run.service.agent_id, run.root).path, choices.source)
    interrupted = unfinished.read_id()
    run.begin_import(interrupted)
    async with open_knowledge(run) as knowledge:
        bulk = BulkImport(knowledge, run.service, run.caller)
        plan = await _read_plan(run, bulk, tree, choices)
        document = view_plan(plan)
        run.screen.document(document)
        _show_plan(run, plan)
        if choices.scope is not None:
            document |= _build_sessions(plan)
            _show_sessions(run, plan)
        if (plan.new or interrupted) and not choices.dry_run:
            if plan.new and not choices.yes:
                question = f"Store {counted(plan.new, 'record')}?"
                run.confirm(question, _NOTHING, "An import", "Add --yes to store it, or --dry-run for the table alone.")
            with unfinished.hold(run.caller.session_id):
                document |= await _store(run, bulk, tree, plan, choices)
                resources, _ = await list_session(knowledge, run.caller.session_id)
                async with restore_items(knowledge, run.service, resources, run.caller):
                    await process_due_texts(run, knowledge, is_shown=False)
        elif not (plan.new or plan.problems or plan.later):
            since = choices.scope.since if choices.scope is not None else None
            is_old = since is not None and not plan.talks
            run.screen.note(f"No session since {since:%Y-%m-%d}." if is_old else "Nothing new.", style="")
        document["problems"] = list_problems(plan)
    _note_problems(run, plan)
    if plan.later:
        turns = sum(talk.turns.new for talk in plan.later)
        sessions = counted(len(plan.later), "session is", "sessions are")
        run.screen.note(f"{sessions} left, with {counted(turns, 'message')}. Run the same command again.")
    if plan.problems:
        raise typer.Exit(FAILED)


async def _read_plan(run: AgentContext, bulk: BulkImport, tree: SourceTree, choices: ImportChoices) -> ImportPlan:
    size = sum(file.size for file in tree.files.values())
    with run.screen.show_steps("Reading MB", _count_megabytes(size)) as show:
        plan = await bulk.plan(tree, choices.form, lambda size_read: show(_count_megabytes(size_read)))
    if choices.scope is not None:
        plan.limit_talks(choices.scope.since, choices.scope.limit)
    return plan


def _count_megabytes(size: int) -> int:
    """Return a number of bytes in megabytes, rounded up."""
    return -(-size >> 20)


async def _store(
    run: AgentContext, bulk: BulkImport, tree: SourceTree, plan: ImportPlan, choices: ImportChoices
) -> dict[str, Any]:
    """Store a plan, print the counts, and return them."""
    propose = choices.scope.build_proposals() if choices.scope is not None else None
    undo = f"Undo: {run.build_undo(f'--import {run.caller.session_id}')}"
    with run.screen.show_steps("Storing", plan.new) as show_step:

        def show(count: int) -> None:
            done = "1 is" if count == 1 else f"{count:,} are"
            run.screen.last_words = lambda: f"Stopped; {done} stored. The same command continues. {undo}"
            show_step(count)

        show(0)
        stored = await bulk.store(tree, plan, show, holds_facts=choices.review, propose=propose)
    run.screen.note(describe_stored(stored), style="")
    if stored["waiting"]:
        word = run.caller.session_id
        run.screen.hint(f"Run `agent-memory inbox --accept {word}` or --reject {word}, or `review`.")
    if stored.total() > stored["waiting"]:
        run.screen.hint(f"They act as instructions only after `agent-memory accept {run.caller.session_id}`.")
    if stored.total() > stored["waiting"] or choices.scope is not None:
        run.hint_undo(f"--import {run.caller.session_id}")
    return {"stored": dict(stored), "import": run.caller.session_id}


async def count_imported(run: AgentContext, import_id: str) -> list[str]:
    """Return the counts of an import's texts, each with its noun."""
    async with open_knowledge(run) as knowledge:
        resources, turns = await list_session(knowledge, import_id)
        documents = await count_documents(knowledge, resources)
        turns += [turn.id for resource_id in resources for turn in await knowledge.episodes.linked_to(resource_id)]
    waiting = 0
    if has_journal(run.service.agent_id, run.service.settings, CANDIDATE):
        async with opened_inbox(run.service) as inbox:
            waiting = sum(candidate.batch == import_id for candidate in await inbox.waiting())
    return list_counts({"documents": documents, "turns": len(turns), "waiting": waiting})


async def withdraw_imported(run: AgentContext, import_id: str) -> dict[str, int]:
    """Forget an import's documents, conversations and turns; return counts."""
    async with open_knowledge(run) as knowledge:
        counts = await withdraw_import(knowledge, run.service, import_id, run.caller)
    await asyncio.to_thread(drop_unfinished, knowledge.folder.path, import_id)
    return counts


async def list_text_imports(run: AgentContext) -> list[dict[str, Any]]:
    """Return the imports that stored documents or conversations, newest first."""
    if not (folder_of(run.service.agent_id, run.root).path / RESOURCE.journal).exists():
        return []
    async with open_knowledge(run) as knowledge:
        records = await knowledge.resources.valid()
    imports: dict[str, list[Resource]] = {}
    for record in records:
        if record.created_by_session.startswith(IMPORT_PREFIX):
            imports.setdefault(record.created_by_session, []).append(record)
    rows = [
        {
            "import": import_id,
            "at": to_text(max(record.timestamp for record in stored)),
            "documents": (documents := sum(record.chars > 0 for record in stored)),
            "conversations": len(stored) - documents,
        }
        for import_id, stored in imports.items()
    ]
    return sorted(rows, key=lambda row: str(row["at"]), reverse=True)


def _show_plan(run: AgentContext, plan: ImportPlan) -> None:
    """Print the formats and the table."""
    if run.screen.form != "text":
        return
    by_format: dict[str, list[str]] = {}
    for form, file in plan.files:
        by_format.setdefault(form.name, []).append(file.name)
    for name, files in by_format.items():
        run.screen.show(f"Format {name}: {_list_names(files)}")
    _show_table(run, [_COLUMNS, *(_list_cells(*key, row) for key, row in plan.rows.items())])
    forgotten = sum(row.forgotten for row in plan.rows.values())
    if forgotten:
        run.screen.show(f"{counted(forgotten, 'memory', 'memories')} forgotten before, left out.")
        run.screen.hint("Run `agent-memory undo` to list what was forgotten, and to take that back.")
    if plan.left_out:
        run.screen.show(f"Left out, not content: {_list_names(plan.left_out)}", style="dim")
    if plan.problems:
        run.screen.show(f"Refused: {len(plan.problems):,}, listed below.")


def _list_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(map(one_line, names[:_MAX_NAMED])) + more


def _build_sessions(plan: ImportPlan) -> dict[str, Any]:
    """Return the sessions of a backfill, and what is left."""
    sessions = [
        {
            "project": talk.project,
            "file": talk.file,
            **{name: to_text(moment) if moment else None for name, moment in list_times(talk.turns)},
            **{name: getattr(talk.turns, name) for name in ("new", "known")},
        }
        for talk in plan.talks
    ]
    turns = sum(talk.turns.new for talk in plan.later)
    return {"sessions": sessions, "later": {"sessions": len(plan.later), "turns": turns}}


def _show_sessions(run: AgentContext, plan: ImportPlan) -> None:
    """Print the newest sessions of a backfill as a table."""
    if run.screen.form != "text":
        return
    talks = plan.talks[:_MAX_SESSIONS]
    rows: list[tuple[str, ...]] = [("project", "new", "known", "earliest", "latest")]
    for talk in talks:
        counts = (f"{talk.turns.new:,}", f"{talk.turns.known:,}")
        rows.append((one_line(talk.project) or "-", *counts, *_list_days(talk.turns)))
    _show_table(run, rows)
    if len(plan.talks) > len(talks):
        run.screen.show(f"… and {len(plan.talks) - len(talks):,} more sessions; --json lists them all.", style="dim")


def _show_table(run: AgentContext, rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows in columns, if any follow the names."""
    if len(rows) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        run.screen.show("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _list_days(row: PlanRow) -> list[str]:
    return [f"{moment:%Y-%m-%d}" if moment else "-" for _, moment in list_times(row)]


def _list_cells(form: str, kind: str, row: PlanRow) -> tuple[str, ...]:
    counts = (row.new, row.known, row.similar, row.new)
    return form, kind, *(f"{count:,}" for count in counts), *_list_days(row)


def _note_problems(run: AgentContext, plan: ImportPlan) -> None:
    problems = [f"{problem['where']} {problem['problem']}" for problem in list_problems(plan)]
    for texts in (plan.notes, problems):
        for text in texts[:_MAX_PROBLEMS]:
            run.screen.note(f"{one_line(text)}.")
        if len(texts) > _MAX_PROBLEMS:
            run.screen.note(f"… and {len(texts) - _MAX_PROBLEMS:,} more; --json lists them all.")


_FOLDER: Final = "imports"


class UnfinishedImport:
    """File with the ID of an import that is not complete.

    Args:
        agent: Folder of the agent.
        source: Path of the source, or its content.
    """

    def __init__(self, agent: Path, source: Path | bytes) -> None:
        name = source if isinstance(source, bytes) else os.fsencode(source.resolve())
        self._path = agent / DERIVED / _FOLDER / hashlib.sha256(name).hexdigest()

    def read_id(self) -> str:
        """Return the ID of the interrupted import, or an empty text."""
        with translated(self._path, "read"):
            return self._path.read_text("utf-8") if self._path.exists() else ""

    @contextmanager
    def hold(self, import_id: str) -> Iterator[None]:
        """Keep the ID until the block ends, also with refused records.

        Raises:
            StorageError: The file cannot be written or deleted.
        """
        make_private_folder(self._path.parent)
        with translated(self._path, "write"):
            replace_file(self._path, import_id.encode(), durable=True)
        try:
            yield
        except typer.Exit:
            self._delete()
            raise
        self._delete()

    def _delete(self) -> None:
        with translated(self._path, "delete"):
            self._path.unlink(missing_ok=True)


def drop_unfinished(agent: Path, import_id: str) -> None:
    """Delete the file of an import that was taken back."""
    for path in (agent / DERIVED / _FOLDER).glob("*"):
        with translated(path, "delete"):
            if path.read_text("utf-8") == import_id:
                path.unlink()
