"""`agent-memory history`: show the versions of a memory."""

from typing import Final

from agent_memory.cli.options import MemoryId, resolve_ids
from agent_memory.cli.render import show_versions
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnknownIdError
from agent_memory.memory.views import view_versions

_VERSION_COLUMNS: Final = ("seq", "at", "what", "fields", "content")


@command(rows=True)
async def history(run: AgentContext, memory_id: MemoryId) -> None:
    """Show the earlier versions of a memory, oldest first.

    Covers at least the last 30 days, also of a forgotten memory.
    """
    (memory_id,) = await resolve_ids(run.service, [memory_id], forgotten=True, read_only=True)
    versions = await run.service.history.history(memory_id)
    if not versions:
        raise UnknownIdError(f"Nothing is known about {memory_id}.")
    rows = view_versions(versions)
    run.screen.rows({"memory_id": memory_id, "versions": rows}, "versions", _VERSION_COLUMNS)
    show_versions(run.screen, memory_id, rows)
