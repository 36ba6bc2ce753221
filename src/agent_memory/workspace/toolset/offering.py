"""Which tools a workspace has, and which of them an agent may see."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.errors import ConfigurationError
from agent_memory.settings import did_you_mean
from agent_memory.workspace.declaration.tools import DEFAULT_TOOLS, ROW_TOOLS
from agent_memory.workspace.toolset.anytable import row_tools
from agent_memory.workspace.toolset.generated import tools_of
from agent_memory.workspace.toolset.named import named_tool
from agent_memory.workspace.toolset.steps import step_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.toolset.tool import Tool


@dataclass(frozen=True, slots=True)
class Offer:
    """What an agent may see.

    Attributes:
        tools: Names of tools, or patterns of them such as `get_*`.
        tables: The tables that the tools for rows may be asked for; all of them where it is None.
    """

    tools: Sequence[str] = DEFAULT_TOOLS
    tables: Sequence[str] | None = None

    def choose(self, declaration: Declaration) -> dict[str, Tool]:
        """Return the tools that are offered, by name.

        Raises:
            ConfigurationError: A name, or a pattern, fits no tool; or a table is not declared.
        """
        rows = [name for name in ROW_TOOLS if any(fnmatch.fnmatchcase(name, tool_name) for tool_name in self.tools)]
        tools = offered(declaration, self.tables, rows)
        chosen: dict[str, Tool] = {}
        for name in self.tools:
            fitting = [tool_name for tool_name in tools if fnmatch.fnmatchcase(tool_name, name)]
            if not fitting and name not in DEFAULT_TOOLS:  # of these, some need a table of their kind
                raise ConfigurationError(f"There is no tool {name!r}{did_you_mean(name, tuple(tools)) or '.'}")
            chosen |= {tool_name: tools[tool_name] for tool_name in fitting}
        return chosen


def offered(
    declaration: Declaration, tables: Sequence[str] | None = None, rows: Sequence[str] = ROW_TOOLS
) -> dict[str, Tool]:
    """Return all tools of a workspace, by name.

    Those that the declaration names itself go before those made from its tables.

    Args:
        declaration: What is declared.
        tables: The tables of the tools for rows; all of them where it is None.
        rows: Which of the tools for rows of any table.

    Raises:
        ConfigurationError: One of `tables` is not declared.
    """
    for name in tables or ():
        if name not in declaration.tables:
            near = did_you_mean(name, tuple(declaration.tables)) or "."
            raise ConfigurationError(f"There is no table {name!r}{near}")
    table_names = list(declaration.tables) if tables is None else tables
    tools = {**step_tools(declaration), **row_tools(declaration, table_names, rows)}
    for name in declaration.tables:
        tools |= tools_of(declaration, name)
    return tools | {name: named_tool(declaration, name, spec) for name, spec in declaration.tools.items()}
