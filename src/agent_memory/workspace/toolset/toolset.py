"""Tools of one worker, called by name.

tools = Toolset(workspace, owner="session-7", agent="analyst")
tools.call("claim_step", {"step": "next"})
tools.call("save_chapter_field", {"chapter_num": 1, "field": "summary", "value": "A roof begins."})
tools.call("finish_step", {})
"""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.models.clock import Clock, utc_now
from agent_memory.redaction import quoted
from agent_memory.settings import did_you_mean
from agent_memory.workspace.database.schema import LOW
from agent_memory.workspace.declaration.tools import DEFAULT_TOOLS, ROW_TOOLS
from agent_memory.workspace.toolset.step_tools import build_step_tools
from agent_memory.workspace.toolset.table_tools import build_named_tool, build_row_tools, build_table_tools
from agent_memory.workspace.toolset.tool import Tool, ToolSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.workspace import Workspace


class Toolset:
    """Tools of one worker.

    Calls block and run one at a time, from any thread.

    Args:
        workspace: Open workspace, which its opener closes.
        owner: Name of the worker in claims.
        agent: Name of the agent; None for the agent of the claimed step.
        offer: Tools to offer; None for the default.
        clock: Source of the time for columns that are written with `now`.
        knows_strangers: Returns True if the worker knows untrusted words.

    Raises:
        ConfigurationError: The offer names an unknown tool or table.
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
            Dict with a `status` or a `count`, and `trust: low` if it may hold untrusted words.

        Raises:
            AgentMemoryError: It failed; `as_dict` has `message`, `code` and `recovery`.
        """
        tool = self.tools.get(name)
        if tool is None:
            tool_names = ", ".join(self.tools)
            raise ValidationError(f"No tool {quoted(name)}; there are {tool_names}.", code="unknown_tool")
        checked, warnings = tool.check_arguments(arguments)
        with self._lock:
            before = self.session.low_seen
            answer = tool.run(self.session, checked) | ({"warnings": warnings} if warnings else {})
            return {**answer, "trust": LOW} if self.session.low_seen > before else answer

    def close(self) -> None:
        """Return the claim, if there is one, and undo its attempt."""
        with self._lock:
            self.session.leave()


@dataclass(frozen=True, slots=True)
class Offer:
    """Tools that an agent is offered.

    Attributes:
        tools: Names of tools, or patterns such as `get_*`.
        tables: Tables for the row tools; None for all.
    """

    tools: Sequence[str] = DEFAULT_TOOLS
    tables: Sequence[str] | None = None

    def choose(self, declaration: Declaration) -> dict[str, Tool]:
        """Return the offered tools by name.

        Raises:
            ConfigurationError: A name or pattern fits no tool, or a table is not declared.
        """
        rows = [name for name in ROW_TOOLS if any(fnmatch.fnmatchcase(name, tool_name) for tool_name in self.tools)]
        tools = build_tools(declaration, self.tables, rows)
        chosen: dict[str, Tool] = {}
        for name in self.tools:
            fitting = [tool_name for tool_name in tools if fnmatch.fnmatchcase(tool_name, name)]
            if not fitting and name not in DEFAULT_TOOLS:  # of these, some need a table of their kind
                raise ConfigurationError(f"No tool {name!r}{did_you_mean(name, tuple(tools)) or '.'}")
            chosen |= {tool_name: tools[tool_name] for tool_name in fitting}
        return chosen


def build_tools(
    declaration: Declaration, tables: Sequence[str] | None = None, rows: Sequence[str] = ROW_TOOLS
) -> dict[str, Tool]:
    """Return all tools of a workspace by name.

    Tools that the declaration names replace those made from its tables.

    Args:
        declaration: Declaration of the workspace.
        tables: Tables for the row tools; None for all.
        rows: Names of the row tools.

    Raises:
        ConfigurationError: One of `tables` is not declared.
    """
    for name in tables or ():
        if name not in declaration.tables:
            near = did_you_mean(name, tuple(declaration.tables)) or "."
            raise ConfigurationError(f"No table {name!r}{near}")
    table_names = list(declaration.tables) if tables is None else tables
    tools = {**build_step_tools(declaration), **build_row_tools(declaration, table_names, rows)}
    for name in declaration.tables:
        tools |= build_table_tools(declaration, name)
    return tools | {name: build_named_tool(declaration, name, spec) for name, spec in declaration.tools.items()}
