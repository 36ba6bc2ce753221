"""What configures a `MemoryStore`: keys and defaults of its contract, and the settings of the memory below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import Field

from agent_memory.errors import ConfigurationError
from agent_memory.settings import OPENAI_DIMENSIONS, ServiceSettings, Settings
from agent_memory.store.shards import with_model

if TYPE_CHECKING:
    from agent_memory.embeddings import Embedder

_MODEL: Final = "text-embedding-ada-002"
_DIMENSION: Final = 1536
_STORAGE: Final = "memory_store"
_MOST_CANDIDATES: Final = 100


class EmbeddingConfig(Settings):
    """How texts are embedded and compared; a value that is not the default is taken over, or has to fit.

    The defaults of `model_name`, `embedding_dimension` and `similarity_threshold` stand for what the settings of the
    memory say: without a word about it nothing asks a network. `batch_size` is accepted and changes nothing: how many
    texts an embedder takes at once is its own.
    """

    model_name: str = Field(
        default=_MODEL, min_length=1, description="Model of OpenAI's, or a folder with a local one; default: settings'."
    )
    embedding_dimension: int = Field(
        default=_DIMENSION, ge=1, description="What vectors have to have, where `model_name` or an embedder is given."
    )
    batch_size: int = Field(default=100, ge=1)
    similarity_threshold: float = Field(
        default=0.7, ge=0, le=1, description="Least cosine of what shares no word; default: the embedder's own floor."
    )
    max_similarity_results: int = Field(
        default=50, ge=1, le=_MOST_CANDIDATES, description="Candidates of each kind that are weighed, at least."
    )


class CleanupConfig(Settings):
    """The numbers by which a store proposes what is tidied, see `agent_memory.care.tidying.Cleanup`.

    `cleanup_interval_hours` is accepted and changes nothing: nothing runs by itself.
    """

    cleanup_interval_hours: int = Field(default=24, ge=1)
    min_importance_threshold: float = Field(
        default=0.3, ge=0, le=1, description="What is less important is proposed for the archive for its age."
    )
    max_age_days: int = Field(default=90, ge=1, description="What is older in the archive is proposed for deletion.")
    max_entries: int = Field(default=10_000, ge=1, description="The least important of more are proposed.")
    delete_unaccessed_days: int = Field(default=30, ge=1, description="What was used within so many days stays.")
    archive_old_entries_days: int = Field(default=60, ge=1, description="What is older is proposed for the archive.")


class ArchivalConfig(Settings):
    """What a preview proposes for the archive where its criteria say nothing else."""

    archive_after_days: int = Field(default=60, ge=1, description="Days without a use.")
    max_importance: float = Field(default=0.8, ge=0, le=1, description="More important ones are not proposed.")


class MemoryStoreConfig(Settings):
    """How a `MemoryStore` works.

    An index, and copies, lie in the folder of each agent below `storage_path`: `index_path` and `backup_path` are
    checked to lie there, too. `cache_size` and `query_cache_size` are accepted and change nothing: entries are
    in memory anyway, and an answer that was kept would go on naming what was forgotten since.
    """

    storage_path: str = Field(default=_STORAGE, min_length=1, description="Root of all agents' folders.")
    index_path: str = Field(default="memory_store/indexes", min_length=1)
    backup_path: str = Field(default="memory_store/backups", min_length=1)
    cache_size: int = Field(default=1000, ge=0)
    query_cache_size: int = Field(default=500, ge=0)
    max_file_size_mb: int = Field(default=100, ge=1, description="Statistics name the journals that are larger.")
    embedding_config: EmbeddingConfig = Field(default_factory=EmbeddingConfig)
    cleanup_config: CleanupConfig = Field(default_factory=CleanupConfig)
    archival_config: ArchivalConfig = Field(default_factory=ArchivalConfig)
    max_context_length: int = Field(default=2000, ge=1, description="Tokens of a context for a query.")
    max_retrieval_results: int = Field(default=10, ge=1, le=_MOST_CANDIDATES, description="Entries of an answer.")
    relevance_threshold: float = Field(
        default=0.6, ge=0, le=1, description="Least relevance of an entry, on the scale of the profile `weighted`."
    )


def settings_of(
    config: MemoryStoreConfig, settings: ServiceSettings | None, embedder: Embedder | None = None
) -> ServiceSettings:
    """Return the settings of the memory below.

    Args:
        config: Of the store.
        settings: Of the program; the defaults when omitted.
        embedder: One of the program's own.

    Raises:
        ConfigurationError: Two folders or two thresholds are named, the model is unknown, vectors have another
            dimension, or a path lies outside the storage.
    """
    embedding = config.embedding_config
    chosen = settings or ServiceSettings()
    if embedding.model_name != _MODEL:
        chosen = with_model(chosen, embedding.model_name) or chosen
    changes = {
        "storage_root": _one("storage_path", config.storage_path, _STORAGE, "storage_root", chosen),
        "similarity_threshold": _one(
            "similarity_threshold", embedding.similarity_threshold, 0.7, "similarity_threshold", chosen
        ),
    }
    _check_dimension(embedding, embedder, chosen)
    _check_within(config)
    given = chosen.model_dump(exclude_unset=True)
    return ServiceSettings(**{**given, **{name: value for name, value in changes.items() if value is not None}})


def _one(name: str, value: object, default: object, shared: str, settings: ServiceSettings) -> object:
    """Return the one value that the store and the settings name; None leaves it to the settings."""
    is_set = shared in settings.model_fields_set and getattr(settings, shared) is not None
    if value == default:
        return None if is_set or name != "storage_path" else default
    if is_set and getattr(settings, shared) != value:
        raise ConfigurationError(
            f"{name}={value!r} and {shared}={getattr(settings, shared)!r} are two values of one setting.",
            code="conflicting_settings",
            recovery=f"Give {name} or {shared}, or the same value to both.",
        )
    return value


def _check_dimension(config: EmbeddingConfig, embedder: Embedder | None, settings: ServiceSettings) -> None:
    known = None if embedder is None else embedder.identity.dimension
    if known is None and config.model_name != _MODEL:
        known = settings.embedding_dimensions or OPENAI_DIMENSIONS.get(config.model_name)
    wanted = config.embedding_dimension
    is_asked = wanted != _DIMENSION or config.model_name != _MODEL
    if is_asked and known is not None and known != wanted:
        raise ConfigurationError(f"embedding_dimension is {wanted}, and the embedder's vectors have {known}.")


def _check_within(config: MemoryStoreConfig) -> None:
    """Refuse an index or backups elsewhere, unless nothing was said of them."""
    root = Path(config.storage_path).expanduser().absolute()
    for name in ("index_path", "backup_path"):
        path = Path(getattr(config, name)).expanduser().absolute()
        if name in config.model_fields_set and not path.is_relative_to(root):
            raise ConfigurationError(
                f"{name} lies outside storage_path; what belongs to an agent lies in its folder.",
                code="path_outside",
                recovery=f"Leave {name} out, or name a folder below storage_path.",
            )
