"""Session of an MCP client, as the memory tools use it.

The protocol carries no user turn: nothing is typed, so what a client stores has low trust.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Never

from agent_memory.errors import IdentityError
from agent_memory.files.layout import find_project_name, folder_of
from agent_memory.memory import Caller, open_service
from agent_memory.memory.caller import ProposalBook
from agent_memory.memory.consent import ConsentFiles, ConsentState, find_own_folders
from agent_memory.memory.features import attach_features
from agent_memory.models.record import TextOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory
    from agent_memory.settings import ServiceSettings

_NO_TURN: Final = "an MCP client, which carries no user turn"


@dataclass(slots=True)
class ClientTurn:
    """Turn of a client: no words of a user.

    Attributes:
        stored: Contents that tools stored.
    """

    prompt: str = ""
    is_heard: bool = False
    stored: list[str] = field(default_factory=list)

    @property
    def of_user(self) -> ClientTurn:
        """Turn in which the user speaks."""
        return self


@dataclass(slots=True)
class ClientTaint:
    """Taint of a client's conversation, of which the server sees nothing."""

    by: str | None = _NO_TURN

    def note(self, by: str, *, is_of_project: bool = False) -> None:
        """Note that untrusted text came in."""


class ApprovedProposals(ProposalBook):
    """Proposals of a call that the user approved in a form."""

    def is_agreed(self, proposal: str) -> bool:  # noqa: ARG002 - the form showed this very call
        """Return True: the host showed the act and the user agreed."""
        return True


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Agent of a server and its consent."""

    agent_id: str
    consent: ConsentState


class ServerSession:
    """Memory of one server process.

    Args:
        agent_id: Name of the agent.
        settings: Settings of its service.
        folder: Folder that the host works in.

    Attributes:
        is_stopped: False: a client cannot say "off the record".
    """

    is_stopped: Final = False

    def __init__(self, agent_id: str, settings: ServiceSettings, folder: Path) -> None:
        self.session_id = f"mcp-{secrets.token_hex(4)}"
        self.warnings: list[str] = []
        self.counters: dict[str, Callable[[], dict[str, Any]]] = {}
        self.turn, self.taint = ClientTurn(), ClientTaint()
        self.proposals = ProposalBook()
        self._host = ""
        self._agent_id, self._settings = agent_id, settings
        self._folder = folder
        self._consent = ConsentFiles()
        self._opening = asyncio.Lock()
        self._open: dict[str, MemoryService] = {}

    def for_call(self, host: str = "", *, is_approved: bool = False) -> ServerSession:
        """Return this session for one call.

        An approved call is the user's act, so it counts as another session's: the model cannot undo it.

        Args:
            host: Name that the client gives itself.
            is_approved: True if the user agreed to the call in the host's form.
        """
        session = copy.copy(self)
        session._host, session.turn = host, ClientTurn()  # noqa: SLF001 - its own
        if is_approved:
            session.session_id, session.proposals = f"{self.session_id}-approved", ApprovedProposals()
        return session

    @property
    def caller(self) -> Caller:
        """The client as a caller of the service."""
        return Caller(
            self.session_id,
            trust="low",
            proposals=self.proposals,
            project=self.project(),
            origin=str(TextOrigin("model via MCP", self._host)),
            is_client=True,
        )

    @property
    def conversation(self) -> ClientTurn:
        """Conversation with the user, which is not seen."""
        return self.turn

    @property
    def consent(self) -> ServerSession:
        """Request of the user to store nothing, which cannot be made here."""
        return self

    def note_returned(self, memories: Iterable[Memory]) -> None:
        """Ignore memories that a model was shown: there is no capture."""

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
        return ServerIdentity(self._agent_id, ConsentState(self._consent.read(folders, self._folder)))

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
        identity = self.current_identity
        if not identity.consent.is_enabled:
            raise IdentityError(
                f"Memory is off: {identity.consent.decided_by() or 'a file of consent'} says so.",
                code="switched_off",
                recovery="The user runs: agent-memory consent on",
            )
        async with self._opening:
            service = self._open.get(self._agent_id)
            if service is None:
                service = attach_features(open_service(self._agent_id, self._settings))
                self._open[self._agent_id] = service
        await service.pad.notice(self.caller)
        return service

    async def close(self) -> None:
        """Close the memory."""
        while self._open:
            await self._open.popitem()[1].close()
