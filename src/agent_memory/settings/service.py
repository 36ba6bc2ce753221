"""Settings of the one memory service of a session, whichever module they were given to."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pydantic
from pydantic import AfterValidator, Field, SecretStr

from agent_memory.installing import EMBEDDERS_GROUP, offered
from agent_memory.models import check_agent_id
from agent_memory.settings.base import Fraction, Positive, Rate, Settings
from agent_memory.settings.encryption import EncryptionSettings
from agent_memory.settings.health import HealthSettings

DEFAULT_ROOT: Final = "~/.amplifier/memory"
PERSON_SECONDS: Final = 5.0
"""To wait for a lock where somebody sits at a terminal, instead of `lock_timeout`."""
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


def _check_embedder(name: str) -> str:
    if name not in EMBEDDERS and name not in (others := offered(EMBEDDERS_GROUP)):
        raise ValueError(f"must be one of: {', '.join([*EMBEDDERS, *others])}")
    return name


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        raise ValueError("must be an IANA name such as Europe/Berlin") from None
    return name


class ServiceSettings(Settings):
    """What belongs to the one memory service of a session, whichever module it was given to."""

    agent_id: Annotated[str, AfterValidator(check_agent_id)] | None = Field(
        default=None,
        description="The agent whose memory is used when nothing else names one. If empty: `me`, and no memory where a "
        "tenant is set.",
    )
    storage_root: str = Field(default=DEFAULT_ROOT, min_length=1, description="Folder of all agents' memories.")
    timezone: Annotated[str, AfterValidator(_check_zone)] | None = Field(
        default=None,
        description="Your time zone, such as `Europe/Berlin`, for days in messages without an offset or in UTC. If "
        "empty: UTC stays UTC, and a time without an offset is the computer's.",
    )
    backend: Literal["auto", "file", "vector", "server"] = Field(
        default="auto", description="Where searches run; `auto` begins with files."
    )
    default_search_limit: int = Field(default=5, ge=1, le=100, description="Results when a search names no limit.")
    similarity_threshold: Fraction | None = Field(
        default=None, description="Least cosine of a hit found by meaning alone; empty: the embedder's measured floor."
    )
    min_answer_confidence: Fraction | None = Field(
        default=None,
        description="Limit of `not_known` for programs of earlier versions; read `match` instead.",
    )
    suspects: bool = Field(
        default=True,
        description="Compare what is stored with existing memories, and list pairs that conflict.",
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
    projects: bool = Field(
        default=True,
        description="Note with each memory to which project it belongs, and prefer those of the session's own.",
    )
    project: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="The session's project; empty: the repository it works in.",
    )
    inbox_days: Positive = Field(
        default=28,
        description="Days in the inbox: then waiting notes are archived, and what waits for a yes is dropped.",
    )
    show_changes: bool = Field(
        default=True, description="Show the user one line for each change that capture, the model or upkeep made."
    )
    max_scratchpad_entries: int = Field(default=50, ge=1, le=100, description="Entries in the scratchpad at most.")
    health: HealthSettings = Field(
        default=HealthSettings(), description="A mapping of [limits](#health): from where on what is a warning."
    )
    encryption: EncryptionSettings = Field(
        default=EncryptionSettings(),
        description="A mapping: [where the key](#encryption) of [encrypted memories](encryption.md) comes from.",
    )

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
