"""`Desk`: the workspace of a session, opened when first asked for, and the one claim the session holds there."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import agent_memory.workspace as workspaces
from agent_memory.errors import AgentMemoryError, ConfigurationError
from agent_memory.logs import get_logger
from agent_memory.models.clock import to_text, utc_now
from agent_memory.settings import build_settings, did_you_mean
from agent_memory.workspace.tool_settings import WorkspaceToolSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.integrations.amplifier import Taint
    from agent_memory.workspace import Toolset, Workspace
    from agent_memory.workspace.toolset import Offer, Tool

MODULE_ID: Final = "tool-memory-workspace"
LOW_TRUST_ROW: Final = "a row of low trust"
"""What brings a stranger's words back that a row of the workspace holds."""

log = get_logger(__name__)


class Desk:
    """What the tools of one session share. Nothing is opened before the first call.

    Args:
        coordinator: The host's, of this session.
        config: The module's configuration.
        taint: Whether a stranger's text is in the conversation; shared by the sessions of one root.

    Attributes:
        problem: Why the workspace cannot be used in this session, or None.
    """

    def __init__(self, coordinator: Any, config: Any, taint: Taint) -> None:
        self.problem: AgentMemoryError | None = None
        self._coordinator = coordinator
        self._taint = taint
        self._settings = WorkspaceToolSettings()
        self._opening: asyncio.Task[tuple[Workspace, Toolset]] | None = None
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        try:
            self._settings = _settings(config)
        except AgentMemoryError as error:
            self.problem = error

    def tools(self) -> Mapping[str, Tool]:
        """Return the tools to offer, by name; none where there is a problem. Reads the declaration; blocks."""
        if self.problem is None:
            try:
                declaration = workspaces.read_declaration(self._folder() / workspaces.DECLARATION)
                return self._offer().choose(declaration)
            except AgentMemoryError as error:
                self.problem = error
        return {}

    async def call(self, name: str, given: Any) -> dict[str, Any]:
        """Call a tool, and tell the session's hooks what was changed.

        Raises:
            AgentMemoryError: It could not be done, or the workspace cannot be opened.
        """
        if self.problem is not None:
            # Not when it is mounted: the host mounts it on a mock first, which does not know where the session works.
            log.warning_once("workspace_disabled", module=MODULE_ID, code=self.problem.code, error=self.problem.message)
            raise ConfigurationError(self.problem.message, code=self.problem.code, recovery=self.problem.recovery)
        _, toolset = await self._opened()
        try:
            return await asyncio.to_thread(toolset.call, name, given)
        finally:
            if toolset.session.low_seen:  # also where the call failed: it may have read a row before
                self._taint.note(LOW_TRUST_ROW)
            await self._emit()

    async def close(self) -> None:
        """Give an unfinished step back and close what was opened; twice does nothing more."""
        opening, self._opening = self._opening, None
        if opening is None:
            return
        with contextlib.suppress(AgentMemoryError):  # it was told when it failed
            workspace, toolset = await opening
            await asyncio.to_thread(toolset.close)
            await asyncio.to_thread(workspace.close)
            await self._emit()

    async def _opened(self) -> tuple[Workspace, Toolset]:
        """Return the workspace and its tools; one call opens them, others wait, and a failure is tried again."""
        if self._opening is None:
            self._opening = asyncio.create_task(asyncio.to_thread(self._open))
        opening = self._opening
        try:
            return await asyncio.shield(opening)  # a call that is cancelled leaves it to those that wait
        finally:
            if opening.done() and (opening.cancelled() or opening.exception()) and self._opening is opening:
                self._opening = None

    def _open(self) -> tuple[Workspace, Toolset]:
        workspace = workspaces.Workspace.open(
            self._folder(),
            url=os.environ.get(workspaces.URL_VARIABLE) or None,
            on_event=lambda event, data: self._events.append((event, data)),
        )
        try:
            owner = str(self._coordinator.session_id)
            tools = workspaces.Toolset(
                workspace,
                owner,
                agent=self._settings.agent,
                offer=self._offer(),
                knows_strangers=lambda: self._taint.by is not None,
            )
        except BaseException:
            workspace.close()
            raise
        return workspace, tools

    def _offer(self) -> Offer:
        return workspaces.Offer(self._settings.tools, self._settings.tables)

    def _folder(self) -> Path:
        """Return the folder of the workspace; without a setting, the one that the session works in.

        Raises:
            ConfigurationError: The session works in none.
        """
        here = Path(self._coordinator.get_capability("session.working_dir") or Path.cwd())
        if self._settings.workspace is None:
            return workspaces.found_from(here)
        return here / Path(self._settings.workspace).expanduser()

    async def _emit(self) -> None:
        """Tell the hooks what was changed. A host that refuses it costs a log line, never the caller's work."""
        while self._events:
            event, data = self._events.popleft()
            common = {"session_id": self._coordinator.session_id, "timestamp": to_text(utc_now())}
            try:
                await self._coordinator.hooks.emit(event, {**data, **common})
            except Exception as error:  # noqa: BLE001 - whatever a host raises, what was written is written
                log.warning("event_not_emitted", name=event, error=type(error).__name__)


def _settings(config: Any) -> WorkspaceToolSettings:
    """Return the settings; unknown ones are logged.

    Raises:
        ConfigurationError: A value is wrong.
    """
    if config is not None and not hasattr(config, "items"):
        raise ConfigurationError(f"The configuration of {MODULE_ID} is not a mapping of keys to values.")
    known = WorkspaceToolSettings.model_fields
    given = {str(key): value for key, value in (config or {}).items() if value is not None}
    for key in given.keys() - known.keys():
        warning = f"{MODULE_ID}: unknown setting {key!r} is ignored{did_you_mean(key, known)}"
        log.warning_once("setting_not_understood", warning=warning)
    own = {key: value for key, value in given.items() if key in known}
    return build_settings(MODULE_ID, WorkspaceToolSettings, own)
