"""Removal of items from a rendered page, line by line. Pure.

What is left keeps its place, its heading and the numbers of its footnotes until the page is rebuilt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import fold, unfold

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_ID: Final = r"[a-z]{3}-[0-9a-f]{12}"
_NOTE: Final = re.compile(rf"\[\^(\d+)\]: .*?\((?:({_ID}), )?({_ID}) at \d+-\d+(?:, ({_ID}))?\)")
_CLAIM: Final = re.compile(r"- .* ((?:\[\^\d+\])+)")
_NUMBER: Final = re.compile(r"\[\^(\d+)\]")
_FOOTER: Final = re.compile(r"^\*Items: \d+ \| Resources: \d+\*$", re.MULTILINE)
_NOTHING: Final = "\0"
"""Line that was removed, until it is known whether something is left below its heading."""
_EMPTY_SECTION: Final = re.compile(rf"^## [^\n]*\n\n(?:{_NOTHING}\n)+\n(?=## |---\n)", re.MULTILINE)
_EMPTY_BLOCK: Final = re.compile(rf"(?<=\n\n)(?:{_NOTHING}\n)+\n")


def list_items(text: str) -> set[str]:
    """Return the IDs of the items on a rendered page."""
    return {note[4] for note in _notes(text.split("\n")).values() if note[4]}


def without(text: str, gone: Collection[str]) -> str | None:
    """Return a page without the footnotes and claims of some items.

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


def _notes(lines: Sequence[str]) -> dict[str, re.Match[str]]:
    """Return all footnotes by their number."""
    return {note[1]: note for line in lines if line.startswith("[^") and (note := _NOTE.match(line))}


def _references(line: str) -> list[str]:
    """Return the numbers of the footnotes of a rendered claim."""
    claim = _CLAIM.fullmatch(line) if line.startswith("- ") and line.endswith("]") else None
    return _NUMBER.findall(claim[1]) if claim else []
