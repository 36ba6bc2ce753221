"""Every setting, its default and its check. Reads no file and no environment: the host hands the values in.

Three modules are configured apart but share one memory. What concerns the store itself is in `ServiceSettings` and may
be given to any of them; `merge_shared` refuses two different explicit values.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from agent_memory.errors import ConfigurationError
from agent_memory.models import check_agent_id

if TYPE_CHECKING:
    from collections.abc import Mapping

Positive = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

TOOL_NAMES: Final = (
    "memory_search",
    "memory_store",
    "memory_promote",
    "memory_list_recent",
    "memory_update",
    "memory_forget",
    "memory_status",
    "memory_activate",
)
_DEFAULT_ROOT: Final = "~/.amplifier/memory"


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ServiceSettings(_Settings):
    """What belongs to the one memory service of a session, whichever module it was given to."""

    agent_id: Annotated[str, AfterValidator(check_agent_id)] | None = None
    storage_root: str = Field(default=_DEFAULT_ROOT, min_length=1)
    backend: Literal["auto", "file", "vector", "server"] = "auto"
    default_search_limit: int = Field(default=5, ge=1, le=100)
    similarity_threshold: Fraction | None = Field(default=None, description="None: the embedder's own measured floor.")
    embedder: Literal["local", "openai", "none"] = "local"
    embedding_model: str = "all-MiniLM-L6-v2"
    embedding_dimensions: Positive = 384
    qdrant_url: SecretStr | None = None
    migration_threshold: Positive = 5000
    auto_migrate: bool = False
    migration_batch_size: Positive = 100
    enable_caching: bool = True
    cache_ttl_seconds: Positive = Field(default=300, description="Accepted and ignored: the journal is always fresh.")
    freshness_decay_rate: Rate = 0.1
    freshness_floor: Fraction | None = Field(default=None, description="None: the measured default of retrieval.")
    access_boost_rate: Rate = 0.05
    promotion_access_threshold: Positive = 3
    max_scratchpad_entries: int = Field(default=50, ge=1, le=100)


class ToolSettings(_Settings):
    """Of `tool-memory-semantic` alone."""

    tools: tuple[str, ...] = Field(default=TOOL_NAMES, description="Allow-list: the tools to offer.")
    low_trust_tools: tuple[str, ...] = Field(
        default=("*web*", "*fetch*", "*browse*", "*http*", "*scrape*", "*crawl*", "*mail*", "mcp*"),
        description="Patterns of tool names whose output is strangers' words; what is stored after it has low trust.",
    )

    @pydantic.field_validator("tools")
    @classmethod
    def _known(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        for name in tools:
            if name not in TOOL_NAMES:
                raise ValueError(f"there is no tool {name!r}{_did_you_mean(name, TOOL_NAMES)}")
        return tuple(dict.fromkeys(tools))


class ScratchpadSettings(_Settings):
    """Of `context-memory-scratchpad` alone."""

    token_budget: int = Field(default=2000, ge=1, le=100_000)
    include_timestamps: bool = True
    include_categories: bool = True
    include_tags: bool = True
    exclude_categories: tuple[str, ...] = ()
    inject_in_subsessions: bool = False


class CapturePattern(_Settings):
    """One rule of a user's own: a regular expression, the category of what it finds, how sure it is (0..1)."""

    pattern: str = Field(min_length=1, max_length=1000)
    category: str = Field(default="note", pattern=r"^[a-z][a-z0-9_]{0,63}$")
    confidence: Fraction = 0.6

    @pydantic.field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class CaptureSettings(_Settings):
    """Of `hooks-memory-capture` alone."""

    capture_patterns: tuple[CapturePattern, ...] = Field(
        default=(), description="Further rules, beside the built-in ones; a bare string is a pattern."
    )
    min_confidence: Fraction = 0.5
    observe_tool_outputs: bool = True
    observe_turn_completions: bool = True
    observe_session_end: bool = False
    min_content_length: Positive = 10
    max_content_length: int = Field(default=10_000, ge=1, le=10_000)
    max_captures_per_session: int = Field(default=100, ge=0)
    async_capture: bool = True

    @pydantic.field_validator("capture_patterns", mode="before")
    @classmethod
    def _bare_strings(cls, patterns: object) -> object:
        if not isinstance(patterns, list | tuple):
            return patterns
        return [{"pattern": item} if isinstance(item, str) else item for item in patterns]


SettingsT = TypeVar("SettingsT", bound=_Settings)


def parse_module_config(
    module: str, own: type[SettingsT], raw: Mapping[str, Any] | None
) -> tuple[SettingsT, dict[str, Any], list[str]]:
    """Split a module's configuration.

    Returns:
        Its own settings; the shared values that were given explicitly, checked; warnings about unknown keys.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value.
    """
    if raw is not None and not hasattr(raw, "items"):
        raise ConfigurationError(f"The configuration of {module} is not a mapping of keys to values.")
    given = {str(key): value for key, value in (raw or {}).items() if value is not None}
    known = {**own.model_fields, **ServiceSettings.model_fields}
    warnings = [
        f"{module}: unknown setting {key!r} is ignored{_did_you_mean(key, known)}" for key in given if key not in known
    ]
    own_values = {key: value for key, value in given.items() if key in own.model_fields}
    shared = {key: value for key, value in given.items() if key in ServiceSettings.model_fields}
    build_settings(module, ServiceSettings, shared)
    return build_settings(module, own, own_values), shared, warnings


def build_settings(module: str, kind: type[SettingsT], values: Mapping[str, Any]) -> SettingsT:
    """Return `kind` made of `values`.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value.
    """
    try:
        return kind.model_validate(dict(values))
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "configuration"
        raise ConfigurationError(f"{module}: setting {key!r} is wrong: {first['msg']}.") from None


def merge_shared(given: Mapping[str, Mapping[str, Any]]) -> ServiceSettings:
    """Return the service's settings from what each module was given explicitly.

    Args:
        given: Module id to its explicit shared values.

    Raises:
        ConfigurationError: Two modules were given different values for one key; names both.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for module, values in given.items():
        for key, value in values.items():
            if key in merged and merged[key] != value:
                raise ConfigurationError(
                    f"{origin[key]} has {key}={merged[key]!r} and {module} has {key}={value!r}, "
                    f"but both share one memory.",
                    code="conflicting_settings",
                    recovery=f"Give {key} to one of the two modules, or the same value to both.",
                )
            merged[key], origin[key] = value, module
    return build_settings(" / ".join(given) or "agent-memory", ServiceSettings, merged)


def _did_you_mean(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
