"""A page as Markdown, and the parts into which it is split so that each fits into what a model is shown. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import escaped
from agent_memory.knowledge.topics.page import SOURCES, Footnote, Line, OwnText, Page, PageClaim, with_lines
from agent_memory.scratchpad import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_TOKENS: Final = 1_500
"""Of one part of a page, as the scratchpad estimates them: on the high side."""
EDITED: Final = "*(edited)*"
NONE_YET: Final = "*No items yet.*"
_LABEL_PART: Final = re.compile(r"\\.|\(")
"""What is escaped already, or the bracket that would end a label."""
_MOMENT: Final = "%Y-%m-%d %H:%M:%S"


def render(page: Page) -> str:
    """Return the page as Markdown; `parse` returns the page again."""
    blocks = [f"# {escaped(page.title)}".rstrip()]
    if page.parts > 1:
        blocks.append(f"*Part {page.part} of {page.parts}.*")
    numbers = iter(range(1, len(page.notes) + 1))
    for section in page.sections:
        if section.title:
            blocks.append(f"## {escaped(section.title)}")
        blocks.extend(_blocks(section.lines, numbers))
    if not page.sections:
        blocks.append(NONE_YET)
    if notes := page.notes:
        blocks += ["---", f"## {SOURCES}", "\n".join(map(_note, range(1, len(notes) + 1), notes))]
    if page.taken_out:
        blocks.append(f"*Taken out by hand: {', '.join(page.taken_out)}*")
    if page.consolidated_at is not None:
        blocks.append(
            f"---\n*Last consolidated: {page.consolidated_at:{_MOMENT}}*\n"
            f"*Items: {len(page.items)} | Resources: {len(page.resources)}*"
        )
    return "\n\n".join(blocks) + "\n"


def tokens_of(page: Page) -> int:
    """Return how many tokens the page takes at most."""
    return estimate_tokens(render(page))


def split(page: Page, max_tokens: int = MAX_TOKENS) -> list[Page]:
    """Return the page in parts that fit, in order; together they hold all of it.

    A single claim that is too long stands in a part of its own.
    """
    if tokens_of(page) <= max_tokens:
        return [page]
    frame = tokens_of(replace(page, sections=(), part=999, parts=999))
    parts: list[list[tuple[str, Line]]] = [[]]
    left, number, titles = max_tokens - frame, 0, set[str]()
    for title, line in page.lines():
        cost = _cost(line, number)
        whole = cost + (0 if title in titles else estimate_tokens(f"## {escaped(title)}\n\n"))
        if parts[-1] and whole > left:
            parts.append([])
            left, titles = max_tokens - frame, set()
            whole = cost + estimate_tokens(f"## {escaped(title)}\n\n")
        parts[-1].append((title, line))
        titles.add(title)
        left -= whole
        number += len(line.notes) if isinstance(line, PageClaim) else 0
    made = [with_lines(replace(page, part=at, parts=len(parts)), lines) for at, lines in enumerate(parts, start=1)]
    # What a person took out is said once.
    return [made[0], *(replace(part, taken_out=()) for part in made[1:])]


def joined(parts: Sequence[Page]) -> Page:
    """Return the page of which these are the parts."""
    taken_out = tuple(dict.fromkeys(each for part in parts for each in part.taken_out))
    whole = replace(parts[0], part=1, parts=1, taken_out=taken_out)
    return with_lines(whole, [line for part in parts for line in part.lines()])


def _cost(line: Line, number: int) -> int:
    if isinstance(line, OwnText):
        return estimate_tokens(line.text + "\n\n")
    notes = "".join(_note(number + at, note) + "\n" for at, note in enumerate(line.notes, start=1))
    return estimate_tokens(_claim(line, iter(range(number + 1, number + 99))) + "\n") + estimate_tokens(notes)


def _blocks(lines: Sequence[Line], numbers: Iterator[int]) -> Iterator[str]:
    bullets: list[str] = []
    for line in lines:
        if isinstance(line, PageClaim):
            bullets.append(_claim(line, numbers))
            continue
        if bullets:
            yield "\n".join(bullets)
            bullets = []
        yield line.text
    if bullets:
        yield "\n".join(bullets)


def _claim(claim: PageClaim, numbers: Iterator[int]) -> str:
    parts = ["-"]
    if claim.said is not None:
        parts.append(f"({claim.said.isoformat()})")
    parts.append(claim.text if claim.is_by_hand else escaped(claim.text))
    if claim.notes:
        parts.append("".join(f"[^{next(numbers)}]" for _ in claim.notes))
    if claim.is_edited:
        parts.append(EDITED)
    return " ".join(parts)


def _note(number: int, note: Footnote) -> str:
    ids = ", ".join(filter(None, (note.resource, note.source)))
    item = f", {note.item}" if note.item else ""
    label = f"{_LABEL_PART.sub(_without_bracket, escaped(note.label))} " if note.label else ""
    return f'[^{number}]: Extracted from {label}({ids} at {note.start}-{note.end}{item}): "{escaped(note.quote)}"'


def _without_bracket(part: re.Match[str]) -> str:
    return "\\(" if part[0] == "(" else part[0]
