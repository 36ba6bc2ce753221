"""Session of an MCP client, as the memory tools use it.

The protocol carries no user turn. Hooks of the host report it; without them nothing is typed, and what a client stores
has low trust.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Never

from typing_extensions import override

from agent_memory.errors import AgentMemoryError, IdentityError
from agent_memory.files.layout import find_project_name, folder_of
from agent_memory.integrations.mcp.session_hook import normalize_host
from agent_memory.integrations.mcp.turn_files import TurnFiles, find_project
from agent_memory.integrations.taint import Taint
from agent_memory.memory import Caller, open_service
from agent_memory.memory.caller import ProposalBook
from agent_memory.memory.consent import SPOKEN, ConsentFiles, ConsentModes, ConsentRule, ConsentState, find_own_folders
from agent_memory.memory.features import attach_features
from agent_memory.models.identifiers import VIA, TextOrigin
from agent_memory.models.record import is_project_finding
from agent_memory.models.search import ProjectScope
from agent_memory.tools.consent import LOW_TRUST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from agent_memory.integrations.mcp.turn_files import HookTurn
    from agent_memory.memory import MemoryService
    from agent_memory.models import Record
    from agent_memory.settings import ServiceSettings

MAX_CLIENTS: Final = 64
"""Most sessions of HTTP clients at a time."""
_NO_TURN: Final = "an MCP client without our hooks"


@dataclass(slots=True)
class ClientTurn:
    """Turn of a client, as its hooks report it.

    Attributes:
        prompt: Words that the user typed; empty without hooks.
        is_heard: True: there is a user, whose words count even if they are unknown.
        stored: Contents that tools stored in this call.
        returned: Contents that tools returned.
    """

    prompt: str = ""
    is_heard: bool = True
    stored: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)

    @property
    def of_user(self) -> ClientTurn:
        """Turn in which the user speaks."""
        return self


class ClientTaint(Taint):
    """Taint of a client's conversation.

    Args:
        turn: State from the hooks, or None.
        write: Writes what else tainted it.
    """

    def __init__(self, turn: HookTurn | None, write: Callable[[Callable[[HookTurn], None]], None]) -> None:
        super().__init__()
        self._write = write
        if turn is None:
            super().note(_NO_TURN)
        elif turn.tainted_by is not None:
            self.restore(turn.tainted_by, "", is_of_project=turn.is_of_project)

    @override
    def note(self, by: str, package: str = "", *, is_of_project: bool = False) -> None:
        super().note(by, package, is_of_project=is_of_project)
        self._write(lambda turn: turn.note(by, is_of_project=is_of_project))


class ApprovedProposals(ProposalBook):
    """Proposals of a call that the user approved in a form."""

    def is_agreed(self, proposal: str) -> bool:  # noqa: ARG002 - the form showed this very call
        """Return True: the host showed the act and the user agreed."""
        return True


@dataclass(slots=True)
class ClientState:
    """State of one client of a server, kept between its calls.

    Attributes:
        session_id: ID of the session that its changes are recorded with.
        proposals: Proposals and limits of its turn.
        turns_seen: Number of the last reported turn, by host.
        decided: Pairs of memories whose conflict the client decided, by each ID.
    """

    session_id: str = field(default_factory=lambda: f"mcp-{secrets.token_hex(4)}")
    proposals: ProposalBook = field(default_factory=ProposalBook)
    turns_seen: dict[str, int] = field(default_factory=dict)
    decided: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Agent of a server and its consent."""

    agent_id: str
    consent: ConsentState

    @property
    def enabled(self) -> bool:
        """True while memory is on."""
        return self.consent.is_enabled


class ServerSession:
    """Memory of one server process.

    Args:
        agent_id: Name of the agent.
        settings: Settings of its service.
        folder: Folder that the host works in.
        is_project_only: True if the client sees and writes its project alone.

    Attributes:
        is_shared: True if clients without a session ID may share it; then no change counts as this session's.
        is_stopped: True if the user asked to store nothing of the conversation.
        hooks: `active`, or `missing` if no hook reports the client's turns.
    """

    def __init__(
        self, agent_id: str, settings: ServiceSettings, folder: Path, *, is_project_only: bool = False
    ) -> None:
        self.is_project_only = is_project_only
        self.is_shared = False
        self.warnings: list[str] = []
        self.counters: dict[str, Callable[[], dict[str, Any]]] = {}
        self._clients: dict[str, ClientState] = {}
        self._use_client("")
        self._agent_id, self._settings = agent_id, settings
        self._folder, self._host = folder, ""
        self._served: set[str] = set()
        self._opening = asyncio.Lock()
        self._open: dict[str, MemoryService] = {}
        self.apply_turn(None)

    def for_call(self, client: str = "", key: str | None = "", *, is_approved: bool = False) -> ServerSession:
        """Return this session for one call.

        It has the present state of the turn. An approved call is the user's act, so it counts as another session's:
        the model cannot undo it.

        Args:
            client: Name that the client gives itself.
            key: ID of the client's MCP session; empty for the one client of stdio, None if HTTP gave none.
            is_approved: True if the user agreed to the call in the host's form.
        """
        session = copy.copy(self)
        session.is_shared = key is None
        session._use_client(key or "")  # noqa: SLF001 - its own
        session._host = normalize_host(client)  # noqa: SLF001 - its own
        session.apply_turn(session._find_turn())  # noqa: SLF001 - its own
        if is_approved:
            session.session_id, session.proposals = f"{session.session_id}-approved", ApprovedProposals()
        return session

    def _use_client(self, key: str) -> None:
        """Use a client's state; drop the least recently used one."""
        state = self._clients.pop(key, None) or ClientState()
        while len(self._clients) >= MAX_CLIENTS:
            self._clients.pop(next(iter(self._clients)))
        self._clients[key] = state
        self.session_id, self.proposals, self._turns_seen = state.session_id, state.proposals, state.turns_seen
        self.decided = state.decided

    def apply_turn(self, turn: HookTurn | None) -> None:
        """Use the state of a turn, None for an unknown one."""
        self.hooks: Literal["active", "missing"] = "missing" if turn is None else "active"
        self.is_stopped = turn is not None and turn.is_stopped
        self.turn = ClientTurn(turn.prompt if turn is not None else "")
        self.taint = ClientTaint(turn, self._change_turn)
        self._prompt_before = turn.prompt_before if turn is not None else ""
        if turn is not None and self._turns_seen.get(self._host) != turn.turns:
            self._turns_seen[self._host] = turn.turns
            self.proposals.begin_turn("")  # a new turn has new limits; only a form or a command is a yes

    def note_stored(self) -> None:
        """Report to the hooks what this call stored."""
        if stored := self.turn.stored:
            self._change_turn(lambda turn: turn.note_stored(stored))

    def _find_turn(self) -> HookTurn | None:
        with suppress(AgentMemoryError):  # without a folder there is no state
            return self._turn_files.find_open(self._host, find_project(self._folder))
        return None

    def _change_turn(self, change: Callable[[HookTurn], None]) -> None:
        if self.hooks == "active":
            self._turn_files.change_open(self._host, find_project(self._folder), change)

    @property
    def _turn_files(self) -> TurnFiles:
        return TurnFiles(folder_of(self._agent_id, self._settings.storage_root).path)

    @property
    def caller(self) -> Caller:
        """The client as a caller of the service."""
        is_tainted = self.taint.by is not None
        is_of_host = not is_tainted or self.hooks == "missing"
        tainted_origin = TextOrigin.parse(f"{self.taint.origin}{VIA}{self._host}")
        return Caller(
            self.session_id,
            trust="low" if is_tainted else "medium",
            prompt=self.turn.prompt,
            proposals=self.proposals,
            group=ProjectScope(self.project()) if self.is_project_only else None,
            project=self.project(),
            prompt_before=self._prompt_before,
            origin=str(TextOrigin("model via MCP", self._host) if is_of_host else tainted_origin),
            forgets_up_to="medium" if is_of_host else "low",
        )

    @property
    def conversation(self) -> ClientTurn:
        """Conversation with the user."""
        return self.turn

    @property
    def consent(self) -> ServerSession:
        """Request of the user to store nothing."""
        return self

    def note_returned(self, records: Iterable[Record]) -> None:
        """Note records that the model was shown; low trust taints."""
        for record in records:
            if record.trust == "low":
                self.taint.note(LOW_TRUST, is_of_project=is_project_finding(record, self.project()))

    def project(self) -> str:
        """Return the name of the repository that the host works in."""
        return find_project_name(self._folder)

    def group(self) -> str:
        """Return an empty text: a server has no groups."""
        return ""

    async def activate(self, agent_id: str) -> Never:
        """Refuse to switch the agent: its name is in the host's configuration."""
        raise IdentityError(
            f"This server has the memory of {self._agent_id}; it was not switched to {agent_id}.",
            code="needs_user",
            recovery=f"The user runs: agent-memory connect HOST --agent {agent_id}",
        )

    @property
    def current_identity(self) -> ServerIdentity:
        """Agent and its consent, from the files that limit memory."""
        folders = find_own_folders(self._settings.storage_root, self._agent_id)
        rules = ConsentFiles(host=self._host).read(folders, self._folder)
        spoken = (ConsentRule(SPOKEN, modes=ConsentModes("stopped")),) if self.is_stopped else ()
        return ServerIdentity(self._agent_id, ConsentState((*rules, *spoken)))

    def identity(self) -> ServerIdentity:
        """Return `current_identity`."""
        return self.current_identity

    def folder(self) -> str:
        """Return the folder of the memories."""
        return str(folder_of(self._agent_id, self._settings.storage_root).path)

    async def require(self) -> MemoryService:
        """Return the memory of the agent.

        Raises:
            IdentityError: A file of consent switches memory off.
            AgentMemoryError: The memory cannot be opened.
        """
        self.current_identity.consent.check_enabled()
        if self.is_project_only and not self.project():
            raise IdentityError(
                "This client has only its project, and works in none.",
                code="switched_off",
                recovery="Start the host in the folder of a project.",
            )
        async with self._opening:
            service = self._open.get(self._agent_id)
            if service is None:
                service = attach_features(open_service(self._agent_id, self._settings))
                self._open[self._agent_id] = service
        if self._host not in self._served:
            self._served.add(self._host)
            self._turn_files.note_seen(self._host, "server")
        await service.pad.notice(self.caller)
        return service

    async def close(self) -> None:
        """Close the memory."""
        while self._open:
            await self._open.popitem()[1].close()
