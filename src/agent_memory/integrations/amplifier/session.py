"""Memory of one session, shared by the modules: settings, agent, service, turn.

Only this package uses a coordinator for more than mounting.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import is_wished
from agent_memory.errors import AgentMemoryError, ConfigurationError, IdentityError, StorageError
from agent_memory.files.layout import agents_under, find_project_name, find_project_root, folder_of, resolve_root
from agent_memory.files.names import TRUSTED_TOOLS
from agent_memory.integrations.amplifier.conversation import Conversation
from agent_memory.integrations.amplifier.hooks.change_lines import ChangeLines
from agent_memory.integrations.amplifier.identity import (
    WORKING_DIR,
    AgentActivation,
    SessionConsent,
    SessionGroup,
    SessionIdentity,
    build_off_error,
    build_request_error,
    describe_ineffective,
    find_agent_name,
    find_working_folder,
    get_activation,
    get_delegate_name,
    list_agent_names,
    write_activation,
)
from agent_memory.integrations.amplifier.services import ServiceShare
from agent_memory.integrations.amplifier.session_notes import SessionNote, SessionNotes
from agent_memory.logs import get_logger
from agent_memory.memory import EVENTS
from agent_memory.memory.consent import ConsentState, find_misplaced
from agent_memory.memory.inbox_access import carry_out
from agent_memory.memory.monitor import BackgroundTasks
from agent_memory.models import utc_now
from agent_memory.models.identifiers import DEFAULT_AGENT
from agent_memory.registry import ARCHIVE, HEALTH
from agent_memory.settings import SettingsT, merge_shared, parse_module_config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

CAPABILITY: Final = "agent_memory.session"
SERVICE_CAPABILITY: Final = "agent_memory.service"


class MemorySession:
    """Memory of one session, or of one sub-session.

    Each module gets it with `MemorySession.of(coordinator)` in `mount`, and closes `leaving()` in its cleanup. Nothing
    on disk is touched before the first use of `service` or `require`.

    Attributes:
        conversation: Hooks and events of the session.
        turn, taint, proposals, note_returned: Those of the conversation.
        settings: Settings of the service, merged when a module is configured; immutable.
        warnings: Warnings about the configuration, for `memory_status`.
        problem: Reason why memory cannot work in this session, or None.
        group_settings: Group of the conversation, by host and settings; shared by the sessions of one root.
        lines: Lines about changes for the user; shared by the sessions of one root.
        consent: Sources of consent.
        counters: Functions that return figures of this session, by the name of a part, for `memory_status`.
    """

    def __init__(self, coordinator: Any) -> None:
        self.session_id: str = coordinator.session_id
        self.parent_id: str | None = coordinator.parent_id
        self.is_child = self.parent_id is not None
        self.root_id: str = _ROOTS.get(self.parent_id, self.parent_id) if self.parent_id else self.session_id
        self.warnings: list[str] = []
        self.problem: AgentMemoryError | None = None
        self.counters: dict[str, Callable[[], dict[str, Any]]] = {}
        self.settings: ServiceSettings = merge_shared({}, partial=True)
        self._coordinator = coordinator
        root = self._root = _SESSIONS.get(self.root_id) if self.is_child else None
        self.conversation: Conversation = Conversation(coordinator, root.conversation if root is not None else None)
        if not self.is_child and (handle := _SESSIONS.get(self.session_id)) is not None:
            self.conversation.join(handle.conversation)
        self.turn, self.taint = self.conversation.turn, self.conversation.taint
        self.proposals, self.note_returned = self.conversation.proposals, self.conversation.note_returned
        self.lines: ChangeLines = root.lines if root is not None else ChangeLines(coordinator, self)
        self.conversation.on_event, self.conversation.get_project = self.lines.note, self.project
        self.consent: SessionConsent = SessionConsent(coordinator, root.consent if root is not None else None)
        self.group_settings: SessionGroup = (
            root.group_settings if root is not None else SessionGroup(coordinator, self.root_id)
        )
        self.group = self.group_settings.get_name
        self._module_settings: dict[str, dict[str, Any]] = {}
        self._activated: str | None = None
        self._identity: SessionIdentity | None = None
        self._sources: tuple[Any, ...] = ()
        self._project: tuple[Any, str] | None = None  # working folder and name
        self._is_recalled = self._is_compared = self._is_checked = False
        self._share, self._background, self._note_lock = ServiceShare(), BackgroundTasks(), asyncio.Lock()
        self._users = 0
        self._removers: list[Callable[[], None]] = []

    @classmethod
    def of(cls, coordinator: Any) -> MemorySession:
        """Return the `MemorySession` of a coordinator for one more module."""
        session = coordinator.get_capability(CAPABILITY)
        if not isinstance(session, cls):
            session = cls(coordinator)
            coordinator.register_capability(CAPABILITY, session)
        if not session._users:
            session._register_hooks()
        session._users += 1
        return session

    # -- settings -----------------------------------------------------------------------------------------------------

    def configure(self, module: str, kind: type[SettingsT], raw: Any) -> SettingsT | None:
        """Merge a module's configuration; return None and set `problem` on error."""
        self._identity = self._project = None
        try:
            settings, shared, warnings = parse_module_config(module, kind, self.consent.take_limits(module, kind, raw))
            merged = merge_shared({**self._module_settings, module: shared}, partial=True)
        except AgentMemoryError as error:
            log.warning_once("memory_disabled", module=module, code=error.code, error=error.message)
            self.problem = self.problem or error
            return None
        self._module_settings[module] = shared
        self.settings, self._is_checked = merged, False
        self.conversation.model_writes.watch(self.settings.storage_root)
        self.warn(warnings)
        return settings

    def warn(self, warnings: Iterable[str]) -> None:
        """Add warnings about the configuration, and log them."""
        for warning in warnings:
            if warning not in self.warnings:
                self.warnings.append(warning)
                log.warning_once("setting_not_understood", warning=warning)

    def _check_settings(self) -> None:
        if self.problem is not None:
            raise ConfigurationError(self.problem.message, code=self.problem.code, recovery=self.problem.recovery)
        if not self._is_checked:  # all modules have been configured by now
            merge_shared(self._module_settings)
            self._is_checked = True

    @property
    def caller(self) -> Caller:
        """This session as a caller of the service.

        It sees memories of its group and of none; if its group is unknown, those of none.
        """
        try:
            group = self.group() or None
        except AgentMemoryError:
            group = ""
        return self.conversation.caller(group, self.project() if self.settings.projects else "")

    def project(self) -> str:
        """Return the current project, or an empty text.

        It has one also if memories are stored without a project.
        """
        if self.settings.project is not None:
            return self.settings.project
        working_dir = self._coordinator.get_capability(WORKING_DIR)
        if self._project is None or self._project[0] != working_dir:
            self._project = working_dir, find_project_name(find_working_folder(self._coordinator))
        return self._project[1]

    # -- identity -----------------------------------------------------------------------------------------------------

    def identity(self) -> SessionIdentity:
        """Return agent and consent; first check the files that limit memory.

        Raises:
            ValidationError: The configured name cannot name an agent.
        """
        if self._root is not None:
            self._root.identity()
        elif self.consent.has_changed():
            self._identity = None
        return self.current_identity

    @property
    def current_identity(self) -> SessionIdentity:
        """Agent and consent as last checked by `identity` or `require`.

        It is resolved again in each turn, and when a capability of the host, an activation or a spoken request changes.
        """
        if self._root is None and not self._is_recalled:
            self._recall()
        of_root = self._root.current_identity if self._root is not None else None
        get = self._coordinator.get_capability
        name = self._activated or get_activation(self._coordinator) or get("agent_identity")
        of_group = get("tenant_id"), self.group_settings.tenants, self.group_settings.groups
        sources = of_root, name, of_group, get(WORKING_DIR), self.consent.is_stopped
        if self._identity is None or sources != self._sources:
            self._identity = None
            self._identity = self._resolve() if self._root is None else self._resolve_child(self._root)
            self._sources = sources
        return self._identity

    def _resolve(self) -> SessionIdentity:
        configured = find_agent_name(self._coordinator, self.settings.agent_id)
        name = self._activated or get_activation(self._coordinator) or configured
        agent_id = name or self._get_default_agent()
        consent = self.consent.resolve(self.settings, agent_id)
        self.warn(consent.warnings)
        return SessionIdentity(agent_id, consent, is_default=name is None)

    def _resolve_child(self, root: MemorySession) -> SessionIdentity:
        """Return the root's identity, limited by this sub-session's modules."""
        if not self._is_compared:
            self._is_compared = True
            own_name = find_agent_name(self._coordinator, self.settings.agent_id)
            delegate = get_delegate_name(self._coordinator)
            if warning := describe_ineffective(own_name, root.list_agent_names(), delegate):
                self.warn([warning])
                root.warn([warning])
        of_root = root.current_identity
        return replace(of_root, consent=ConsentState((*of_root.consent.rules, *self.consent.read_modules())))

    def list_agent_names(self) -> list[str]:
        """Return every agent that this session was given."""
        return list_agent_names(self._coordinator, self.settings.agent_id)

    def _recall(self) -> None:
        """Restore the state of an earlier process."""
        self._is_recalled = True
        if getattr(getattr(self._coordinator, "session", None), "is_resumed", False):
            note = self._notes.recall(self.session_id)
            self._activated = note.agent_id
            if note.is_tainted:  # the note has it already
                self.taint.restore(
                    "what was read before the resume", note.project or self.project(), is_of_project=note.is_of_project
                )
            self.consent.restore(is_stopped=note.is_stopped)
            self.proposals.restore(note.proposals, note.replaced)
            self.proposals.begin_turn(self.turn.prompt)  # the prompt came first, and may answer one of them
        if self.parent_id is not None:  # its root is in another process
            self.consent.restore(is_stopped=self._notes.recall(self.parent_id).is_stopped)
            if self.consent.is_stopped:
                self._background.run(self._write_note())  # for sub-sessions of this one in other processes
        self.warn(find_misplaced(find_working_folder(self._coordinator)))

    def _get_default_agent(self) -> str | None:
        """Return the agent of a session that names none, or None.

        None for a session of a tenant or group, whose people would share a memory they did not choose; and for a child
        whose root is in another process, because the root may have another agent.
        """
        with contextlib.suppress(AgentMemoryError):
            return None if self.is_child or self.group() else DEFAULT_AGENT
        return None

    async def activate(self, agent_id: str) -> AgentActivation:
        """Switch this session to the memory of an agent.

        Only the user's own words in this turn allow it: neither a page nor the model may switch or create an agent.

        Raises:
            IdentityError: The user did not ask for it (`needs_user`), this is a child session, or memory is off.
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
        if not before.enabled:
            raise build_off_error(before)
        current = before.agent_id
        folder = folder_of(agent_id, self.settings.storage_root)
        name = folder.agent_id
        if current is not None and name.lower() == current.lower():
            return AgentActivation(name, current)
        agent_ids = tuple(await asyncio.to_thread(agents_under, folder.path.parent))
        if before.is_default and current not in agent_ids:
            current = None  # a default agent without memories is not worth a word
        in_doubt = self.taint.by is not None
        if not await asyncio.to_thread(is_wished, name, self.turn.prompt, in_doubt=in_doubt):
            raise build_request_error(name, before, has_user=self.turn.is_heard)
        await self._share.close()
        self._activated = name
        write_activation(self._coordinator, name)
        await self._write_note()
        service = await self.require()
        await service.report("memory:activated", self.caller, previous=current, reason="tool")
        return AgentActivation(name, current, is_new=name not in agent_ids, known=agent_ids)

    # -- service ------------------------------------------------------------------------------------------------------

    async def require(self) -> MemoryService:
        """Return the agent's service; first check the files that limit memory.

        Raises:
            ConfigurationError: The settings are wrong, or no agent is active; the recovery says how to switch it on.
            AgentMemoryError: The memory cannot be opened.
        """
        if self.problem is not None or not self._is_checked:
            self._check_settings()
        identity = self.identity()
        if identity.agent_id is None or not identity.consent.is_enabled:
            raise build_off_error(identity)
        await self.conversation.read_context()
        return await self._share.open(self.root_id, identity.agent_id, self.settings, self._connect_service)

    def _connect_service(self, service: MemoryService) -> None:
        """Connect this session with a service that it did not have before."""
        self._coordinator.register_capability(SERVICE_CAPABILITY, service)
        service.pad.attribute_edits(self.conversation.model_at)
        service.monitor.set_checks(partial(_find_checks, service))
        days, project = self.current_identity.consent.retain_days, self.project()
        if days is not None and project and self._root is None:
            self._background.run(ARCHIVE.load("retention")(service, project, days, utc_now(), self.caller))

    async def service(self) -> MemoryService | None:
        """Return the service, or None while memory is off or broken.

        A memory that cannot be opened is reported once.
        """
        try:
            return await self.require()
        except IdentityError:
            return None
        except AgentMemoryError as error:
            if self.problem is None:
                self.problem = error
                await self.conversation.report_degraded("storage", error)
            return None

    def folder(self) -> str:
        """Return the folder of the agent, usable or not."""
        agent_id = self.current_identity.agent_id if self.problem is None else None
        return str(Path(self.settings.storage_root, agent_id or ""))

    # -- beginning and end --------------------------------------------------------------------------------------------

    def leaving(self) -> contextlib.AsyncExitStack:
        """Return the exit stack of a module; it releases the session last."""
        stack = contextlib.AsyncExitStack()
        stack.push_async_callback(self.release)
        return stack

    async def release(self) -> None:
        """Release one module's share; the last one closes everything."""
        self._users = max(0, self._users - 1)
        if self._users:
            return
        for remove in self._removers:
            remove()
        self._removers = []
        _ROOTS.pop(self.session_id, None)
        if _SESSIONS.get(self.session_id) is self:
            del _SESSIONS[self.session_id]
        if get_activation(self._coordinator) is not None:
            write_activation(self._coordinator, None)
        if self._root is None:
            await self.lines.settle()
        await self._background.settle()
        await self._share.close()

    @property
    def _notes(self) -> SessionNotes:
        return SessionNotes(resolve_root(self.settings.storage_root))

    async def _write_note(self) -> None:
        """Write the state of the session for its resume."""
        try:
            async with self._note_lock:  # the note is built under the lock, so that none overwrites a newer one
                note = SessionNote(
                    self._activated,
                    is_tainted=self.taint.by is not None,
                    is_stopped=self.consent.is_stopped,
                    is_of_project=self.taint.is_of_project,
                    project=self.taint.project,
                    proposals=self.proposals.waiting,
                    replaced=self.proposals.replaced_ids,
                )
                await asyncio.to_thread(self._notes.remember, self.session_id, note)
        except AgentMemoryError as error:  # only the resume loses something
            log.warning("session_not_remembered", code=error.code, error=error.message)

    def _remember(self) -> None:
        """Write the note of the session soon; not while memory is off."""
        with contextlib.suppress(AgentMemoryError):
            identity = self.current_identity
            if identity.enabled and identity.agent_id is not None:
                self._background.run(self._write_note())

    def _register_hooks(self) -> None:
        _ROOTS[self.session_id] = self.root_id
        if not self.is_child:
            is_second = self.session_id in _SESSIONS
            _SESSIONS[self.session_id] = self
            if not is_second:  # the first handle of a session writes its note
                self.taint.on_change = self.proposals.on_change = self._remember
        else:
            if (inherited := get_activation(self._coordinator)) is not None:
                write_activation(self._coordinator, inherited)  # for grandchildren in other processes
            if self._root is None:  # what it read, and its user's words, are unknown here
                self.taint.note("a session of another process")
        # Once for the three modules: a logger that follows the declarations would write an event once for each.
        self._coordinator.register_contributor("observability.events", "agent-memory", lambda: list(EVENTS))
        self._removers = [
            *self.conversation.listen(self._notice_edits, self._begin_turn),
            *self.lines.listen(self),
        ]

    async def _notice_edits(self) -> None:
        if self._share.service is not None:
            await self._share.service.pad.notice(self.caller)

    def _read_trusted_tools(self) -> None:
        """Read the tools that the user trusts by command."""
        listed: list[str] = []
        with contextlib.suppress(AgentMemoryError):  # a wrong root is reported by every call
            root = resolve_root(self.settings.storage_root)
            if (root / TRUSTED_TOOLS).exists():
                from agent_memory.files.person_lists import list_trusted_packages  # for those who trust a tool

                folder = find_project_root(find_working_folder(self._coordinator) or Path.cwd())
                try:
                    listed = list_trusted_packages(root, folder)
                except StorageError as error:
                    self.warn([error.message])
        self.conversation.set_listed_tools(listed)

    async def _begin_turn(self, prompt: str) -> None:
        """Resolve identity again, and follow the user's requests about storing and changes."""
        self._identity = self._project = None
        if self.is_child:
            return
        if self._share.service is not None:  # a session of a single turn may need no model
            self._share.service.warm_up()
        self._read_trusted_tools()
        identity = SessionIdentity()
        with contextlib.suppress(AgentMemoryError):
            identity = self.current_identity  # also restores a request from before a resume
        if await self.consent.hear(prompt, identity.agent_id) and identity.enabled:
            await self._write_note()
        await self._carry_out(prompt)
        await self.lines.hear(prompt)

    async def _carry_out(self, prompt: str) -> None:
        """Carry out proposals of earlier sessions that a message names."""
        proposals = self.proposals.list_unknown(prompt)
        service = await self.service() if proposals else None
        if service is None:
            return
        for proposal in sorted(proposals):
            try:
                await carry_out(service, proposal, self.caller)
            except AgentMemoryError as error:
                self.lines.add(f"{error.message} {error.recovery}".rstrip())


async def _find_checks(service: MemoryService, caller: Caller) -> Sequence[Any]:
    """Return the checks of a session; none without their package."""
    if not HEALTH.is_installed:
        return []
    checks: Sequence[Any] = await HEALTH.load("checks")(service, utc_now, caller)
    return checks


_ROOTS: Final[dict[str, str]] = {}
"""ID of the root session of each session alive in this process."""
_SESSIONS: Final[dict[str, MemorySession]] = {}
"""Root sessions alive in this process, by ID; children find the activated agent there."""


def build_cleanup(work: Callable[[], Coroutine[object, object, None]]) -> Callable[[], Awaitable[None]]:
    """Return a cleanup that can be called and awaited in any way.

    The kernel calls it in a thread without a loop and awaits the coroutine. On a running loop it returns a task, which
    runs whether awaited or not.
    """
    tasks: set[asyncio.Task[None]] = set()

    def cleanup() -> Awaitable[None]:
        try:
            task = asyncio.get_running_loop().create_task(work())
        except RuntimeError:
            return work()
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    return cleanup
