"""`MemorySession`: what the three modules of one session share. Its settings, its agent, its service, its turn.

The seam to the host: the only place that touches a coordinator beyond mounting.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, ConfigurationError, IdentityError, StorageError
from agent_memory.host.identity import (
    Configured,
    SessionMemory,
    activation,
    configured,
    is_switched_off,
    named_in,
    write_activation,
)
from agent_memory.host.registry import SERVICES, Key
from agent_memory.host.turn import Turn, text_of
from agent_memory.logs import get_logger
from agent_memory.models import to_text, utc_now
from agent_memory.service import EVENTS, Caller, MemoryService
from agent_memory.service.events import payload
from agent_memory.settings import SettingsT, merge_shared, parse_module_config
from agent_memory.storage import folder_of
from agent_memory.storage.folder import root_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

CAPABILITY: Final = "agent_memory.session"
SERVICE_CAPABILITY: Final = "agent_memory.service"
_EARLY: Final = -1000
"""Hook priority: before any hook that asks what turn it is."""


class MemorySession:
    """The memory of one session, or of one sub-session.

    Get it with `MemorySession.of(coordinator)`; each module does so in `mount` and returns `farewell()` as its cleanup.
    Nothing on disk is touched before the first use of `service` or `require`.

    Attributes:
        turn: The turn under way.
        warnings: Unknown settings and the like, for `memory_status`.
        problem: Why memory cannot work in this session, or None.
    """

    def __init__(self, coordinator: Any) -> None:
        self.session_id: str = coordinator.session_id
        self.parent_id: str | None = coordinator.parent_id
        self.root_id: str = _ROOTS.get(self.parent_id, self.parent_id) if self.parent_id else self.session_id
        self.turn = Turn()
        self.warnings: list[str] = []
        self.problem: AgentMemoryError | None = None
        self.caller = Caller(self.session_id, self.emit)
        self._coordinator = coordinator
        self._shared: dict[str, dict[str, Any]] = {}
        self._untrusted: tuple[str, ...] = ()
        self._activated: str | None = None
        self._recalled = False
        self._opened: tuple[Key, MemoryService] | None = None
        self._users = 0
        self._opening = asyncio.Lock()
        self._undo: list[Callable[[], None]] = []

    @classmethod
    def of(cls, coordinator: Any) -> MemorySession:
        """Return the session's `MemorySession`, creating it for the first module that asks; counts its users."""
        session = coordinator.get_capability(CAPABILITY)
        if not isinstance(session, cls):
            session = cls(coordinator)
            coordinator.register_capability(CAPABILITY, session)
        if not session._users:
            session._listen()
        session._users += 1
        return session

    @property
    def is_child(self) -> bool:
        """Whether this is a sub-session."""
        return self.parent_id is not None

    @property
    def is_switched_off(self) -> bool:
        """Whether the configuration says in clear words that there is to be no memory."""
        return is_switched_off(self._coordinator)

    # -- settings -----------------------------------------------------------------------------------------------------

    def configure(self, module: str, own: type[SettingsT], raw: Any) -> SettingsT | None:
        """Take over a module's configuration; on a wrong value return None and keep the reason in `problem`."""
        try:
            settings, shared, warnings = parse_module_config(module, own, raw)
            merge_shared({**self._shared, module: shared}, partial=True)
        except AgentMemoryError as error:
            log.warning_once("memory_disabled", module=module, code=error.code, error=error.message)
            self.problem = self.problem or error
            return None
        self._shared[module] = shared
        self._warn(warnings)
        return settings

    def _warn(self, warnings: Iterable[str]) -> None:
        """Keep what a person should know of the configuration for `memory_status`, and log it."""
        for warning in warnings:
            if warning not in self.warnings:
                self.warnings.append(warning)
                log.warning_once("setting_not_understood", warning=warning)

    def distrust(self, tool_patterns: tuple[str, ...]) -> None:
        """Name the tools (`fnmatch` patterns) whose output makes a turn untrusted."""
        self._untrusted = tool_patterns

    @property
    def settings(self) -> ServiceSettings:
        """The service's settings, as given to all modules so far."""
        return merge_shared(self._shared, partial=True)

    # -- identity -----------------------------------------------------------------------------------------------------

    def identity(self) -> Configured:
        """Return the agent of this session now, and whether memory is wanted.

        Raises:
            ValidationError: The configured name cannot name an agent.
        """
        root = _SESSIONS.get(self.root_id)
        if root is not None and root is not self:
            return root.identity()
        found = configured(self._coordinator, self.settings.agent_id)
        self._warn(found.warnings)
        if not self._recalled and self._is_resumed():
            self._recalled = True
            self._activated = SessionMemory(root_of(self.settings.storage_root)).recall(self.session_id)
        activated = self._activated or activation(self._coordinator)
        return Configured(activated, enabled=True, mode=found.mode) if activated else found

    async def activate(self, agent_id: str) -> tuple[str, str | None]:
        """Make this session use the memory of `agent_id`; return its name as on disk, and the agent before.

        Allowed if no agent is set, or if the user named the agent in this turn: a page that was read must not move an
        agent into another's memory.

        Raises:
            IdentityError: In a child session, or because the user has to say it (`needs_user`).
            ValidationError: The name cannot name an agent.
            StorageError: The agent's folder cannot be used.
        """
        self._check_settings()
        if self.is_child:
            raise IdentityError(
                "A sub-session has the memory of the session that started it.",
                code="child_session",
                recovery="Activate an agent in the main session.",
            )
        before = self.identity()
        current = before.agent_id if before.enabled else None
        name = folder_of(agent_id, self.settings.storage_root).agent_id
        may_choose = current is None and before.enabled
        is_active = current is not None and name.lower() == current.lower()
        if not is_active and not may_choose and not named_in(name, self.turn.prompt):
            raise IdentityError(
                f"{'The memory of ' + current + ' is active' if current else 'Memory is switched off'} "
                f"and the user has not asked for {name} in this turn.",
                code="needs_user",
                recovery=f"Ask the user to say: start as {name} with memory enabled.",
            )
        if not is_active:
            await self._switch_to(name, current)
        return name, current

    async def _switch_to(self, name: str, previous: str | None) -> None:
        await self._close_service()
        self._activated = name
        write_activation(self._coordinator, name)
        root = root_of(self.settings.storage_root)
        try:
            await asyncio.to_thread(SessionMemory(root).remember, self.session_id, name)
        except StorageError as error:  # what can only be read is read: no more is lost than the name at a resume
            log.warning("activation_not_remembered", code=error.code, error=error.message)
        service = await self.require()
        await service.report("memory:activated", self.caller, previous=previous, reason="tool")

    # -- service ------------------------------------------------------------------------------------------------------

    async def require(self) -> MemoryService:
        """Return the service.

        Raises:
            ConfigurationError: The settings are wrong, or no agent is active; the recovery says how to switch it on.
            AgentMemoryError: The memory cannot be opened.
        """
        self._check_settings()
        identity = self.identity()
        if identity.agent_id is None or not identity.enabled:
            raise _off(identity)
        async with self._opening:
            if self._opened is None or self._opened[1].agent_id.lower() != identity.agent_id.lower():
                await self._close_service()
                self._opened = SERVICES.acquire(self.root_id, identity.agent_id, self.settings)
                self._coordinator.register_capability(SERVICE_CAPABILITY, self._opened[1])
                self._opened[1].warm_up()
        return self._opened[1]

    def _check_settings(self) -> None:
        if self.problem is not None:
            raise ConfigurationError(self.problem.message, code=self.problem.code, recovery=self.problem.recovery)
        merge_shared(self._shared)  # all modules have spoken by now: do their values fit together?

    async def service(self) -> MemoryService | None:
        """Return the service, or None if memory is off or cannot be opened (which is reported once)."""
        try:
            return await self.require()
        except IdentityError:
            return None
        except AgentMemoryError as error:
            if self.problem is None:
                self.problem = error
                await self.degraded("storage", error)
            return None

    async def degraded(self, component: str, error: AgentMemoryError) -> None:
        """Tell, by event and log, that something does not work."""
        log.warning("memory_degraded", component=component, code=error.code, error=error.message)
        fields = {"component": component, "code": error.code, "message": error.message}
        common = {"session_id": self.session_id, "timestamp": to_text(utc_now())}
        await self.emit("memory:degraded", payload("memory:degraded", {**fields, **common}))

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        """Emit an event to this session's hooks. A host that refuses it costs a log line, never the caller's work."""
        try:
            await self._coordinator.hooks.emit(event, data)
        except Exception as error:  # noqa: BLE001 - whatever a host raises, memory must not fail because of it
            log.warning("event_not_emitted", name=event, error=type(error).__name__)

    def farewell(self) -> Callable[[], Awaitable[None]]:
        """Return a module's cleanup: gives its share back, once, however often it is called."""
        left = False

        async def leave() -> None:
            nonlocal left
            if not left:
                left = True
                await self.release()

        return leave

    async def release(self) -> None:
        """Let go of one module's share; the last one closes what is open."""
        self._users = max(0, self._users - 1)
        if self._users:
            return
        for undo in self._undo:
            undo()
        self._undo = []
        _ROOTS.pop(self.session_id, None)
        if _SESSIONS.get(self.session_id) is self:
            del _SESSIONS[self.session_id]
        if activation(self._coordinator) is not None:
            write_activation(self._coordinator, None)
        await self._close_service()

    async def _close_service(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await SERVICES.release(opened[0])

    # -- the host's events --------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        _ROOTS[self.session_id] = self.root_id
        if not self.is_child:
            _SESSIONS[self.session_id] = self
        elif (inherited := activation(self._coordinator)) is not None:
            write_activation(self._coordinator, inherited)  # for grandchildren in other processes
        # Once for the three modules: a logger that follows the declarations would write an event once for each.
        self._coordinator.register_contributor("observability.events", "agent-memory", lambda: list(EVENTS))
        register = self._coordinator.hooks.register
        self._undo = [
            register("prompt:submit", self._on_prompt, priority=_EARLY, name="agent-memory-turn"),
            register("tool:post", self._on_tool, priority=_EARLY, name="agent-memory-trust"),
        ]

    async def _on_prompt(self, _event: str, data: dict[str, Any]) -> None:
        self.turn.begin("" if self.is_child else text_of(data, "prompt"))

    async def _on_tool(self, _event: str, data: dict[str, Any]) -> None:
        self.turn.note_tool(text_of(data, "tool_name"), self._untrusted)

    def _is_resumed(self) -> bool:
        return bool(getattr(getattr(self._coordinator, "session", None), "is_resumed", False))


def _off(identity: Configured) -> IdentityError:
    """Return why memory is off, and what switches it on."""
    if identity.enabled:
        return IdentityError("Memory is off in this session: no agent is active.")
    name = identity.agent_id or "NAME"
    return IdentityError(
        " ".join(["Memory is off in this session: it is switched off in the configuration.", *identity.warnings]),
        recovery=f"Set enabled to true under session.capabilities.memory of the configuration, or have the user say: "
        f"start as {name} with memory enabled.",
    )


_ROOTS: Final[dict[str, str]] = {}
"""Session id to root session id, of the sessions alive in this process."""
_SESSIONS: Final[dict[str, MemorySession]] = {}
"""Root sessions alive in this process, by id: where children find the agent that was activated."""
