"""Claims of a page in words that earlier versions stored for them. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.knowledge.topics.page import Line, PageClaim, with_lines

if TYPE_CHECKING:
    from agent_memory.knowledge.topics.page import Page


def keep_words(page: Page, rendered: Page) -> Page:
    """Return a page with the words that its claims had when rendered last.

    A language model worded claims for earlier versions. Claims with other footnotes stay as they are.
    """
    texts = {claim.notes: claim.text for claim in rendered.claims if not claim.is_by_hand}
    lines: list[tuple[str, Line]] = []
    for title, line in page.lines():
        if isinstance(line, PageClaim) and not line.is_by_hand:
            line = replace(line, text=texts.get(line.notes, line.text))  # noqa: PLW2901 - the same claim
        lines.append((title, line))
    return with_lines(page, lines)
