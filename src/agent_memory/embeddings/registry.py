"""Which embedders there are, by the names that the setting `embedder` knows: ours, and those of other distributions.

Another distribution offers one by an entry point of the group `agent_memory.embedders` that leads to a `Provider`.
Nothing of it is imported before its name is in a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.local import LOCAL
from agent_memory.embeddings.openai_api import OPENAI
from agent_memory.embeddings.protocol import Provider
from agent_memory.errors import ConfigurationError
from agent_memory.settings.installation import EMBEDDERS_GROUP, advice, find_entry_points

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity
    from agent_memory.settings import ServiceSettings

PROVIDERS: Final[dict[str, Provider]] = {"local": LOCAL, "openai": OPENAI}
"""Those of this distribution; others are entry points of their own distributions."""
SWITCHED_OFF: Final = "embedder is set to none"


def provider_of(name: str) -> Provider:
    """Return the provider of a name.

    Raises:
        ConfigurationError: There is none, or what a distribution offers under this name is none.
    """
    if name in PROVIDERS:
        return PROVIDERS[name]
    entry = find_entry_points(EMBEDDERS_GROUP).get(name)
    found = None if entry is None else entry.load()
    if isinstance(found, Provider):
        return found
    whose = f"{entry.value} is no Provider" if entry is not None else "no installed distribution offers it"
    raise ConfigurationError(
        f"There is no embedder {name!r}: {whose}.",
        recovery=f"Set embedder to one of: {', '.join([*PROVIDERS, 'none'])}.",
    )


def embedder_of(settings: ServiceSettings) -> Embedder | None:
    """Return the embedder that `settings` ask for, not yet loaded; None if it is switched off or not installed.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if settings.embedder == "none":
        return None
    provider = provider_of(settings.embedder)
    return None if provider.lacking() else provider.make(settings)


def reason_without(settings: ServiceSettings) -> str:
    """Return, for people, why there is no embedder."""
    if settings.embedder == "none":
        return SWITCHED_OFF
    provider = provider_of(settings.embedder)
    how = advice(provider.part) if provider.part else f"It needs {', '.join(provider.lacking())}."
    return f"the embedder {settings.embedder!r} is not installed. {how}"


def estimate_embedding(identity: EmbedderIdentity, texts: int, characters: int) -> tuple[float, float]:
    """Return about how many seconds and US dollars embedding takes; nothing where the provider says nothing.

    Args:
        identity: Whose vectors.
        texts: How many texts.
        characters: Their length together.
    """
    try:
        provider = provider_of(identity.provider)
    except ConfigurationError:  # an embedder that a program handed in
        return 0.0, 0.0
    return provider.seconds_a_text * texts, provider.price(identity.model, characters)
