"""`agent-memory archive compact`: delete old versions."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from agent_memory.cli.archive import compact_archive
from agent_memory.cli.framework_records import compact_verbatim
from agent_memory.cli.options import Yes
from agent_memory.cli.runtime import AgentContext
from agent_memory.files.entries import names_in
from agent_memory.files.layout import folder_of
from agent_memory.files.names import TOPICS, classify_name
from agent_memory.files.wording import counted
from agent_memory.knowledge.pages.assignment import PageStage
from agent_memory.knowledge.pages.page_files import NO_PAGE
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import EPISODE, TOPIC

NO_RESTORE: Final = "Nothing that was forgotten or changed, lately or now, can be brought back after that."


async def compact(
    run: AgentContext,
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Also delete what was forgotten or changed just now; no restore.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete from the files what was forgotten or changed over 30 days ago."""
    journal = folder_of(run.service.agent_id, run.root).journal
    if now and not yes:
        run.confirm(f"{NO_RESTORE}\nRemove all of that from {journal.name}?", "Nothing was changed.")
    before = journal.stat().st_size if journal.exists() else 0
    if before and now:
        await compact_all(run)
    else:
        if before:
            await run.service.writer.compact()
            await compact_archive(run)
        await _compact_knowledge(run, timedelta(0) if now else None)
        await compact_verbatim(run, timedelta(0) if now else None)
    after = journal.stat().st_size if before else 0
    run.screen.document({"bytes_before": before, "bytes_after": after})
    run.screen.show(f"{journal.name}: {counted(before, 'byte')} before, {counted(after, 'byte')} now.")


async def _compact_knowledge(run: AgentContext, grace: timedelta | None) -> None:
    """Delete unneeded records and long texts of knowledge from its files."""
    if run.service.settings.backend == "server" or not _has_knowledge(run):
        return
    async with Knowledge(run.service.agent_id, run.service.settings) as knowledge:
        await Pages(knowledge, run.service).catch_up()
        await knowledge.compact(grace)


async def _finish_withdrawals(run: AgentContext) -> None:
    """Withdraw what a killed session left, while its words are known."""
    if run.service.settings.backend != "server" and _has_knowledge(run):
        async with Knowledge(run.service.agent_id, run.service.settings) as knowledge:
            await PageStage(knowledge, run.service, Pages(knowledge, run.service), run.caller).finish_withdrawals()


def _has_knowledge(run: AgentContext) -> bool:
    """Return True if the agent has a journal or knowledge texts."""
    folder = folder_of(run.service.agent_id, run.root)
    return folder.blobs.exists() or any((folder.path / kind.journal).exists() for kind in (TOPIC, EPISODE))


async def compact_all(run: AgentContext) -> None:
    """Compact all journals without grace; print unchecked files."""
    await run.service.settle()
    await _finish_withdrawals(run)
    await run.service.writer.compact(timedelta(0))
    await compact_archive(run, timedelta(0))
    await _compact_knowledge(run, timedelta(0))
    await compact_verbatim(run, timedelta(0))
    folder = folder_of(run.service.agent_id, run.root)
    run.screen.show(f"The text was deleted from {folder.journal.name} and its derived files.")
    if copies := _list_copies(folder.path):
        run.screen.note(f"Not checked, and may still contain it: {', '.join(copies)}.")
    run.screen.note("Exports, backups and text that a model saw cannot be cleaned.", style="dim")


def _list_copies(folder: Path) -> list[str]:
    """Return names of other files that may contain deleted texts."""
    names = (name for name in names_in(folder) if name.startswith(("memories", "scratchpad")))
    pages = (f"{TOPICS}/{name}" for name in names_in(folder / TOPICS) if NO_PAGE in name)
    return [*(name for name in names if classify_name(name) != "ours"), *pages]
