"""`MemorySession`: what the three modules of one session share. Its settings, its agent, its service, its turn.

The seam to the host: the only place that touches a coordinator beyond mounting.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import is_wished
from agent_memory.errors import AgentMemoryError, ConfigurationError, IdentityError
from agent_memory.files.layout import agents_under, root_of
from agent_memory.host.identity import (
    Activated,
    Configured,
    activation,
    configured,
    delegate_name,
    is_switched_off,
    named,
    write_activation,
)
from agent_memory.host.model_writes import ModelWrites
from agent_memory.host.notes import Note, SessionMemory
from agent_memory.host.refusals import child_session, ineffective, memory_off, not_wished
from agent_memory.host.registry import SERVICES, Key, once
from agent_memory.host.strangers import Strangers, Taint, calls_in
from agent_memory.host.turn import TurnState, text_of
from agent_memory.logs import get_logger
from agent_memory.models import to_text, utc_now
from agent_memory.service import EVENTS, Caller, MemoryService
from agent_memory.service.events import payload
from agent_memory.settings import SettingsT, ToolSettings, merge_shared, parse_module_config
from agent_memory.storage import folder_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from agent_memory.models import Memory
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
        taint: Whether a stranger's text is in the conversation, of this session or of another of the same root.
        model_writes: When the model may have written scratchpad.yaml; shared by the sessions of one root, too.
        warnings: Unknown settings and the like, for `memory_status`.
        problem: Why memory cannot work in this session, or None.
    """

    def __init__(self, coordinator: Any) -> None:
        self.session_id: str = coordinator.session_id
        self.parent_id: str | None = coordinator.parent_id
        self.root_id: str = _ROOTS.get(self.parent_id, self.parent_id) if self.parent_id else self.session_id
        self.turn = TurnState()
        self._root: MemorySession | None = _SESSIONS.get(self.root_id) if self.is_child else None
        self.taint: Taint = self._root.taint if self._root else Taint()
        self.model_writes: ModelWrites = self._root.model_writes if self._root else ModelWrites()
        self.warnings: list[str] = []
        self.problem: AgentMemoryError | None = None
        self._coordinator = coordinator
        self._shared: dict[str, dict[str, Any]] = {}
        self._strangers = Strangers(ToolSettings().low_trust_tools, ToolSettings().trusted_tools)
        self._activated: str | None = None
        self._recalled = False
        self._said_whose = False
        self._background: set[asyncio.Task[None]] = set()
        self._opened: tuple[Key, MemoryService] | None = None
        self._users = 0
        self._opening, self._noting = asyncio.Lock(), asyncio.Lock()
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
        self.model_writes.watch(self.settings.storage_root)
        self.warn(warnings)
        return settings

    def warn(self, warnings: Iterable[str]) -> None:
        """Keep what a person should know of the configuration for `memory_status`, and log it."""
        for warning in warnings:
            if warning not in self.warnings:
                self.warnings.append(warning)
                log.warning_once("setting_not_understood", warning=warning)

    def distrust(self, tool_patterns: Iterable[str], trusted: Iterable[str] = ()) -> None:
        """Name the tools (`fnmatch` patterns) whose output is a stranger's words, and those that look like it."""
        self._strangers = Strangers(tool_patterns, trusted)

    @property
    def settings(self) -> ServiceSettings:
        """The service's settings, as given to all modules so far."""
        return merge_shared(self._shared, partial=True)

    # -- trust --------------------------------------------------------------------------------------------------------

    @property
    def caller(self) -> Caller:
        """This session as the service's caller: whose words it brings now, and what the user typed in this turn."""
        turn = (self._root or self).turn
        return Caller(self.session_id, self.emit, "low" if self.taint.by else "medium", turn.prompt, turn.shown_before)

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Note what our tools showed the model; a memory of low trust brings its stranger's words back."""
        memories = list(memories)
        self.turn.note_returned(memories)
        if self._root is not None:
            self._root.turn.shown |= {memory.id for memory in memories}
        if any(memory.trust == "low" for memory in memories):
            self.taint.note("a memory of low trust")

    def _keep_note(self) -> None:
        """Have it remembered for a resume, behind the conversation; nothing is written while memory is off."""
        with contextlib.suppress(AgentMemoryError):
            identity = self.identity()
            if identity.enabled and identity.agent_id is not None:
                task = asyncio.get_running_loop().create_task(self._remember())
                self._background.add(task)
                task.add_done_callback(self._background.discard)

    async def _remember(self) -> None:
        try:
            root = root_of(self.settings.storage_root)
            async with self._noting:  # the note is made when it is its turn: none is written after a newer one
                note = Note(self._activated, is_tainted=self.taint.by is not None)
                await asyncio.to_thread(SessionMemory(root).remember, self.session_id, note)
        except AgentMemoryError as error:  # what can only be read is read: no more is lost than the note at a resume
            log.warning("session_not_remembered", code=error.code, error=error.message)

    def _recall(self) -> None:
        """Take over, once, what was kept of this session before a resume."""
        if self._recalled or not self._is_resumed():
            return
        self._recalled = True
        note = SessionMemory(root_of(self.settings.storage_root)).recall(self.session_id)
        self._activated = note.agent_id
        if note.is_tainted:  # as noted: there is nothing to note anew
            self.taint.by = self.taint.by or "what was read before the resume"

    # -- identity -----------------------------------------------------------------------------------------------------

    def identity(self) -> Configured:
        """Return the agent of this session now, and whether memory is wanted.

        Raises:
            ValidationError: The configured name cannot name an agent.
        """
        if self._root is not None:
            self._warn_of_own_identity(self._root)
            return self._root.identity()
        found = configured(self._coordinator, self.settings.agent_id)
        self.warn(found.warnings)
        self._recall()
        activated = self._activated or activation(self._coordinator)
        return Configured(activated, enabled=True, mode=found.mode) if activated and found.enabled else found

    def _warn_of_own_identity(self, root: MemorySession) -> None:
        """Say once that a sub-agent was given an agent of its own, and that this has no effect."""
        if not self._said_whose:
            self._said_whose = True
            own = configured(self._coordinator, self.settings.agent_id).agent_id
            if warning := ineffective(own, root.named(), delegate_name(self._coordinator)):
                for session in (self, root):
                    session.warn([warning])

    def named(self) -> list[str]:
        """Return every agent that this session was given, whichever is active."""
        return named(self._coordinator, self.settings.agent_id)

    async def activate(self, agent_id: str) -> Activated:
        """Make this session use the memory of `agent_id`.

        Allowed if the user wishes it in words of their own, in this turn: neither a page nor the model itself may move
        an agent into another's memory, or begin one.

        Raises:
            IdentityError: In a child session, because the user has to say it (`needs_user`), or because the
                configuration says that there is to be no memory.
            ValidationError: The name cannot name an agent.
            StorageError: The agent's folder cannot be used.
        """
        self._check_settings()
        if self.is_child:
            raise child_session()
        before = self.identity()
        if not before.enabled:
            raise memory_off(before)
        current = before.agent_id
        folder = folder_of(agent_id, self.settings.storage_root)
        name = folder.agent_id
        if current is not None and name.lower() == current.lower():
            return Activated(name, current)
        known = tuple(await asyncio.to_thread(agents_under, folder.path.parent))
        is_known, in_doubt = name in known, self.taint.by is not None
        if not await asyncio.to_thread(is_wished, name, self.turn.prompt, is_known=is_known, in_doubt=in_doubt):
            raise not_wished(name, before, is_heard=self.turn.is_heard)
        await self._switch_to(name, current)
        return Activated(name, current, is_new=not is_known, known=known)

    async def _switch_to(self, name: str, previous: str | None) -> None:
        await self._close_service()
        self._activated = name
        write_activation(self._coordinator, name)
        await self._remember()
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
            raise memory_off(identity)
        async with self._opening:
            if self._opened is None or self._opened[1].agent_id.lower() != identity.agent_id.lower():
                await self._close_service()
                self._opened = SERVICES.acquire(self.root_id, identity.agent_id, self.settings)
                self._coordinator.register_capability(SERVICE_CAPABILITY, self._opened[1])
                self._opened[1].pad.attribute_edits((self._root or self).model_at)
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

    def folder(self) -> str:
        """Return where the memories of this session are to lie, whether they can be used or not."""
        agent = self.identity().agent_id if self.problem is None else None
        return str(Path(self.settings.storage_root, agent or ""))

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
        return once(self.release)

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
        await asyncio.gather(*self._background, return_exceptions=True)
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
            self.taint.on_change = self._keep_note
        else:
            if (inherited := activation(self._coordinator)) is not None:
                write_activation(self._coordinator, inherited)  # for grandchildren in other processes
            if self._root is None:  # what it read, and its user's words, are not known here
                self.taint.note("a session of another process")
        # Once for the three modules: a logger that follows the declarations would write an event once for each.
        self._coordinator.register_contributor("observability.events", "agent-memory", lambda: list(EVENTS))
        register = self._coordinator.hooks.register
        self._undo = [
            register("prompt:submit", self._on_prompt, priority=_EARLY, name="agent-memory-turn"),
            register("tool:post", self._on_tool, priority=_EARLY, name="agent-memory-trust"),
            # A server writes what it likes into an error, too.
            register("tool:error", self._on_tool, priority=_EARLY, name="agent-memory-trust-error"),
            *self.model_writes.listen(register, self.session_id, self._notice_edits, is_child=self.is_child),
        ]

    async def _on_prompt(self, _event: str, data: dict[str, Any]) -> None:
        is_first = not self.turn.is_heard
        self.turn.begin("" if self.is_child else text_of(data, "prompt"))
        if is_first and not self.is_child:
            await self._look_back()

    def model_at(self, moment: float) -> Caller | None:
        """Return the model as a caller if it may have saved scratchpad.yaml at that moment."""
        return self.caller if self.model_writes.wrote_at(moment, is_tainted=self.taint.by is not None) else None

    async def _look_back(self) -> None:
        """Look through a conversation that was there before this session for what strangers said in it."""
        context = self._coordinator.get("context")
        for name, given in calls_in(await context.get_messages()) if context is not None else ():
            if self._strangers.speak_by(name, given):
                self.taint.note(name)

    async def _on_tool(self, _event: str, data: dict[str, Any]) -> None:
        name = text_of(data, "tool_name")
        if self.taint.by is None and self._strangers.speak_by(name, data.get("tool_input")):
            self.taint.note(name)
        if self.model_writes.end_call(data, self.session_id):
            await self._notice_edits()

    async def _notice_edits(self) -> None:
        """Take over what the model saved, before another process takes it for a person's."""
        if self._opened is not None:
            await self._opened[1].pad.notice(self.caller)

    def _is_resumed(self) -> bool:
        return bool(getattr(getattr(self._coordinator, "session", None), "is_resumed", False))


_ROOTS: Final[dict[str, str]] = {}
"""Session id to root session id, of the sessions alive in this process."""
_SESSIONS: Final[dict[str, MemorySession]] = {}
"""Root sessions alive in this process, by id: where children find the agent that was activated."""
