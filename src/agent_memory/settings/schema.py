"""Settings: every key, its default and its check.

The host passes the values; no file and no environment is read. The modules are configured separately but share one
memory: `ServiceSettings` may be given to any of them, and `merge_shared` refuses two different explicit values.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from agent_memory.models.identifiers import DEFAULT_ROOT, check_agent_id
from agent_memory.models.record import Fraction
from agent_memory.settings.installation import EMBEDDERS_GROUP, find_entry_points

if TYPE_CHECKING:
    from collections.abc import Mapping

Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]


class Settings(BaseModel):
    """Base of all sections: no unknown key, no values in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def did_you_mean(name: str, names: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return a hint such as `; did you mean 'KEY'?`, or ""."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


_KEY_PLACES: Final = ("key_file", "key_command", "key_keyring")


class EncryptionSettings(Settings):
    """Place of the person's key for encrypted memories."""

    new_agents: bool = Field(
        default=False,
        description="Encrypt new agents from their first line on; existing agents stay as they are.",
    )
    key_variable: str = Field(
        default="AGENT_MEMORY_KEY",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Environment variable with the key, unless one of the other keys is set.",
    )
    key_file: str | None = Field(default=None, min_length=1, description="File with the key.")
    key_command: str | None = Field(
        default=None,
        min_length=1,
        description="Command that prints the key, such as `pass show agent-memory`; no shell.",
    )
    key_keyring: str | None = Field(
        default=None,
        min_length=1,
        description="Service name in the system's keyring, for the user `agent-memory`; needs the package keyring.",
    )

    @pydantic.model_validator(mode="after")
    def _check_places(self) -> Self:
        places = [key for key in _KEY_PLACES if getattr(self, key) is not None]
        if len(places) > 1:
            raise ValueError(f"'{places[0]}' and '{places[1]}' both set the place of the key; remove one")
        return self


Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
RISING: Final = ("slow", "backup", "backlog")
"""Limits whose critical value is above that of a warning; of free disk space it is below."""


class HealthSettings(Settings):
    """Limits of `agent-memory agents health` and of `memory:alert`."""

    disk_warning_mb: Amount = Field(default=500, description="Free megabytes of the disk; less is a warning.")
    disk_critical_mb: Amount = Field(default=100, description="Free megabytes of the disk; less is critical.")
    slow_warning_ms: Amount = Field(
        default=500, description="Milliseconds of the 95th percentile of searches or stores; more is a warning."
    )
    slow_critical_ms: Amount = Field(default=5000, description="The same; more is critical.")
    backup_warning_days: Amount = Field(
        default=7, description="Days since the last backup, if backups exist; more is a warning."
    )
    backup_critical_days: Amount = Field(default=30, description="The same; more is critical.")
    backlog_warning_hours: Amount = Field(
        default=24, description="Hours that background work waits; more is a warning."
    )
    backlog_critical_hours: Amount = Field(default=168, description="The same; more is critical.")
    suspects_warning: Positive = Field(
        default=20, description="Pairs of memories that wait for a decision; this many are a warning."
    )
    activity_least: Positive = Field(
        default=50,
        description="Memories forgotten or changed within an hour, or ten times as many new ones; this many are a "
        "warning.",
    )
    activity_factor: Amount = Field(
        default=10, description="The warning also needs this many times the count of a usual day."
    )

    @pydantic.model_validator(mode="after")
    def _check_order(self) -> Self:
        """Refuse a critical limit that is reached before its warning."""
        values = self.model_dump()
        pairs = {key.partition("_")[0]: key for key in values if "_warning_" in key}
        for name, key in pairs.items():
            warning, critical = values[key], values[worse := key.replace("_warning_", "_critical_")]
            if (critical < warning) if name in RISING else (critical > warning):
                raise ValueError(f"'{worse}' comes before '{key}'; change one of the two")
        return self


PERSON_SECONDS: Final = 5.0
"""Seconds to wait for a lock at a terminal, instead of `lock_timeout`."""
LOCAL_MODEL: Final = "all-MiniLM-L6-v2"
LOCAL_DIMENSION: Final = 384
EMBEDDERS: Final = ("local", "openai", "none", "languages")
"""Embedders of this distribution; others offer more by entry points."""
PAYS_FROM: Final = 5_000_000
"""Memories from which the vector engine may make searches faster: an estimate, since segments were as fast at 100,000
(decision 15). Comparing sign codes takes about 10 ms a million, asking the engine a few at any size."""
ENGINE_PAYS: Final = f"asking the vector engine is estimated to be faster from {PAYS_FROM:,} memories on"
OPENAI_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""Length of the vectors of OpenAI's models."""


def _check_embedder(name: str) -> str:
    if name not in EMBEDDERS and name not in (offered := find_entry_points(EMBEDDERS_GROUP)):
        raise ValueError(f"must be one of: {', '.join([*EMBEDDERS, *offered])}")
    return name


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        raise ValueError("must be an IANA name such as Europe/Berlin") from None
    return name


class ServiceSettings(Settings):
    """Settings of a session's one memory service, given to any module."""

    agent_id: Annotated[str, AfterValidator(check_agent_id)] | None = Field(
        default=None,
        description="Agent whose memory is used if nothing else names one. If empty: `me`, or no memory if a tenant "
        "is set.",
    )
    storage_root: str = Field(default=DEFAULT_ROOT, min_length=1, description="Folder of all agents' memories.")
    timezone: Annotated[str, AfterValidator(_check_zone)] | None = Field(
        default=None,
        description="Your time zone, such as `Europe/Berlin`, for days in messages without an offset or in UTC. If "
        "empty: UTC stays UTC, and a time without an offset is the computer's.",
    )
    backend: Literal["auto", "file", "vector", "server"] = Field(
        default="auto", description="Where searches run; `auto` starts with files."
    )
    default_search_limit: int = Field(default=5, ge=1, le=100, description="Results of a search without a limit.")
    similarity_threshold: Fraction | None = Field(
        default=None, description="Least cosine of a hit found by meaning alone; empty: the embedder's measured floor."
    )
    min_answer_confidence: Fraction | None = Field(
        default=None,
        description="Limit of `not_known` for programs of earlier versions; read `match` instead.",
    )
    suspects: bool = Field(
        default=True,
        description="Compare new memories with existing ones, and list pairs that conflict.",
    )
    embedder: Annotated[str, AfterValidator(_check_embedder)] = Field(
        default="local",
        description="Model that turns text into vectors: `local`, `languages`, `openai`, `none`, or an embedder of an "
        "installed distribution; the first two and `none` never use a network. If it is not set, an "
        "`embedding_model` of OpenAI's chooses `openai`.",
    )
    embedding_model: str | None = Field(
        default=None,
        min_length=1,
        description="Model of `openai`, or for `local` a folder with an ONNX model, written with a slash; empty: the "
        "embedder's own.",
    )
    embedding_dimensions: Positive | None = Field(
        default=None, description="Length of the vectors of `openai`; empty: the model's own."
    )
    embedding_base_url: str | None = Field(
        default=None, description="For `openai`: another address that speaks OpenAI's API."
    )
    qdrant_url: SecretStr | None = Field(
        default=None,
        description="Server for `backend: server`; its key comes from the environment variable QDRANT_API_KEY.",
    )
    qdrant_collection: str = Field(
        default="agent_memory",
        pattern=r"^[A-Za-z0-9_-]{1,128}$",
        description="Its collection; one holds many agents.",
    )
    qdrant_shards: Positive | None = Field(
        default=None, description="Shards of a collection that is created; empty: the server's default."
    )
    qdrant_replicas: Positive | None = Field(
        default=None, description="Copies of a collection that is created; empty: the server's default."
    )
    migration_threshold: Positive = Field(
        default=PAYS_FROM, description=f"Memories from which an index is suggested: {ENGINE_PAYS}."
    )
    auto_migrate: bool = Field(default=False, description="Create the index without asking.")
    migration_batch_size: Positive = Field(default=100, description="Memories moved at a time.")
    enable_caching: bool = Field(
        default=True,
        description="Keep vectors in a file, so that no text is embedded twice. Without it, each process embeds what "
        "it searches, and no index is built.",
    )
    freshness_decay_rate: Rate = Field(default=0.1, description="Daily rate at which the aging part of a score falls.")
    freshness_floor: Fraction | None = Field(
        default=None, description="Share of a score that does not fall with age; empty: the measured default."
    )
    access_boost_rate: Rate = Field(default=0.05, description="Amount that each access adds to a score.")
    promotion_access_threshold: Positive = Field(
        default=3, description="Accesses after which a memory is shown in the scratchpad."
    )
    lock_timeout: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds that a change waits while another process is writing; then it is refused as `busy`.",
    )
    projects: bool = Field(
        default=True,
        description="Store the project with each memory, and prefer memories of the session's project.",
    )
    project: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="The session's project; empty: the repository it works in.",
    )
    inbox_days: Positive = Field(
        default=28,
        description="Days in the inbox; then waiting notes are archived, and those that need a yes are deleted.",
    )
    show_changes: bool = Field(
        default=True, description="Show the user one line for each change that capture, the model or upkeep made."
    )
    max_scratchpad_entries: int = Field(default=50, ge=1, le=100, description="Most entries in the scratchpad.")
    health: HealthSettings = Field(default=HealthSettings(), description="Mapping of [limits](#health) for warnings.")
    encryption: EncryptionSettings = Field(
        default=EncryptionSettings(),
        description="Mapping: [source of the key](#encryption) of [encrypted memories](../how-to/encrypt.md).",
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _choose_embedder(cls, values: Any) -> Any:
        """Derive the embedder from the name of a model."""
        if not isinstance(values, dict):
            return values
        model, embedder = values.get("embedding_model"), values.get("embedder")
        if embedder is None and model in OPENAI_DIMENSIONS:
            return {**values, "embedder": "openai"}
        if embedder in {None, "local"} and model == LOCAL_MODEL:
            return {**values, "embedding_model": None}
        return values

    @pydantic.model_validator(mode="after")
    def _check_contradictions(self, info: pydantic.ValidationInfo) -> Self:
        """Refuse contradicting values, except in incomplete settings (`partial`)."""
        contradiction = None if (info.context or {}).get("partial") else _find_contradiction(self)
        if contradiction:
            raise ValueError(contradiction)
        return self


def _find_contradiction(settings: ServiceSettings) -> str | None:
    """Return the keys and reason of a contradiction, or None."""
    model, dimensions = settings.embedding_model, settings.embedding_dimensions
    is_openai, is_local = settings.embedder == "openai", settings.embedder == "local"
    is_known, is_folder = model in OPENAI_DIMENSIONS, model is not None and re.search(r"[/\\]", model) is not None
    rules = {
        "'backend: vector' keeps vectors in files, which 'enable_caching: false' forbids; change one of the two": (
            settings.backend == "vector" and not settings.enable_caching
        ),
        f"the length of the vectors of '{model}' is not known; set 'embedding_dimensions'": (
            is_openai and model is not None and not is_known and dimensions is None
        ),
        f"'embedding_model: {model}' is a model of OpenAI's, but 'embedder' is local; set 'embedder: openai', or "
        "remove 'embedding_model'": is_local and is_known,
        f"'embedding_model: {model}' is neither a model of OpenAI's ({', '.join(OPENAI_DIMENSIONS)}) nor a folder, "
        f"which is written with a slash, such as './{model}'; for a server that speaks OpenAI's API set "
        "'embedder: openai'": (is_local and model is not None and not is_folder),
        "'embedding_dimensions' is for 'embedder: openai'; a local model has a length of its own": (
            is_local and dimensions not in {None, None if is_folder else LOCAL_DIMENSION}
        ),
        "'embedding_base_url' is for 'embedder: openai', but 'embedder' is local": (
            is_local and settings.embedding_base_url is not None
        ),
    }
    return next((text for text, is_broken in rules.items() if is_broken), None)


TOOL_NAMES: Final = (
    "memory_search",
    "memory_store",
    "memory_promote",
    "memory_list_recent",
    "memory_update",
    "memory_forget",
    "memory_status",
    "memory_activate",
    "memory_suspects",
)
KNOWLEDGE_TOOLS: Final = ("recall", "remember", "list_categories", "get_category", "digest")
TENANT: Final = r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}"
"""Regular expression for the name of a tenant, the owner of a session in a host for many."""
OFFERED_TOOLS: Final = TOOL_NAMES[:-1]
"""Tools offered by default: each costs tokens in every request."""
DEFAULT_TOKEN_BUDGET: Final = 2000  # of the scratchpad


def tools_among(names: tuple[str, ...]) -> AfterValidator:
    """Return a validator that refuses unknown tools and removes duplicates."""

    def check(tools: tuple[str, ...]) -> tuple[str, ...]:
        for name in tools:
            if name not in names:
                raise ValueError(f"no tool {name!r}{did_you_mean(name, names)}")
        return tuple(dict.fromkeys(tools))

    return AfterValidator(check)


class ToolSettings(Settings):
    """Settings of `tool-memory-semantic`."""

    tools: Annotated[tuple[str, ...], tools_among(TOOL_NAMES)] = Field(
        default=OFFERED_TOOLS, description="Tools to offer."
    )
    local_tools: tuple[str, ...] = Field(
        default=(),
        description="Python packages of tools, or `PACKAGE:TOOL`, whose output is [trusted]"
        "(../explanation/trust.md#tainted-sessions), in addition to ours and the todo tool.",
    )
    untrusted_tools: tuple[str, ...] = Field(
        default=(), description="Packages or names of tools, also as patterns, whose output is never trusted."
    )
    trusted_tools: tuple[str, ...] = Field(
        default=(),
        description="Patterns of names of tools whose output is trusted. Any tool can have a name: use `local_tools`.",
    )


class ScratchpadSettings(Settings):
    """Settings of `context-memory-scratchpad`."""

    token_budget: int = Field(
        default=DEFAULT_TOKEN_BUDGET, ge=1, le=100_000, description="Most tokens of the scratchpad."
    )
    include_timestamps: bool = Field(default=True, description="Show the day a memory was stored.")
    include_categories: bool = Field(default=True, description="Show its category.")
    include_tags: bool = Field(default=True, description="Show its tags.")
    exclude_categories: tuple[str, ...] = Field(default=(), description="Categories that are not shown.")
    inject_in_subsessions: bool = Field(
        default=False, description="Also show it to sub-agents; the memory-assistant always sees it."
    )
    briefing: bool = Field(default=True, description="Show once what is relevant to the first prompt of a session.")
    briefing_tokens: int = Field(default=500, ge=100, le=10_000, description="Most tokens of the briefing.")


class CapturePattern(Settings):
    """Capture rule of a user: regular expression, category and confidence (0..1)."""

    pattern: str = Field(min_length=1, max_length=1000)
    category: str = Field(default="note", pattern=r"^[a-z][a-z0-9_]{0,63}$")
    confidence: Fraction = 0.6

    @pydantic.model_validator(mode="before")
    @classmethod
    def _wrap_text(cls, values: object) -> object:
        return {"pattern": values} if isinstance(values, str) else values

    @pydantic.field_validator("pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class CaptureSettings(Settings):
    """Settings of `hooks-memory-capture`."""

    capture_patterns: tuple[CapturePattern, ...] = Field(
        default=(), description="Further rules, in addition to the built-in ones; a string is a pattern."
    )
    builtin_rules: bool = Field(
        default=True, description="Use the built-in rules; `false` uses only your own patterns."
    )
    min_confidence: Fraction = Field(
        default=0.5,
        description="Findings with less confidence are dropped.",
    )
    observe_tool_outputs: bool = Field(default=True, description="Capture from the output of tools.")
    observe_turn_completions: bool = Field(
        default=True, description="Capture from the agent's answer at the end of a turn."
    )
    observe_session_end: bool = Field(default=False, description="Capture again at the end of a session.")
    min_content_length: Positive = Field(
        default=10,
        description="Fewest characters of a captured text; Chinese, Japanese and Korean ones count twice.",
    )
    max_content_length: int = Field(default=10_000, ge=1, le=10_000, description="Most characters of a captured text.")
    max_captures_per_session: int = Field(default=100, ge=0, description="Most captures in one session.")
    async_capture: bool = Field(default=True, description="Capture in the background.")
