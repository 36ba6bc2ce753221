"""The session's own provider as a language model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

log = get_logger(__name__)

ROLE: Final = "fast"
"""Role of the model; an application without roles uses its session's model."""
MAX_TOKENS: Final = 2_000
"""Most tokens of an answer."""
_LAST: Final = 100
_PRICE_SECONDS: Final = 5.0


class SessionModel:
    """Language model: the provider that the session asks first.

    Args:
        coordinator: Coordinator of the host; it knows the providers at the time of a call.
        request: Returns the host's request for a prompt and so many tokens of an answer.
    """

    def __init__(self, coordinator: Any, request: Callable[[str, int], Any]) -> None:
        self._coordinator, self._request = coordinator, request

    @property
    def has_provider(self) -> bool:
        """Return True if the session has a provider."""
        return bool(self._coordinator.get("providers"))

    async def __call__(self, prompt: str) -> str:
        """Return the text of the answer.

        Raises:
            LookupError: The session has no provider.
        """
        provider, model = await self._choose()
        options = {"model": model} if model else {}
        answer = await provider.complete(self._request(prompt, MAX_TOKENS), extended_thinking=False, **options)
        return "".join(block.text for block in answer.content if getattr(block, "type", "") == "text")

    async def estimate_price(self, prompt_tokens: int, answer_tokens: int) -> tuple[float, str] | None:
        """Return amount and currency, or None if the host gives none."""
        try:
            provider, model = await self._choose()
            listed = await asyncio.wait_for(provider.list_models(), _PRICE_SECONDS)
        except Exception as error:  # noqa: BLE001 - a provider raises errors of any class; the estimate has no price
            log.info("price_unknown", error=type(error).__name__)
            return None
        name = model or str(getattr(provider, "default_model", ""))
        prices = [getattr(info, "pricing", None) for info in listed if info.id == name or len(listed) == 1]
        if not prices or prices[0] is None:
            return None
        price = prices[0].input_per_million * prompt_tokens + prices[0].output_per_million * answer_tokens
        return price / 1_000_000, prices[0].currency

    async def _choose(self) -> tuple[Any, str]:
        """Return a provider and its model; empty for the provider's own."""
        providers = self._coordinator.get("providers") or {}
        resolver = self._coordinator.get_capability("model_role_resolver")
        for choice in await resolver.resolve(ROLE) if resolver is not None else ():
            provider = providers.get(choice.provider) or providers.get(f"provider-{choice.provider}")
            if provider is not None:
                return provider, choice.model
        if not providers:
            raise LookupError("the session has no provider")
        return min(providers.values(), key=_get_priority), ""


def _get_priority(provider: Any) -> float:
    """Return the priority of a provider; the lowest comes first."""
    config = getattr(provider, "config", None)
    priority = getattr(provider, "priority", None)
    if priority is None and isinstance(config, dict):
        priority = config.get("priority")
    return priority if isinstance(priority, int | float) else _LAST
