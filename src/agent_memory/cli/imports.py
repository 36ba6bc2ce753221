"""`agent-memory import`: store an export, or the files of another program."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer

from agent_memory.cli.archive import import_archived
from agent_memory.cli.formats import Format, ImportedLine, choose_format, decode, is_export_name
from agent_memory.cli.framework_records import import_verbatim
from agent_memory.cli.inbox import import_waiting
from agent_memory.cli.knowledge import open_knowledge
from agent_memory.cli.options import Yes
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.source_import import ImportChoices, UnfinishedImport, import_source
from agent_memory.cli.transfer_tally import TransferTally
from agent_memory.cli.vault_import import find_vault, import_vault
from agent_memory.errors import ValidationError
from agent_memory.files.atomic import translated
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted
from agent_memory.journal import read_lost
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from agent_memory.knowledge.intake.transfer import EntryImport
    from agent_memory.knowledge.sources.source_files import SourceTree

_EXPORT_FORMATS: Final = ("yaml", "jsonl")
_YAML: Final = frozenset({".yaml", ".yml"})


@command(may_be_new=True)
async def import_(  # noqa: PLR0913 - the options of a command
    run: AgentContext,
    file: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Export, file, folder or zip of another program; '-' is stdin.")
    ],
    form: Annotated[str | None, typer.Option("--format", help="Format, if it is not detected.", metavar="NAME")] = None,
    *,
    trusted: Annotated[
        bool,
        typer.Option("--trusted", help="Accept trust, pins, times, uses, replacements and edited pages of an export."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the outcome; store nothing.")] = False,
    me: Annotated[str, typer.Option("--me", help="Your name in a chat between people.", metavar="SPEAKER")] = "",
    dates: Annotated[
        Literal["dmy", "mdy"] | None, typer.Option("--dates", help="Order of day and month in a chat.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="Columns of a CSV file: text=NAME,date=NAME,tags=NAME.", metavar="MAP"),
    ] = None,
    review: Annotated[bool, typer.Option("--review", help="Send memories to the inbox, as one batch.")] = False,
    yes: Yes = False,
) -> None:
    """Import an export, or memories and chats of other programs.

    What an export claims beyond its texts counts only with --trusted: anyone can write a file.

    For other programs a table is shown first. All has low trust until you accept it; others' words keep low trust.
    """
    pasted = sys.stdin.buffer.read() if file == "-" else None
    if pasted is None and form in {None, "vault"} and (found_vault := find_vault(Path(file))) is not None:
        if review:
            raise ValidationError("--review is not for a vault; nothing was imported.", code="usage")
        choices = ImportChoices(Path(file), None, dry_run=dry_run, yes=yes)
        await import_vault(run, found_vault[0], choices, trusted=trusted, only=found_vault[1])
        return
    tree = await asyncio.to_thread(_open_foreign, file, form, pasted)
    if tree is None:
        await _import_export(run, file, pasted, form, trusted=trusted, dry_run=dry_run)
    elif trusted:
        raise ValidationError(
            "--trusted is only for an export of this program; nothing was imported.",
            code="usage",
            recovery="Repeat the command without --trusted.",
        )
    else:
        tree.me, tree.date_order, tree.columns = me, dates, _parse_columns(columns or "")
        source = Path(file) if pasted is None else pasted
        with tree:
            await import_source(run, tree, ImportChoices(source, form, dry_run=dry_run, yes=yes, review=review))


def _open_foreign(file: str, form: str | None, pasted: bytes | None) -> "SourceTree | None":
    """Return another program's files, or None for an own export.

    Raises:
        ValidationError: The file or the format does not exist.
    """
    from agent_memory.knowledge.import_formats import FORMAT_NAMES, find_format, take_sample
    from agent_memory.knowledge.sources.source_files import open_source

    if not file.strip():
        message = "SOURCE is empty; nothing was imported."
        raise ValidationError(message, code="usage", recovery="Name a file, a folder, a zip or '-'.")
    if form in _EXPORT_FORMATS or (form is None and Path(file).suffix.lower() in _YAML):
        return None
    if form is not None and form not in FORMAT_NAMES:
        names = ", ".join((*_EXPORT_FORMATS, *FORMAT_NAMES))
        raise ValidationError(f"No format {quoted(form)}.", code="usage", recovery=f"Formats: {names}.")
    tree = open_source(file, pasted)
    if form is None and len(tree.files) == 1 and not Path(file).is_dir():
        sample = take_sample(next(iter(tree.files.values())), tree)
        is_known = find_format(sample) is not None
        if sample.is_own_export() or (not is_known and (pasted is not None or is_export_name(file))):
            return None
    return tree


def _parse_columns(text: str) -> dict[str, str]:
    """Return the columns of a CSV file by what they hold.

    Raises:
        typer.BadParameter: The map is not readable.
    """
    from agent_memory.knowledge.sources.fact_lists import parse_columns

    try:
        return parse_columns(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--columns") from None


async def _import_export(
    run: AgentContext, file: str, pasted: bytes | None, form: str | None, *, trusted: bool, dry_run: bool
) -> None:
    """Store the records of an export; an interrupted import keeps its ID."""
    content = _read(file) if pasted is None else pasted  # a missing file is reported before its suffix
    chosen = choose_format(file, cast("Format | None", form))
    folder = folder_of(run.service.agent_id, run.root).path
    unfinished = UnfinishedImport(folder, Path(file) if pasted is None else pasted)
    run.begin_import(unfinished.read_id())
    records = list(decode(content, chosen, run.service.agent_id))
    is_noted = not dry_run and run.service.settings.backend != "server"
    with unfinished.hold(run.caller.session_id) if is_noted else nullcontext():
        await _store_export(run, records, trusted=trusted, dry_run=dry_run)


async def _store_export(run: AgentContext, records: Sequence[ImportedLine], *, trusted: bool, dry_run: bool) -> None:
    """Store decoded records, and report them."""
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
    verbatim = [record.verbatim for record in records if record.verbatim is not None]
    await import_verbatim(run, verbatim, trusted=trusted, dry_run=dry_run)
    traces = [record.trace for record in records if record.trace is not None]
    if trusted and not dry_run:
        await run.service.writer.import_traces(traces)
    elif traces and not trusted:
        run.screen.note(f"Skipped {counted(len(traces), 'trace')} of what was forgotten: only with --trusted.")
    if report.counts["stored"] and not dry_run:
        run.hint_undo(f"--import {run.caller.session_id}")
    report.end()


def _read(file: str) -> bytes:
    if not Path(file).exists():
        raise ValidationError(f"No file {file}.", code="no_file", recovery="Check the name.")
    with translated(Path(file), "read"):
        return read_lost(Path(file).absolute())


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
