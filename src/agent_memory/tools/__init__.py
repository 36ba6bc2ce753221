"""Agent tools without a host: schemas, argument checks, consent and answers.

A host gives each tool a `HostSession` and calls `answer` with the arguments of a model.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.knowledge.tools import ALL_KNOWLEDGE_TOOLS as ALL_KNOWLEDGE_TOOLS
    from agent_memory.knowledge.tools import DigestTool as DigestTool
    from agent_memory.knowledge.tools import KnowledgeAccess as KnowledgeAccess
    from agent_memory.tools.agent_tool import AgentTool as AgentTool
    from agent_memory.tools.agent_tool import ToolAnswer as ToolAnswer
    from agent_memory.tools.host_session import HostSession as HostSession
    from agent_memory.tools.memory_tools import ALL_TOOLS as ALL_TOOLS
    from agent_memory.tools.memory_tools import READING_TOOLS as READING_TOOLS
    from agent_memory.tools.memory_tools import SearchTool as SearchTool
    from agent_memory.tools.memory_tools import StatusTool as StatusTool


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
