"""Claims of a page in other words than those of their items: as a model put them, with the footnotes they had. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.consolidation import Consolidation, Dropped
from agent_memory.knowledge.topics.page import Footnote, Line, Page, PageClaim, with_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL: Final = "model"
"""Why a claim is not on the page that a model found said by another one."""

Notes = tuple[Footnote, ...]


@dataclass(frozen=True, slots=True)
class Rewording:
    """What becomes of the claim with these footnotes: other words, or nothing where another claim says it.

    Attributes:
        notes: Of the claim.
        text: Its words; empty where it is left out.
        said_by: The footnotes of the claim that says it, too.
    """

    notes: Notes
    text: str = ""
    said_by: Notes = ()


def reworded(made: Consolidation, rewordings: Sequence[Rewording]) -> tuple[Consolidation, int]:
    """Return a page with these words, and how many claims have them; what a person wrote stays.

    A claim that has other footnotes by now stays as it is, and so does one whose other claim is not on the page.
    """
    wanted = {one.notes: one for one in rewordings}
    there = {claim.notes for claim in made.page.claims}
    lines: list[tuple[str, Line]] = []
    dropped, count = list(made.dropped), 0
    for title, line in made.page.lines():
        found = wanted.get(line.notes) if isinstance(line, PageClaim) and not line.is_by_hand else None
        if found is None or not isinstance(line, PageClaim):
            lines.append((title, line))
        elif found.text:
            lines.append((title, replace(line, text=found.text)))
            count += 1
        elif found.said_by in there:
            dropped += [Dropped(line.text, item, MODEL) for item in line.items]
        else:
            lines.append((title, line))
    return replace(made, page=with_lines(made.page, lines), dropped=tuple(dropped)), count


def rewordings_of(rendered: Page, page: Page) -> list[Rewording]:
    """Return what gives the claims of a page the words that they had when it was rendered last."""
    now = {claim.notes: claim.text for claim in page.claims if not claim.is_by_hand}
    return [
        Rewording(claim.notes, claim.text)
        for claim in rendered.claims
        if not claim.is_by_hand and now.get(claim.notes, claim.text) != claim.text
    ]
