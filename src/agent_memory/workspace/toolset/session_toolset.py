"""Tools and events of a workspace for one asynchronous session."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

import agent_memory.workspace as workspaces
from agent_memory.errors import AgentMemoryError, ConfigurationError
from agent_memory.logs import get_logger
from agent_memory.memory.events import EventSpec
from agent_memory.models.clock import to_text, utc_now
from agent_memory.models.text import visible_values
from agent_memory.settings import Settings
from agent_memory.workspace.declaration.model import DEFAULT_TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent_memory.workspace import Offer, Toolset, Workspace
    from agent_memory.workspace.toolset.tool import Tool

COMMON: Final = {
    "workspace": "name of the workspace",
    "agent": "agent that made the change; null for a person or a driver",
    "session_id": "ID of the session",
    "timestamp": "time of the event: ISO 8601, UTC",
}
"""Fields of all events. The Amplifier module adds the last two."""

_ATTEMPT: Final = {
    "step": "step as phase/agent/key; null for a row",
    "attempt": "number of the attempt, from 1; 0 for a row",
}

EVENTS: Final = {
    spec.name: spec
    for spec in (
        EventSpec(
            "workspace:row_saved",
            "A row was added.",
            {
                "table": "table of the row",
                "row_id": "ID of the row",
                "proposal": "true if another row has the same unique value",
            },
        ),
        EventSpec("workspace:rows_saved", "Rows were added at once.", {}),
        EventSpec(
            "workspace:row_updated",
            "A row was changed.",
            {"table": "table of the row", "row_id": "ID of the row", "columns": "names of the written columns"},
        ),
        EventSpec("workspace:claimed", "A step was claimed.", {**_ATTEMPT, "owner": "name of the worker"}),
        EventSpec(
            "workspace:finished",
            "A step is done.",
            {**_ATTEMPT, "phase_done": "phase, if it is done too"},
        ),
        EventSpec("workspace:released", "A claim was released; the writes of the attempt are undone.", _ATTEMPT),
        EventSpec(
            "workspace:failed",
            "An attempt failed; its writes are undone.",
            {**_ATTEMPT, "kind": "transient, validation or quality", "left": "number of remaining attempts"},
        ),
        EventSpec(
            "workspace:snapshot_failed",
            "A phase is done, but its snapshot could not be made yet.",
            {"phase": "name of the phase", "code": "error code"},
        ),
        EventSpec(
            "workspace:dump_failed",
            "A snapshot is made, but the copy of the database could not be written.",
            {"snapshot": "name of the snapshot", "code": "error code"},
        ),
        EventSpec(
            "workspace:validated",
            "A finished step was validated.",
            {"step": "step as phase/agent/key", "passed": "true if the step stays done"},
        ),
    )
}

LOW_TRUST_ROW: Final = "a row of low trust"
"""Source of untrusted text when a tool shows such a row."""

log = get_logger(__name__)


class SessionToolset:
    """Tools of one session. The workspace is opened at the first call.

    Args:
        session_id: ID of the session, which owns the claims.
        load_settings: Returns the settings; raises AgentMemoryError if they are wrong.
        get_working_folder: Returns the folder that the session works in.
        emit: Sends an event to the session; must not raise.
        has_untrusted_text: Returns True if untrusted text is in the conversation.
        note_untrusted_text: Notes what brought untrusted text into the conversation.

    Attributes:
        problem: Why the workspace cannot be used, or None.
    """

    def __init__(
        self,
        session_id: str,
        load_settings: Callable[[], WorkspaceToolSettings],
        get_working_folder: Callable[[], Path],
        emit: Callable[[str, dict[str, Any]], Awaitable[None]],
        has_untrusted_text: Callable[[], bool],
        note_untrusted_text: Callable[[str], None],
    ) -> None:
        self.problem: AgentMemoryError | None = None
        self._session_id, self._get_working_folder, self._emit = session_id, get_working_folder, emit
        self._has_untrusted_text, self._note_untrusted_text = has_untrusted_text, note_untrusted_text
        self._settings: WorkspaceToolSettings | None = None
        self._opening: asyncio.Task[tuple[Workspace, Toolset]] | None = None
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        try:
            self._settings = load_settings()
        except AgentMemoryError as error:
            self.problem = error

    def list_tools(self) -> Mapping[str, Tool]:
        """Return the tools to offer by name; none after a problem.

        Reads the declaration, and blocks.
        """
        if self._settings is not None:
            try:
                declaration = workspaces.read_declaration(self._find_folder(self._settings) / workspaces.DECLARATION)
                return self._build_offer(self._settings).choose(declaration)
            except AgentMemoryError as error:
                self.problem = error
        return {}

    async def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Call a tool, and emit what it changed.

        Args:
            name: Name of the tool.
            arguments: Arguments of a model, valid or not.

        Raises:
            AgentMemoryError: The call failed, or the workspace cannot be opened.
        """
        if self.problem is not None:
            # Not when it is mounted: the host mounts it on a mock first, which does not know where the session works.
            log.warning_once("workspace_disabled", code=self.problem.code, error=self.problem.message)
            raise ConfigurationError(self.problem.message, code=self.problem.code, recovery=self.problem.recovery)
        _, toolset = await self._ensure_open()
        try:
            answer: dict[str, Any] = visible_values(await asyncio.to_thread(toolset.call, name, arguments))
            return answer
        finally:
            if toolset.session.low_seen:  # also after a failure: the call may have read a row before
                self._note_untrusted_text(LOW_TRUST_ROW)
            await self._emit_events()

    async def close(self) -> None:
        """Release an unfinished step and close the workspace.

        May be called more than once.
        """
        opening, self._opening = self._opening, None
        if opening is None:
            return
        with contextlib.suppress(AgentMemoryError):  # the call that failed reported it
            workspace, toolset = await opening
            await asyncio.to_thread(toolset.close)
            await asyncio.to_thread(workspace.close)
            await self._emit_events()

    async def _ensure_open(self) -> tuple[Workspace, Toolset]:
        """Return workspace and tools.

        One call opens them, others wait for it, and the next call tries again after a failure.
        """
        if self._opening is None:
            self._opening = asyncio.create_task(asyncio.to_thread(self._open))
        opening = self._opening
        try:
            return await asyncio.shield(opening)  # a cancelled call leaves it to those that wait
        finally:
            if opening.done() and (opening.cancelled() or opening.exception()) and self._opening is opening:
                self._opening = None

    def _open(self) -> tuple[Workspace, Toolset]:
        settings = self._settings
        assert settings is not None  # else there is a problem, and no call comes here
        workspace = workspaces.Workspace.open(
            self._find_folder(settings),
            url=os.environ.get(workspaces.URL_VARIABLE) or None,
            on_event=lambda event, data: self._events.append((event, data)),
        )
        try:
            toolset = workspaces.Toolset(
                workspace,
                self._session_id,
                agent=settings.agent,
                offer=self._build_offer(settings),
                knows_strangers=self._has_untrusted_text,
            )
        except BaseException:
            workspace.close()
            raise
        return workspace, toolset

    def _build_offer(self, settings: WorkspaceToolSettings) -> Offer:
        return workspaces.Offer(settings.tools, settings.tables)

    def _find_folder(self, settings: WorkspaceToolSettings) -> Path:
        """Return the folder of the workspace.

        Without a setting it is the folder that the session works in.

        Raises:
            ConfigurationError: The session works in none.
        """
        working_folder = self._get_working_folder()
        if settings.workspace is None:
            return workspaces.found_from(working_folder)
        return working_folder / Path(settings.workspace).expanduser()

    async def _emit_events(self) -> None:
        while self._events:
            event, data = self._events.popleft()
            await self._emit(event, {**data, "session_id": self._session_id, "timestamp": to_text(utc_now())})


class WorkspaceToolSettings(Settings):
    """Of `tool-memory-workspace` alone."""

    workspace: str | None = Field(
        default=None,
        min_length=1,
        description="Folder of the workspace, absolute or from where the session works; left out, the one that the "
        "session works in.",
    )
    agent: str | None = Field(
        default=None,
        pattern=r"^[\w.@-]{1,100}$",
        description="The agent of the workspace that the session is: it takes steps of this one alone. Left out, it is "
        "whichever agent the step is for that it claims.",
    )
    tools: tuple[str, ...] = Field(
        default=DEFAULT_TOOLS,
        description="Allow-list: the tools to offer, by name or by patterns such as `get_*`.",
    )
    tables: tuple[str, ...] | None = Field(
        default=None,
        description="The tables that `get_row`, `list_rows`, `search_rows`, `save_row` and `update_row` know; all when "
        "left out.",
    )
