"""Context manager for sessions without one, and tokens reserved for the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.language.prompt_text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Message = dict[str, Any]


class BaseContext:
    """Context manager that keeps all messages.

    The view of a request leaves out the oldest turns, each as a whole, if the messages exceed the token budget.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._build_system_prompt: Callable[[], Awaitable[str]] | None = None

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]]) -> None:
        """Build the system message of each request by a factory."""
        self._build_system_prompt = factory

    async def add_message(self, message: Message) -> None:
        """Append a message to the conversation."""
        self._messages.append(message)

    async def get_messages(self) -> list[Message]:
        """Return the whole conversation."""
        return list(self._messages)

    async def set_messages(self, messages: list[Message]) -> None:
        """Replace the conversation, as on resume."""
        self._messages = list(messages)

    async def clear(self) -> None:
        """Delete the conversation."""
        self._messages = []

    async def get_messages_for_request(self, token_budget: int | None = None, provider: Any = None) -> list[Message]:
        """Return the system message and the last turns that fit."""
        view = list(self._messages)
        if self._build_system_prompt is not None:
            system_message = {"role": "system", "content": await self._build_system_prompt()}
            view = [system_message, *(message for message in view if not _is_old_system_message(message))]
        budget = token_budget if token_budget is not None else _find_budget(provider)
        return view if budget is None else _select_last_turns(view, budget)


def _is_old_system_message(message: Message) -> bool:
    return message.get("role") == "system" and (message.get("metadata") or {}).get("source") != "hook"


def _select_last_turns(messages: list[Message], budget: int) -> list[Message]:
    head = [message for message in messages[:1] if message.get("role") == "system"]
    rest = messages[len(head) :]
    starts = [position for position, message in enumerate(rest) if message.get("role") == "user"]
    for start in [0, *starts[1:]]:
        view = [*head, *rest[start:]]
        if sum(estimate_tokens(str(message)) for message in view) <= budget:
            return view
    return [*head, *rest[starts[-1] :]] if starts else messages


def _find_budget(provider: Any) -> int | None:
    """Return the tokens that a provider leaves for messages, or None."""
    defaults = getattr(provider.get_info(), "defaults", None) if hasattr(provider, "get_info") else None
    window = (defaults or {}).get("context_window")
    return int(window) - int((defaults or {}).get("max_output_tokens") or 0) if window else None


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
