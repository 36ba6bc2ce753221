"""The tools that agents have for a workspace, made from its declaration; they know no host."""

from agent_memory.workspace.toolset.offering import Offer, offered
from agent_memory.workspace.toolset.session import ToolSession
from agent_memory.workspace.toolset.session_toolset import SessionToolset
from agent_memory.workspace.toolset.tool import Tool
from agent_memory.workspace.toolset.toolset import Toolset

__all__ = ["Offer", "SessionToolset", "Tool", "ToolSession", "Toolset", "offered"]
