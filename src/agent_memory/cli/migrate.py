"""Commands that move a memory to the vector engine and back: migrate, rollback, reindex."""

import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.cli.running import Run
from agent_memory.cli.text import counted
from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from agent_memory.storage.vector.migration import Built

_STAGES: Final = {
    "embed": "Reading memories by meaning",
    "load": "Loading the index",
    "index": "Building the graph",
    "check": "Checking what was built",
    "switch": "Taking it into use",
}


async def migrate(run: Run) -> None:
    """Find memories by the vector engine: faster with many; the files stay the truth."""
    if run.service.admin.backend == "vector":
        run.screen.document({"backend": "vector", "changed": False})
        run.screen.show("This memory uses the vector engine already; `agent-memory reindex` builds its index anew.")
        return
    await _build(run)


async def reindex(run: Run) -> None:
    """Build the vector engine's index anew, from the files."""
    if run.service.admin.backend != "vector":
        raise ValidationError(
            "This memory answers from its files and has no index.",
            code="usage",
            recovery="Begin one with `agent-memory migrate`.",
        )
    await _build(run)


async def rollback(run: Run) -> None:
    """Find memories from the files alone again; nothing stored since a migration is lost."""
    changed = await run.service.migration.rollback(run.caller)
    run.screen.document({"backend": "file", "changed": changed})
    run.screen.show(
        "Memories are found from the files alone again; the index is removed."
        if changed
        else "There is nothing to roll back: this memory is found from its files already."
    )


async def _build(run: Run) -> None:
    begun = time.monotonic()
    built = await _watched(run)
    seconds = round(time.monotonic() - begun, 1)
    run.screen.document({"backend": "vector", "changed": True, "memories": built.memories, "seconds": seconds})
    run.screen.show(f"{counted(built.memories, 'memory', 'memories')} in the index, in {seconds} s. It is in use now.")


async def _watched(run: Run) -> "Built":
    with run.screen.progress() as progress:
        bars: dict[str, Any] = {}

        async def show(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                for bar in bars.values():  # one stage ends where the next begins
                    progress.update(bar, completed=progress.tasks[bar].total)
                bars[stage] = progress.add_task(_STAGES.get(stage, stage))
            progress.update(bars[stage], completed=done, total=total)

        return await run.service.migration.migrate(run.caller, show)
