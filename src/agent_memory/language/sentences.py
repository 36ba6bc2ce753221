"""Sentences and clauses of a text, in linear time. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CLAUSE_END: Final = compile_late(r"[,;:()—、\uff0c\uff1b\uff1a]|\s[-\u2013]\s")
"""Mark between two clauses of a sentence."""
COLONS: Final = (":", "\uff1a")
MAX_CHARS: Final = 1_000
"""Characters of a sentence; a longer run is cut, at a space if it has one."""

_END: Final = (
    r"(?<=[.!?\N{HORIZONTAL ELLIPSIS}\N{ARABIC QUESTION MARK}])(?:[*_\]]{0,3}\s+(?=\S)"
    r"|[\"')\]*_”\u2019»]{1,3}\s+(?=[^\sa-z]))|(?<=[。\uff01\uff1f])(?=[^\s」』])"
)
"""Sentence end; a small letter after a closing quote or parenthesis continues the sentence."""
_BOUNDARY: Final = compile_late(rf"{_END}|\n\s*")
_WRAPPED_BOUNDARY: Final = compile_late(rf"{_END}|\n\s*\n")
_ABBREVIATION: Final = compile_late(
    r"(?:(?<![\w.])(?<!\d )(?:e\.g|i\.e|vs|cf|approx|aprox|resp|incl|dr|mr|mrs|ms|prof|st|sra?|z\.\s?b|d\.\s?h|u\.\s?a"
    r"|bzw|ca|evtl|ggf|p\.\s?ex|ej)|(?<!\w)(?-i:[A-HJ-Za-z])|(?<![\w.-])\d{1,2})\. .$"
    r"|\b(?:no|nr|fig)\. \d$|\b(?:etc|usw)\. (?-i:[a-z\u00df-\u00ff])$",
    re.IGNORECASE,
)
"""Abbreviation before a space and the next character: "no. 5" has one, "I said no. Then" has not."""
_TAIL: Final = 12
_TIME: Final = compile_late(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekends?|months?|years?|since|recently|morning"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october"
    r"|november|december|gestern|heute|morgen|letzte[nrs]?)\b",
    re.IGNORECASE,
)


def find_breaks(text: str, start: int = 0, end: int | None = None, *, is_wrapped: bool = False) -> Iterator[int]:
    """Yield the start of each sentence except the first.

    Args:
        text: Text with the sentences.
        start: First character that is read.
        end: Exclusive end of the text that is read, by default its end.
        is_wrapped: True if lines are wrapped by width: then a blank line ends a sentence, and a line break does not.
    """
    stop = len(text) if end is None else end
    for boundary in (_WRAPPED_BOUNDARY if is_wrapped else _BOUNDARY).finditer(text, start, stop):
        before = text[max(start, boundary.start() - _TAIL) : boundary.start()]
        after = text[boundary.end() : boundary.end() + 1]
        if boundary[0].count("\n") > is_wrapped or not _ABBREVIATION.search(f"{before} {after}"):
            start = boundary.end()
            yield start


def find_sentences(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence, without spaces around it."""
    for cut in chain(find_breaks(text, start, end), (len(text) if end is None else end,)):
        while cut - start > MAX_CHARS:
            space = text.rfind(" ", start + MAX_CHARS // 2, start + MAX_CHARS)
            part_end = space + 1 if space > 0 else start + MAX_CHARS
            yield from trim_span(text, start, part_end)
            start = part_end
        yield from trim_span(text, start, cut)
        start = cut


def trim_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a span without spaces around it, unless it is blank."""
    part = text[start:end]
    if part.strip():
        first = start + len(part) - len(part.lstrip())
        yield first, first + len(part.strip())


def names_time(text: str) -> bool:
    """Return True if a text names a day, month or relative date."""
    return _TIME.search(text) is not None


_BULLET: Final = compile_late(r"^[ \t]*(?:[-*+•\u2013▪]|\d{1,3}[.)]|\(\d{1,2}\)|\[[ xX]?\])[ \t]+")
_HEADING: Final = compile_late(r"^#{1,6}[ \t]+")
_OPEN_QUOTES: Final = {"“": "”", "„": "“”", "«": "»", "「": "」", "『": "』", '"': '"'}
_MIN_QUOTED_WORDS: Final = 3
UNSPACED_START: Final = "\u2e80"
"""First character of the scripts without spaces between words."""
_MAX_WIDE_NAME: Final = 8
"""Characters of a quoted name in a script without spaces; more are a quotation."""
_MIN_WRAPPED_CHARS: Final = 60
"""Characters of a line that may be wrapped by width."""
_MAX_PARENTHESIS: Final = 200
"""Characters after which an open parenthesis counts as never closed."""
_SINGLE_QUOTED: Final = compile_late(
    r"(?<![^\s(:,])'(?=[^\s'])[^\s'\n]{1,40}(?: [^\s'\n]{1,40}){2,40}'(?=[\s.,;:!?)]|$)"
)
"""Quotation in single quotes: they are next to spaces, and shorter ones are names of things."""
_CLAUSE: Final = compile_late(r"(?<=;)\s+|(?<!\s)\s++(?=(?:[Aa]lso|[Uu]nd|[Aa]nd),? (?:TODO|todo)\b)")


@dataclass(frozen=True, slots=True)
class MessageSentence:
    """A sentence of a message.

    Attributes:
        text: Sentence as written.
        masked: The same without quotations, which are blank; rules read this.
        paragraph: Number of its paragraph.
        block: Code block directly after it, which it introduces with a colon.
        is_heading: True if it is a heading.
        is_item: True if it is in a list.
    """

    text: str
    masked: str
    paragraph: int
    block: str = ""
    is_heading: bool = False
    is_item: bool = False


def split_sentences(text: str, blocks: Mapping[str, str] | None = None) -> list[MessageSentence]:
    """Return the sentences of a message.

    Args:
        text: Message with a line of its own in place of each code block.
        blocks: Code blocks by that line.
    """
    sentences: list[MessageSentence] = []
    paragraph = 0
    for line in _join_wrapped_lines(text):
        if not line.strip():
            paragraph += 1
        elif blocks and line.strip() in blocks:
            if sentences and sentences[-1].text.rstrip("*_ ").endswith(COLONS):
                sentences[-1] = replace(sentences[-1], block=blocks[line.strip()])
        else:
            is_heading, is_item = _HEADING.match(line) is not None, _BULLET.match(line) is not None
            bare = _BULLET.sub("", _HEADING.sub("", line)).strip()
            sentences += [
                MessageSentence(part, masked, paragraph, is_heading=is_heading, is_item=is_item)
                for part, masked in _split_line(bare)
            ]
    return sentences


def mask_quotes(text: str) -> str:
    """Replace quotations by blanks, so that the length stays.

    A quotation has three words or more; shorter ones are names of things.
    """
    masked = list(text.replace("\u2019", "'").replace("\u2018", "'"))
    position = 0
    while position < len(text):
        closing = _OPEN_QUOTES.get(text[position])
        if closing is None:
            position += 1
            continue
        end = next((place for place in range(position + 1, len(text)) if text[place] in closing), -1)
        if end < 0:
            break
        inner = text[position + 1 : end]
        is_wide = len(inner) > _MAX_WIDE_NAME and any(character > UNSPACED_START for character in inner)
        if len(inner.split()) >= _MIN_QUOTED_WORDS or is_wide:
            masked[position + 1 : end] = " " * (end - position - 1)
        position = end + 1
    return _SINGLE_QUOTED.sub(lambda match: " " * len(match[0]), "".join(masked))


def _join_wrapped_lines(text: str) -> list[str]:
    """Return the lines of a text, wrapped ones joined.

    A line with a small first letter continues a long line that has no stop.
    """
    lines: list[str] = []
    for line in text.splitlines():
        above = lines[-1].rstrip() if lines and len(lines[-1]) > _MIN_WRAPPED_CHARS else ""
        if above and above[-1] not in ".!?:;。\uff01\uff1f" and line[:1].islower():
            lines[-1] = f"{above} {line}"
        else:
            lines.append(line)
    return lines


def _split_line(line: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence as written and masked; stops in quotations end none."""
    masked = mask_quotes(line)
    cuts = [0]
    for cut in find_breaks(masked):
        if not _is_in_parenthesis(masked[cuts[-1] : cut]):
            cuts.append(cut)
    cuts = sorted([*cuts, *(clause.end() for clause in _CLAUSE.finditer(masked))])
    for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True):
        for first, last in trim_span(line, start, min(end, start + MAX_CHARS)):
            yield line[first:last], masked[first:last]


def _is_in_parenthesis(text: str) -> bool:
    return text.count("(") > text.count(")") and len(text) - text.rfind("(") < _MAX_PARENTHESIS
