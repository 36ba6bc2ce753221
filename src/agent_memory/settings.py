"""Every setting, its default and its check. Reads no file and no environment: the host hands the values in.

Three modules are configured apart but share one memory. What concerns the store itself is in `ServiceSettings` and may
be given to any of them; `merge_shared` refuses two different explicit values.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeVar

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from agent_memory.errors import ConfigurationError
from agent_memory.installing import EMBEDDERS_GROUP, offered
from agent_memory.models import check_agent_id, describe

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
    "memory_suspects",
)
OFFERED_TOOLS: Final = TOOL_NAMES[:-1]
"""Those that are offered unless a configuration names others: each costs tokens in every request."""
DEFAULT_ROOT: Final = "~/.amplifier/memory"
PERSON_SECONDS: Final = 5.0
"""To wait for a lock where somebody sits at a terminal, instead of `lock_timeout`."""
DEFAULT_TOKEN_BUDGET: Final = 2000  # of the scratchpad
LOCAL_MODEL: Final = "all-MiniLM-L6-v2"
LOCAL_DIMENSION: Final = 384
EMBEDDERS: Final = ("local", "openai", "none")
"""What this distribution has; others offer more by entry points."""
PAYS_FROM: Final = 5_000_000
"""Memories from which the vector engine may make searches faster: an estimate, since segments were as fast at 100,000
(decision 15). Comparing sign codes takes about 10 ms a million, asking the engine a few at any size."""
ENGINE_PAYS: Final = f"asking the vector engine is estimated to be faster from {PAYS_FROM:,} memories on"
OPENAI_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""Models that OpenAI's API offers, and the length of their vectors."""
WITHOUT_EFFECT: Final = {
    "cache_ttl_seconds": "memories are read from the journal, which is always current, so nothing has to expire",
}
"""Settings of earlier configurations that are accepted and do nothing, each with the reason, which a warning states."""


def _check_embedder(name: str) -> str:
    if name not in EMBEDDERS and name not in (others := offered(EMBEDDERS_GROUP)):
        raise ValueError(f"must be one of: {', '.join([*EMBEDDERS, *others])}")
    return name


class Settings(BaseModel):
    """What all sections have in common: no unknown key, nothing of a value in an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


class ServiceSettings(Settings):
    """What belongs to the one memory service of a session, whichever module it was given to."""

    agent_id: Annotated[str, AfterValidator(check_agent_id)] | None = Field(
        default=None, description="The agent whose memory is used when nothing else names one."
    )
    storage_root: str = Field(default=DEFAULT_ROOT, min_length=1, description="Folder of all agents' memories.")
    backend: Literal["auto", "file", "vector", "server"] = Field(
        default="auto", description="Where searches run; `auto` begins with files."
    )
    default_search_limit: int = Field(default=5, ge=1, le=100, description="Results when a search names no limit.")
    similarity_threshold: Fraction | None = Field(
        default=None, description="Least cosine of a hit found by meaning alone; empty: the embedder's measured floor."
    )
    min_answer_confidence: Fraction | None = Field(
        default=None,
        description="Least confidence of an answer that does not say `not_known`; empty: the measured default, 0.2.",
    )
    suspects: bool = Field(
        default=True,
        description="Compare what is stored with what is known, and list pairs that look as if they cannot both be "
        "right; what replaces something in plain words replaces it at once.",
    )
    embedder: Annotated[str, AfterValidator(_check_embedder)] = Field(
        default="local",
        description="What turns text into vectors: `local`, `openai`, `none`, or what an installed distribution offers "
        "by that name; `local` and `none` never use a network. Where it is not set, an `embedding_model` of OpenAI's "
        "chooses `openai`.",
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
        default=PAYS_FROM, description=f"From so many memories on, an index is suggested: {ENGINE_PAYS}."
    )
    auto_migrate: bool = Field(default=False, description="Move to it without asking.")
    migration_batch_size: Positive = Field(default=100, description="Memories moved at a time.")
    enable_caching: bool = Field(
        default=True,
        description="Keep vectors in a file, so that no text is embedded twice; without it each process embeds what it "
        "searches, no file of vectors is used, and no index is built.",
    )
    freshness_decay_rate: Rate = Field(
        default=0.1, description="How fast the part of a score that ages does so, a day."
    )
    freshness_floor: Fraction | None = Field(
        default=None, description="Share of a score that age cannot take; empty: the measured default."
    )
    access_boost_rate: Rate = Field(default=0.05, description="What each access adds to a score.")
    promotion_access_threshold: Positive = Field(
        default=3, description="After so many accesses a memory comes into the scratchpad."
    )
    lock_timeout: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds that a change waits while another process is writing; then it is refused as `busy`.",
    )
    max_scratchpad_entries: int = Field(default=50, ge=1, le=100, description="Entries in the scratchpad at most.")

    @pydantic.model_validator(mode="before")
    @classmethod
    def _choose_embedder(cls, values: Any) -> Any:
        """Take a model of OpenAI's for the wish to use OpenAI, and the name of the local model for the default."""
        if not isinstance(values, dict):
            return values
        model, embedder = values.get("embedding_model"), values.get("embedder")
        if embedder is None and model in OPENAI_DIMENSIONS:
            return {**values, "embedder": "openai"}
        if embedder in {None, "local"} and model == LOCAL_MODEL:
            return {**values, "embedding_model": None}
        return values

    @pydantic.model_validator(mode="after")
    def _fit_together(self, info: pydantic.ValidationInfo) -> Self:
        """Refuse values that contradict each other, unless they are a part of the settings only (`partial`)."""
        contradiction = None if (info.context or {}).get("partial") else _contradiction(self)
        if contradiction:
            raise ValueError(contradiction)
        return self


def _contradiction(settings: ServiceSettings) -> str | None:
    """Return why two of the values cannot both hold, naming their keys; None if all fit."""
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


def tools_among(known: tuple[str, ...]) -> AfterValidator:
    """Return what refuses names that no tool has, and takes each once."""

    def check(tools: tuple[str, ...]) -> tuple[str, ...]:
        for name in tools:
            if name not in known:
                raise ValueError(f"there is no tool {name!r}{did_you_mean(name, known)}")
        return tuple(dict.fromkeys(tools))

    return AfterValidator(check)


class ToolSettings(Settings):
    """Of `tool-memory-semantic` alone."""

    tools: Annotated[tuple[str, ...], tools_among(TOOL_NAMES)] = Field(
        default=OFFERED_TOOLS, description="Allow-list: the tools to offer."
    )
    low_trust_tools: tuple[str, ...] = Field(
        default=(
            *("*web*", "*fetch*", "*brows*", "*http*", "*scrap*", "*crawl*", "*mail*", "mcp*", "*search*", "*url*"),
            *("*curl*", "*wget*", "*download*", "*rss*", "feed_*", "*_feed*", "*news*", "*internet*", "*online*"),
            *("*inbox*", "*github*", "*gitlab*", "gh_*", "*issue*", "*ticket*", "*jira*", "linear_*", "*slack*"),
            *("*discord*", "*teams*", "*telegram*", "*notion*", "*confluence*", "*wiki*", "*drive*", "*dropbox*"),
            *("*sharepoint*", "*calendar*", "*outlook*", "*imap*", "*chat_history*", "*transcript*", "*youtube*"),
            *("*video*", "*twitter*", "*tweet*", "*reddit*", "*arxiv*", "*pubmed*", "*tavily*", "*perplexity*"),
            *("*exa_*", "*page*", "*visit*", "*navigat*", "*playwright*", "*puppeteer*", "*selenium*"),
            *("*computer_use*", "*_prs", "*api_request*", "*api_call*", "*get_message*", "*read_message*"),
            *("*whatsapp*", "*zendesk*", "*intercom*", "*firecrawl*", "*serp*", "*pull_request*", "*comment*"),
            *("*forum*", "*stackoverflow*", "*a2a*"),
        ),
        description="Patterns of tool names whose output is strangers' words; after it the session is untrusted, see "
        "trust.md. The words of a shell that calls the network count, too.",
    )
    trusted_tools: tuple[str, ...] = Field(
        default=(
            *("memory_*", "grep*", "glob*", "todo*", "lsp*", "code_search", "search_code", "codebase_search"),
            *("search_codebase", "search_files", "search_file", "file_search", "find_files", "symbol_search"),
            *("search_symbols", "search_replace", "search_and_replace", "tool_search", "search_tools"),
            *("skill_search", "search_skills"),
        ),
        description="Patterns of names that are none of these, although one fits: tools that read what is here.",
    )


class ScratchpadSettings(Settings):
    """Of `context-memory-scratchpad` alone."""

    token_budget: int = Field(default=DEFAULT_TOKEN_BUDGET, ge=1, le=100_000, description="Tokens it takes at most.")
    include_timestamps: bool = Field(default=True, description="Show the day a memory was stored.")
    include_categories: bool = Field(default=True, description="Show its category.")
    include_tags: bool = Field(default=True, description="Show its tags.")
    exclude_categories: tuple[str, ...] = Field(default=(), description="Categories that are not shown.")
    inject_in_subsessions: bool = Field(
        default=False, description="Also show it to sub-agents; the memory-assistant always sees it."
    )
    briefing: bool = Field(default=True, description="Tell, once, what bears on the first prompt of a session.")
    briefing_tokens: int = Field(default=500, ge=100, le=10_000, description="Tokens the briefing takes at most.")


class CapturePattern(Settings):
    """One rule of a user's own: a regular expression, the category of what it finds, how sure it is (0..1)."""

    pattern: str = Field(min_length=1, max_length=1000)
    category: str = Field(default="note", pattern=r"^[a-z][a-z0-9_]{0,63}$")
    confidence: Fraction = 0.6

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_text(cls, values: object) -> object:
        return {"pattern": values} if isinstance(values, str) else values

    @pydantic.field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return pattern


class CaptureSettings(Settings):
    """Of `hooks-memory-capture` alone."""

    capture_patterns: tuple[CapturePattern, ...] = Field(
        default=(), description="Further rules, beside the built-in ones; a bare string is a pattern."
    )
    builtin_rules: bool = Field(
        default=True, description="Whether the built-in rules find anything; `false` leaves your own patterns alone."
    )
    min_confidence: Fraction = Field(
        default=0.5,
        description="Findings less sure than this are dropped; below 0.45, rules that are mostly wrong speak, too.",
    )
    observe_tool_outputs: bool = Field(default=True, description="Look at what tools return.")
    observe_turn_completions: bool = Field(
        default=True, description="Look at what the agent says at the end of a turn."
    )
    observe_session_end: bool = Field(default=False, description="Look once more at the end of a session.")
    min_content_length: Positive = Field(
        default=10,
        description="Characters a captured text has at least; Chinese, Japanese and Korean ones count twice.",
    )
    max_content_length: int = Field(default=10_000, ge=1, le=10_000, description="Characters it has at most.")
    max_captures_per_session: int = Field(default=100, ge=0, description="Captures in one session at most.")
    async_capture: bool = Field(default=True, description="Capture behind the conversation instead of within it.")


SettingsT = TypeVar("SettingsT", bound=Settings)


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
        f"{module}: setting {key!r} has no effect: {WITHOUT_EFFECT[key]}"
        if key in WITHOUT_EFFECT
        else f"{module}: unknown setting {key!r} is ignored{did_you_mean(key, known)}"
        for key in given
        if key not in known
    ]
    own_values = {key: value for key, value in given.items() if key in own.model_fields}
    shared = {key: value for key, value in given.items() if key in ServiceSettings.model_fields}
    build_settings(module, ServiceSettings, shared, partial=True)
    return build_settings(module, own, own_values), shared, warnings


def build_settings(
    module: str, kind: type[SettingsT], values: Mapping[str, Any], *, partial: bool = False
) -> SettingsT:
    """Return `kind` made of `values`.

    Args:
        module: Whose settings, for messages.
        kind: Which settings.
        values: Values by key.
        partial: Others may still come from another module, so whether they fit together is not looked at.

    Raises:
        ConfigurationError: A value is wrong; names module, key and rule, never the value. Or two of them contradict
            each other.
    """
    try:
        return kind.model_validate(dict(values), context={"partial": partial})
    except pydantic.ValidationError as error:
        raise ConfigurationError(f"{module}: {describe(error, field='setting {!r}')}.") from None


def merge_shared(given: Mapping[str, Mapping[str, Any]], *, partial: bool = False) -> ServiceSettings:
    """Return the service's settings from what each module was given explicitly.

    Args:
        given: Module id to its explicit shared values.
        partial: More modules may follow; see `build_settings`.

    Raises:
        ConfigurationError: Two modules were given different values for one key (names both), or the values
            contradict each other.
    """
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for module, values in given.items():
        for key, value in values.items():
            if key in merged and merged[key] != value:
                first, second = ("(hidden)", "(another)") if key.endswith("_url") else (merged[key], value)
                raise ConfigurationError(
                    f"{origin[key]} has {key}={first!r} and {module} has {key}={second!r}, but both share one memory.",
                    code="conflicting_settings",
                    recovery=f"Give {key} to one of the two modules, or the same value to both.",
                )
            merged[key], origin[key] = value, module
    return build_settings(" / ".join(given) or "agent-memory", ServiceSettings, merged, partial=partial)


def did_you_mean(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return `; did you mean 'KEY'?` for the known name that is nearest, or nothing where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
