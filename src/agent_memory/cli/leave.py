"""`agent-memory leave`: export, disconnect and delete everything."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_memory.care.agents import delete_agent
from agent_memory.care.inventory import StoredItem, delete_stored, list_stored
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import OptionalAgentOption, choose_agent
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.screen import read_line
from agent_memory.cli.text import shorten_home
from agent_memory.cli.transfer_tally import list_counts
from agent_memory.cli.verified_export import VerifiedExport, can_export_to, export_agent, read_export
from agent_memory.encryption import is_encrypted
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.files.layout import AgentFolder
from agent_memory.files.wording import counted, format_size
from agent_memory.models import utc_now
from agent_memory.registry import load_handler
from agent_memory.settings.installation import build_removal_command

_HOSTS: Final = "agent_memory.integrations.host_files"
_EVERYTHING: Final = "delete everything"
_LEFT: Final = (
    "Not deleted: exports and copies elsewhere, workspaces, /etc/agent-memory, and transcripts of hosts. The backups "
    "*.before-agent-memory next to their configurations also stay."
)


@dataclass(slots=True)
class LeaveReceipt:
    """Outcome of the steps.

    Attributes:
        exports: Verified exports by agent.
        disconnected: Names of hosts.
        deleted: Deleted agents, backups and shared files.
        remaining: Paths that stay.
        failures: Errors of single steps.
    """

    exports: dict[str, VerifiedExport] = field(default_factory=dict)
    disconnected: list[str] = field(default_factory=list)
    deleted: list[StoredItem] = field(default_factory=list)
    remaining: list[Path] = field(default_factory=list)
    failures: list[AgentMemoryError] = field(default_factory=list)


@command(OptionalAgentOption)
async def leave(
    run: CommandContext,
    *,
    only_list: Annotated[bool, typer.Option("--list", help="Only list hosts, agents, backups and caches.")] = False,
    target: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Write a verified export to this folder.")
    ] = None,
    disconnect: Annotated[bool, typer.Option("--disconnect", help="Remove the entry from every host.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete, after a typed confirmation.")] = False,
    no_export: Annotated[bool, typer.Option("--no-export", help="Delete without an export.")] = False,
) -> None:
    """Export everything, disconnect all hosts, and delete what is stored.

    Without options all steps follow each other, and a question comes before the deletion. Each option does its own
    step. Nothing is deleted before its export was read back and compared.
    """
    agent = run.get_options(OptionalAgentOption).agent
    does_all = not (only_list or target or disconnect or delete)
    _check_options(run.root, target, delete=delete, no_export=no_export)
    items, hosts = list_stored(run.root, agent), _list_hosts(agent)
    if agent is not None and not items:
        choose_agent(agent, run.root, may_be_new=False)
    if only_list or does_all:
        _show_list(run, items, hosts)
    receipt = LeaveReceipt()
    if does_all and not no_export and items:
        target = _choose_folder(items)
    if target is not None:
        await _export(run, receipt, items, target)
    if receipt.failures:
        run.screen.note("Nothing was disconnected or deleted.")
    else:
        if deletes := (delete or does_all) and bool(items or hosts):
            _confirm(run, items[0].agent if agent else _EVERYTHING, items, hosts if does_all else [])
        if disconnect or does_all:
            _disconnect(run, receipt, hosts)
        if deletes:
            _delete(run, receipt, items, target)
            _show_receipt(run, receipt)
    _report(run, receipt, items, hosts)


def _check_options(root: Path, target: Path | None, *, delete: bool, no_export: bool) -> None:
    """Check that options fit together.

    Raises:
        typer.BadParameter: Options contradict each other.
        ValidationError: The folder is inside the storage root.
    """
    if target is not None and no_export:
        raise typer.BadParameter("it excludes --export", param_hint="--no-export")
    if delete and target is None and not no_export:
        raise typer.BadParameter("it needs --export DIR, or --no-export", param_hint="--delete")
    if target is not None and target.resolve().is_relative_to(root):
        message = f"{target} is inside the storage root; nothing was written."
        raise ValidationError(message, code="inside_root", recovery="Choose a place outside the storage root.")


def _list_hosts(agent: str | None) -> list[dict[str, Any]]:
    """Return connected hosts, and those whose file cannot be read."""
    rows: list[dict[str, Any]] = load_handler(f"{_HOSTS}:list_connections")()
    rows = [row for row in rows if row["state"] not in {"not connected", "no file"}]
    return rows if agent is None else [row for row in rows if row["agent"] == agent]


def _show_list(run: CommandContext, items: Sequence[StoredItem], hosts: Sequence[dict[str, Any]]) -> None:
    for row in hosts:
        state = f'connected to "{row["agent"]}"' if row["state"] == "connected" else row["state"]
        run.screen.show(f"host    {row['host']:<14} {state}  {row['file']}")
    for item in items:
        label = item.agent or "all agents"
        content = f"  {item.content}" if item.content else ""
        run.screen.show(f"{item.kind:<7} {label:<14} {format_size(item.size)}{content}  {shorten_home(item.path)}")
    if not (items or hosts):
        run.screen.show("Nothing is stored, and no host is connected.")


def _choose_folder(items: Sequence[StoredItem]) -> Path:
    """Return a folder in the home without exports of another state."""
    path = Path("~").expanduser() / f"agent-memory-export-{utc_now():%Y-%m-%d}"
    agents = [AgentFolder(item.path) for item in items if item.kind == "agent"]
    paths = (path if number == 1 else path.with_name(f"{path.name}-{number}") for number in count(1))
    return next(path for path in paths if all(can_export_to(path, agent) for agent in agents))


async def _export(run: CommandContext, receipt: LeaveReceipt, items: Sequence[StoredItem], target: Path) -> None:
    """Export each agent; failures are reported and noted."""
    for item in items:
        if item.kind != "agent":
            continue
        try:
            export = receipt.exports[item.agent] = await export_agent(run, AgentFolder(item.path), target)
        except AgentMemoryError as error:
            _note_failure(run, receipt, error, f"Could not export {item.agent}. It stays as it is.")
            continue
        total = counted(sum(export.records.values()), "record")
        run.screen.show(f"Exported {item.agent}: {total}, read back and compared, in {shorten_home(export.folder)}.")
        if is_encrypted(item.path):
            run.screen.note(f"{item.agent} is encrypted; its export is not.")


def _confirm(run: CommandContext, words: str, items: Sequence[StoredItem], hosts: Sequence[dict[str, Any]]) -> None:
    """Ask for the typed confirmation.

    Raises:
        typer.Exit: Something else was typed.
    """
    counts = [sum(item.kind == kind for item in items) for kind in ("agent", "backup")]
    what = f"{counted(counts[0], 'agent')} and {counted(counts[1], 'backup')}"
    first = f"disconnect {counted(len(hosts), 'host')} and " if hosts else ""
    run.screen.last_words = lambda: "Stopped. Nothing was deleted."
    answer = read_line(run.screen, f'Type "{words}" to {first}delete {what} for good: ')
    if (answer or "").strip() != words:
        run.screen.note("Nothing was disconnected or deleted. An export stays.")
        raise typer.Exit(FAILED)


def _disconnect(run: CommandContext, receipt: LeaveReceipt, hosts: Sequence[dict[str, Any]]) -> None:
    for row in hosts:
        try:
            load_handler(f"{_HOSTS}:plan_disconnection")(row["host"]).apply()
        except AgentMemoryError as error:
            _note_failure(run, receipt, error, f"Could not disconnect {row['host']}; the other steps continue.")
            continue
        receipt.disconnected.append(row["host"])
        run.screen.show(f"Disconnected {row['host']}.")


def _delete(run: CommandContext, receipt: LeaveReceipt, items: Sequence[StoredItem], target: Path | None) -> None:
    """Delete agents, then their backups, then shared files."""
    for item in items:
        if item.kind != "agent" or (target is not None and item.agent not in receipt.exports):
            continue
        folder, export = AgentFolder(item.path), receipt.exports.get(item.agent)
        try:
            delete_agent(folder, None if export is None else partial(export.check_unchanged, folder))
        except AgentMemoryError as error:
            _note_failure(run, receipt, error, f"Could not delete {item.agent}. Its memories are still stored.")
            continue
        receipt.deleted.append(item)
        run.screen.show(f"Deleted {item.agent}.")
    living = {item.agent.lower() for item in items if item.kind == "agent" and item not in receipt.deleted}
    leftovers = [
        item
        for item in items
        if (item.kind == "backup" and item.agent.lower() not in living and _has_export(item.agent, target))
        or (item.kind == "shared" and not living)
    ]
    try:
        receipt.remaining = delete_stored(run.root, leftovers)
        receipt.deleted += leftovers
    except AgentMemoryError as error:
        _note_failure(run, receipt, error, "Could not delete everything else; run this again.")


def _has_export(agent: str, target: Path | None) -> bool:
    """Return True if an agent's export allows its deletion."""
    return target is None or read_export(target / agent) is not None


def _note_failure(run: CommandContext, receipt: LeaveReceipt, error: AgentMemoryError, sentence: str) -> None:
    receipt.failures.append(error)
    if not run.screen.json:
        run.screen.error(error)
        run.screen.note(sentence)


def _show_receipt(run: CommandContext, receipt: LeaveReceipt) -> None:
    run.screen.show(f"Receipt, {utc_now():%Y-%m-%d %H:%M} UTC", style="bold")
    for name, export in receipt.exports.items():
        records = ", ".join(list_counts(export.records)) or "no records"
        run.screen.show(f"exported      {name}: {records} in {shorten_home(export.folder)}")
    for host in receipt.disconnected:
        run.screen.show(f"disconnected  {host}")
    for item in receipt.deleted:
        run.screen.show(f"deleted       {item.kind} {shorten_home(item.path)}, {format_size(item.size)}")
    for path in receipt.remaining:
        run.screen.show(f"left          {shorten_home(path)}")
    run.screen.show(_LEFT)
    run.screen.show(f"Remove the program: {build_removal_command()}")
    run.screen.show("Remove it from Amplifier: amplifier bundle remove agent-memory")


def _report(
    run: CommandContext, receipt: LeaveReceipt, items: Sequence[StoredItem], hosts: Sequence[dict[str, Any]]
) -> None:
    """Print the JSON document; exit after failures.

    Raises:
        typer.Exit: A step failed.
    """
    run.screen.document(
        {
            "hosts": list(hosts),
            "stored": [_to_document(item) for item in items],
            "exported": {name: str(export.folder) for name, export in receipt.exports.items()},
            "disconnected": receipt.disconnected,
            "deleted": [_to_document(item) for item in receipt.deleted],
            "left": list(map(str, receipt.remaining)),
            "failures": [error.as_dict() for error in receipt.failures],
            "remove_program": build_removal_command(),
        }
    )
    if receipt.failures:
        raise typer.Exit(FAILED)


def _to_document(item: StoredItem) -> dict[str, Any]:
    return {"kind": item.kind, "agent": item.agent or None, "path": str(item.path), "bytes": item.size}
