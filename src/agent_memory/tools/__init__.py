"""Agent tools without a host: schemas, argument checks, consent and answers.

A host gives each tool a `HostSession` and calls `answer` with the arguments of a model.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.knowledge.tools import ALL_KNOWLEDGE_TOOLS, DigestTool, KnowledgeAccess
    from agent_memory.tools.agent_tool import AgentTool, ToolAnswer
    from agent_memory.tools.host_session import HostSession
    from agent_memory.tools.memory_tools import ALL_TOOLS, READING_TOOLS, SearchTool, StatusTool

__all__ = [
    "ALL_KNOWLEDGE_TOOLS",
    "ALL_TOOLS",
    "READING_TOOLS",
    "AgentTool",
    "DigestTool",
    "HostSession",
    "KnowledgeAccess",
    "SearchTool",
    "StatusTool",
    "ToolAnswer",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
