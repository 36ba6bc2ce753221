"""`Monitor`: events, troubles, alerts and background work of one memory.

An event goes to the session of the caller, and to the audit log if it is a change.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.logs import get_logger
from agent_memory.memory.events import EVENTS, AuditLog, payload
from agent_memory.models import sees, to_text
from agent_memory.registry import load_handler
from agent_memory.store.protocols import Trouble

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from datetime import datetime

    from agent_memory.memory.caller import Caller, ProposalHolder
    from agent_memory.models import Clock, Memory, SearchResults
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.memory_storage import MemoryStorage

    Begin = Callable[[], Coroutine[Any, Any, object]]


log = get_logger(__name__)
_CHECK_INTERVAL: Final = timedelta(minutes=10)
"""Checks take some milliseconds, and a disk does not fill faster."""
_MAX_DURATIONS: Final = 200
_MIN_DURATIONS: Final = 20
"""Calls of a kind from which its durations are reported."""
_LEVELS: Final = frozenset({1, 2})
"""Levels of a check that are alerts: a warning, or critical."""
_MIGRATION: Final = "agent_memory.engines.backend_migration:Migration"
Watcher = Callable[[Collection[str], "Caller"], Awaitable[object]]
"""Removes memories from other files; gets the IDs of forgotten or reworded ones, and the session."""
Checks = Callable[["Caller"], Awaitable[Sequence[Any]]]
"""Returns check results; each `Check` of `care.checks` has a code, a level, a sentence and advice."""
_FIRST_ANSWER: Final = 0.25
"""Seconds within which a session is shown its scratchpad; reading everything would take the processor from it."""


class Monitor:
    """Observes one agent's memory in one session.

    Args:
        storage: Storage to observe.
        settings: Threshold of a migration.
        clock: Source of the present.
        audit: Log of changes; None for no log.

    Attributes:
        background: Work that is done after an answer.
    """

    def __init__(self, storage: MemoryStorage, settings: ServiceSettings, clock: Clock, audit: AuditLog | None) -> None:
        self._storage, self._settings, self._clock, self._audit = storage, settings, clock, audit
        self.background = BackgroundTasks()
        self._log_writes = BackgroundTasks()
        self._lines: dict[asyncio.AbstractEventLoop, list[tuple[str, Mapping[str, Any]]]] = {}
        self._audit_trouble: Trouble | None = None
        self._reported: dict[str, str] = {}  # component -> code of the trouble that was last reported as an event
        self._failures: dict[str, str] = {}  # component -> code of a failed call that was reported
        self._answered: str | None = None
        self._checks: Checks | None = None
        self._checked_at: datetime | None = None
        self._alerts: dict[str, Any] = {}
        self._durations: dict[str, deque[float]] = {}
        self._watchers: dict[str, Watcher] = {}
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._migration: Any = None
        self.recall: Callable[[Collection[str], Collection[str], Caller], Awaitable[list[str]]] | None = None
        self.proposals: ProposalHolder | None = None
        self.load_archived: Callable[[Collection[str]], Awaitable[list[Memory]]] | None = None

    # -- events -------------------------------------------------------------------------------------------------------

    async def report(self, event: str, caller: Caller, memory: Memory | None = None, /, **fields: Any) -> None:
        """Emit an event to the caller's session, and log a change.

        Args:
            event: Name of the event.
            caller: Session that caused it.
            memory: Memory that it is about, as it is now; for `Caller.on_event` alone.
            fields: Payload of the event.
        """
        common = {
            "agent_id": self._storage.agent_id, "session_id": caller.session_id, "timestamp": to_text(self._clock()),
        }  # fmt: skip
        data = payload(event, {**common, **fields})
        if self._audit is not None and EVENTS[event].audited:
            self._log_writes.run(self._log_change(self._audit, event, data, caller))
        if caller.on_event is not None:
            caller.on_event(event, data, memory)
        await caller.emit(event, data)

    async def report_stored(
        self,
        memory: Memory,
        redacted: Sequence[str],
        caller: Caller,
        *,
        is_in_pad: bool | None = None,
        backend: str | None = None,
    ) -> None:
        """Report that a memory was stored."""
        await self.report(
            "memory:stored",
            caller,
            memory,
            memory_id=memory.id,
            category=memory.category,
            tag_count=len(memory.tags),
            backend=backend or self._storage.backend,
            in_scratchpad=is_in_pad,
            supersedes=memory.supersedes,
            redacted=list(redacted),
        )

    async def report_changed(
        self,
        memory_id: str,
        fields: Sequence[str],
        redacted: Sequence[str],
        caller: Caller,
        memory: Memory | None = None,
    ) -> None:
        """Report that fields of a memory were changed."""
        names = {"fields": list(fields), "redacted": list(redacted)}
        await self.report("memory:updated", caller, memory, memory_id=memory_id, **names)

    async def settle(self) -> None:
        """Wait for work of this loop that follows an answer."""
        await self.background.settle()
        await self.flush_log()

    async def flush_log(self) -> None:
        """Wait until the audit log has the changes of this loop."""
        await self._log_writes.settle()

    async def _log_change(self, audit: AuditLog, event: str, data: Mapping[str, Any], caller: Caller) -> None:
        """Write a line of the audit log with others that wait.

        Raises:
            StorageError: It could not be written, which was reported.
        """
        loop = asyncio.get_running_loop()  # lines of another loop are its own, or those of a fork's parent
        self._lines.setdefault(loop, []).append((event, data))
        await asyncio.sleep(0)
        lines = self._lines.pop(loop, None)
        if lines is None:
            return  # another call wrote them
        try:
            await asyncio.to_thread(audit.append_all, lines)
        except StorageError as error:
            message = f"{error.message.rstrip('.')}, so changes are not noted in the audit log."
            self._audit_trouble = Trouble("audit", error.code, message, error.recovery)
            await self.report_troubles(caller)
            raise
        self._audit_trouble = None

    # -- troubles -----------------------------------------------------------------------------------------------------

    def list_troubles(self) -> list[Trouble]:
        """Return the parts that do not work now."""
        audit = [] if self._audit_trouble is None else [self._audit_trouble]
        return [*self._storage.troubles(), *audit]

    async def report_troubles(self, caller: Caller) -> Trouble | None:
        """Emit an event for each new trouble; return that of the embedder."""
        troubles = {trouble.component: trouble for trouble in self.list_troubles()}
        new = [trouble for name, trouble in troubles.items() if self._reported.get(name) != trouble.code]
        self._reported = {name: trouble.code for name, trouble in troubles.items()}
        for trouble in new:
            await self.emit_degraded(trouble.component, trouble.code, trouble.sentence.strip(), caller)
        return troubles.get("embedder")

    async def report_failure(self, component: str, code: str, message: str, caller: Caller) -> None:
        """Emit an event for a failure unless the last one was equal."""
        reported, self._failures[component] = self._failures.get(component), code
        if reported != code:
            await self.emit_degraded(component, code, message, caller)

    def clear_failure(self, component: str) -> None:
        """Note that a call worked: the next failure is reported again."""
        self._failures.pop(component, None)

    async def emit_degraded(self, component: str, code: str, message: str, caller: Caller) -> None:
        """Emit an event about a part that does not work."""
        await self.report("memory:degraded", caller, component=component, code=code, message=message)

    async def check_store(self, caller: Caller) -> str | None:
        """Return the reason for a missing embedding, once a session."""
        trouble = await self.report_troubles(caller)
        if trouble is None or trouble.code == self._answered:
            return None
        self._answered = trouble.code
        return trouble.sentence.strip()

    async def check_search(self, results: SearchResults, caller: Caller) -> str | None:
        """Return the reason for a degraded answer, or None.

        A lasting problem is reported once. The number of texts without a vector is reported with each answer: the next
        one may find more.
        """
        self.clear_failure("storage")
        await self.report_troubles(caller)
        trouble = self._reported.get("embedder") if results.degraded else None
        before, self._answered = self._answered, trouble
        return None if trouble is not None and trouble == before else results.degraded

    # -- alerts -------------------------------------------------------------------------------------------------------

    def set_checks(self, checks: Checks) -> None:
        """Set the checks that run every ten minutes of use."""
        self._checks = checks

    def note_duration(self, operation: str, milliseconds: float, caller: Caller) -> None:
        """Note the duration of a call; run due checks after the answer."""
        self._durations.setdefault(operation, deque(maxlen=_MAX_DURATIONS)).append(milliseconds)
        if self._is_due():
            self.background.run(self.list_alerts(caller))

    def list_durations(self) -> dict[str, list[float]]:
        """Return the milliseconds of the last calls of frequent operations, by name."""
        return {name: [*values] for name, values in self._durations.items() if len(values) >= _MIN_DURATIONS}

    async def list_alerts(self, caller: Caller) -> list[Mapping[str, str]]:
        """Return bad checks; run them before if they are due."""
        if self._checks is not None and self._is_due():
            await self._run_checks(self._checks, caller)
        return [_view(check) for check in self._alerts.values()]

    async def _run_checks(self, checks: Checks, caller: Caller) -> None:
        """Run the checks; emit an event for each that became worse."""
        self._checked_at = self._clock()
        alerts = {check.code: check for check in await checks(caller) if check.level in _LEVELS}
        before, self._alerts = self._alerts, alerts
        for code, check in alerts.items():
            if code not in before or check.level > before[code].level:
                await self.report("memory:alert", caller, **_view(check))

    def _is_due(self) -> bool:
        if self._checks is None:
            return False
        return self._checked_at is None or abs(self._clock() - self._checked_at) >= _CHECK_INTERVAL

    # -- forgotten texts in other files -------------------------------------------------------------------------------

    def add_watcher(self, name: str, watcher: Watcher, close: Callable[[], Awaitable[object]] | None = None) -> bool:
        """Add a watcher unless there is one of that name.

        Args:
            name: Name of the watcher.
            watcher: Called before the answer of a change that removes words of memories.
            close: Called when the service closes.

        Returns:
            True if it was added.
        """
        is_added = self._watchers.setdefault(name, watcher) is watcher
        if is_added and close is not None:
            self._closers.append(close)
        return is_added

    async def recall_archived(
        self, memory_ids: Collection[str], caller: Caller, *, sources: Collection[str] = ()
    ) -> list[str]:
        """Restore archived memories for a person's act; return their IDs.

        Args:
            memory_ids: IDs to restore; unknown ones are ignored.
            caller: Session that asks; a model's restores nothing.
            sources: IDs of records; memories that link to one are restored, too.

        Raises:
            StorageError: Not all were restored; none is lost.
        """
        if self.recall is None or caller.trust != "high":
            return []
        return await self.recall(memory_ids, sources, caller)

    async def find_archived(self, memory_ids: Collection[str], caller: Caller) -> list[Memory]:
        """Return archived memories with their older versions, for a person's act.

        Args:
            memory_ids: IDs of memories; unknown ones are ignored.
            caller: Session that asks; a model's gets none, and one of a group those that it sees.

        Raises:
            StorageError: The archive cannot be read.
        """
        if self.load_archived is None or caller.trust != "high":
            return []
        return [memory for memory in await self.load_archived(memory_ids) if sees(caller.group, memory.facets)]

    def remove_watcher(self, name: str) -> None:
        """Remove the watcher with this name."""
        self._watchers.pop(name, None)

    async def withdraw(self, record_ids: Collection[str], caller: Caller, *, is_strict: bool = False) -> None:
        """Withdraw what other files say of leaving or changed records.

        Args:
            record_ids: IDs of records of any kind.
            caller: Session that gets events.
            is_strict: True to raise an error unless a package is absent; otherwise it is logged, and the change
                remains.
        """
        for watcher in list(self._watchers.values()):
            try:
                await watcher(record_ids, caller)
            except AgentMemoryError as error:
                if is_strict and error.code != "package_absent":
                    raise
                log.warning("not_told_of_forgotten", error=error.message, code=error.code)

    # -- migration ----------------------------------------------------------------------------------------------------

    @property
    def migration(self) -> Any:
        """`engines.backend_migration.Migration` of the memory; loaded late."""
        if self._migration is None:
            self._migration = load_handler(_MIGRATION)(self._storage, self._settings, self.report)
        return self._migration

    @property
    def is_migrating(self) -> bool:
        """True if an index is being built for this session."""
        return self._migration is not None and bool(self._migration.is_moving)

    def check_size(self, caller: Caller) -> None:
        """Suggest or begin a migration of a large memory after the answer."""
        if self._settings.backend == "auto" and self._storage.can_migrate:
            self.background.run(self._check_size(caller))

    async def _check_size(self, caller: Caller) -> None:
        if self._migration is None:  # loads its module for large memories alone
            is_file = self._storage.backend == "file"
            if not is_file or await self._storage.count() < self._settings.migration_threshold:
                return
        await self.migration.look(caller)

    # -- end ----------------------------------------------------------------------------------------------------------

    async def stop_migration(self) -> None:
        """Stop a migration that no caller asked for."""
        if self._migration is not None:
            await self._migration.close()

    async def close_watchers(self) -> None:
        """Close the files of all watchers."""
        for close in self._closers:
            await close()


def _view(check: Any) -> dict[str, str]:
    return {
        "check": check.code, "level": check.level.name.lower(), "message": check.sentence, "advice": check.advice,
    }  # fmt: skip


class BackgroundTasks:
    """Tasks of one service, of any number of event loops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.TimerHandle] = set()  # one for each session that shares the service

    def after_first_answer(self, begin: Begin) -> None:
        """Run work soon after a session has seen its scratchpad."""

        def begin_now() -> None:
            self._waiting.discard(handle)
            self.run(begin())

        handle = asyncio.get_running_loop().call_later(_FIRST_ANSWER, begin_now)
        self._waiting.add(handle)

    def give_up(self) -> None:
        """Leave what has not begun."""
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Run work after the answer; log its failure."""
        task = asyncio.get_running_loop().create_task(_log_failure(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # a loop may end before its first step

    async def settle(self) -> None:
        """Wait for the work in this loop.

        Tasks of another loop belong to the process that this one was forked from, or ended with their loop.
        """
        loop = asyncio.get_running_loop()
        while mine := {task for task in self._tasks if task.get_loop() is loop}:
            await asyncio.gather(*mine, return_exceptions=True)
            # Their callbacks may not have run: since Python 3.12 waiting for what is done does not yield.
            self._tasks -= mine


async def _log_failure(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
