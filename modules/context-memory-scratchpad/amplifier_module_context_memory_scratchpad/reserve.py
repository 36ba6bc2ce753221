"""Taking the scratchpad's tokens off the budget that the inner context manager reckons with."""

from __future__ import annotations

from typing import Any


def reduced(token_budget: int | None, provider: Any, inner: Any, reserve: int) -> tuple[int | None, Any]:
    """Return (token_budget, provider) as the inner manager should see them, so that `reserve` tokens stay free.

    An explicit budget is reduced; else the context window that the provider states; else the manager's own limit.
    """
    if reserve == 0:
        return token_budget, provider
    if token_budget is not None:
        return max(1, token_budget - reserve), provider
    if provider is not None:
        return None, SmallerProvider(provider, reserve)
    own_limit = getattr(inner, "max_tokens", None)
    return (max(1, own_limit - reserve) if isinstance(own_limit, int) else None), None


class SmallerProvider:
    """A provider whose context window is smaller by some tokens. All else is the provider itself."""

    def __init__(self, provider: Any, reserve: int) -> None:
        self._provider = provider
        self._reserve = reserve

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._provider, name)
        return self._info_with(value) if name in {"get_info", "get_model_info"} else value

    def _info_with(self, plain: Any) -> Any:
        def smaller(*args: Any, **kwargs: Any) -> Any:
            return _with_smaller_window(plain(*args, **kwargs), self._reserve)

        return smaller


def _with_smaller_window(info: Any, reserve: int) -> Any:
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
