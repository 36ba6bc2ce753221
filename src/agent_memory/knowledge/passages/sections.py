"""Blocks of a document, and its passages, cut at headings. Pure.

A list keeps its lead sentence, a table its first row, a part of a nested item the items above it. A part that was cut
off repeats them, so that a reader sees whether a thing is allowed or forbidden.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.journal.purged_spans import BAR
from agent_memory.language.sentences import find_breaks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


MOST_CHARS: Final = 1_200
"""Characters of a passage with its heading path."""
SEPARATOR: Final = " \u203a "
_MOST_TITLE: Final = 120
_MOST_PATH: Final = 300
_MOST_LEAD: Final = 250
_MOST_ABOVE: Final = 250
"""Characters of a heading, a heading path, a lead sentence, and the items above a nested one, in a passage."""
_MARKUP: Final = re.compile(
    r"\[[^\]\n]+\]:\s*\S+"  # [name]: address
    r"|\([\w.-]+\)=|\.\. _[^:\n]+:"  # (name)= of MyST, .. _name: of reStructuredText
    r"|(?:\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?\s*)+"  # images, badges
    r"|(?:</?[a-z][^>\n]*>\s*)+"
)
"""A line without words."""
_CODE_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*", re.MULTILINE)
_COMMENT_START: Final = re.compile(r"(?<!\S)%%|<!--")
_COMMENT_ENDS: Final = {"<!--": "-->", "%%": "%%"}


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A passage of a text.

    Attributes:
        text: The passage as it is stored: context such as the heading path, then the words of the source.
        start, end: Place of the words in the source.
        heading: Path of the headings above it.
    """

    text: str
    start: int
    end: int
    heading: str = ""


def cut_passages(text: str, *, most: int = MOST_CHARS, is_settings: bool = False) -> list[TextPassage]:
    """Return the passages of a document in their order.

    Args:
        text: Whole text of the document.
        most: Characters of a passage, at least 900.
        is_settings: Whether the text is a settings file, in which `#` begins a comment.
    """
    passages: list[TextPassage] = []
    titles: list[tuple[int, str]] = []
    section: list[TextBlock] = []
    heading: TextBlock | None = None
    for block in (*(parse_settings(text) if is_settings else parse_blocks(text)), None):
        if block is not None and block.kind != "heading":
            section.append(block)
            continue
        path = _join_path([title for _, title in titles])
        if section:
            passages += _cut_section(text, section, path, most)
        elif heading is not None and (block is None or block.level <= heading.level):
            passages.append(TextPassage(path, heading.start, heading.end, path))
        if block is not None:
            titles = [*((level, title) for level, title in titles if level < block.level), (block.level, block.title)]
        section, heading = [], block
    passages = [passage for passage in passages if passage.text]
    return passages if is_settings else [passage for passage in passages if not _is_markup(text, passage)]


def leave_out(passage: TextPassage, text: str, unwanted: Sequence[str]) -> list[TextPassage]:
    """Return the rest of a passage without some texts.

    Args:
        passage: Passage of a document.
        text: Whole text of the document.
        unwanted: Texts to leave out, whatever their case and white space.
    """
    words = text[passage.start : passage.end]
    matches = (compile_words(part).search(text, passage.start, passage.end) for part in unwanted)
    match = next(filter(None, matches), None)
    if match is None:
        return [passage]
    heading = f"{passage.heading}\n\n" if passage.heading else ""
    prefix = passage.text.removesuffix(words) if passage.text.endswith(words) else heading
    remaining: list[TextPassage] = []
    for start, end in ((passage.start, match.start()), (match.end(), passage.end)):
        rest = text[start:end]
        if any(map(str.isalnum, rest)):  # not the dash of a list item alone
            place = start + len(rest) - len(rest.lstrip())
            rest = rest.strip()
            part = TextPassage(f"{prefix}{rest}", place, place + len(rest), passage.heading)
            remaining += leave_out(part, text, unwanted)
    return remaining


def compile_words(words: str) -> re.Pattern[str]:
    """Return a pattern of words with any case and white space."""
    return re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)


def find_cut(text: str, start: int, end: int) -> int:
    """Return a cut in the second half, after a paragraph or sentence."""
    half = start + (end - start) // 2
    paragraph, line, word = (text.rfind(mark, half, end) + len(mark) for mark in ("\n\n", "\n", " "))
    sentence = max(find_breaks(text, start, end, is_wrapped=True), default=0)
    return next((cut for cut in (paragraph, sentence, line, word) if cut > half), end)


def _is_markup(text: str, passage: TextPassage) -> bool:
    """Return True if a passage has only links, images, tags, purged words."""
    lines = text[passage.start : passage.end].split("\n")
    return all(
        not line.strip("# \r\t")
        or (BAR in line and not any(map(str.isalnum, line)))
        or _MARKUP.fullmatch(line.strip()) is not None
        for line in lines
    )


def _join_path(titles: Sequence[str]) -> str:
    """Return a heading path, without outer headings beyond the limit."""
    path = ""
    for title in reversed(titles):
        heading = title[:_MOST_TITLE].strip()
        if path and len(heading) + len(SEPARATOR) + len(path) > _MOST_PATH:
            break
        path = f"{heading}{SEPARATOR}{path}" if path else heading
    return path


def _cut_section(text: str, blocks: Sequence[TextBlock], path: str, most: int) -> Iterator[TextPassage]:
    """Yield the passages of one section, as long as possible."""
    room = most - len(path) - 2
    start, end = blocks[0].start, blocks[0].start
    for unit in _join_leads(blocks):
        if unit[-1].end - start <= room:
            end = unit[-1].end
            continue
        if end > start:
            yield _make(text, path, "", start, end)
        start, end = unit[0].start, unit[-1].end
        if end - start > room:
            for context, begin, stop in _cut_unit(text, unit, room):
                yield _make(text, path, context, begin, stop)
            start = end
    if end > start:
        yield _make(text, path, "", start, end)


def _join_leads(blocks: Sequence[TextBlock]) -> Iterator[list[TextBlock]]:
    """Yield blocks, with the paragraph above a list, table or code."""
    unit: list[TextBlock] = []
    for block in blocks:
        if unit and not (unit[-1].kind == "text" and block.kind != "text"):
            yield unit
            unit = []
        unit.append(block)
    if unit:
        yield unit


def _cut_unit(text: str, unit: Sequence[TextBlock], room: int) -> Iterator[tuple[str, int, int]]:
    """Yield context, start and end of parts of a long unit."""
    block = unit[-1]
    if block.kind == "text":
        for begin, stop in _cut_words(text, block.start, block.end, room):
            yield "", begin, stop
        return
    lead, start = "", block.start
    if len(unit) > 1:
        lead = _get_lead(text, unit[0])
        start = unit[0].start
        if unit[0].end - start > _MOST_LEAD:  # a long paragraph has passages of its own; its last sentence is the lead
            for begin, stop in _cut_words(text, start, unit[0].end, room):
                yield "", begin, stop
            start = block.start
    for above, begin, stop in _cut_rows(text, block, room - len(lead) - _MOST_ABOVE - 2):
        if begin == block.start:
            yield (lead if start == begin else ""), start, stop
        else:
            yield "\n".join(filter(None, (lead, above))), begin, stop


def _get_lead(text: str, block: TextBlock) -> str:
    """Return the lead sentence: the end of the paragraph above."""
    start = max(block.start, block.end - _MOST_LEAD)
    if start > block.start:
        start = next(find_breaks(text, start, block.end, is_wrapped=True), start)
    return " ".join(text[start : block.end].split())


def _cut_rows(text: str, block: TextBlock, room: int) -> Iterator[tuple[str, int, int]]:
    """Yield parts of a block cut between rows, with the rows above."""
    above, start, end = "", block.start, block.start
    for row_above, begin, stop in _find_rows(text, block):
        if stop - start <= room:
            end = stop
            continue
        if end > start:
            yield above, start, end
        above, start, end = row_above, begin, stop
        if stop - begin > room:
            for first, last in _cut_words(text, begin, stop, room):
                yield above, first, last
            start = end
    if end > start:
        yield above, start, end


def _find_rows(text: str, block: TextBlock) -> Iterator[tuple[str, int, int]]:
    """Yield the rows of a block: list items, or lines."""
    if block.kind != "list":
        first = LINE.match(text, block.start, block.end)
        above = first[0].strip()[:_MOST_ABOVE] if first is not None else ""
        for line in LINE.finditer(text, block.start, block.end):
            yield above, line.start(), line.end()
        return
    outer: list[tuple[int, str]] = []
    has_marks = is_item_start(text[block.start : block.start + _MOST_LEAD])
    begin, above = block.start, ""
    for line in LINE.finditer(text, block.start, block.end):
        if not line[0].strip() or (has_marks and not is_item_start(line[0])):
            continue
        if line.start() > begin:
            yield above, begin, line.start()
        indent = len(line[0]) - len(line[0].lstrip())
        while outer and outer[-1][0] >= indent:
            outer.pop()
        begin, above = line.start(), _join_above(outer)
        outer.append((indent, line[0].rstrip()[:_MOST_TITLE]))
    yield above, begin, block.end


def _join_above(outer: Sequence[tuple[int, str]]) -> str:
    """Return the items above a nested one, up to the limit."""
    lines: list[str] = []
    size = 0
    for _, line in reversed(outer):
        size += len(line) + 1
        if size > _MOST_ABOVE:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _cut_words(text: str, start: int, end: int, room: int) -> Iterable[tuple[int, int]]:
    while end - start > room:
        cut = find_cut(text, start, start + room)
        yield start, cut
        start = cut
    yield start, end


def _make(text: str, path: str, context: str, start: int, end: int) -> TextPassage:
    words = text[start:end]
    start += len(words) - len(words.lstrip("\n"))
    words = words.strip("\n").rstrip()
    end = start + len(words)
    words = without_comments(words)
    content = f"{context}\n{words}" if context and words else words
    return TextPassage("\n\n".join(filter(None, (path, content))), start, end, path)


def without_comments(words: str) -> str:
    """Return a text without `<!-- -->` and `%%` comments outside code."""
    parts: list[str] = []
    place, fence = 0, ""
    for mark in _CODE_FENCE.finditer(words):
        if not fence:
            parts.append(_drop_comments(words[place : mark.start()]))
            place, fence = mark.start(), mark[1]
        elif mark[1].startswith(fence):
            parts.append(words[place : mark.end()])
            place, fence = mark.end(), ""
    tail = words[place:]
    return "".join([*parts, tail if fence else _drop_comments(tail)]).strip("\n").rstrip()


def _drop_comments(words: str) -> str:
    parts: list[str] = []
    place, unclosed = 0, set[str]()
    for mark in _COMMENT_START.finditer(words):
        if mark.start() < place or mark[0] in unclosed:
            continue
        end = words.find(_COMMENT_ENDS[mark[0]], mark.end())
        if end < 0:
            unclosed.add(mark[0])
            continue
        start, line_start = mark.start(), words.rfind("\n", 0, mark.start()) + 1
        if mark[0] == "%%" and not words[line_start:start].strip():
            start = max(place, line_start - 1)
        elif mark[0] == "%%" and "\n" in words[start:end]:
            continue  # two signs in the middle of lines do not enclose a comment
        parts.append(words[place:start])
        place = end + len(_COMMENT_ENDS[mark[0]])
    return "".join([*parts, words[place:]])
