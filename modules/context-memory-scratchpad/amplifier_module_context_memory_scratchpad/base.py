"""A small context manager of its own, for sessions in which no other one is mounted beneath the scratchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.language.budget import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Message = dict[str, Any]


def make_base() -> Any:
    """Return the host's own simple context manager if it is installed, else the small one below."""
    try:
        from amplifier_module_context_simple import SimpleContextManager  # optional
    except ImportError:
        return BaseContext()
    return SimpleContextManager()


class BaseContext:
    """Keeps every message; a request's view drops the oldest turns, whole, once they exceed the token budget."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._system_prompt: Callable[[], Awaitable[str]] | None = None

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]]) -> None:
        """Have the system message made anew for each request."""
        self._system_prompt = factory

    async def add_message(self, message: Message) -> None:
        """Append a message."""
        self._messages.append(message)

    async def get_messages(self) -> list[Message]:
        """Return the whole history."""
        return list(self._messages)

    async def set_messages(self, messages: list[Message]) -> None:
        """Replace the history, as on resume."""
        self._messages = list(messages)

    async def clear(self) -> None:
        """Forget the history."""
        self._messages = []

    async def get_messages_for_request(self, token_budget: int | None = None, provider: Any = None) -> list[Message]:
        """Return the view for one request: the system message and as many of the last turns as fit."""
        view = list(self._messages)
        if self._system_prompt is not None:
            view = [{"role": "system", "content": await self._system_prompt()}, *_without_system(view)]
        budget = token_budget if token_budget is not None else _budget_of(provider)
        return view if budget is None else _last_turns(view, budget)


def _without_system(messages: list[Message]) -> list[Message]:
    return [m for m in messages if m.get("role") != "system" or (m.get("metadata") or {}).get("source") == "hook"]


def _last_turns(messages: list[Message], budget: int) -> list[Message]:
    head = [message for message in messages[:1] if message.get("role") == "system"]
    rest = messages[len(head) :]
    starts = [position for position, message in enumerate(rest) if message.get("role") == "user"]
    for start in [0, *starts[1:]]:
        view = [*head, *rest[start:]]
        if sum(estimate_tokens(str(message)) for message in view) <= budget:
            return view
    return [*head, *rest[starts[-1] :]] if starts else messages


def _budget_of(provider: Any) -> int | None:
    defaults = getattr(provider.get_info(), "defaults", None) if hasattr(provider, "get_info") else None
    window = (defaults or {}).get("context_window")
    return int(window) - int((defaults or {}).get("max_output_tokens") or 0) if window else None
