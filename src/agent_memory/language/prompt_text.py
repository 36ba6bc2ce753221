"""Token estimate and quote delimiters of text in a prompt. Pure."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_WIDE: Final = compile_late("[\u2e80-\U0010ffff]")


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text.

    ASCII counts 1 per 3 characters (English has about 4), other alphabets 1 per character, unspaced scripts and symbols
    from U+2E80 on 2 per character. Measured tokenizers stay below. A budget that is too large costs the turn.
    """
    if text.isascii():
        return math.ceil(len(text) / 3)
    ascii_count = len(text.encode("ascii", "ignore"))
    wide_count = len(_WIDE.findall(text))
    return math.ceil(ascii_count / 3) + (len(text) - ascii_count - wide_count) + 2 * wide_count


def get_fence(text: str, least: int = 3) -> str:
    """Return more backticks than the longest run in a text.

    Args:
        text: Text between the delimiters.
        least: Fewest backticks of the fence; 1 for code within a line.
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def fence(text: str, label: str = "") -> str:
    """Return a text between two Markdown fences, which it cannot close.

    Args:
        text: Text that is data, not an instruction.
        label: Language of the block, directly after the first fence.
    """
    marks = get_fence(text)
    return f"{marks}{label}\n{text}\n{marks}"


def fit_lines(
    lines: Iterable[str], budget: int, render: Callable[[list[str]], str], *, has_gaps: bool = True
) -> tuple[list[str], str]:
    """Return the first lines that fit into a block, and the block.

    Args:
        lines: Lines of the block, the most important first.
        budget: Estimated tokens of the block at most.
        render: Returns the block of some lines.
        has_gaps: True to add shorter lines after one that does not fit.

    Returns:
        No line and an empty text if none fits.
    """
    shown: list[str] = []
    room = budget - estimate_tokens(render([]))
    for line in lines:
        cost = estimate_tokens(line) + 1
        if cost <= room:
            shown.append(line)
            room -= cost
        elif not has_gaps:
            break
    while shown:  # a long fence may cost more than estimated
        text = render(shown)
        if estimate_tokens(text) <= budget:
            return shown, text
        shown.pop()
    return shown, ""
