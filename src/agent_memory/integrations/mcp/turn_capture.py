"""Capture of typed texts from other hosts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from typing_extensions import override

from agent_memory.errors import AgentMemoryError
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted
from agent_memory.integrations.amplifier.hooks.capture_recorder import CaptureRecorder
from agent_memory.integrations.mcp.server_session import ServerSession
from agent_memory.integrations.mcp.turn_files import HookTurn, TurnFiles
from agent_memory.logs import get_logger
from agent_memory.settings import CaptureSettings, ServiceSettings

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier.session import MemorySession
    from agent_memory.memory import MemoryService

log = get_logger(__name__)

_SETTINGS: Final = CaptureSettings(async_capture=False)


class CapturedSession(ServerSession):
    """Session of a host whose typed texts are captured.

    Args:
        agent_id: Name of the agent.
        settings: Settings of its service.
        turn: State of the session.

    Attributes:
        problems: Failures of the capture, in sentences.
    """

    def __init__(self, agent_id: str, settings: ServiceSettings, turn: HookTurn) -> None:
        super().__init__(agent_id, settings, Path(turn.project))
        self.session_id = f"{turn.host}-{turn.session_id}"
        self.problems: list[str] = []
        self._state, self._host = turn, turn.host

    def begin(self, prompt: str, *, is_tainted: bool) -> None:
        """Go back to the turn in which a text was typed."""
        tainted_by = self._state.tainted_by if is_tainted else None
        self.apply_turn(HookTurn(self._host, "", "", 1, prompt, tainted_by=tainted_by))
        self.turn.stored = self._state.stored

    async def service(self) -> MemoryService | None:
        """Return the memory of the agent, None while it is off."""
        try:
            return await self.require()
        except AgentMemoryError as error:
            if error.code != "switched_off":
                self.problems.append(error.message)
            return None

    @property
    @override
    def conversation(self) -> Any:
        return self

    async def report_degraded(self, component: str, error: AgentMemoryError) -> None:  # noqa: ARG002 - of Amplifier
        """Note an error for the next session."""
        self.problems.append(error.message)


def capture_due(agent_id: str, root: Path) -> None:
    """Capture the typed texts that wait; note failures for the next session.

    Args:
        agent_id: Name of the agent.
        root: Folder of all agents.
    """
    files = TurnFiles(folder_of(agent_id, root).path)
    with files.hold_capture() as is_ours:
        if not is_ours:
            return
        for turn in files.list_due():
            problems = asyncio.run(_capture(agent_id, root, turn))
            if problems:
                lost = counted(len(turn.typed), "typed text")
                files.note_problem(f"{lost} of a session in {turn.host} could not be examined: {problems[0]}")
            files.finish_capture(turn)


async def _capture(agent_id: str, root: Path, turn: HookTurn) -> list[str]:
    """Capture one session; return its failures."""
    session = CapturedSession(agent_id, ServiceSettings(storage_root=str(root), embedder="none"), turn)
    recorder = CaptureRecorder(_SETTINGS, cast("MemorySession", session))
    try:
        for typed in turn.typed:
            session.begin(typed.text, is_tainted=typed.is_tainted)
            said_at = datetime.fromtimestamp(typed.at, UTC)
            await recorder.take(typed.text, "user", "", is_low=False, said_at=said_at)
            await recorder.end_turn()
        await recorder.close()
        if "internal_error" in recorder.get_statistics()["skipped"]:
            session.problems.append("an internal error")
    except Exception as error:  # noqa: BLE001 - the next session reports it
        log.warning("capture_failed", error=type(error).__name__)
        session.problems.append(str(error) or type(error).__name__)
    finally:
        await session.close()
    return session.problems
