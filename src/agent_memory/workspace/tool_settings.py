"""The settings of the tools of a workspace."""

from __future__ import annotations

from pydantic import Field

from agent_memory.settings import Settings
from agent_memory.workspace.declaration.tools import DEFAULT_TOOLS


class WorkspaceToolSettings(Settings):
    """Of `tool-memory-workspace` alone."""

    workspace: str | None = Field(
        default=None,
        min_length=1,
        description="Folder of the workspace, absolute or from where the session works; left out, the one that the "
        "session works in.",
    )
    agent: str | None = Field(
        default=None,
        pattern=r"^[\w.@-]{1,100}$",
        description="The agent of the workspace that the session is: it takes steps of this one alone. Left out, it is "
        "whichever agent the step is for that it claims.",
    )
    tools: tuple[str, ...] = Field(
        default=DEFAULT_TOOLS,
        description="Allow-list: the tools to offer, by name or by patterns such as `get_*`.",
    )
    tables: tuple[str, ...] | None = Field(
        default=None,
        description="The tables that `get_row`, `list_rows`, `search_rows`, `save_row` and `update_row` know; all when "
        "left out.",
    )
