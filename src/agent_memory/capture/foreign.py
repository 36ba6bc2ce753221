"""What in a message is not its author's own statement: our own recalled text, code, logs, traces, quotes, mark-up.

Also decides which part of a tool's output a teammate wrote. Knows no category.
"""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

from agent_memory.capture.rules import read_patterns

INJECTED_PREFIX: Final = "[agent-memory:"
_MAX_BLOCK_LINES: Final = 12
_MAX_BLOCK_CHARS: Final = 800

_FENCE: Final = re.compile(r"^[ \t]{0,8}(`{3,}|~{3,})")
_OPEN_TAG: Final = re.compile(
    r"<(script|style|system-reminder|system|memory|context|blockquote|pre|code|document|quote)\b[^<>]{0,200}>|<!--",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_QUOTE_LINE: Final = re.compile(r"^\s{0,3}(?:>|&gt;|\|\s)")


def separate(text: str) -> tuple[str, dict[str, str]]:
    """Return the author's own lines, and the code blocks taken out (placeholder line to block).

    A short block stays reachable: a sentence that introduces it with a colon may keep it.
    """
    text = _without_elements(text) if "<" in text else text
    lines, blocks = _without_fences(_without_injected(text.splitlines()))
    kept = [line for line in lines if not _QUOTE_LINE.match(line)]
    own = [_TAG.sub(" ", line) if "<" in line else line for line in kept if not _is_machine_line(line)]
    return "\n".join(own), blocks


def _without_elements(text: str) -> str:
    """Drop comments and elements that hold someone else's words; linear also for tags that never close."""
    folded = text.lower()
    parts: list[str] = []
    unclosed: set[str] = set()
    position = 0
    for match in _OPEN_TAG.finditer(text):
        closing = f"</{match[1].lower()}>" if match[1] else "-->"
        if match.start() < position or closing in unclosed:
            continue
        end = folded.find(closing, match.end())
        if end < 0:
            unclosed.add(closing)
            if match[1]:
                continue
            end = len(text)  # a comment that never closes hides the rest
        parts += [text[position : match.start()], "\n"]
        position = end + len(closing)
    return "".join([*parts, text[position:]])


def _is_machine_line(line: str) -> bool:
    return bool(line.startswith(("    ", "\t")) and not line.strip().startswith(("-", "*"))) or (
        _signs().machine_line.match(line) is not None
    )


def strip_injected(text: str) -> str:
    """Return `text` without any block that this project injected into a conversation."""
    if INJECTED_PREFIX not in text:
        return text
    lines = text.splitlines()
    kept = _without_injected(lines)
    return text if len(kept) == len(lines) else "\n".join(kept)


def _without_injected(lines: list[str]) -> list[str]:
    """Drop each block that begins with our marker line and ends with the fence that closes it."""
    kept: list[str] = []
    position = 0
    while position < len(lines):
        if not lines[position].lstrip().startswith(INJECTED_PREFIX):
            kept.append(lines[position])
            position += 1
            continue
        position = _end_of_injected(lines, position + 1)
    return kept


def _end_of_injected(lines: list[str], position: int) -> int:
    """Return the line after the block: after its closing fence, or the end of the text if it never closes."""
    fence = ""
    while position < len(lines):
        line = lines[position].strip()
        position += 1
        if not fence and (match := _FENCE.match(line)):
            fence = match[1]
        elif fence and line.startswith(fence) and not line.strip(fence[0]):
            return position
    return position


def _without_fences(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    kept: list[str] = []
    blocks: dict[str, str] = {}
    inside: list[str] | None = None
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
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
    return kept, {key: block for key, block in blocks.items() if block} | {key: "" for key in blocks if not blocks[key]}


def _short(block: str) -> str:
    small = block.count("\n") <= _MAX_BLOCK_LINES + 1 and len(block) <= _MAX_BLOCK_CHARS
    return block if small else ""


_SEPARATOR: Final = re.compile(r"^\s*(?:-{2,}|={3,}|\*{3,}|_{3,})\s*$")
_COMMENTED: Final = re.compile(
    r"(?im)^\s*(?:@?[\w.-]+ (?:\([\w ]+\) )?(?:commented|wrote|replied|reviewed)|author:\s*\S+ ?(?:\([\w ]+\))?\s*$)"
)


class _Signs(NamedTuple):
    """Compiled from `patterns/foreign.yaml`, which says what each is for."""

    machine_line: re.Pattern[str]
    speaker: re.Pattern[str]
    bot: re.Pattern[str]
    internal: re.Pattern[str]
    outside: re.Pattern[str]
    field: re.Pattern[str]


@functools.cache
def _signs() -> _Signs:
    data = read_patterns("foreign")

    def any_of(name: str, frame: str) -> re.Pattern[str]:
        return re.compile(frame % "|".join(data[name]), re.IGNORECASE)

    return _Signs(
        machine_line=any_of("machine_line", r"\s*(?:%s)"),
        speaker=any_of("speaker", r"\s*(?:%s)"),
        bot=any_of("bot", r"\b(?:%s)\b"),
        internal=any_of("internal", r"(?:%s)"),
        outside=any_of("outside", r"(?<!\w)(?:%s)"),
        field=any_of("field", r"\s*(?:%s)\s*:"),
    )


def teammate_statements(text: str) -> str:
    """Return the part of a tool's output that a teammate said: comments, hand-over notes, own post-mortems.

    Everything else a tool returns (files, pages, logs, listings) is nobody's statement to this agent: "".
    """
    signs = _signs()
    if signs.outside.search(text[:20_000]):
        return ""
    spoken: list[str] = []
    speaking = False
    seen_speaker = False
    for line in text.splitlines():
        if match := signs.speaker.match(line):
            speaking = not signs.bot.search(line)
            seen_speaker = seen_speaker or bool(match.lastgroup and speaking)
        elif signs.field.match(line) or line.startswith("$ "):
            continue
        elif _SEPARATOR.match(line):
            spoken.append("")
        elif speaking:
            spoken.append(line)
    if not seen_speaker:
        return ""
    return "\n".join(spoken) if _COMMENTED.search(text) or signs.internal.search(text) else ""
