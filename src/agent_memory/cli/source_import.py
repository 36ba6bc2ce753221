"""Import of other programs' files: the table, the question, the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.knowledge import open_knowledge, process_due_texts
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.withdrawal import list_session, undo, undo_turns
from agent_memory.memory.inbox_access import inbox_exists, opened_inbox
from agent_memory.models import to_text
from agent_memory.models.escaped_text import one_line

if TYPE_CHECKING:
    from collections import Counter
    from datetime import datetime

    from agent_memory.cli.runtime import AgentContext
    from agent_memory.knowledge.bulk_import import ImportPlan, PlanRow
    from agent_memory.knowledge.sources.source_files import SourceTree

_COLUMNS: Final = ("format", "what", "new", "known", "similar", "untrusted", "earliest", "latest")
_MAX_PROBLEMS: Final = 20
_MAX_NAMED: Final = 5
_NOTHING: Final = "Nothing was stored."
_WHY: Final = {
    "ambiguous_dates": "has dates that may be day/month or month/day: add --dates dmy or --dates mdy",
    "damaged_file": "is damaged",
    "damaged_part": "is damaged, or of another form",
    "encrypted": "is encrypted",
    "invalid": "is empty or too long for a memory",
    "not_followed": "is not in this import",
    "not_text": "is not text in UTF-8",
    "only_secret": "is only a secret, which is never stored",
    "too_long": "is too large",
    "unknown_speaker": "has no speaker with the name of --me",
    "too_many": "and what follows are more files than one import reads",
}
"""Reasons by error code."""


async def import_source(
    run: AgentContext, tree: SourceTree, form: str | None, *, dry_run: bool, yes: bool, review: bool
) -> None:
    """Show what a source has, ask, and store it.

    Args:
        run: Context of the command.
        tree: Files of the source.
        form: Name of a format that overrides detection, or None.
        dry_run: True to stop after the table.
        yes: True to store without a question.
        review: True to send memories to the inbox.

    Raises:
        typer.Exit: Something could not be imported, or was declined.
    """
    from agent_memory.knowledge.bulk_import import BulkImport

    run.begin_import()
    async with open_knowledge(run) as knowledge:
        bulk = BulkImport(knowledge, run.service, run.caller)
        size = sum(file.size for file in tree.files.values())
        with run.screen.show_steps("Reading MB", size >> 20) as show:
            plan = await bulk.plan(tree, form, lambda size_read: show(size_read >> 20))
        document = _build_document(plan)
        run.screen.document(document)
        _show_plan(run, plan)
        if plan.new and not dry_run:
            if not yes:
                question = f"Store {counted(plan.new, 'record')}?"
                run.confirm(question, _NOTHING, "An import", "Add --yes to store it, or --dry-run for the table alone.")
            with run.screen.show_steps("Storing", plan.new) as show:
                stored = await bulk.store(tree, plan, show, holds_facts=review)
            document |= {"stored": dict(stored), "import": run.caller.session_id}
            run.screen.note(f"Stored {_describe_counts(stored)}.", style="")
            if stored["waiting"]:
                word = run.caller.session_id
                run.screen.hint(f"Run `agent-memory inbox --accept {word}` or --reject {word}, or `review`.")
            if stored.total() > stored["waiting"]:
                run.hint_undo(f"--import {run.caller.session_id}")
            await process_due_texts(run, knowledge, is_shown=False)
        document["problems"] = _list_problems(plan)
    _note_problems(run, plan)
    if plan.problems:
        raise typer.Exit(FAILED)


async def count_imported(run: AgentContext, import_id: str) -> str:
    """Return counts of an import's texts, empty if none."""
    async with open_knowledge(run) as knowledge:
        resources, turns = await list_session(knowledge, import_id)
    waiting = 0
    if inbox_exists(run.service.agent_id, run.service.settings):
        async with opened_inbox(run.service) as inbox:
            waiting = sum(candidate.batch == import_id for candidate in await inbox.waiting())
    counts = [
        counted(len(resources), "document or conversation", "documents and conversations") if resources else "",
        counted(len(turns), "turn") if turns else "",
        counted(waiting, "waiting note") if waiting else "",
    ]
    return ", ".join(filter(None, counts))


async def withdraw_imported(run: AgentContext, import_id: str) -> None:
    """Forget the documents, conversations and turns of an import."""
    async with open_knowledge(run) as knowledge:
        resources, turns = await list_session(knowledge, import_id)
        done = await undo(knowledge, run.service, resources, run.caller)
        rest = await undo_turns(knowledge, run.service, turns, run.caller)
    counts = {"resources": done.resources, "turns": done.episodes + rest.episodes, "items": done.items + rest.items}
    if inbox_exists(run.service.agent_id, run.service.settings):
        async with opened_inbox(run.service) as inbox:
            counts["waiting"] = await inbox.drop_batch(import_id, run.caller)
    run.screen.document({"undone": [], "memories": [], "conflicts": {}, "withdrawn": counts})
    named = [
        counted(counts["resources"], "document or conversation", "documents and conversations"),
        counted(counts["turns"], "turn"),
        counted(counts["items"], "item"),
        *([counted(counts["waiting"], "waiting note")] if counts.get("waiting") else []),
    ]
    run.screen.show(f"Took back {', '.join(named)}.")


def _build_document(plan: ImportPlan) -> dict[str, Any]:
    return {
        "files": [{"file": file.name, "format": form.name} for form, file in plan.files],
        "rows": [_build_row(form, kind, row) for (form, kind), row in plan.rows.items()],
        "similar": plan.similar,
        "left_out": plan.left_out,
        "problems": _list_problems(plan),
        "stored": {},
    }


def _build_row(form: str, kind: str, row: PlanRow) -> dict[str, Any]:
    counts = {name: getattr(row, name) for name in ("new", "known", "similar", "untrusted", "forgotten")}
    times = {name: to_text(moment) if moment else None for name, moment in _list_times(row)}
    return {"format": form, "what": kind, **counts, **times}


def _list_times(row: PlanRow) -> list[tuple[str, datetime | None]]:
    return [("earliest", row.earliest), ("latest", row.latest)]


def _list_problems(plan: ImportPlan) -> list[dict[str, str]]:
    return [{"where": where, "problem": _WHY.get(code, code), "code": code} for where, code in plan.problems]


def _show_plan(run: AgentContext, plan: ImportPlan) -> None:
    """Print the formats and the table."""
    if run.screen.form != "text":
        return
    by_format: dict[str, list[str]] = {}
    for form, file in plan.files:
        by_format.setdefault(form.name, []).append(file.name)
    for name, files in by_format.items():
        more = f" and {len(files) - _MAX_NAMED:,} more" if len(files) > _MAX_NAMED else ""
        run.screen.show(f"Format {name}: {', '.join(map(one_line, files[:_MAX_NAMED]))}{more}")
    rows = [_COLUMNS, *(_list_cells(*key, row) for key, row in plan.rows.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        run.screen.show("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    forgotten = sum(row.forgotten for row in plan.rows.values())
    if forgotten:
        run.screen.show(f"{counted(forgotten, 'memory', 'memories')} forgotten before, left out.")
        run.screen.hint("Run `agent-memory undo` to list what was forgotten, and to take that back.")
    if plan.left_out:
        names = ", ".join(map(one_line, plan.left_out[:_MAX_NAMED]))
        more = " …" if len(plan.left_out) > _MAX_NAMED else ""
        run.screen.show(f"Left out, not content: {names}{more}", style="dim")
    if plan.problems:
        run.screen.show(f"Refused: {len(plan.problems):,}, listed below.")


def _list_cells(form: str, kind: str, row: PlanRow) -> tuple[str, ...]:
    counts = (row.new, row.known, row.similar, row.untrusted)
    days = [f"{moment:%Y-%m-%d}" if moment else "-" for _, moment in _list_times(row)]
    return form, kind, *(f"{count:,}" for count in counts), *days


def _describe_counts(stored: Counter[str]) -> str:
    words = {"memories": ("memory", "memories"), "turns": ("turn", "turns"), "documents": ("document", "documents")}
    waiting = f"{stored['waiting']:,} in the inbox" if stored["waiting"] else ""
    named = [counted(stored[kind], *names) for kind, names in words.items() if stored[kind]]
    return ", ".join(filter(None, [*named, waiting])) or "nothing new"


def _note_problems(run: AgentContext, plan: ImportPlan) -> None:
    for problem in _list_problems(plan)[:_MAX_PROBLEMS]:
        run.screen.note(f"{one_line(problem['where'])} {problem['problem']}.")
    if len(plan.problems) > _MAX_PROBLEMS:
        run.screen.note(f"… and {len(plan.problems) - _MAX_PROBLEMS:,} more; --json lists them all.")
