"""Text into sentences, with quoted passages blanked out. Applies no rule and chooses no category."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

MAX_SENTENCE_CHARS: Final = 1000
"""Longer runs are no sentences; they are cut, so that no pattern meets more."""

_BULLET: Final = re.compile(r"^[ \t]*(?:[-*+\u2022\u2013\u25aa]|\d{1,3}[.)]|\(\d{1,2}\)|\[[ xX]?\])[ \t]+")
_HEADING: Final = re.compile(r"^#{1,6}[ \t]+")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|no|nr|fig|dr|mr|mrs|ms|prof|st|z\.\s?b|d\.\s?h|bzw|ca|evtl|ggf|usw|u\.\s?a|p\.\s?ex|ej|aprox|sr|sra|v)"
    r"|\b[A-Za-z]|(?<!\w)\d{1,2})\.$",
    re.IGNORECASE,
)
_BOUNDARY: Final = re.compile(
    r"(?<=[.!?\u2026])[\"'\u201d\u2019\u00bb)\]*_]{0,3}\s+(?=\S)|(?<=[\u3002\uff01\uff1f!?])[\u300d\u300f\u201d\uff09)]?(?=[^\s\"'\u201d\u2019\u00bb)\]\u3002\uff01\uff1f!?.\w])|(?<=[\u3002\uff01\uff1f])(?=\S)"
)
_OPEN_QUOTES: Final = {
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u00ab": "\u00bb",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    '"': '"',
}
_MIN_QUOTED_WORDS: Final = 3
_CJK_BEGINS: Final = "\u2e80"
_MAX_WIDE_NAME: Final = 8
"""Characters of a quoted name in a script without spaces; more are a quotation."""
_MIN_WRAPPED_CHARS: Final = 60
"""A narrower line was ended on purpose."""
_MAX_PARENTHESIS: Final = 200
"""A parenthesis still open after so many characters was not closed."""
# An apostrophe opens a quotation only after a space and closes it only before one; shorter ones are names of things.
_SINGLE_QUOTED: Final = re.compile(r"(?<![^\s(:,])'(?=[^\s'])[^\s'\n]{1,40}(?: [^\s'\n]{1,40}){2,40}'(?=[\s.,;:!?)]|$)")
_CLAUSE: Final = re.compile(r"(?<=;)\s+|(?<!\s)\s++(?=(?:[Aa]lso|[Uu]nd|[Aa]nd),? (?:TODO|todo)\b)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: as written, as rules see it (quoted passages blanked), the paragraph it stands in."""

    text: str
    masked: str
    paragraph: int
    block: str = ""
    """A code block that follows directly and that the sentence introduces with a colon."""

    heading: bool = False
    item: bool = False
    """Whether it stands in a list."""


def split_sentences(text: str, blocks: dict[str, str] | None = None) -> list[Sentence]:
    """Split `text` into sentences.

    Args:
        text: One message; code blocks already replaced by placeholder lines.
        blocks: Placeholder line to the code block it stands for.
    """
    sentences: list[Sentence] = []
    paragraph = 0
    for line in _logical_lines(text):
        if not line.strip():
            paragraph += 1
            continue
        if blocks and line.strip() in blocks:
            if sentences and sentences[-1].text.rstrip("*_ ").endswith((":", "\uff1a")):  # that introduces it
                sentences[-1] = replace(sentences[-1], block=blocks[line.strip()])
            continue
        heading = _HEADING.match(line) is not None
        bare = _BULLET.sub("", _HEADING.sub("", line)).strip()
        item = _BULLET.match(line) is not None
        sentences += [
            Sentence(piece, masked, paragraph, heading=heading, item=item) for piece, masked in _split_line(bare)
        ]
    return sentences


def mask_quotes(text: str) -> str:
    """Return `text` with each quoted passage of three words or more replaced by spaces, its length unchanged."""
    masked = list(text.replace("\u2019", "'").replace("\u2018", "'"))
    position = 0
    while position < len(text):
        closing = _OPEN_QUOTES.get(text[position])
        if closing is None:
            position += 1
            continue
        end = next((i for i in range(position + 1, len(text)) if text[i] in closing), -1)
        if end < 0:
            break
        inner = text[position + 1 : end]
        wide = len(inner) > _MAX_WIDE_NAME and any(character > _CJK_BEGINS for character in inner)
        if len(inner.split()) >= _MIN_QUOTED_WORDS or wide:
            masked[position + 1 : end] = " " * (end - position - 1)
        position = end + 1
    return _SINGLE_QUOTED.sub(lambda match: " " * len(match[0]), "".join(masked))


def _logical_lines(text: str) -> list[str]:
    """Join lines that were wrapped by width: a long line without a full stop, then one in lower case."""
    lines: list[str] = []
    for line in text.splitlines():
        wrapped = (
            lines
            and len(lines[-1]) > _MIN_WRAPPED_CHARS
            and lines[-1].rstrip()[-1:] not in ".!?:;\u3002\uff01\uff1f"
            and line[:1].islower()
        )
        if wrapped:
            lines[-1] = f"{lines[-1].rstrip()} {line}"
        else:
            lines.append(line)
    return lines


def _split_line(line: str) -> list[tuple[str, str]]:
    """Return `(text, masked)` of each sentence; a quotation is masked first, so that no full stop in it splits."""
    masked = mask_quotes(line)
    cuts = [0]
    for boundary in _BOUNDARY.finditer(masked):
        candidate = masked[cuts[-1] : boundary.end()].strip()
        aside = ")" in boundary[0] and masked[boundary.end() :][:1].islower()
        if not aside and not _ABBREVIATION.search(candidate[-12:]) and not _in_parenthesis(candidate):
            cuts.append(boundary.end())
    cuts += [clause.end() for clause in _CLAUSE.finditer(masked)]
    cuts.sort()
    pieces = [
        slice(start, min(end, start + MAX_SENTENCE_CHARS))
        for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True)
    ]
    return [(line[piece].strip(), _aligned(line[piece], masked[piece])) for piece in pieces if line[piece].strip()]


def _aligned(text: str, masked: str) -> str:
    """Strip `masked` by as much as `text` is stripped."""
    start = len(text) - len(text.lstrip())
    return masked[start : len(text.rstrip())]


def _in_parenthesis(text: str) -> bool:
    return text.count("(") > text.count(")") and len(text) - text.rfind("(") < _MAX_PARENTHESIS
