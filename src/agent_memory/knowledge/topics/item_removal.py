"""Removal of items from rendered and edited pages, line by line. Pure.

What is left keeps its place, its heading and the numbers of its footnotes until the page is rebuilt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import fold, unfold
from agent_memory.knowledge.topics.rendering import EDITED

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_ID: Final = r"[a-z]{3}-[0-9a-f]{12}"
_NOTE: Final = re.compile(rf"\[\^(\d+)\]: .*?\((?:({_ID}), )?({_ID}) at \d+-\d+(?:, ({_ID}))?\)")
_CLAIM: Final = re.compile(r"- .* ((?:\[\^\d+\])+)")
_NUMBER: Final = re.compile(r"\[\^(\d+)\]")
_EDITED_NOTE: Final = re.compile(r"\[\^(\d+)\]: .*? at \d+-\d+, (mem-[0-9a-f]{12})\)")
_EDITED_CLAIM: Final = re.compile(r"- (?:\(\d{4}-\d\d-\d\d\) )?(.*?)(?: (?:\[\^\d+\])+)?(?<!\s)\s*")
"""A footnote and a claim of a page that a person changed."""
_FOOTER: Final = re.compile(r"^\*Items: \d+ \| Resources: \d+\*$", re.MULTILINE)
_NOTHING: Final = "\0"
"""Line that was removed, until it is known whether something is left below its heading."""
_EMPTY_SECTION: Final = re.compile(rf"^## [^\n]*\n\n(?:{_NOTHING}\n)+\n(?=## |---\n)", re.MULTILINE)
_EMPTY_BLOCK: Final = re.compile(rf"(?<=\n\n)(?:{_NOTHING}\n)+\n")


def list_items(text: str) -> set[str]:
    """Return the IDs of the items on a rendered page."""
    return {note[4] for note in _notes(text.split("\n")).values() if note[4]}


def cut_rendered(text: str, gone: Collection[str]) -> str | None:
    """Remove the footnotes and claims of items from a page.

    Args:
        text: Rendered page, with front matter or without it.
        gone: IDs of the items.

    Returns:
        None if that is not enough: nothing is left, a person's line is concerned, or a claim has other footnotes, too.
    """
    lines = fold(text).split("\n")
    notes = _notes(lines)
    lost = {number for number, note in notes.items() if note[4] in gone}
    left = {number: note for number, note in notes.items() if number not in lost}
    if not left or _NOTHING in text:
        return None
    kept_lines = list[str]()
    for line in lines:
        if "[^" not in line or lost.isdisjoint(_NUMBER.findall(line)):
            kept_lines.append(line)
        elif _NOTE.match(line) is None:
            references = _references(line)
            if not references or not lost.issuperset(references):
                return None
            kept_lines.append(_NOTHING)
    text = _EMPTY_BLOCK.sub("", _EMPTY_SECTION.sub("", "\n".join(kept_lines))).replace(f"{_NOTHING}\n", "")
    items = {note[4] for note in left.values() if note[4]}
    resources = {note[2] or note[3] for note in left.values()}
    return unfold(_FOOTER.sub(f"*Items: {len(items)} | Resources: {len(resources)}*", text))


def cut_edited(text: str, gone: Collection[str], rendered: Collection[str]) -> str:
    """Remove footnotes of items, and claims without others, from an edited page.

    A claim whose words are a person's stays without these footnotes: what they quote is theirs.

    Args:
        text: Whole text of a file.
        gone: IDs of the items.
        rendered: Claims as they were rendered, in Markdown; all others are a person's.
    """
    lines = fold(text).split("\n")
    notes = {line: note for line in lines if (note := _EDITED_NOTE.match(line))}
    numbers = {note[1] for note in notes.values() if note[2] in gone}
    if not numbers:
        return text
    left = (line for line in lines if line not in notes or notes[line][1] not in numbers)
    cut_lines = (_cut_line(line, numbers, rendered) for line in left)
    return unfold("\n".join(line for line in cut_lines if line is not None))


def _notes(lines: Sequence[str]) -> dict[str, re.Match[str]]:
    """Return all footnotes by their number."""
    return {note[1]: note for line in lines if line.startswith("[^") and (note := _NOTE.match(line))}


def _references(line: str) -> list[str]:
    """Return the numbers of the footnotes of a rendered claim."""
    claim = _CLAIM.fullmatch(line) if line.startswith("- ") and line.endswith("]") else None
    return _NUMBER.findall(claim[1]) if claim else []


def _cut_line(line: str, numbers: Collection[str], rendered: Collection[str]) -> str | None:
    """Return a line without references to footnotes, None if nothing is left."""
    references = set(_NUMBER.findall(line))
    if references.isdisjoint(numbers):
        return line
    claim = _EDITED_CLAIM.fullmatch(line)
    if claim and references <= set(numbers) and not line.rstrip().endswith(EDITED) and claim[1] in rendered:
        return None
    return _NUMBER.sub(lambda number: "" if number[1] in numbers else number[0], line).rstrip()
