"""Texts in the host's payloads: prompts, tool results, messages and tool calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TEXT_KEYS: Final = ("output", "stdout", "content", "text", "message", "body", "result")
MOST_CHARS: Final = 40_000
"""Default limit for the length of a text."""
_MAX_DEPTH: Final = 6


def text_of_result(result: Any, most: int = MOST_CHARS) -> str:
    """Return the first `most` characters of a `tool:post` result.

    A failed call has none. loop-basic sends a string, loop-streaming `{success, output, error}`.
    """
    if isinstance(result, dict) and result.get("success") is False:
        return ""
    return _find_text(result, _MAX_DEPTH)[:most]


def text_of_content(content: Any, most: int = MOST_CHARS) -> str:
    """Return the text of a message's content: string or blocks."""
    if isinstance(content, str):
        return content[:most]
    if not isinstance(content, list):
        return ""
    texts = [_get_block_text(block) for block in content]
    return "\n\n".join(text for text in texts if text)[:most]


def last_assistant_text(messages: Any, most: int = MOST_CHARS) -> str:
    """Return the assistant's last message, empty if the user spoke later."""
    if not isinstance(messages, list):
        return ""
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            return text_of_content(message.get("content"), most)
        if role == "user":
            return ""
    return ""


def iter_tool_calls(messages: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and input of each tool call in a conversation."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        for call in (*(message.get("tool_calls") or ()), *(content if isinstance(content, list) else ())):
            if not isinstance(call, dict):
                continue
            inner = call["function"] if isinstance(call.get("function"), dict) else call
            name = inner.get("name") or inner.get("tool")
            if isinstance(name, str):
                yield name, inner.get("arguments") or inner.get("input")


def get_text(data: Any, key: str) -> str:
    """Return a text field of an event's payload, else an empty text."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def _get_block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    return text if kind == "text" and isinstance(text, str) else ""


def _find_text(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth <= 0:
        return ""
    if isinstance(value, list):
        return "\n".join(text for item in value[:200] if (text := _find_text(item, depth - 1)))
    if isinstance(value, dict):
        return "\n".join(text for key in _TEXT_KEYS if key in value and (text := _find_text(value[key], depth - 1)))
    return ""
