"""A page as Markdown, and the parts into which it is split so that each fits into what a model is shown. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import escaped, unfold
from agent_memory.knowledge.topics.page import SOURCES, Footnote, Line, OwnText, Page, PageClaim, with_lines
from agent_memory.language.prompt_text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_TOKENS: Final = 1_500
"""Of one part of a page, as the scratchpad estimates them: on the high side."""
EDITED: Final = "*(edited)*"
UNTRUSTED: Final = "*(from an untrusted source)*"
NONE_YET: Final = "*No items yet.*"
_LABEL_PART: Final = re.compile(r"\\.|\(")
"""What is escaped already, or the bracket that would end a label."""
_MOMENT: Final = "%Y-%m-%d %H:%M:%S"


def render(page: Page) -> str:
    """Return the page as Markdown; `parse` returns the page again."""
    blocks = [f"# {escaped(page.title)}".rstrip()]
    if page.about:
        blocks.append(f"*About: {escaped(page.about)}*")
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
    return unfold("\n\n".join(blocks) + "\n")


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
    lines = _weighed(page)
    most = max_tokens - frame
    parts = _packed(lines, most)
    least = sum(each.cost for each in lines) // len(parts)
    while least < most:  # the smallest bound that needs no more parts: the last one is not left with a line
        bound = (least + most) // 2
        some = _packed(lines, bound)
        if len(some) > len(parts):
            least = bound + 1
        else:
            most, parts = bound, some
    made = [with_lines(replace(page, part=at, parts=len(parts)), lines) for at, lines in enumerate(parts, start=1)]
    # What a person took out is said once.
    return [made[0], *(replace(part, taken_out=()) for part in made[1:])]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A line below its heading, and what both cost, in tokens."""

    title: str
    line: Line
    cost: int
    heading: int


def _weighed(page: Page) -> list[_Weighed]:
    found, number = list[_Weighed](), 0
    for title, line in page.lines():
        found.append(_Weighed(title, line, _cost(line, number), estimate_tokens(f"## {escaped(title)}\n\n")))
        number += len(line.notes) if isinstance(line, PageClaim) else 0
    return found


def _packed(lines: Sequence[_Weighed], most: int) -> list[list[tuple[str, Line]]]:
    """Return the lines in parts that cost no more than this, with the headings that each part repeats."""
    parts: list[list[tuple[str, Line]]] = [[]]
    left, titles = most, set[str]()
    for each in lines:
        whole = each.cost + (0 if each.title in titles else each.heading)
        if parts[-1] and whole > left:
            parts.append([])
            left, titles = most, set()
            whole = each.cost + each.heading
        parts[-1].append((each.title, each.line))
        titles.add(each.title)
        left -= whole
    return parts


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
    if claim.is_untrusted:
        parts.append(UNTRUSTED)
    if claim.notes:
        parts.append("".join(f"[^{next(numbers)}]" for _ in claim.notes))
    if claim.is_edited:
        parts.append(EDITED)
    return " ".join(parts)


def _note(number: int, note: Footnote) -> str:
    ids = ", ".join(filter(None, (note.resource, note.source)))
    item = f", {note.item}" if note.item else ""
    label = f"{_LABEL_PART.sub(_without_bracket, escaped(note.label))} " if note.label else ""
    quote = f': "{escaped(note.quote)}"' if note.quote else ""
    return f"[^{number}]: Extracted from {label}({ids} at {note.start}-{note.end}{item}){quote}"


def _without_bracket(part: re.Match[str]) -> str:
    return "\\(" if part[0] == "(" else part[0]
