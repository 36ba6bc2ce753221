"""Reader of a host's context that finds texts which came without our hooks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class SeenMessages:
    """Messages whose way into the conversation our hooks saw.

    Shared by the sessions of one root: a sub-session may begin with messages of its parent.

    Attributes:
        has_turn: True if a prompt came since the beginning, or since the conversation was emptied. What an assistant
            says without one is of another conversation.
        has_summary: True if the next text in place of earlier messages is a summary of trusted ones.
    """

    def __init__(self) -> None:
        self.has_turn = self.has_summary = False
        self._roles: dict[int, str] = {}  # by key of the message

    def add(self, role: str, content: Any) -> None:
        """Add a message."""
        self._roles[_get_message_key(role, content)] = role

    def has(self, role: str, content: Any) -> bool:
        """Return True if a message was added."""
        return _get_message_key(role, content) in self._roles

    def clear(self, *, is_tainted: bool) -> None:
        """Note that the conversation was emptied.

        Messages of a tainted one are unknown if they come back, except the configured one. The host may put a summary
        in place of trusted ones.
        """
        self.has_turn, self.has_summary = False, not is_tainted
        if is_tainted:
            self._roles = {key: role for key, role in self._roles.items() if role == "system"}


def _get_message_key(role: str, content: Any) -> int:
    return hash((role, content if isinstance(content, str) else repr(content)))


@dataclass(slots=True)
class UnseenTexts:
    """New texts of a context that our hooks did not see arrive.

    Attributes:
        calls: Name and input of each tool call whose result is there.
        prompts: Prompts of the same session in an earlier process.
        is_unknown: True if there is another text.
    """

    calls: list[tuple[str, Any]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    is_unknown: bool = False


class ContextReader:
    """Reader of one session's context that finds unseen texts.

    Seen are the first system message, prompts, what the model says in a turn, results of its calls, and a summary in
    place of trusted messages.

    Args:
        seen: Messages that were seen.
        is_resumed: True if the session continues one of an earlier process, whose prompts are in the context.
    """

    def __init__(self, seen: SeenMessages, *, is_resumed: bool = False) -> None:
        self._seen, self._is_resumed = seen, is_resumed
        self._calls: dict[Any, tuple[str, Any]] = {}
        self._reported: Counter[str] = Counter()
        self._count, self._last = 0, None
        self._is_begun = self._is_configured = False
        self._unseen = UnseenTexts()

    def note_call(self, name: str) -> None:
        """Note a tool call that the host reports, with its result."""
        self._reported[name] += 1

    def read(self, messages: Sequence[Any]) -> UnseenTexts:
        """Return the unseen texts of messages that were not read before."""
        count, self._unseen = self._count, UnseenTexts()
        if not 0 < count <= len(messages) or messages[count - 1] != self._last:
            count = 0
        may_summarize = self._seen.has_summary and self._is_begun and count == 0
        for message in messages[count:]:
            is_known = isinstance(message, dict) and self._read_message(message)
            if not is_known and may_summarize and isinstance(message, dict):
                is_known, may_summarize = True, False
                self._seen.add(str(message.get("role")), message.get("content"))
            self._unseen.is_unknown |= not is_known
        if messages:
            self._seen.has_summary &= count > 0
            self._is_begun = self._is_configured = True
        self._count, self._last = len(messages), messages[-1] if messages else None
        return self._unseen

    def _read_message(self, message: dict[str, Any]) -> bool:
        """Return True if a message is known; note what is in it."""
        role, content = str(message.get("role")), message.get("content")
        is_seen = self._seen.has(role, content)
        for call_id, name, tool_input in iter_tool_calls([message]):
            self._calls[call_id] = name, tool_input
            if not self._seen.has_turn and not is_seen:  # of an earlier process, which may have had no hooks
                self._unseen.calls.append((name, tool_input))
        results = [self._read_result(call_id) for call_id in _list_results(message)]
        if role == "tool" or (role == "user" and results and len(results) == len(content or ())):
            return bool(results) and all(results)
        if not is_seen and self._is_own(message, role):
            self._seen.add(role, content)
            is_seen = True
        return is_seen and all(results)

    def _is_own(self, message: dict[str, Any], role: str) -> bool:
        """Return True for a message of model, configuration or earlier process."""
        content, metadata = message.get("content"), message.get("metadata")
        if isinstance(metadata, dict) and metadata.get("source") == "hook":
            return False
        if role == "system":
            is_configured, self._is_configured = self._is_configured, True
            return not is_configured
        is_earlier = self._is_resumed and not self._seen.has_turn
        if role == "user" and is_earlier and isinstance(content, str):
            self._unseen.prompts.append(content)
            return True
        return role == "assistant" and (is_earlier or self._seen.has_turn)

    def _read_result(self, call_id: Any) -> bool:
        """Return True if a result belongs to a call of the context."""
        if self._seen.has("tool", call_id):
            return True
        if call_id not in self._calls:
            return False
        name, tool_input = self._calls.pop(call_id)
        if self._reported[name]:
            self._reported[name] -= 1
        else:
            self._unseen.calls.append((name, tool_input))
        self._seen.add("tool", call_id)
        return True


def iter_tool_calls(messages: Iterable[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Yield ID, name and input of each tool call in a conversation."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        for call in (*(message.get("tool_calls") or ()), *_list_blocks(message)):
            if not isinstance(call, dict):
                continue
            inner = call["function"] if isinstance(call.get("function"), dict) else call
            name = inner.get("name") or inner.get("tool")
            if isinstance(name, str) and not _is_result(call):
                yield call.get("id"), name, inner.get("arguments") or inner.get("input")


def _list_results(message: dict[str, Any]) -> list[Any]:
    """Return the IDs of the calls whose results are in a message."""
    calls = [message.get("tool_call_id")] if message.get("role") == "tool" else []
    blocks = [block for block in _list_blocks(message) if isinstance(block, dict) and _is_result(block)]
    return [*calls, *(block.get("tool_use_id") or block.get("tool_call_id") for block in blocks)]


def _list_blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _is_result(block: dict[str, Any]) -> bool:
    return str(block.get("type")).endswith("tool_result")
