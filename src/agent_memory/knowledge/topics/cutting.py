"""A page as it was rendered, without items that are gone: only the lines that name them are written anew. Pure.

What is left keeps its place, its heading and the numbers of its footnotes until the page is made anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import escaped
from agent_memory.knowledge.topics.rendering import UNTRUSTED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import date

_ID: Final = r"[a-z]{3}-[0-9a-f]{12}"
_NOTE: Final = re.compile(rf"\[\^(\d+)\]: .*?\((?:({_ID}), )?({_ID}) at \d+-\d+(?:, ({_ID}))?\): \"")
_CLAIM: Final = re.compile(r"- (?:\(\d{4}-\d\d-\d\d\) )?.*? ((?:\[\^\d+\])+)")
_NUMBER: Final = re.compile(r"\[\^(\d+)\]")
_FOOTER: Final = re.compile(r"^\*Items: \d+ \| Resources: \d+\*$", re.MULTILINE)
_NOTHING: Final = "\0"
"""Stands for a line that was taken out, until it is known whether something is left below its heading."""
_EMPTY_SECTION: Final = re.compile(rf"^## [^\n]*\n\n(?:{_NOTHING}\n)+\n(?=## |---\n)", re.MULTILINE)
_EMPTY_BLOCK: Final = re.compile(rf"(?<=\n\n)(?:{_NOTHING}\n)+\n")


@dataclass(frozen=True, slots=True)
class Words:
    """What a claim says: the line of its last item, on which day that was said, and whether its trust is low."""

    line: str
    said: date | None = None
    is_untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands on a page.

    Attributes:
        items: Ids of all items with a footnote.
        heirs: Ids of the items whose words the claims get that have lost a footnote.
        full: The claims with so many footnotes that others may be left out beside them: their last items.
    """

    items: frozenset[str]
    heirs: frozenset[str]
    full: frozenset[str]


def standing(text: str, gone: Collection[str], most_notes: int) -> Standing:
    """Return what stands on a page.

    Args:
        text: As it was rendered.
        gone: Ids of the items that are gone.
        most_notes: Footnotes of a claim that may have others left out.
    """
    lines = text.split("\n")
    items = {number: found[4] for number, found in _notes(lines).items() if found[4]}
    heirs, full = set[str](), set[str]()
    for line in lines:
        own = [items[one] for one in _references(line) if one in items]
        left = [item for item in own if item not in gone]
        if left and len(left) < len(own):
            heirs.add(left[-1])
        elif len(left) >= most_notes:
            full.add(left[-1])
    return Standing(frozenset(items.values()), frozenset(heirs), frozenset(full))


def without(text: str, gone: Collection[str], words: Mapping[str, Words]) -> str | None:
    """Return a page without these items: their footnotes, the claims that had no others, and headings left empty.

    A claim that others say, too, gets the words of the last of these: it may have had those of what is gone.

    Args:
        text: As it was rendered, with front matter or without it.
        gone: Ids of the items.
        words: What the items say whose claims have lost a footnote.

    Returns:
        None where that is not enough: nothing is left, or a person's line is concerned.
    """
    lines = text.split("\n")
    notes = _notes(lines)
    lost = {number for number, found in notes.items() if found[4] in gone}
    left = {number: found for number, found in notes.items() if number not in lost}
    if not left or _NOTHING in text:
        return None
    kept = list[str]()
    for line in lines:
        if "[^" not in line or lost.isdisjoint(_NUMBER.findall(line)):
            kept.append(line)
        elif _NOTE.match(line) is None:
            references = _references(line)
            own = [one for one in references if one not in lost]
            if not references or (own and left[own[-1]][4] not in words):
                return None
            kept.append(_claim(words[left[own[-1]][4]], own) if own else _NOTHING)
    text = _EMPTY_BLOCK.sub("", _EMPTY_SECTION.sub("", "\n".join(kept))).replace(f"{_NOTHING}\n", "")
    items = {found[4] for found in left.values() if found[4]}
    resources = {found[2] or found[3] for found in left.values()}
    return _FOOTER.sub(f"*Items: {len(items)} | Resources: {len(resources)}*", text)


def _notes(lines: Sequence[str]) -> dict[str, re.Match[str]]:
    """Return all footnotes by their number."""
    return {found[1]: found for line in lines if line.startswith("[^") and (found := _NOTE.match(line))}


def _references(line: str) -> list[str]:
    """Return the numbers of the footnotes of a claim as it was rendered; none of any other line."""
    found = _CLAIM.fullmatch(line) if line.startswith("- ") and line.endswith("]") else None
    return _NUMBER.findall(found[1]) if found else []


def _claim(words: Words, numbers: Sequence[str]) -> str:
    day = f"({words.said.isoformat()}) " if words.said else ""
    mark = f" {UNTRUSTED}" if words.is_untrusted else ""
    return f"- {day}{escaped(words.line)}{mark} {''.join(f'[^{one}]' for one in numbers)}"
