"""Whether the vector engine can be used with some settings, and what to do where it cannot."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

import pydantic

from agent_memory.embeddings import EmbeddingService, embedder_of, provider_of
from agent_memory.errors import ConfigurationError
from agent_memory.models import describe
from agent_memory.registry import ENGINES
from agent_memory.settings import OPENAI_DIMENSIONS, ServiceSettings
from agent_memory.settings.installation import Part, advice

ENGINE: Final = "qdrant_edge"
"""Package of the vector engine."""


def is_installed() -> bool:
    """Return True if the vector engine can be loaded; loads nothing."""
    return ENGINES.is_installed and find_spec(ENGINE) is not None


def with_model(settings: ServiceSettings | None, model: str | None) -> ServiceSettings | None:
    """Return settings with another embedding model: one of OpenAI's by its name, else a local one's name or folder.

    Raises:
        ConfigurationError: There is no such model.
    """
    if model is None:
        return settings
    given = (settings or ServiceSettings()).model_dump(exclude_unset=True)
    embedder = "openai" if model in OPENAI_DIMENSIONS else "local"
    try:
        return ServiceSettings(**{**given, "embedder": embedder, "embedding_model": model})
    except pydantic.ValidationError as error:
        raise ConfigurationError(describe(error)) from None


def can_grow(settings: ServiceSettings) -> bool:
    """Tell whether the vector engine and an embedder are there, and vectors may be kept in files."""
    return settings.enable_caching and is_installed() and embedder_of(settings) is not None


def cannot_migrate_error(settings: ServiceSettings) -> ConfigurationError:
    """Return the error that names what a memory in files lacks for being moved to the vector engine."""
    packages: list[Part] = [] if is_installed() else ["vector"]
    lacking = [] if is_installed() else ["the vector engine is not installed"]
    if settings.embedder == "none":
        lacking.append("the setting embedder is 'none'")
    elif embedder_of(settings) is None:
        packages += [part] if (part := provider_of(settings.embedder).part) else []
        lacking.append(f"the embedder {settings.embedder!r} is not installed")
    if not settings.enable_caching:
        lacking.append("the setting enable_caching is false")
    if settings.backend != "auto":
        lacking.append(f"the setting backend is {settings.backend!r}, not 'auto'")
    why = "; ".join(lacking) or "it was opened as a memory in files alone"
    return ConfigurationError(
        f"This memory cannot be moved to the vector engine: {why}.",
        code="cannot_migrate",
        recovery=advice(*packages) if packages else "Change that, then try again; until then the files are searched.",
    )


def no_engine_error(embeddings: EmbeddingService[Any]) -> ConfigurationError:
    """Return the error that says why there is no vector backend here."""
    if not is_installed():
        return ConfigurationError(
            "The vector backend needs a package that is not installed.",
            code="engine_missing",
            recovery=f"Set backend to 'file', or install it. {advice('vector')}",
        )
    return ConfigurationError(
        "The vector backend needs vectors, but there is no embedder.",
        code="no_embedder",
        recovery=f"Set embedder to 'local' or 'openai', or backend to 'file'. Now: {embeddings.describe()['reason']}",
    )
