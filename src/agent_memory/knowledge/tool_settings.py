"""The settings of the knowledge tools."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from agent_memory.settings import Settings, tools_among

KNOWLEDGE_TOOLS: Final = ("recall", "remember", "list_categories", "get_category")


class KnowledgeToolSettings(Settings):
    """Of `tool-memory-knowledge` alone."""

    tools: Annotated[tuple[str, ...], tools_among(KNOWLEDGE_TOOLS)] | None = Field(
        default=None,
        description="Allow-list: the tools to offer; list_categories and get_category when left out, and recall and "
        "remember where tool-memory-semantic is not in the session.",
    )
