"""`StatementInput`: a statement as a language model hands it back."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agent_memory.models.arguments import ToolArguments


class StatementInput(ToolArguments):
    """Statement as a language model hands it back."""

    passage: str = Field(min_length=1, max_length=40)
    quote: str = Field(min_length=1, max_length=2_000)
    text: str = Field(min_length=1, max_length=500)
    is_decision: bool = False
    owner: str = Field("", max_length=100)
    date: str = Field("", max_length=100)
    entities: list[str] = Field(default_factory=list, max_length=20)
    relations: list[dict[str, Any]] = Field(default_factory=list, max_length=5)
