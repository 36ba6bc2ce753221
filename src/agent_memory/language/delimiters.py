"""Delimiters of quoted text in Markdown, which nothing in the text can close. Pure."""

from __future__ import annotations

import re


def get_fence(text: str, least: int = 3) -> str:
    """Return more backticks than a text has in a row.

    Args:
        text: Text between the delimiters.
        least: Fewest backticks of the fence; 1 for code within a line.
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def fence(text: str, label: str = "") -> str:
    """Return a text between two fences, each on its own line.

    Args:
        text: Text that is data, whatever is written in it.
        label: Language of the block, directly after the first fence.
    """
    marks = get_fence(text)
    return f"{marks}{label}\n{text}\n{marks}"
