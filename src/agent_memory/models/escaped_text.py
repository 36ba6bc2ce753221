"""Escaped text: control and invisible characters shown as codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.characters import MISPLACED
from agent_memory.late import compile_late
from agent_memory.models.text import STEERING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Characters that steer or are invisible, and lone surrogates, which a terminal's encoding cannot carry.
_STEERING: Final = compile_late(f"[{STEERING}\\ud800-\\udfff]|{MISPLACED}")
# The same in JSON or YAML, where the rest is escaped already or, as a line break, part of the document.
_STEERING_IN_JSON: Final = compile_late(f"(?![\\x00-\\x1f])[{STEERING}\\ufffe\\uffff\\ud800-\\udfff]|{MISPLACED}")
_BRIEF: Final = 160
"""Characters of a memory in a sentence about it."""


def plain(text: str) -> str:
    """Return `text` with control characters shown as escape codes."""
    return _STEERING.sub(lambda match: _escape(match[0]), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return `text` as `plain` does, on one line."""
    return " ".join(plain(text).split())


def brief(text: str) -> str:
    """Return the beginning of `text` on one line."""
    line = one_line(text)
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1].rstrip()}\u2026"


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as JSON that says the same and steers no terminal."""
    document = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _STEERING_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], document)


def has_steering(text: str) -> bool:
    """Return True if `to_json` would escape a character of `text`."""
    return _STEERING_IN_JSON.search(text) is not None


def escape_in_quotes(document: str) -> str:
    r"""Return a YAML `document` with control characters as \\uXXXX."""
    return _STEERING_IN_JSON.sub(lambda match: _escape(match[0], (("u", 4), ("U", 8))), document)


def _escape(character: str, forms: Iterable[tuple[str, int]] = (("x", 2), ("u", 4), ("U", 8))) -> str:
    code = ord(character)
    letter, digits = next(form for form in forms if code < 16 ** form[1])
    return f"\\{letter}{code:0{digits}x}"
