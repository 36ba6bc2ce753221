"""Blocks of a document, and places of words. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator


BlockKind = Literal["heading", "text", "list", "table", "code"]

LINE: Final = re.compile(r"[^\n]+\n?|\n")
"""A line with its end."""
_HEADING: Final = re.compile(r" {0,3}(#{1,6}|={2,6})[ \t]+(?=[^\s#=])")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)]|[A-Za-z]\))[ \t]+(?=\S)")
_ROW: Final = re.compile(r"[ \t]*\|")
_DELIMITER: Final = re.compile(r"[ \t|:-]+")
_RULE: Final = re.compile(r"[ \t=*_-]+")
_TABLE_NAME: Final = re.compile(r"[ \t]*(\[{1,2}[^\[\]\n]+\]{1,2})[ \t]*(?:[#;].*)?")
_INDENTED: Final = re.compile(r"(?: {2}|\t)")
_KEY: Final = re.compile(r"(?:\s|#[^\n]*\n)*+[^\s:#|-][^\n:]*:(?=\s)")
"""First line of front matter, behind comments."""


@dataclass(slots=True)
class TextBlock:
    """Block of a document, `text[start:end]`, with level and title of headings."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    title: str = ""
    lines: int = 1


def find_body(text: str) -> int:
    """Return the position behind the front matter of a text, or 0."""
    if not text.startswith(("---\n", "\ufeff---\n")):
        return 0
    end = text.find("\n---", 3)
    if end < 0 or _KEY.match(text, text.find("\n") + 1, end) is None:
        return 0
    line_end = text.find("\n", end + 1)
    rest = text[end + 4 : line_end if line_end >= 0 else None]
    if rest.strip():
        return 0
    return line_end + 1 if line_end >= 0 else len(text)


def parse_blocks(text: str) -> list[TextBlock]:
    """Return the blocks of a Markdown or plain text in order."""
    reader = _BlockReader()
    for line in LINE.finditer(text, find_body(text)):
        reader.read(line[0], line.start(), line.end())
    return reader.blocks


def parse_settings(text: str) -> Iterator[TextBlock]:
    """Yield the blocks of a settings file: table names and lines."""
    block: TextBlock | None = None
    for line in LINE.finditer(text):
        name = _TABLE_NAME.fullmatch(line[0].rstrip("\n"))
        if name is not None:
            if block is not None:
                yield block
            block = None
            yield TextBlock("heading", line.start(), line.end(), 1, name[1])
        elif line[0].strip():
            block = block or TextBlock("list", line.start(), line.end())
            block.end = line.end()
    if block is not None:
        yield block


def is_item_start(line: str) -> bool:
    """Return True if a line begins an item of a list."""
    return _BULLET.match(line) is not None


class _BlockReader:
    """Collects blocks line by line.

    Attributes:
        blocks: Blocks so far; the last one may still grow.
    """

    def __init__(self) -> None:
        self.blocks: list[TextBlock] = []
        self._fence = ""
        self._is_open = self._has_gap = False

    def read(self, line: str, start: int, end: int) -> None:
        """Read one line, `text[start:end]`."""
        if self._fence:
            self._grow(end)
            stripped = line.strip()
            if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
                self._fence, self._is_open = "", self.blocks[-1].kind == "list"
        elif not line.strip():
            self._has_gap = True
        elif not self._read_mark(line, start, end):
            self._read_text(line, start, end)

    def _read_mark(self, line: str, start: int, end: int) -> bool:
        """Read a line with a mark; return False for any other."""
        last = self.blocks[-1] if self._is_open and not self._has_gap else None
        if (fence := _FENCE.match(line)) is not None:
            self._fence = fence[1]
            if self._is_open and self.blocks[-1].kind == "list" and _INDENTED.match(line):
                self._grow(end)
            else:
                self._begin(TextBlock("code", start, end))
        elif (marks := _HEADING.match(line)) is not None:
            title = " ".join(line[marks.end() :].rstrip("#= \t\n").split())
            level = len(marks[1]) - (marks[1][0] == "=")
            self.blocks.append(TextBlock("heading", start, end, level, title))
            self._is_open = False
        elif last is not None and last.kind == "text" and last.lines == 1 and self._read_below(last, line, end):
            pass
        elif _RULE.fullmatch(line.rstrip("\n")) is not None:
            self._is_open = False
        else:
            return False
        return True

    def _read_below(self, last: TextBlock, line: str, end: int) -> bool:
        """Read an underline or table delimiter below a line."""
        bare = line.rstrip("\n")
        if _UNDERLINE.fullmatch(bare) is not None:
            last.kind, last.level = "heading", 1 if "=" in bare else 2
            last.end, self._is_open = end, False
        elif "|" in bare and "-" in bare and _DELIMITER.fullmatch(bare) is not None:
            last.kind, last.end = "table", end
        else:
            return False
        return True

    def _read_text(self, line: str, start: int, end: int) -> None:
        kind = self.blocks[-1].kind if self._is_open else None
        line_kind: BlockKind = "list" if _BULLET.match(line) else "table" if _ROW.match(line) else "text"
        is_next = kind == line_kind or (kind == "table" and "|" in line) or kind == "list"
        is_list = kind == "list" and (line_kind == "list" or _INDENTED.match(line) is not None)
        if is_list or (is_next and not self._has_gap):
            self._grow(end)
        else:
            self._begin(TextBlock(line_kind, start, end, title=" ".join(line.split()) if line_kind == "text" else ""))

    def _begin(self, block: TextBlock) -> None:
        self.blocks.append(block)
        self._is_open, self._has_gap = True, False

    def _grow(self, end: int) -> None:
        self.blocks[-1].end = end
        self.blocks[-1].lines += 1
        self._has_gap = False


def find_words(quote: str, text: str, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
    """Return the place of words, ignoring white space, or None.

    Args:
        quote: Words to find.
        text: All of it.
        start: Where to begin to look.
        end: Behind the last character to look at; that of the text when omitted.
    """
    words = quote.split()
    if not words:
        return None
    wanted = r"\s+".join(map(re.escape, words))
    if quote.isascii():  # whole words: "oor" is not in "door"; some scripts have no spaces
        wanted = rf"(?<!\w){wanted}(?!\w)"
    match = re.compile(wanted).search(text, start, len(text) if end is None else end)
    return match.span() if match else None
