"""`MemorySession`: what the three modules of one session share. Its settings, its agent, its service, its turn.

The adapter to the host: the only place that touches a coordinator beyond mounting.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import is_wished
from agent_memory.errors import AgentMemoryError, ConfigurationError, IdentityError
from agent_memory.files.layout import agents_under, folder_of, root_of
from agent_memory.integrations.amplifier.change_lines import ChangeLines
from agent_memory.integrations.amplifier.conversation import Conversation
from agent_memory.integrations.amplifier.groups import Belonging
from agent_memory.integrations.amplifier.identity import (
    Activated,
    Configured,
    activation,
    configured,
    delegate_name,
    named,
    write_activation,
)
from agent_memory.integrations.amplifier.notes import Note, Resume
from agent_memory.integrations.amplifier.projects import project_of, working_on
from agent_memory.integrations.amplifier.refusals import child_session, ineffective, memory_off, not_wished
from agent_memory.integrations.amplifier.registry import ServiceShare
from agent_memory.integrations.amplifier.session_consent import SessionConsent
from agent_memory.logs import get_logger
from agent_memory.memory import EVENTS
from agent_memory.memory.background import Background
from agent_memory.memory.consent_state import ConsentState
from agent_memory.models import utc_now
from agent_memory.models.identifiers import DEFAULT_AGENT
from agent_memory.registry import ARCHIVE, HEALTH
from agent_memory.settings import SettingsT, merge_shared, parse_module_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.alerting import Seen
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

CAPABILITY: Final = "agent_memory.session"
SERVICE_CAPABILITY: Final = "agent_memory.memory"


class MemorySession:
    """The memory of one session, or of one sub-session.

    Get it with `MemorySession.of(coordinator)`; each module does so in `mount` and closes `leaving()` in its cleanup.
    Nothing on disk is touched before the first use of `service` or `require`.

    Attributes:
        conversation: The host's hooks and events; its turn, taint, proposals, distrust, note_returned, emit and
            degraded are here, too.
        project: Returns the project that is worked on, also where memories are noted without one; empty for none.
        named: Returns every agent that this session was given, whichever is active.
        settings: Settings of the service, merged when a module is configured; immutable.
        warnings: Unknown settings and the like, for `memory_status`.
        problem: Why memory cannot work in this session, or None.
        belonging: Whose the conversation is, as the host and settings say it; the root's for its children.
        group: Returns its group, `tenant:session`; empty where none is named. Raises ValidationError where it cannot be
            said.
        lines: What changed, as the user sees it; of a sub-session those of its root.
        consent: What may be stored, by all sources.
        counters: By the name of a part, what returns how much it did in this session, for `memory_status`.
    """

    def __init__(self, coordinator: Any) -> None:
        self.session_id: str = coordinator.session_id
        self.parent_id: str | None = coordinator.parent_id
        self.is_child = self.parent_id is not None
        self.root_id: str = _ROOTS.get(self.parent_id, self.parent_id) if self.parent_id else self.session_id
        self.warnings: list[str] = []
        self.problem: AgentMemoryError | None = None
        self.counters: dict[str, Callable[[], dict[str, Any]]] = {}
        self._coordinator = coordinator
        self._root: MemorySession | None = _SESSIONS.get(self.root_id) if self.is_child else None
        of_root = self._root.conversation if self._root is not None else None
        self.conversation: Conversation = Conversation(coordinator, of_root)
        if not self.is_child and (handle := _SESSIONS.get(self.session_id)) is not None:
            self.conversation.join(handle.conversation)
        self.emit, self.degraded = self.conversation.emit, self.conversation.degraded
        self.turn, self.taint = self.conversation.turn, self.conversation.taint
        self.proposals = self.conversation.proposals
        self.lines: ChangeLines = self._root.lines if self._root is not None else ChangeLines(coordinator, self)
        self.conversation.on_event = self.lines.note
        self.distrust, self.note_returned = self.conversation.distrust, self.conversation.note_returned
        self.consent: SessionConsent = SessionConsent(
            coordinator, self._root.consent if self._root is not None else None
        )
        self._shared: dict[str, dict[str, Any]] = {}
        self.settings: ServiceSettings = merge_shared({}, partial=True)
        self._resume = Resume(
            self.session_id,
            lambda: root_of(self.settings.storage_root),
            self._describe,
        )
        self.project: Callable[[], str] = lambda: working_on(self.settings, coordinator)
        self.named: Callable[[], list[str]] = lambda: named(coordinator, self.settings.agent_id)
        of_all = self._root.belonging if self._root is not None else None
        self.belonging: Belonging = of_all or Belonging(coordinator, self.root_id)
        self.group = self.belonging.group
        self._activated: str | None = None
        self._recalled = self._said_whose = self._is_checked = False
        self._share, self._upkeep = ServiceShare(), Background()
        self._users = 0
        self._undo: list[Callable[[], None]] = []

    @classmethod
    def of(cls, coordinator: Any) -> MemorySession:
        """Return the session's `MemorySession`, creating it for the first module that asks; counts its users."""
        session = coordinator.get_capability(CAPABILITY)
        if not isinstance(session, cls):
            session = cls(coordinator)
            coordinator.register_capability(CAPABILITY, session)
        if not session._users:
            session._register_hooks()
        session._users += 1
        return session

    def _describe(self) -> Note:
        """Return what is kept of the session for its resume."""
        return Note(
            self._activated,
            is_tainted=self.taint.by is not None,
            is_stopped=self.consent.is_stopped,
            has_foreign_results=self.taint.has_foreign_results,
            proposals=self.proposals.waiting,
            replaced=self.proposals.replaced_ids,
        )

    # -- settings -----------------------------------------------------------------------------------------------------

    def configure(self, module: str, own: type[SettingsT], raw: Any) -> SettingsT | None:
        """Take over a module's configuration; on a wrong value return None and keep the reason in `problem`."""
        try:
            settings, shared, warnings = parse_module_config(module, own, self.consent.take_limits(module, own, raw))
            merged = merge_shared({**self._shared, module: shared}, partial=True)
        except AgentMemoryError as error:
            log.warning_once("memory_disabled", module=module, code=error.code, error=error.message)
            self.problem = self.problem or error
            return None
        self._shared[module] = shared
        self.settings, self._is_checked = merged, False
        self.conversation.model_writes.watch(self.settings.storage_root)
        self.warn(warnings)
        return settings

    def warn(self, warnings: Iterable[str]) -> None:
        """Keep what a person should know of the configuration for `memory_status`, and log it."""
        for warning in warnings:
            if warning not in self.warnings:
                self.warnings.append(warning)
                log.warning_once("setting_not_understood", warning=warning)

    @property
    def caller(self) -> Caller:
        """This session as the service's caller: whose words it brings now, and what the user typed in this turn.

        It sees what belongs to its group or to none; where its group cannot be said, what belongs to none.
        """
        try:
            group = self.group() or None
        except AgentMemoryError:
            group = ""
        return replace(self.conversation.caller(), group=group, project=project_of(self.settings, self._coordinator))

    # -- identity -----------------------------------------------------------------------------------------------------

    def identity(self) -> Configured:
        """Return the agent of this session now, and whether memory is wanted.

        Raises:
            ValidationError: The configured name cannot name an agent.
        """
        if self._root is not None:
            if not self._said_whose:
                self._said_whose = True
                session_id = configured(self._coordinator, self.settings.agent_id).agent_id
                if warning := ineffective(session_id, self._root.named(), delegate_name(self._coordinator)):
                    for session in (self, self._root):
                        session.warn([warning])
            of_root = self._root.identity()
            return replace(of_root, consent=ConsentState((*of_root.consent.rules, *self.consent.read_modules())))
        default_id = configured(self._coordinator, self.settings.agent_id).agent_id
        if not self._recalled:
            self._recalled = True
            if getattr(getattr(self._coordinator, "session", None), "is_resumed", False):
                note = self._resume.recall()
                self._activated = note.agent_id
                if note.is_tainted:  # as noted: there is nothing to note anew
                    self.taint.by = self.taint.by or "what was read before the resume"
                self.taint.has_foreign_results = self.taint.has_foreign_results or note.has_foreign_results
                self.consent.restore(is_stopped=note.is_stopped)
                self.proposals.restore(note.proposals, note.replaced)
            if self.parent_id is not None:  # its root is in another process
                self.consent.restore(is_stopped=self._resume.recall(self.parent_id).is_stopped)
                if self.consent.is_stopped:
                    self._resume.remember_soon()  # for sub-sessions of this one in other processes
            self.warn(self.consent.find_misplaced())
        named_id = self._activated or activation(self._coordinator) or default_id
        agent_id = named_id or self._default_agent()
        consent = self.consent.resolve(self.settings, agent_id)
        configured_agent = Configured(agent_id, consent, is_default=named_id is None)
        self.warn(configured_agent.warnings)
        return configured_agent

    def _default_agent(self) -> str | None:
        """Return the agent of a session that names none, or None.

        None for a session of a tenant or group, where people would share a memory that was not chosen for them; and for
        a child whose root is in another process, because the root may have another agent.
        """
        with contextlib.suppress(AgentMemoryError):
            return None if self.is_child or self.group() else DEFAULT_AGENT
        return None

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
        if before.is_default and current not in known:
            current = None  # a default agent without memories is not worth a word
        in_doubt = self.taint.by is not None
        if not await asyncio.to_thread(is_wished, name, self.turn.prompt, in_doubt=in_doubt):
            raise not_wished(name, before, is_heard=self.turn.is_heard)
        await self._share.close()
        self._activated = name
        write_activation(self._coordinator, name)
        await self._resume.remember()
        service = await self.require()
        await service.report("memory:activated", self.caller, previous=current, reason="tool")
        return Activated(name, current, is_new=name not in known, known=known)

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

        def begin(service: MemoryService) -> None:
            self._coordinator.register_capability(SERVICE_CAPABILITY, service)
            service.pad.attribute_edits(self.conversation.model_at)
            service.alerts.look_by(partial(_find_checks, service))
            service.warm_up()
            days, project = identity.consent.retain_days, self.project()
            if days is not None and project and self._root is None:
                self._upkeep.run(ARCHIVE.load("retention")(service, project, days, utc_now(), self.caller))

        return await self._share.opened(self.root_id, identity.agent_id, self.settings, begin)

    def _check_settings(self) -> None:
        if self.problem is not None:
            raise ConfigurationError(self.problem.message, code=self.problem.code, recovery=self.problem.recovery)
        if not self._is_checked:  # all modules have been configured by now
            merge_shared(self._shared)
            self._is_checked = True

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

    def leaving(self) -> contextlib.AsyncExitStack:
        """Return what a module closes at its end: gives its share back, once, after what the module adds to it."""
        share = contextlib.AsyncExitStack()
        share.push_async_callback(self.release)
        return share

    async def release(self) -> None:
        """Give back one module's share; the last one closes what is open."""
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
        if self._root is None:
            await self.lines.settle()
        await self._resume.settle()
        await self._upkeep.settle()
        await self._share.close()

    def _remember(self) -> None:
        """Write the note of the session soon; not while memory is off."""
        with contextlib.suppress(AgentMemoryError):
            identity = self.identity()
            if identity.enabled and identity.agent_id is not None:
                self._resume.remember_soon()

    def _register_hooks(self) -> None:
        _ROOTS[self.session_id] = self.root_id
        if not self.is_child:
            is_second = self.session_id in _SESSIONS
            _SESSIONS[self.session_id] = self
            if not is_second:  # the first handle of a session writes its note
                self.taint.on_change = self.proposals.on_change = self._remember
        else:
            if (inherited := activation(self._coordinator)) is not None:
                write_activation(self._coordinator, inherited)  # for grandchildren in other processes
            if self._root is None:  # what it read, and its user's words, are not known here
                self.taint.note("a session of another process")
        # Once for the three modules: a logger that follows the declarations would write an event once for each.
        self._coordinator.register_contributor("observability.events", "agent-memory", lambda: list(EVENTS))

        async def notice_edits() -> None:
            if self._share.service is not None:
                await self._share.service.pad.notice(self.caller)

        async def hear(prompt: str) -> None:
            """Follow a request about storing and keep it with the session."""
            identity = Configured()
            with contextlib.suppress(AgentMemoryError):
                identity = self.identity()  # also takes over what was said before a resume
            if await self.consent.hear(prompt, identity.agent_id) and identity.enabled:
                await self._resume.remember()
            await self.lines.hear(prompt)

        self._undo = [*self.conversation.listen(notice_edits, hear), *self.lines.listen(self)]


async def _find_checks(service: MemoryService, caller: Caller) -> Sequence[Seen]:
    """Return the checks of a session; none without their package."""
    if not HEALTH.is_installed:
        return []
    checks: Sequence[Seen] = await HEALTH.load("checks")(service, utc_now, caller)
    return checks


_ROOTS: Final[dict[str, str]] = {}
"""Session id to root session id, of the sessions alive in this process."""
_SESSIONS: Final[dict[str, MemorySession]] = {}
"""Root sessions alive in this process, by id: where children find the agent that was activated."""
