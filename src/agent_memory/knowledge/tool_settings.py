"""Settings of the knowledge tools and of the ingestion hook."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from agent_memory.errors import ValidationError
from agent_memory.models import STEERING
from agent_memory.settings import KNOWLEDGE_TOOLS, TENANT, Settings, tools_among

if TYPE_CHECKING:
    from collections.abc import Mapping

Importance = Literal["low", "normal", "high"]
IMPORTANCE: Final[Mapping[Importance, float | None]] = {"low": 0.2, "normal": None, "high": 0.8}
"""Importance of a memory by word; None for no opinion."""
GROUP: Final = TENANT + rf":[^\s:{STEERING}]{{1,128}}"
"""With no characters that steer a terminal or are not seen: groups that look the same are the same."""
_GROUP: Final = re.compile(GROUP)
TenantId = Annotated[str | None, Field(pattern=f"^{TENANT}$")]
Group = Annotated[str | None, Field(pattern=f"^{GROUP}$")]


def check_group(group_id: str) -> str:
    """Return a group's name.

    Raises:
        ValidationError: It is invalid; the message does not quote it.
    """
    if not isinstance(group_id, str) or not _GROUP.fullmatch(group_id):
        raise ValidationError(
            "A group is a tenant and a session with a colon between them, such as acme:7f3a; nothing was stored.",
            code="invalid_group",
            recovery="Give a tenant of letters, digits and . _ @ - and a session without spaces, colons and characters "
            "that are not seen.",
        )
    return group_id


def _read_model(value: object) -> object:
    """Return `off` or `session` for values of earlier versions."""
    if isinstance(value, list | tuple):
        return "session" if "items" in value else "off"
    return {True: "session", False: "off"}.get(value, value) if isinstance(value, bool) else value


class ModelSettings(Settings):
    """Limits of a session's use of its own provider."""

    model_calls: int = Field(default=20, ge=1, le=10_000, description="Most calls of the model in a session.")
    model_tokens: int = Field(
        default=100_000,
        ge=1_000,
        le=100_000_000,
        description="Most tokens of prompts and answers in a session, estimated from their lengths.",
    )
    model_timeout: float = Field(default=20.0, gt=0, le=600, description="Seconds to wait for an answer of the model.")


class KnowledgeToolSettings(ModelSettings):
    """Settings of `tool-memory-knowledge` only."""

    tools: Annotated[tuple[str, ...], tools_among(KNOWLEDGE_TOOLS)] | None = Field(
        default=None,
        description="Tools to offer. Default: list_categories, get_category, digest; also recall if conversations are "
        "ingested; also recall, remember without tool-memory-semantic.",
    )
    tenant_id: TenantId = Field(
        default=None,
        description="Tenant of the session if one agent serves many people. The session sees its own group, "
        "`tenant:session`, and ungrouped records. A value from the application or session overrides it.",
    )
    group: Group = Field(
        default=None,
        description="Group that several sessions share, such as `acme:support`. Overrides `tenant_id`.",
    )
    model: bool = Field(
        default=False,
        description="Allow `recall` to ask the session's provider in `mode: llm`, or in `hybrid` if rules are unsure.",
    )


class IngestionSettings(ModelSettings):
    """Settings of `hooks-memory-ingestion` only."""

    observe_prompts: bool = Field(default=True, description="Ingest messages of the user.")
    observe_answers: bool = Field(default=True, description="Ingest answers of the agent.")
    observe_tools: tuple[str, ...] = Field(
        default=(),
        description="Names or patterns of tools whose results are also ingested; never those of memory tools.",
    )
    tenant_id: TenantId = Field(
        default=None,
        description="Tenant of the conversations if one agent serves many people; `tenant:session` separates them. "
        "A value from the application or session overrides it.",
    )
    group: Group = Field(
        default=None,
        description="Group of conversations that several sessions share. Overrides `tenant_id`.",
    )
    model: Annotated[Literal["off", "session"], BeforeValidator(_read_model)] = Field(
        default="off",
        description="`session`: the session's provider digests passages in the background, after your yes to an "
        "estimate. `off`: it is never asked.",
    )
    model_budget: int = Field(
        default=50_000,
        ge=5_000,
        le=100_000_000,
        description="Most tokens of background digests per local day and agent.",
    )
    model_agreed: bool = Field(
        default=False, description="Counts as your yes to the estimate, for sessions without a person."
    )
    entities: bool = Field(default=True, description="Extract entities and relations in the background.")
    summaries: bool = Field(default=True, description="Summarize long conversations in the background.")
    background: bool = Field(
        default=True,
        description="Process ingested turns in the background of the session; else `agent-memory ingest` does.",
    )
    max_waiting: int = Field(
        default=1000, ge=1, le=100_000, description="Most turns that wait for the disk; further ones are dropped."
    )
    flush_seconds: float = Field(
        default=5.0, gt=0, le=600, description="Seconds after which the part of a turn received so far is stored."
    )
