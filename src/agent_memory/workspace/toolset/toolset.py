"""`Toolset`: the tools of one worker, called by name.

tools = Toolset(workspace, owner="session-7", agent="analyst")
tools.call("claim_step", {"step": "next"})
tools.call("save_chapter_field", {"chapter_num": 1, "field": "summary", "value": "A roof begins."})
tools.call("finish_step", {})
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ValidationError
from agent_memory.models.clock import Clock, utc_now
from agent_memory.redaction import quoted
from agent_memory.workspace.database import LOW
from agent_memory.workspace.toolset.offering import Offer
from agent_memory.workspace.toolset.session import ToolSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.workspace.toolset.tool import Tool
    from agent_memory.workspace.workspace import Workspace


class Toolset:
    """The tools of one worker. Calls block, and are made one after the other, from whichever thread.

    Args:
        workspace: What it works on; closed by whoever opened it.
        owner: Names the worker in claims.
        agent: The agent it is; None where it is whichever agent the step that it claims is for.
        offer: Which tools it has; all that are offered by default where it is None.
        clock: Tells the time of columns that are written with `now`.
        knows_strangers: Tells whether a stranger's words are in what the worker knows.

    Raises:
        ConfigurationError: The offer names what is not there.
    """

    def __init__(
        self,
        workspace: Workspace,
        owner: str,
        *,
        agent: str | None = None,
        offer: Offer | None = None,
        clock: Clock = utc_now,
        knows_strangers: Callable[[], bool] = lambda: False,
    ) -> None:
        self.tools: dict[str, Tool] = (offer or Offer()).choose(workspace.declaration)
        self.session = ToolSession(workspace, owner, agent, clock, knows_strangers)
        self._lock = threading.Lock()

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool.

        Returns:
            What it answers: a dict with a `status` or a `count`; `trust: low` where a stranger's words may be in it.

        Raises:
            AgentMemoryError: It could not be done; `as_dict` has `message`, `code` and `recovery`.
        """
        tool = self.tools.get(name)
        if tool is None:
            tool_names = ", ".join(self.tools)
            raise ValidationError(f"There is no tool {quoted(name)}; there are {tool_names}.", code="unknown_tool")
        checked, warnings = tool.check_arguments(arguments)
        with self._lock:
            before = self.session.low_seen
            answer = tool.run(self.session, checked) | ({"warnings": warnings} if warnings else {})
            return {**answer, "trust": LOW} if self.session.low_seen > before else answer

    def close(self) -> None:
        """Give the claim back, if there is one; what an unfinished step wrote is taken back."""
        with self._lock:
            self.session.leave()
