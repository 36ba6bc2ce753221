"""Purge records from every file, with a receipt."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.care.inventory import describe_purge
from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import Yes, complete_id, resolve_ids
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.text import minute
from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.models import is_memory_id, visible
from agent_memory.registry import NOT_CLEANED

if TYPE_CHECKING:
    from agent_memory.care.privacy.purge import PurgePlan, PurgeReceipt, Purging

_SHOWN: Final = 20
_COLUMNS: Final = ("purge_id", "at", "records", "state")


@command(rows=True)
async def purge(
    run: AgentContext,
    record_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="IDs of memories or of other records.", autocompletion=complete_id),
    ] = None,
    *,
    verify: Annotated[bool, typer.Option("--verify", help="Search every file for purged text.")] = False,
    text: Annotated[
        list[str] | None, typer.Option("--text", metavar="TEXT", help="With --verify: also search for these words.")
    ] = None,
    stored_secrets: Annotated[
        bool, typer.Option("--secrets", help="Find stored secrets by the present rules; purge them after a yes.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete records from all files and backups; list purges.

    Afterwards every byte is searched, and the same words in other records are made unreadable. A purged text cannot be
    restored, imported or captured again. Without an ID, past purges are listed.
    """
    if ((verify or stored_secrets) and record_ids) or (verify and stored_secrets) or (text and not verify):
        raise ValidationError(
            "--verify and --secrets take no ID and exclude each other; --text needs --verify.", code="usage"
        )
    if any(not words.strip() for words in text or []):
        raise ValidationError("--text needs words to look for; nothing was searched.", code="usage")
    from agent_memory.care.privacy.purge import Purging

    purging = Purging(run.service)
    if verify:
        await _verify(run, purging, text or [])
    elif stored_secrets:
        await _purge_secrets(run, purging, yes=yes)
    elif record_ids:
        await _purge(run, purging, record_ids, yes=yes)
    else:
        await _list(run, purging)


async def _purge(run: AgentContext, purging: "Purging", words: list[str], *, yes: bool) -> None:
    plan = await purging.plan([await _whole(run, word) for word in words])
    if not yes:
        _confirm(run, plan)
    await _run_plan(run, purging, plan)


async def _run_plan(run: AgentContext, purging: "Purging", plan: "PurgePlan") -> None:
    """Purge the records of a plan and print the receipt."""
    receipt = await purging.run(plan, run.caller)
    run.screen.document(asdict(receipt))
    _show(run, receipt, len(plan.ids))
    if not receipt.is_clean:
        raise typer.Exit(FAILED)


async def _purge_secrets(run: AgentContext, purging: "Purging", *, yes: bool) -> None:
    """Show records with secrets, and purge them after a yes."""
    from agent_memory.care.privacy.purge_survey import find_stored_secrets

    assert run.service.folder is not None  # Purging refuses servers
    records = await asyncio.to_thread(find_stored_secrets, run.service.folder)
    rows: list[dict[str, Any]] = [{"id": record.id, "kinds": list(record.kinds)} for record in records]
    run.screen.document({"agent_id": run.service.agent_id, "secrets": rows})
    for record in records[:_SHOWN]:
        run.screen.show(f"{record.id}  {', '.join(record.kinds)}")
        run.screen.show(visible(record.text), indent=2, max_lines=2, style="dim")
    if len(records) > _SHOWN:
        run.screen.note(f"… and {counted(len(records) - _SHOWN, 'more record')}.")
    if not records:
        run.screen.show("No stored record has a secret that the present rules recognize.")
        return
    run.screen.note("A purge deletes whole records. To keep the rest of a text, store it again without the secret.")
    if not yes:
        recovery = "Run `agent-memory purge --secrets --yes` to purge them."
        run.confirm(f"Purge {counted(len(records), 'record')}?", "Nothing was purged.", "Purging", recovery)
    await _run_plan(run, purging, await purging.plan([record.id for record in records]))


async def _whole(run: AgentContext, word: str) -> str:
    """Return the full ID for the beginning of one.

    The `mem-` of a memory's ID may be left out.
    """
    if is_memory_id(word) or ("-" in word and not word.startswith("mem-")):
        return word
    (memory_id,) = await resolve_ids(run.service, [word], forgotten=True)
    return memory_id


def _confirm(run: AgentContext, plan: "PurgePlan") -> None:
    run.need_terminal("Nothing was purged.", "Purging")
    for text in plan.texts[:_SHOWN]:
        run.screen.note(text, style="")
    if len(plan.texts) > _SHOWN:
        run.screen.note(f"… and {counted(len(plan.texts) - _SHOWN, 'more text')}.")
    if plan.same:
        run.screen.note(f"Also {', '.join(plan.same)}, with the same text.")
    run.screen.note("A purge deletes this from every file and backup. It cannot be undone.")
    run.confirm(f"Purge {counted(len(plan.ids), 'record')}?", "Nothing was purged.")


def _show(run: AgentContext, receipt: "PurgeReceipt", count: int) -> None:
    run.screen.show(f"Purged {counted(count, 'record')}. Rebuilt or removed: {', '.join(receipt.files) or 'nothing'}.")
    for sentence in receipt.failed:
        is_named = sentence.startswith(NOT_CLEANED)
        run.screen.show(sentence if is_named else f"Not done: {sentence}", style="red")
    if receipt.found:
        run.screen.show(f"Still in: {', '.join(receipt.found)}.", style="red")
        run.screen.hint(
            "Purge the records that contain it, or delete these files; then run `agent-memory purge --verify`."
        )
    elif not receipt.failed and receipt.searched:
        run.screen.show("Every byte of every file was searched; none of the text is left.")
    if receipt.unsearched:
        texts = counted(receipt.unsearched, "text is", "texts are")
        run.screen.hint(f"{texts} too short to be recognized. Run `agent-memory search` to look for it.")
    run.screen.note(f"Not reached: {'; '.join(receipt.beyond)}.", style="dim")


async def _verify(run: AgentContext, purging: "Purging", texts: list[str]) -> None:
    matches = await purging.verify(texts)
    rows: list[dict[str, Any]] = [
        {"file": str(match.path), "member": match.member, "count": match.count} for match in matches
    ]
    run.screen.rows({"agent_id": run.service.agent_id, "found": rows}, "found", ("file", "member", "count"))
    for match in matches:
        inside = f" ({match.member})" if match.member else ""
        run.screen.show(f"{match.path.name}{inside}: {counted(match.count, 'time')}.", style="red")
    if matches:
        raise typer.Exit(FAILED)
    also = " Nor are the words of --text." if texts else ""
    run.screen.show(f"No file contains purged text.{also}")


async def _list(run: AgentContext, purging: "Purging") -> None:
    for receipt in await purging.finish(run.caller):
        run.screen.note(f"Finished a purge that was interrupted: {counted(len(receipt.records['ids']), 'record')}.")
    purges = await asyncio.to_thread(purging.list.purges)
    rows = [describe_purge(purge) for purge in purges]
    run.screen.rows({"agent_id": run.service.agent_id, "purges": rows}, "purges", _COLUMNS)
    for row in rows:
        moment = minute(datetime.fromisoformat(row["at"]))
        run.screen.show(f"{moment}  {counted(row['records'], 'record')}, {row['state']}")
    if not rows:
        run.screen.note("Nothing has been purged yet.")
