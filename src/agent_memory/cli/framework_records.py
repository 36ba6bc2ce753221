"""Records of other frameworks in exports and imports."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent_memory.errors import UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.models.verbatim import VERBATIM, VerbatimRecord
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import timedelta

    from agent_memory.cli.runtime import AgentContext
    from agent_memory.memory.verbatim_storage import VerbatimStorage

_WORDS = "record of another framework", "records of other frameworks"


async def write_verbatim(run: AgentContext, write: Callable[[dict[str, Any]], object]) -> None:
    """Write what other frameworks store, as a part of an export."""
    async with open_records(run) as storage:
        if storage is not None:
            async for record in storage.iter_all():
                write({"kind": VERBATIM.name, "id": record.id, **record.to_record()})


async def forget_verbatim(run: AgentContext, words: Sequence[str], *, yes: bool, now: bool) -> list[str]:
    """Delete the named records of other frameworks; return the other names."""
    rest = [word for word in words if not word.startswith(VERBATIM.prefix)]
    async with open_records(run) as storage:
        if storage is None or len(rest) == len(words):
            return list(words)
        records = await storage.get_many([word for word in words if word not in rest])
        if missing := [word for word in words if word not in rest and word not in records]:
            message = f"No record {quoted(missing[0])}; nothing was forgotten."
            raise UnknownIdError(message, recovery="Run `agent-memory export` to see the IDs of all records.")
        if not yes:
            run.need_terminal("Nothing was forgotten.", "Forgetting")
            for record in records.values():
                run.screen.note(record.content, style="")
            what = counted(len(records), *_WORDS)
            run.confirm(f"Forget {what}{' for good' if now else ''}?", "Nothing was forgotten.")
        for record in await storage.forget_many(list(records)):
            run.screen.document({"memory_id": record.id, "forgotten": True, "older_versions": []})
            run.screen.show(f"Forgot {record.id}, which another framework stored.")
    return rest


async def compact_verbatim(run: AgentContext, grace: timedelta | None) -> None:
    """Delete from the file what was forgotten or replaced longer ago."""
    async with open_records(run) as storage:
        if storage is not None:
            await storage.compact(grace)


@contextlib.asynccontextmanager
async def open_records(run: AgentContext) -> AsyncIterator[VerbatimStorage | None]:
    """Open the records of all adapters for the block; None without any."""
    folder = run.service.folder
    if folder is None or not (folder.path / VERBATIM.journal).exists():
        yield None
        return
    from agent_memory.memory.verbatim_storage import VerbatimStorage

    storage = VerbatimStorage(run.service.agent_id, VERBATIM.name, run.service.settings)
    try:
        yield storage
    finally:
        await storage.close()


async def import_verbatim(
    run: AgentContext, records: Sequence[VerbatimRecord], *, trusted: bool, dry_run: bool
) -> None:
    """Store and report the records of other frameworks."""
    if not records:
        return
    if not trusted:
        run.screen.note(f"Skipped {counted(len(records), *_WORDS)}: only with --trusted.")
        return
    from agent_memory.memory.verbatim_storage import import_verbatim_records

    count = await import_verbatim_records(records, run.service.settings, dry_run=dry_run)
    run.screen.note(f"{counted(count, *_WORDS)}.", style="dim")
