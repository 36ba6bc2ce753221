"""`Migration`: an agent's memory moves between backends while sessions use it.

Decides when a migration is suggested, and emits its events. The storage does the work.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError, BusyError, MigrationError
from agent_memory.logs import get_logger
from agent_memory.store.worker import LoopLock

if TYPE_CHECKING:
    from agent_memory.memory.caller import Caller, Report
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.memory_storage import MemoryStorage
    from agent_memory.store.protocols import Built, Progress

log = get_logger(__name__)

_PROGRESS_SECONDS: Final = 1.0
"""Between two `memory:migration_progress` events of one stage."""


class Migration:
    """Migrations of one agent in one session.

    Args:
        storage: What may be moved.
        settings: Threshold, and whether to ask.
        report: Function that sends events.
    """

    def __init__(self, storage: MemoryStorage, settings: ServiceSettings, report: Report) -> None:
        self._storage = storage
        self._settings = settings
        self._report = report
        self._looked = not (settings.backend == "auto" and storage.can_migrate)
        self._moving = LoopLock("migrating this agent")
        self._unasked: asyncio.Task[None] | None = None

    async def look(self, caller: Caller) -> None:
        """Suggest or begin a migration of a large memory, once a session.

        Raises:
            StorageError: The memories cannot be read.
        """
        if self._looked or self._storage.backend != "file":
            return
        count = await self._storage.count()
        if count < self._settings.migration_threshold or self._looked:
            return
        self._looked = True
        if not (self._settings.auto_migrate and await self._storage.migration_begun()):
            estimate = await self._storage.estimate()
            await self._report(
                "memory:migration_suggested",
                caller,
                memory_count=count,
                threshold=self._settings.migration_threshold,
                auto_migrate=self._settings.auto_migrate,
                estimated_duration_seconds=estimate.seconds,
                estimated_cost_usd=estimate.dollars,
            )
        if self._settings.auto_migrate:
            self._unasked = asyncio.get_running_loop().create_task(self._migrate_unasked(caller))

    async def migrate(self, caller: Caller, progress: Progress | None = None) -> Built:
        """Build a new index, and then answer from it.

        Args:
            caller: The session that asks.
            progress: Receives the stage and how much of it is done.

        Raises:
            BusyError: Another process, or a task of another event loop, is migrating this agent.
            ConfigurationError: Engine or embedder is missing.
            MigrationError: It failed; the backend is what it was before.
            StorageError: The memories cannot be read.
        """
        async with self._moving.turn():
            estimate = await self._storage.estimate()
            watch = _MigrationProgress(self._report, caller, progress, estimate.count)
            plan = {
                "backend": "vector",
                "batch_size": self._settings.migration_batch_size,
                "estimated_duration_seconds": estimate.seconds,
            }
            what = "resumed" if await self._storage.migration_begun() else "started"
            await self._storage.note_migration(begun=True)
            await self._report(f"memory:migration_{what}", caller, memory_count=estimate.count, plan=plan)
            before, charged = self._storage.backend, self._storage.embedding_cost()
            try:
                built = await self._storage.migrate(watch)
            except Exception as error:
                why = f"It broke off ({type(error).__name__}), which is a defect of agent-memory."
                reported_error = error if isinstance(error, AgentMemoryError) else MigrationError(why)
                await self._handle_failure(reported_error, before, watch, caller)
                raise
            except asyncio.CancelledError:
                pending = int(self._storage.embedding_status().get("pending", 0))
                remaining = {"texts_left": pending, "memory_count": watch.count}
                await self._report("memory:migration_paused", caller, **remaining, duration_seconds=watch.seconds)
                raise
            await self._storage.note_migration(begun=False)
            await self._report(
                "memory:migration_completed",
                caller,
                memory_count=built.memories,
                duration_seconds=watch.seconds,
                cost_usd=round(self._storage.embedding_cost() - charged, 6),
                backend=self._storage.backend,
            )
            return built

    @property
    def is_moving(self) -> bool:
        """True if an index is being built for this session."""
        return self._moving.is_taken

    async def rollback(self, caller: Caller) -> bool:
        """Answer from the files alone again; return False if that was so.

        Raises:
            BusyError: A task of another event loop is migrating this agent.
            ConfigurationError: This storage has nothing to go back to.
            StorageError: The switch could not be thrown.
        """
        async with self._moving.turn():
            changed = await self._storage.rollback()
            if changed:
                await self._rolled_back("requested", "file", caller)
            return changed

    async def close(self) -> None:
        """Stop a migration without a caller; the next session continues it."""
        if self._unasked is not None and self._unasked.get_loop() is asyncio.get_running_loop():
            self._unasked.cancel()
            await asyncio.gather(self._unasked, return_exceptions=True)

    async def _migrate_unasked(self, caller: Caller) -> None:
        try:
            await self.migrate(caller)
        except AgentMemoryError as error:  # reported by an event of its own, if it had begun
            log.warning("unasked_migration_ended", code=error.code, error=error.message)
        except Exception as error:  # noqa: BLE001 - logged like the others; no caller waits for it
            log.warning("unasked_migration_broke", error=type(error).__name__)

    async def _handle_failure(
        self, error: AgentMemoryError, before: str, watch: _MigrationProgress, caller: Caller
    ) -> None:
        log.warning("migration_failed", code=error.code, error=error.message)
        if not isinstance(error, BusyError):
            await self._storage.note_migration(begun=False)
        await self._report(
            "memory:migration_failed",
            caller,
            code=error.code,
            error=error.message,
            memories_processed=watch.done,
            total=watch.total,
            rolled_back=self._storage.backend == before,
        )
        if not isinstance(error, BusyError):
            await self._rolled_back("failed", before, caller)

    async def _rolled_back(self, reason: str, to: str, caller: Caller) -> None:
        ends = {"from_backend": "vector", "to_backend": to, "reason": reason}
        await self._report("memory:migration_rolled_back", caller, **ends)


class _MigrationProgress:
    """Reports the progress of a build as events.

    At most one per second and stage.
    """

    def __init__(self, report: Report, caller: Caller, further: Progress | None, total: int) -> None:
        self.done, self.total, self.count = 0, total, total
        self._report, self._caller, self._further = report, caller, further
        self._begun = time.monotonic()
        self._reported = ("", 0.0)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return round(time.monotonic() - self._begun, 3)

    async def __call__(self, stage: str, done: int, total: int) -> None:
        if stage == "load":
            self.done, self.total = done, total
        now = time.monotonic()
        if self._further is not None:
            await self._further(stage, done, total)
        if stage == self._reported[0] and now < self._reported[1] + _PROGRESS_SECONDS and done < total:
            return
        self._reported = (stage, now)
        await self._report(
            "memory:migration_progress",
            self._caller,
            stage=stage,
            memories_processed=done,
            total=total,
            percent_complete=round(100 * done / total, 1) if total else 100.0,
            elapsed_seconds=self.seconds,
        )
