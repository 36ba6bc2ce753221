"""What in a message is its author's own: not code, mark-up, logs, quotations, or prose that was pasted."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.capture.foreign import FENCE, without_injected
from agent_memory.capture.other_authors import blank_other_authors
from agent_memory.capture.pasted import (
    is_machine_line,
    without_announced,
    without_document,
    without_impersonal,
    without_machine_regions,
)

_MAX_BLOCK_LINES: Final = 12
_MAX_BLOCK_CHARS: Final = 800
_CUT: Final = "\x00cut\x00"
"""Stands where an element was taken out of a line: what is left of that sentence says something else than before."""

_OPEN_TAG: Final = re.compile(
    r"<(script|style|system-reminder|system|memory|context|blockquote|pre|code|document|quote)\b[^<>]{0,200}>|<!--",
    re.IGNORECASE,
)
_HOST_TAG: Final = re.compile(r"(?m)^[ \t]*<([a-z]+(?:[_-][a-z]+)+)>", re.IGNORECASE)
"""`<ide_selection>` and its like at the beginning of a line: a tool between user and model wrote its content."""

_CODE_TAGS: Final = frozenset(("code", "pre"))
_ENDS: Final = ".!?:\n\u3002\uff01\uff1f\uff1a"
_NEAR: Final = 200

MAX_MESSAGE_CHARS: Final = 40_000
"""What is longer was pasted; its first part is read, so that the work per message is bounded."""

MAX_OWN_CHARS: Final = 4_000
"""Of a user's message, without what shows that it was pasted. A person types no more at once: then all of it was."""

_QUOTE_LINE: Final = re.compile(r"^\s{0,3}(?:>|&gt;|\|\s)")


def separate(text: str, *, typed: bool) -> tuple[str, dict[str, str]]:
    """Return the author's own lines, and the code blocks taken out (placeholder line to block).

    A short block stays reachable: a sentence that introduces it with a colon may keep it.

    Args:
        text: One message, or what a teammate said in a tool's output.
        typed: Whether a person typed it. Then headings, labels and long even prose are signs of a paste; a model
            writes like that itself.
    """
    text = _without_elements(text) if "<" in text else text
    lines, blocks = _without_fences(without_injected(text.splitlines()))
    lines = ["" if _QUOTE_LINE.match(line) else line for line in lines]
    if typed:
        lines = without_impersonal(without_document(without_machine_regions(without_announced(lines))))
    return "\n".join(line for line in lines if not is_machine_line(line)), blocks


def typed_part(text: str) -> str:
    """Return the part that only the user can have typed.

    Empty for a very long message.
    """
    own, _ = separate(text[:MAX_MESSAGE_CHARS], typed=True)
    return blank_other_authors(own) if len(own) <= MAX_OWN_CHARS else ""


def was_cut(text: str) -> bool:
    """Return True if an element was taken out of this sentence."""
    return _CUT in text


def _without_elements(text: str) -> str:
    """Drop comments and elements that hold someone else's words; linear also for tags that never close."""
    folded = text.lower()
    parts: list[str] = []
    unclosed: set[str] = set()
    position = 0
    for match in sorted([*_OPEN_TAG.finditer(text), *_HOST_TAG.finditer(text)], key=lambda found: found.start()):
        name = (match[1] or "").lower()
        closing = f"</{name}>" if name else "-->"
        if match.start() < position or closing in unclosed:
            continue
        end = folded.find(closing, match.end())
        if end < 0:
            unclosed.add(closing)
            if name:
                continue
            end = len(text)  # a comment that never closes hides the rest
        elif name in _CODE_TAGS and "\n" not in text[match.start() : end]:
            continue  # within a sentence it names a thing
        parts += [text[position : match.start()], _seam(text, match.start(), end + len(closing))]
        position = end + len(closing)
    return "".join([*parts, text[position:]])


def _seam(text: str, start: int, end: int) -> str:
    """Return what stands for an element: a line of its own, or a mark in the sentence it was part of."""
    before = text[max(0, start - _NEAR) : start].rstrip(" \t")
    after = text[end : end + _NEAR].lstrip(" \t")
    begins = not before or before[-1] in _ENDS
    ends = not after or after[0] == "\n" or after[0].isupper()
    return "\n" if begins and ends else _CUT


def _without_fences(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    kept: list[str] = []
    blocks: dict[str, str] = {}
    inside: list[str] | None = None
    fence = ""
    for line in lines:
        match = FENCE.match(line)
        if inside is None and match:
            inside, fence = [line.strip()], match[1]
        elif inside is not None:
            inside.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                placeholder = f"\x00block{len(blocks)}\x00"
                kept.append(placeholder)
                blocks[placeholder] = _short("\n".join(inside))
                inside = None
        else:
            kept.append(line)
    return kept, blocks


def _short(block: str) -> str:
    small = block.count("\n") <= _MAX_BLOCK_LINES + 1 and len(block) <= _MAX_BLOCK_CHARS
    return block if small else ""
