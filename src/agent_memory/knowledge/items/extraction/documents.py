"""Claims of a document: sentences below their headings, list items, rows of tables; none of code or front matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.items.extraction.claims import Claim
from agent_memory.knowledge.items.extraction.sentences import spans_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.items.extraction.claims import Passage

DOCUMENT: Final = "document"
ROW: Final = "row"

MOST_JOINED: Final = 500
_MOST_HEADING: Final = 120
_LINE: Final = re.compile(r"[^\n]*(?:\n|\Z)")
_HEADING: Final = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+")
_FENCE: Final = re.compile(r"[ \t]*(```|~~~)")
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_ROW: Final = re.compile(r"[ \t]*\|")
_RULE: Final = re.compile(r"[ \t|:=*_-]+")
_WORD: Final = re.compile(r"\w")


def claims_of_document(passage: Passage, *, most_joined: int = MOST_JOINED) -> list[Claim]:
    """Return what is stated, in order.

    Args:
        passage: The document.
        most_joined: Characters up to which sentences of one paragraph are one claim.
    """
    text, headings = passage.text, dict[int, str]()
    columns: list[str] = []
    found: list[Claim] = []
    for kind, start, end in _blocks(text):
        marks = _HEADING.match(text, start, end) if kind == "heading" else None
        if marks is not None:
            level = len(marks[1])
            headings = {each: title for each, title in headings.items() if each < level}
            headings[level] = _line(text[marks.end() : end].rstrip("# \n\t"))[:_MOST_HEADING]
            continue
        above = " \u203a ".join(headings.values())
        if kind == ROW:
            cells = _cells(text[start:end])
            if not columns:
                columns = cells
            elif any(cells):
                found.append(_claim(above, _row(columns, cells), start, end, ROW))
            continue
        columns = []
        found += [_claim(above, _line(text[a:b]), a, b, DOCUMENT) for a, b in _joined(text, start, end, most_joined)]
    return found


def _blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield headings, rows, and paragraphs (a list item is one) with their places, without code and front matter."""
    fence, begin, at = "", -1, _front_matter(text)
    for line in _LINE.finditer(text, at):
        start, end, said = line.start(), line.end(), line[0]
        mark = _FENCE.match(said)
        heading, row, bullet = _HEADING.match(said), _ROW.match(said), _BULLET.match(said)
        if begin >= 0 and (fence or mark or heading or row or bullet or not _WORD.search(said)):
            yield "text", begin, start
            begin = -1
        if mark and (not fence or fence == mark[1]):
            fence = "" if fence else mark[1]
        elif fence or (_RULE.fullmatch(said.rstrip("\n")) and not heading):
            continue
        elif heading or row:
            yield ROW if row else "heading", *_bare(text, start, end)
        elif begin < 0 and _WORD.search(said):
            begin = start + (bullet.end() if bullet else 0)
    if begin >= 0:
        yield "text", begin, len(text)


def _front_matter(text: str) -> int:
    end = text.find("\n---", 3) if text.startswith("---\n") else -1
    return end + len("\n---") if end >= 0 else 0


def _joined(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield where sentences of one paragraph stand, as many together as fit."""
    begin = last = -1
    for first, stop in spans_of(" ".join(text[start:end].split("\n"))):
        first, stop = first + start, stop + start  # noqa: PLW2901 - a newline is one space: places stay
        if begin >= 0 and stop - begin <= most:
            last = stop
            continue
        if begin >= 0:
            yield begin, last
        begin, last = first, stop
    if begin >= 0:
        yield begin, last


def _bare(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _cells(row: str) -> list[str]:
    return [_line(cell) for cell in row.strip().strip("|").split("|")]


def _row(columns: list[str], cells: list[str]) -> str:
    named = [f"{columns[at]}: {cell}" if at < len(columns) and columns[at] else cell for at, cell in enumerate(cells)]
    return "; ".join(each for each, cell in zip(named, cells, strict=True) if cell)


def _line(text: str) -> str:
    return " ".join(text.split())


def _claim(above: str, said: str, start: int, end: int, rule: str) -> Claim:
    return Claim(f"{above}: {said}" if above else said, start, end, rule)
