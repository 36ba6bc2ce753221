"""Parts of an import: facts, and statements cut from texts. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.turns import FileConversation
from agent_memory.knowledge.passages.sections import without_comments
from agent_memory.knowledge.passages.structure import find_body, is_item_start, parse_blocks
from agent_memory.language.sentences import find_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from agent_memory.knowledge.passages.structure import TextBlock

LEFT_OUT: Final = "left_out"
"""Code of a part that is not content, such as a file of settings."""
_BOLD_LINE: Final = re.compile(r"\s*\*\*([^*\n]+)\*\*:?\s*")
_BULLET: Final = re.compile(r"\s{0,40}(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX-]\]\s+)?")


@dataclass(frozen=True, slots=True)
class ImportedFact:
    """A fact that becomes a memory.

    Attributes:
        text: Words of the fact.
        place: Where it is in its file, such as `line 3`.
        said_at: Time that the file states, or None.
        category: Category of the memory.
        tags: Tags of the memory.
        project: Name of the project, or empty.
        metadata: What else the file says, as plain JSON.
        note: What the reader could not use, such as `has no readable date`; empty for nothing.
    """

    text: str
    place: str = ""
    said_at: datetime | None = None
    category: str = "note"
    tags: tuple[str, ...] = ()
    project: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


ImportPart = ImportedFact | FileConversation | ReceivedDocument | SkippedPart


@dataclass(frozen=True, slots=True)
class CutStatement:
    """Statement of a text, with its line and heading."""

    text: str
    line: int
    section: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The heading as metadata of a memory."""
        return {"section": self.section} if self.section else {}


def cut_statements(text: str, paragraphs: Literal["whole", "lines", "sentences"] = "whole") -> Iterator[CutStatement]:
    """Yield items of lists and paragraphs of a Markdown text.

    A nested item and a block of code belong to the statement before them.

    Args:
        text: Text with or without front matter; comments are left out.
        paragraphs: Way to cut a paragraph.
    """
    body = find_body(text)
    first_line = text.count("\n", 0, body)
    words = without_comments(text[body:])
    waiting: CutStatement | None = None
    for block, section in _list_sections(words):
        line = first_line + words.count("\n", 0, block.start) + 1
        if block.kind == "code" and waiting is not None:
            code = words[block.start : block.end].rstrip()
            waiting = CutStatement(f"{waiting.text}\n{code}", waiting.line, waiting.section)
            continue
        for part, offset in _cut_block(words, block, paragraphs):
            if waiting is not None:
                yield waiting
            waiting = CutStatement(part, line + offset, section)
    if waiting is not None:
        yield waiting


def _list_sections(text: str) -> Iterator[tuple[TextBlock, str]]:
    """Yield blocks with content and the heading above each."""
    section = ""
    for block in parse_blocks(text):
        bold = _BOLD_LINE.fullmatch(text[block.start : block.end])
        if block.kind == "heading":
            section = block.title
        elif bold is not None:
            section = bold[1].strip().rstrip(":")
        else:
            yield block, section


def _cut_block(text: str, block: TextBlock, paragraphs: str) -> Iterator[tuple[str, int]]:
    """Yield the statements of a block, with lines from its start."""
    words = text[block.start : block.end]
    if block.kind == "list":
        yield from _cut_list(words)
    elif block.kind == "text" and paragraphs == "sentences":
        for start, end in find_sentences(words):
            yield " ".join(words[start:end].split()), words.count("\n", 0, start)
    elif block.kind == "text" and paragraphs == "lines":
        yield from ((line.strip(), number) for number, line in enumerate(words.split("\n")) if line.strip())
    elif words.strip():
        yield words.strip(), 0


def _cut_list(words: str) -> Iterator[tuple[str, int]]:
    """Yield the outer items of a list with their inner ones."""
    lines = words.rstrip().split("\n")
    depths = [len(line) - len(line.lstrip()) for line in lines]
    outer = min((depth for line, depth in zip(lines, depths, strict=True) if is_item_start(line)), default=0)
    starts = [number for number, line in enumerate(lines) if is_item_start(line) and depths[number] <= outer]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        item = "\n".join(lines[start:end]).rstrip()
        yield strip_bullet(item), start


def strip_bullet(line: str) -> str:
    """Return a line without its bullet or number."""
    return _BULLET.sub("", line, count=1).strip()
