"""`SessionModel`: the session's own provider as the language model of knowledge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ROLE: Final = "fast"
"""Which of the models that an application names for roles is asked; without such names, the session's own."""
MOST_TOKENS: Final = 2_000
_LAST: Final = 100


class SessionModel:
    """Answers a prompt by the provider that the session itself asks first; what fails is raised.

    Args:
        coordinator: Knows the providers at the time of a call.
        request: Returns what the host takes as a request with a prompt and so many tokens for the answer: nothing is
            streamed into what the user reads.
    """

    def __init__(self, coordinator: Any, request: Callable[[str, int], Any]) -> None:
        self._coordinator, self._request = coordinator, request

    async def __call__(self, prompt: str) -> str:
        """Return the text of the answer.

        Raises:
            LookupError: The session has no provider.
        """
        provider, model = await self._chosen()
        options = {"model": model} if model else {}
        answer = await provider.complete(self._request(prompt, MOST_TOKENS), extended_thinking=False, **options)
        return "".join(block.text for block in answer.content if getattr(block, "type", "") == "text")

    async def _chosen(self) -> tuple[Any, str]:
        """Return a provider, and the name of its model where another one than its own is to be asked."""
        providers = self._coordinator.get("providers") or {}
        resolver = self._coordinator.get_capability("model_role_resolver")
        for choice in await resolver.resolve(ROLE) if resolver is not None else ():
            found = providers.get(choice.provider) or providers.get(f"provider-{choice.provider}")
            if found is not None:
                return found, choice.model
        if not providers:
            raise LookupError("the session has no provider")
        return min(providers.values(), key=_priority), ""


def _priority(provider: Any) -> float:
    """Return when a provider is asked, the lowest first, as loops read it."""
    config = getattr(provider, "config", None)
    said = getattr(provider, "priority", None)
    if said is None and isinstance(config, dict):
        said = config.get("priority")
    return said if isinstance(said, int | float) else _LAST
