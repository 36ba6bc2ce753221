"""`agent-memory history`: show the versions of a memory."""

from typing import Any, Final

from agent_memory.cli.options import MemoryId, resolve_ids
from agent_memory.cli.render import show_versions
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnknownIdError
from agent_memory.models import ACCESS, Memory, RecordVersion, to_text

_VERSION_COLUMNS: Final = ("seq", "at", "what", "fields", "content")
_OPERATIONS: Final = {"put": "stored", "patch": "changed", "delete": "forgotten", "move": "archived"}


@command(rows=True)
async def history(run: AgentContext, memory_id: MemoryId) -> None:
    """Show the earlier versions of a memory, oldest first.

    Covers at least the last 30 days, also of a forgotten memory.
    """
    (memory_id,) = await resolve_ids(run.service, [memory_id], forgotten=True, read_only=True)
    versions = await run.service.history.history(memory_id)
    if not versions:
        raise UnknownIdError(f"Nothing is known about {memory_id}.")
    rows = _build_rows(versions)
    run.screen.rows({"memory_id": memory_id, "versions": rows}, "versions", _VERSION_COLUMNS)
    show_versions(run.screen, memory_id, rows)


def _build_rows(versions: "list[RecordVersion[Memory]]") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before: Memory | None = None
    for version in versions:
        memory = version.record
        changed = [] if memory is None or before is None else _list_changed_fields(before, memory)
        is_restored = version.op == "put" and before is None and bool(rows)
        operation = "brought back" if is_restored else _OPERATIONS.get(version.op, version.op)
        rows.append(
            {
                "seq": version.seq,
                "at": to_text(version.at),
                "what": "changed" if changed and version.op == "put" else operation,
                "fields": changed,
                "content": None if memory is None else memory.content,
                "memory": None if memory is None else memory.model_dump(mode="json"),
            }
        )
        before = memory
    return rows


def _list_changed_fields(before: Memory, after: Memory) -> list[str]:
    names = [name for name in type(after).model_fields if name not in ACCESS]
    return [name for name in names if getattr(before, name) != getattr(after, name)]
