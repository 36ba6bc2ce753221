"""Verbatim records: files, items and messages that other frameworks store."""

from __future__ import annotations

import json
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator

from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind
from agent_memory.models.record import IdOf, Record, new_list
from agent_memory.models.text import check_text

MAX_VERBATIM_CHARS: Final = 5_000_000
_MAX_LEVELS: Final = 32
_MAX_NAME_CHARS: Final = 1_024

VerbatimName = Annotated[str, Field(max_length=_MAX_NAME_CHARS)]


class VerbatimRecord(Record):
    """Text or JSON of another framework, unchanged except for secrets.

    No search, briefing or capture reads it.

    Attributes:
        adapter: Adapter that stores it, such as `langgraph`.
        namespace: Names of its containers, the outermost first.
        key: Name in its container; empty for an item of a sequence.
        content: Text, or JSON as text.
        is_json: True if the content is JSON.
    """

    adapter: Annotated[str, Field(pattern=r"^[a-z_]{1,24}$")]
    namespace: list[VerbatimName] = Field(default_factory=new_list, max_length=_MAX_LEVELS)
    key: VerbatimName = ""
    content: str = Field(max_length=MAX_VERBATIM_CHARS)
    is_json: bool = False
    id: Annotated[str, IdOf("vrb")] = Field(default_factory=lambda: new_id("vrb-"))

    @field_validator("content", "key")
    @classmethod
    def _check_content(cls, text: str) -> str:
        return check_text(text)

    @model_validator(mode="after")
    def _check_json(self) -> Self:
        if self.is_json:
            json.loads(self.content)
        return self


VERBATIM: Final[Kind[VerbatimRecord]] = Kind(
    name="verbatim", model=VerbatimRecord, prefix="vrb-", journal="verbatim.yaml", text="content",
    references=lambda _: (), read_ahead=False,
)  # fmt: skip
"""Its links name containers, which are not records."""
