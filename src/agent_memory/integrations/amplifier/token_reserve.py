"""Tokens of a request that are reserved for the memory."""

from __future__ import annotations

from typing import Any


def reserve_tokens(token_budget: int | None, provider: Any, inner: Any, reserve: int) -> tuple[int | None, Any]:
    """Return budget and provider that leave `reserve` tokens free.

    A given budget is reduced; else the context window that the provider states; else the inner context manager's own
    limit.

    Args:
        token_budget: Tokens of the request, or None.
        provider: Provider of the request, or None.
        inner: Context manager that gets the result.
        reserve: Number of tokens to leave free.
    """
    if reserve == 0:
        return token_budget, provider
    if token_budget is not None:
        return max(1, token_budget - reserve), provider
    if provider is not None:
        return None, ReducedProvider(provider, reserve)
    own_limit = getattr(inner, "max_tokens", None)
    return (max(1, own_limit - reserve) if isinstance(own_limit, int) else None), None


class ReducedProvider:
    """Provider whose context window is smaller; the rest is the provider itself."""

    def __init__(self, provider: Any, reserve: int) -> None:
        self._provider, self._reserve = provider, reserve

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._provider, name)
        if name not in {"get_info", "get_model_info"}:
            return value
        return lambda *args, **kwargs: _reduce_window(value(*args, **kwargs), self._reserve)


def _reduce_window(info: Any, reserve: int) -> Any:
    changes: dict[str, Any] = {}
    window = getattr(info, "context_window", None)
    if isinstance(window, int):
        changes["context_window"] = max(1, window - reserve)
    defaults = getattr(info, "defaults", None)
    if isinstance(defaults, dict) and isinstance(defaults.get("context_window"), int):
        changes["defaults"] = {**defaults, "context_window": max(1, defaults["context_window"] - reserve)}
    if not changes or not hasattr(info, "model_copy"):
        return info
    return info.model_copy(update=changes)
