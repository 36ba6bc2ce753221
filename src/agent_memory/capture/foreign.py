"""What memory itself put into a conversation, and which part of a tool's output a teammate wrote. No category here."""

from __future__ import annotations

import functools
import re
from typing import Final

from agent_memory.capture.rules import any_of

INJECTED_PREFIX: Final = "[agent-memory:"

FENCE: Final = re.compile(r"^[ \t]{0,8}(`{3,}|~{3,})")


def strip_injected(text: str) -> str:
    """Return `text` without any block that this project injected into a conversation."""
    if INJECTED_PREFIX not in text:
        return text
    lines = text.splitlines()
    kept = without_injected(lines)
    return text if len(kept) == len(lines) else "\n".join(kept)


def without_injected(lines: list[str]) -> list[str]:
    """Drop each block that begins with our marker line and ends with the fence that closes it, or with the text."""
    kept: list[str] = []
    is_inside, fence = False, ""
    for line in lines:
        bare = line.strip()
        if not is_inside:
            is_inside = bare.startswith(INJECTED_PREFIX)
            if not is_inside:
                kept.append(line)
        elif not fence:
            fence = match[1] if (match := FENCE.match(bare)) else ""
        elif bare.startswith(fence) and not bare.strip(fence[0]):
            is_inside, fence = False, ""
    return kept


_SEPARATOR: Final = re.compile(r"^\s*(?:-{2,}|={3,}|\*{3,}|_{3,})\s*$")
_COMMENTED: Final = re.compile(
    r"(?im)^[^\S\n]*(?:@?[\w.-]+ (?:\([\w ]+\) )?(?:commented|wrote|replied|reviewed)"
    r"|author:\s*\S+ ?(?:\([\w ]+\))?\s*$)"
)


_sign: Final = functools.partial(any_of, "foreign")


def teammate_statements(text: str) -> str:
    """Return the part of a tool's output that a teammate said: comments, hand-over notes, own post-mortems.

    Everything else a tool returns (files, pages, logs, listings) is no teammate's statement: "".
    """
    if _sign("outside", r"(?<!\w)(?:%s)").search(text[:20_000]):
        return ""
    speaker, bot, label = _sign("speaker", r"\s*(?:%s)"), _sign("bot", r"\b(?:%s)\b"), _sign("field", r"\s*(?:%s)\s*:")
    spoken: list[str] = []
    speaking = False
    seen_speaker = False
    for line in text.splitlines():
        if match := speaker.match(line):
            speaking = not bot.search(line)
            seen_speaker = seen_speaker or bool(match.lastgroup and speaking)
        elif label.match(line) or line.startswith("$ "):
            continue
        elif _SEPARATOR.match(line):
            spoken.append("")
        elif speaking:
            spoken.append(line)
    if not seen_speaker:
        return ""
    return "\n".join(spoken) if _COMMENTED.search(text) or _sign("internal").search(text) else ""
