"""`agent-memory backup`: create, check, restore and delete backups."""

import asyncio
import shlex
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.care.backups.backup_reader import BackupSummary, list_backups, prune_backups, to_prune, verify_backup
from agent_memory.care.backups.backup_writer import Backup, create_backup
from agent_memory.care.backups.manifest import BackupManifest, folder_of_backups
from agent_memory.care.backups.restoration import RestorePreview, preview_restore, restore_backup
from agent_memory.cli.command_groups import QUIET, complete_agent
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import (
    CommonOptions,
    OptionalAgentOption,
    RowOptions,
    Yes,
    choose_agent,
    get_parameter,
    open_service,
)
from agent_memory.cli.runtime import (
    SESSION_ID,
    CommandContext,
    ListingGroup,
    PlaceCommand,
    build_callback,
    command,
    show_none,
)
from agent_memory.cli.text import minute
from agent_memory.errors import AgentMemoryError, StorageError, ValidationError
from agent_memory.files.layout import AgentFolder, agents_under, build_command, folder_of
from agent_memory.files.names import BACKUPS
from agent_memory.files.wording import counted, format_size
from agent_memory.journal.journal import check_all_present
from agent_memory.memory import Caller
from agent_memory.models import utc_now
from agent_memory.models.record import view_fields

if TYPE_CHECKING:
    from agent_memory.care.backups.restoration import RestoredBackup

_COLUMNS: Final = ("agent_id", "made_at", "memories", "bytes", "state", "file")
_MEMORIES: Final = ("memory", "memories")

File = Annotated[str, typer.Argument(metavar="FILE", help="A backup: its path, or its name among the backups.")]
Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Backups: their paths, or their names.")]
Named = Annotated[
    str | None, typer.Option("--agent", "-a", metavar="NAME", help="Agent to replace.", autocompletion=complete_agent)
]
NewName = Annotated[
    str | None, typer.Option("--as", metavar="NEW", help="Create an agent of this name; others stay as they are.")
]
Check = Annotated[bool, typer.Option("--check", help="Read each backup whole.")]
Keep = Annotated[int | None, typer.Option("--keep", metavar="N", min=1, help="Backups of each agent that stay.")]
OlderThan = Annotated[int | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Remove only older ones.")]


@command(OptionalAgentOption)
async def create(place: CommandContext) -> None:
    """Create one backup file for each agent and verify it."""
    whose = place.get_options(OptionalAgentOption).agent
    names = agents_under(place.root) if whose is None else [choose_agent(whose, place.root, may_be_new=False)]
    if not names:
        show_none(place)
        return
    made, failed = [], dict[str, AgentMemoryError]()
    for name in names:
        try:
            made.append(await _create(place, name))
        except AgentMemoryError as error:
            if whose is not None:
                raise
            failed[name] = error
            place.screen.note(f"{name}: {error.message} {error.recovery}")
    problems = [{"agent_id": name, **error.as_dict()} for name, error in failed.items()]
    backups = [{"file": str(backup.path), "bytes": backup.size, **_view_backup(backup.manifest)} for backup in made]
    place.screen.document({"backups": backups, "problems": problems})
    if failed:
        raise typer.Exit(FAILED)


async def _create(place: CommandContext, name: str) -> Backup:
    caller = Caller(SESSION_ID)
    async with open_service(name, place.root) as service:
        await service.pad.notice(caller)
        made = await asyncio.to_thread(create_backup, folder_of(name, place.root))
        fields = {"source": made.path.name, "memories": made.manifest.memories, "bytes": made.size}
        await service.report("memory:backed_up", caller, **fields)
    place.screen.show(
        f"{made.manifest.agent_id}: {_held(made.manifest)}, {format_size(made.size)}, checked: {made.path}"
    )
    if broken := sum(journal.damaged for journal in made.manifest.journals):
        place.screen.hint(
            f"{counted(broken, 'line')} of its journals are damaged, in the backup too; see `agent-memory doctor`."
        )
    return made


async def verify(place: CommandContext, files: Files) -> None:
    """Read backups whole, and say whether they are what they were."""
    rows: list[dict[str, Any]] = []
    for file in files:
        path = _resolve_path(place, file)
        summary = await asyncio.to_thread(verify_backup, path)
        rows.append({"file": str(path), **_view_backup(summary.manifest), "problems": list(summary.problems)})
        if summary.problems:
            place.screen.show(f"{path.name}: damaged.", style="red")
            for problem in summary.problems:
                place.screen.show(problem, indent=2)
        else:
            last = max((journal.last_seq for journal in summary.manifest.journals), default=0)
            place.screen.show(f"{path.name}: whole. {_held(summary.manifest)}, up to change {last:,}.")
    place.screen.document({"backups": rows})
    if any(row["problems"] for row in rows):
        raise typer.Exit(FAILED)


async def restore(
    place: CommandContext, file: File, *, agent: Named = None, new: NewName = None, yes: Yes = False
) -> None:
    """Restore an agent from a backup; back up the present state first."""
    agent = get_parameter(place, "agent")  # the environment names none: a backup names its agent
    if agent is not None and new is not None:
        raise typer.BadParameter("--agent and --as cannot both be", param_hint="--as")
    if agent is not None:
        agent = choose_agent(agent, place.root, may_be_new=True)
    await _restore(place, _resolve_path(place, file), agent, new, yes=yes)


async def restore_newest(place: CommandContext, agent: str, *, yes: bool) -> None:
    """Restore the newest backup of an agent.

    Asks first, unless `yes` is given or a journal of the agent is missing.

    Raises:
        ValidationError: No usable backup of it exists.
    """
    newest = next((listed for listed in list_backups(place.root, agent) if not listed.problem), None)
    folder = folder_of(agent, place.root)
    is_lost = lacks_journal(folder)
    if newest is None:
        reset = f"run {build_command(place.root, 'agents reset', agent)} (keeps what is left in {BACKUPS})"
        create = f"run {build_command(place.root, 'backup create -a', agent)} to make one"
        raise ValidationError(f"no backup of {agent!r}", code="no_backup", recovery=reset if is_lost else create)
    await _restore(place, newest.path, folder.agent_id, None, yes=yes or is_lost)


def lacks_journal(folder: AgentFolder) -> bool:
    """Return True if a journal of an agent is missing."""
    return _refuses_to_open(folder) == "journal_missing"


def _refuses_to_open(folder: AgentFolder) -> str:
    """Return the code of the error that prevents opening, empty if none."""
    try:
        check_all_present(folder.path)
    except StorageError as error:
        return error.code
    return ""


async def _restore(place: CommandContext, path: Path, agent: str | None, new: str | None, *, yes: bool) -> None:
    preview = await asyncio.to_thread(preview_restore, path, place.root, agent, new)
    if not preview.is_new:
        _tell(place, preview)
        if not yes:
            hint = f"Run `agent-memory backup restore {path.name} --yes`."
            place.confirm(f"Restore {preview.agent_id}?", "Nothing was changed.", recovery=hint)
        if not _refuses_to_open(folder_of(preview.agent_id, place.root)):
            async with open_service(
                preview.agent_id, place.root
            ) as service:  # edits by hand are in the backup of the present state
                await service.pad.notice(Caller(SESSION_ID))
    done = await asyncio.to_thread(lambda: restore_backup(path, place.root, agent=agent, new=new))
    await _tell_service(place, path, done)
    _report(place, preview, done)


def _tell(place: CommandContext, preview: RestorePreview) -> None:
    """Print what a restore would do."""
    place.screen.note(
        f"{preview.agent_id} would be restored to {minute(preview.manifest.made_at)}: {_held(preview.manifest)}."
    )
    if preview.back:
        are = "is" if preview.back == 1 else "are"
        place.screen.note(
            f"{counted(preview.back, *_MEMORIES)} that {are} missing now, most likely forgotten, {are} restored."
        )
    if preview.gone:
        since = "is deleted: it was" if preview.gone == 1 else "are deleted: they were"
        place.screen.note(f"{counted(preview.gone, *_MEMORIES)} {since} stored later.")
    place.screen.note("The present state is backed up first.")


def _report(place: CommandContext, preview: RestorePreview, done: "RestoredBackup") -> None:
    document = {
        "agent_id": done.folder.agent_id,
        "folder": str(done.folder.path),
        "restored": _view_backup(done.manifest),
    }
    before = None if done.before is None else str(done.before.path)
    place.screen.document({**document, "back": preview.back, "gone": preview.gone, "before": before})
    place.screen.show(f"{done.folder.agent_id} is restored to {minute(done.manifest.made_at)}.")
    if done.before is not None:
        undo = f"To undo that: agent-memory backup restore {shlex.quote(done.before.path.name)}"
        place.screen.show(place.screen.complete(undo))


@command(OptionalAgentOption, rows=True)
async def list_all(place: CommandContext, *, check: Check = False) -> None:
    """List backups, newest first, with agent, age, size and state."""
    whose = place.get_options(OptionalAgentOption).agent
    listed = await asyncio.to_thread(lambda: list_backups(place.root, whose, check=check))
    rows = [_row(summary) for summary in listed]
    place.screen.rows({"folder": str(folder_of_backups(place.root)), "backups": rows}, "backups", _COLUMNS)
    for summary in listed:
        manifest, size = summary.manifest, f"{format_size(summary.size)}, of {minute(summary.made_at)}"
        content = "" if manifest is None else f"{_held(manifest)}, "
        before = " before a restoring" if manifest is not None and manifest.reason != "asked" else ""
        place.screen.show(f"{summary.path.name}: {content}{size}{before}; {_state(summary)}.")
        if summary.problem:
            place.screen.show(summary.problem, indent=2, style="red")
    if not listed:
        place.screen.hint("No backups yet. `agent-memory backup create` makes one.")


@command(OptionalAgentOption)
async def prune(place: CommandContext, *, keep: Keep = None, older_than: OlderThan = None, yes: Yes = False) -> None:
    """Remove backups; the newest whole one of each agent always stays."""
    if keep is None and older_than is None:
        raise ValidationError(
            "No rule says which backups to remove.", code="usage", recovery="Give --keep N, --older-than DAYS, or both."
        )
    listed = list_backups(place.root, place.get_options(OptionalAgentOption).agent)
    days = None if older_than is None else timedelta(days=older_than)
    gone = await asyncio.to_thread(lambda: to_prune(listed, utc_now(), keep=keep, older_than=days))
    if gone and not yes:
        for summary in gone:
            place.screen.note(f"{summary.path.name}: {format_size(summary.size)}, of {minute(summary.made_at)}")
        size = format_size(sum(summary.size for summary in gone))
        place.confirm(f"Remove {counted(len(gone), 'backup')}, {size}, for good?", "Nothing was removed.")
    freed = prune_backups(place.root, gone)
    removed, remaining = [summary.path.name for summary in gone], len(listed) - len(gone)
    place.screen.document({"removed": removed, "bytes": freed, "left": remaining})
    place.screen.show(
        f"Removed {counted(len(gone), 'backup')}, {format_size(freed)}; {counted(remaining, 'is', 'are')} left."
    )


async def _tell_service(place: CommandContext, path: Path, done: "RestoredBackup") -> None:
    """Render the scratchpad again, and log what was restored."""
    caller = Caller(SESSION_ID)
    async with open_service(done.folder.agent_id, place.root) as service:
        service.pad.schedule(caller)
        await service.pad.settle()
        previous = None if done.before is None else done.before.path.name
        fields = {"source": path.name, "memories": done.manifest.memories, "previous": previous}
        await service.report("memory:backup_restored", caller, **fields)


def _resolve_path(place: CommandContext, file: str) -> Path:
    path = Path(file)
    among = folder_of_backups(place.root) / file
    return among if not path.exists() and path.name == file and among.exists() else path


def _held(manifest: BackupManifest) -> str:
    other_records = sum(sum(journal.records.values()) for journal in manifest.journals) - manifest.memories
    more = f" and {counted(other_records, 'other record')}" if other_records else ""
    return f"{counted(manifest.memories, *_MEMORIES)}{more}"


def _view_backup(manifest: BackupManifest) -> dict[str, Any]:
    return {
        **view_fields(manifest, "agent_id", "made_at", "made_by", "reason", "memories"),
        "journals": {
            journal.name: view_fields(journal, "last_seq", "lines", "records") for journal in manifest.journals
        },
    }


def _row(summary: BackupSummary) -> dict[str, Any]:
    return {
        **view_fields(summary, "agent_id", "made_at"),
        "age_days": round((utc_now() - summary.made_at) / timedelta(days=1), 2),
        "memories": None if summary.manifest is None else summary.manifest.memories,
        "bytes": summary.size,
        "reason": None if summary.manifest is None else summary.manifest.reason,
        "state": _state(summary),
        "problem": summary.problem,
        "file": str(summary.path),
    }


def _state(summary: BackupSummary) -> str:
    if summary.problem:
        return "damaged"
    return "whole" if summary.is_checked else "not read again"


class _BackupGroup(ListingGroup):
    """Group of the commands for backups."""

    options = (RowOptions, OptionalAgentOption, CommonOptions)


backup = typer.Typer(
    cls=_BackupGroup,
    help="List, create, check, restore or delete backups.",
    invoke_without_command=True,
    add_completion=False,
    **QUIET,
)
backup.callback()(build_callback(list_all))
backup.command("list", cls=PlaceCommand)(list_all)
for body in (create, verify, restore, prune):
    backup.command(cls=PlaceCommand)(body)
