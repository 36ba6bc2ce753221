"""`agent-memory import`: store the records of an export."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_memory.cli.archive import import_archived
from agent_memory.cli.formats import FormatName, ImportedLine, choose_format, decode
from agent_memory.cli.inbox import import_waiting
from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.transfer_tally import TransferTally
from agent_memory.errors import ValidationError
from agent_memory.files.atomic import translated
from agent_memory.files.wording import counted
from agent_memory.journal import read_lost
from agent_memory.knowledge.pipeline.background_work import runner_of

if TYPE_CHECKING:
    from agent_memory.knowledge.intake.transfer import EntryImport


@command(may_be_new=True)
async def import_(
    run: AgentContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File that `export` wrote; '-' is stdin.")],
    form: FormatName = None,
    *,
    trusted: Annotated[
        bool,
        typer.Option("--trusted", help="Accept its trust, pins, times, uses, replacements and edited pages."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the outcome; store nothing.")] = False,
) -> None:
    """Import exported memories; existing ones stay as they are.

    What a file claims beyond its texts counts only with --trusted: anyone can write a file.
    """
    content = _read(file)  # a missing file is reported before its suffix
    chosen = choose_format(file, form)
    run.begin_import()
    records = list(decode(content, chosen, run.service.agent_id))
    importable = [record for record in records if record.memory is not None]
    labels = [{"line": record.line} for record in importable]
    report = TransferTally(run.screen, "Would import" if dry_run else "Imported", labels)
    report.counts.update(lowered=0, raised=0)
    report.unknown_fields = dict.fromkeys(field for record in records for field in record.unknown_fields)
    for record in records:
        if record.problem:
            report.refuse(record.line, record.problem)
    report.given = await _import_knowledge(run, records, trusted=trusted, dry_run=dry_run)
    for line, problem in report.given.refused.items() if report.given is not None else ():
        report.refuse(line, problem)
    with report.counting("Importing") as advance:
        memories = [record.memory for record in records if record.memory is not None]
        await run.service.writer.import_memories(memories, advance, run.caller, trusted=trusted, dry_run=dry_run)
    if report.given is not None and not dry_run:
        await _run_background_stages(run)
    archived_memories = [record.archived for record in records if record.archived is not None]
    if archived_count := await import_archived(run, archived_memories, trusted=trusted, dry_run=dry_run):
        run.screen.note(
            f"{report.done} {counted(archived_count, 'archived memory', 'archived memories')}.", style="dim"
        )
    waiting = [record.candidate for record in records if record.candidate is not None]
    await import_waiting(run, waiting, trusted=trusted, dry_run=dry_run)
    traces = [record.trace for record in records if record.trace is not None]
    if trusted and not dry_run:
        await run.service.writer.import_traces(traces)
    elif traces and not trusted:
        run.screen.note(f"Skipped {counted(len(traces), 'trace')} of what was forgotten: only with --trusted.")
    if report.counts["stored"] and not dry_run:
        run.hint_undo(f"--import {run.caller.session_id}")
    report.end()


def _read(file: str) -> bytes:
    if file != "-" and not Path(file).exists():
        raise ValidationError(f"No file {file}.", code="no_file", recovery="Check the name.")
    with translated(Path(file), "read"):
        return sys.stdin.buffer.read() if file == "-" else read_lost(Path(file).absolute())


async def _import_knowledge(
    run: AgentContext, records: Sequence[ImportedLine], *, trusted: bool, dry_run: bool
) -> "EntryImport | None":
    """Store the documents and conversations of an export, or return None."""
    from agent_memory.knowledge.intake.transfer import store_entries

    entries = [(record.line, record.given) for record in records if record.given is not None]
    if not entries:
        return None
    async with open_knowledge(run) as knowledge:
        return await store_entries(knowledge, entries, trusted=trusted, dry_run=dry_run)


async def _run_background_stages(run: AgentContext) -> None:
    """Run background stages now. Imported items are not extracted again."""
    async with open_knowledge(run) as knowledge:
        await runner_of(knowledge, run.service, run.caller, at_once=True).run()
