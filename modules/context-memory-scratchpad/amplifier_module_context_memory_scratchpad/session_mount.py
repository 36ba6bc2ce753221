"""Context manager that adds the memory to each request, and its mount."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant
from agent_memory.integrations.amplifier.conversation import get_content_text
from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.memory.session_preface import SessionPreface
from agent_memory.models import visible
from agent_memory.settings import ScratchpadSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID = "context-memory-scratchpad"
_COMPACTIONS = ("context:compaction", "context:post_compact")
Message = dict[str, Any]
_OURS = {"source": "agent-memory"}

__all__ = ["MODULE_ID", "ScratchpadContext", "mount"]


class ScratchpadContext:
    """Decorator of the session's context manager.

    Scratchpad and briefing follow the system message, with role user because they are data, and are never stored in the
    conversation. The lines about changed memories precede the user's last message.

    Args:
        inner: Context manager that keeps the conversation.
        session: Memory of this session.
        settings: What to show; None shows nothing, because the configuration is wrong.
        coordinator: Coordinator of the host, which knows whose session this is.
    """

    def __init__(
        self, inner: Any, session: MemorySession, settings: ScratchpadSettings | None, coordinator: Any
    ) -> None:
        self.inner = inner
        self._session, self._settings, self._coordinator = session, settings, coordinator
        self.preface: SessionPreface | None = None
        if settings is not None:
            is_briefed = settings.briefing and not session.is_child
            self.preface = SessionPreface(
                settings, lambda: session.caller, self._get_last_prompt, is_briefed=is_briefed
            )

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # absent while being copied or unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def add_message(self, message: Message) -> None:
        """Append a message to the conversation."""
        await self.inner.add_message(message)

    async def get_messages(self) -> list[Message]:
        """Return the whole conversation, which a host saves, without the memory."""
        messages: list[Message] = await self.inner.get_messages()
        return messages

    async def set_messages(self, messages: list[Message]) -> None:
        """Replace the conversation, as on resume."""
        self.note_compaction()
        await self.inner.set_messages(messages)

    async def clear(self) -> None:
        """Delete the conversation; the memories stay."""
        await self.inner.clear()
        if not self._session.is_child:
            self._session.conversation.clear()

    async def get_messages_for_request(self, token_budget: int | None = None, provider: Any = None) -> list[Message]:
        """Return the inner manager's view of the conversation, with the memory."""
        text, tokens = await self._get_preface()
        changes = await self._get_changes()
        reserve = tokens + (estimate_tokens(changes) if changes else 0)
        budget, reduced_provider = reserve_tokens(token_budget, provider, self.inner, reserve)
        view = list(await self.inner.get_messages_for_request(token_budget=budget, provider=reduced_provider))
        if text:
            position = 1 if view and view[0].get("role") == "system" else 0
            view.insert(position, {"role": "user", "content": visible(text), "metadata": _OURS})
        if changes:
            view.insert(_find_last_prompt(view), {"role": "user", "content": visible(changes), "metadata": _OURS})
        return view

    def note_compaction(self) -> None:
        """Rebuild the scratchpad, because the request changes anyway."""
        if self.preface is not None:
            self.preface.expire()

    async def _get_preface(self) -> tuple[str, int]:
        """Return scratchpad and briefing as text, and the tokens of it."""
        if self.preface is None or not self._is_shown():
            return "", 0
        service = await self._session.service()
        if service is None:
            self.preface.clear()
        else:
            try:
                await self.preface.refresh(service)
            except AgentMemoryError as error:
                await self._session.conversation.report_degraded("scratchpad", error)
        self._session.conversation.note_shown(self.preface.memories)
        return self.preface.text, self.preface.tokens

    async def _get_changes(self) -> str:
        """Return the lines about changed memories and newly used rules.

        A sub-session has none.
        """
        if self._session.is_child or self._settings is None:
            return ""
        try:
            if self.preface is not None:
                await self._session.lines.note_used(self.preface.memories)
            return await self._session.lines.get_injection()
        except AgentMemoryError as error:
            await self._session.conversation.report_degraded("scratchpad", error)
            return ""

    def _is_shown(self) -> bool:
        """Return True for root sessions, and for sub-sessions that are about memory."""
        is_inherited = self._settings is not None and self._settings.inject_in_subsessions
        return not self._session.is_child or is_inherited or is_memory_assistant(self._coordinator)

    async def _get_last_prompt(self) -> str:
        """Return the user's last message."""
        messages = await self.inner.get_messages()
        position = _find_last_prompt(messages)
        return get_content_text(messages[position].get("content")) if position < len(messages) else ""


def _find_last_prompt(view: list[Message]) -> int:
    """Return the position of the user's last message, or the end."""
    positions = (
        n for n in range(len(view) - 1, -1, -1) if view[n].get("role") == "user" and not view[n].get("metadata")
    )
    return next(positions, len(view))


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


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Wrap the mounted context manager; open nothing.

    A wrong configuration shows nothing and is reported.
    """
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, ScratchpadSettings, config)
    context = ScratchpadContext(coordinator.get("context") or _build_context(), session, settings, coordinator)
    await coordinator.mount("context", context)

    async def on_compaction(_event: str, _data: dict[str, Any]) -> None:
        context.note_compaction()

    leaving = session.leaving()
    if context.preface is not None:
        leaving.push_async_callback(context.preface.close)
    for event in _COMPACTIONS:
        leaving.callback(coordinator.hooks.register(event, on_compaction, name=MODULE_ID))
    return leaving.aclose


def _build_context() -> Any:
    """Return the host's simple context manager, or ours without it."""
    try:
        from amplifier_module_context_simple import SimpleContextManager  # optional
    except ImportError:
        return BaseContext()
    return SimpleContextManager()
