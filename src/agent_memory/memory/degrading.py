"""What works less well than it could, reported once: in an answer, as an event, and in the status."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.store.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.memory.audit import AuditLog
    from agent_memory.memory.caller import Caller, Report
    from agent_memory.models import SearchResults
    from agent_memory.store.memory_storage import MemoryStorage


class Degradation:
    """The troubles of one agent's memory in one session.

    Args:
        storage: What may be in trouble.
        report: Sends events.
    """

    def __init__(self, storage: MemoryStorage, report: Report) -> None:
        self._storage = storage
        self._report = report
        self._known: dict[str, str] = {}  # component -> code of what was last reported as an event
        self._begun: dict[str, str] = {}  # component -> code of a failed call that was reported
        self._answered: str | None = None
        self._audit: Trouble | None = None
        self._notes: dict[asyncio.AbstractEventLoop, list[tuple[str, Mapping[str, Any]]]] = {}

    def troubles(self) -> list[Trouble]:
        """Return what does not work now."""
        return [*self._storage.troubles(), *([self._audit] if self._audit is not None else [])]

    async def look(self, caller: Caller) -> None:
        """Emit an event for what has gone wrong since the last look; what works again may be reported again later."""
        now = {trouble.component: trouble for trouble in self.troubles()}
        news = [trouble for name, trouble in now.items() if self._known.get(name) != trouble.code]
        self._known = {name: trouble.code for name, trouble in now.items()}
        for trouble in news:
            await self._emit(trouble.component, trouble.code, trouble.sentence.strip(), caller)

    async def failed(self, component: str, code: str, message: str, caller: Caller) -> None:
        """Emit an event: a call failed in part. None, if the call before failed in the same way."""
        reported, self._begun[component] = self._begun.get(component), code
        if reported != code:
            await self._emit(component, code, message, caller)

    async def _emit(self, component: str, code: str, message: str, caller: Caller) -> None:
        await self._report("memory:degraded", caller, component=component, code=code, message=message)

    def worked(self, component: str) -> None:
        """Note that a call did not fail: the next failure is reported again."""
        self._begun.pop(component, None)

    async def after_store(self, caller: Caller) -> str | None:
        """Return why what was stored cannot be found by its embedding, unless the session has been informed."""
        await self.look(caller)
        trouble = next((each for each in self._storage.troubles() if each.component == "embedder"), None)
        if trouble is None or trouble.code == self._answered:
            return None
        self._answered = trouble.code
        return trouble.sentence.strip()

    async def after_search(self, results: SearchResults, caller: Caller) -> str | None:
        """Return the reason for a degraded answer, or None.

        A lasting problem is reported once. The number of texts without a vector is reported with each answer: the next
        one may find more.
        """
        self.worked("storage")
        await self.look(caller)
        trouble = self._known.get("embedder") if results.degraded else None
        before, self._answered = self._answered, trouble
        return None if trouble is not None and trouble == before else results.degraded

    async def note(self, audit: AuditLog, event: str, data: Mapping[str, Any], caller: Caller) -> None:
        """Write a line of the audit log, together with those that come in the same turn of the event loop.

        Raises:
            StorageError: It could not be written, which was reported.
        """
        loop = asyncio.get_running_loop()  # lines that wait in another are that one's, or of a fork's parent
        self._notes.setdefault(loop, []).append((event, data))
        await asyncio.sleep(0)
        notes = self._notes.pop(loop, None)
        if notes is None:
            return  # they went with those of another
        try:
            await asyncio.to_thread(audit.append_all, notes)
        except StorageError as error:
            message = f"{error.message.rstrip('.')}, so changes are not noted in the audit log."
            self._audit = Trouble("audit", error.code, message, error.recovery)
            await self.look(caller)
            raise
        self._audit = None
