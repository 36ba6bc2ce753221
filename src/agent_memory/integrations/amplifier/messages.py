"""Plain text out of what the host hands over: prompts, tool results, messages. Shapes only, no judgement."""

from __future__ import annotations

from typing import Any, Final

_TEXT_KEYS: Final = ("output", "stdout", "content", "text", "message", "body", "result")
MOST_CHARS: Final = 40_000
"""Of a text that is looked at, unless somebody wants all of it."""
_MAX_DEPTH: Final = 6


def text_of_result(result: Any, most: int = MOST_CHARS) -> str:
    """Return the text of a `tool:post` result: a string under loop-basic, `{success, output, error}` under streaming.

    A failed call has no text worth reading: "". Of a longer one than `most` characters the beginning is returned.
    """
    if isinstance(result, dict) and result.get("success") is False:
        return ""
    return _text(result, _MAX_DEPTH)[:most]


def text_of_content(content: Any, most: int = MOST_CHARS) -> str:
    """Return the text of a message's content: a string, or a list of blocks of which those of type text count."""
    if isinstance(content, str):
        return content[:most]
    if not isinstance(content, list):
        return ""
    texts = [_block_text(block) for block in content]
    return "\n\n".join(text for text in texts if text)[:most]


def last_assistant_text(messages: Any, most: int = MOST_CHARS) -> str:
    """Return the text of the assistant's last message, if it came after the user's last one; else ""."""
    if not isinstance(messages, list):
        return ""
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            return text_of_content(message.get("content"), most)
        if role == "user":
            return ""
    return ""


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
    return text if kind == "text" and isinstance(text, str) else ""


def _text(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth <= 0:
        return ""
    if isinstance(value, list):
        return "\n".join(text for item in value[:200] if (text := _text(item, depth - 1)))
    if isinstance(value, dict):
        return "\n".join(text for key in _TEXT_KEYS if key in value and (text := _text(value[key], depth - 1)))
    return ""
