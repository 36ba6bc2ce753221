"""Page of a topic, as sections of claims and as Markdown. Pure.

A claim is one line that shows its text and nothing else: nothing in it opens a fence, a heading, a footnote, a link, a
table or HTML. A rendered page is parsed exactly; of an edited one no line is lost.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.models import STEERING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES: Final = "Sources"
"""Title of the part that lists the footnotes; no section has it."""


@dataclass(frozen=True, slots=True)
class Footnote:
    """Place of the words of a claim.

    Attributes:
        source: Id of the episode or resource: `its text[start:end]` is the quote.
        start: First character of the quote there.
        end: Behind its last.
        quote: The very words; empty if the claim has them.
        label: What the source is, for a reader: "conversation with Lea".
        resource: Id of the resource that the source is part of; empty if it is one itself, or has none.
        item: Id of the item that the claim was; empty where no item is kept.
    """

    source: str
    start: int
    end: int
    quote: str
    label: str = ""
    resource: str = ""
    item: str = ""


@dataclass(frozen=True, slots=True)
class PageClaim:
    """One statement of a page.

    Attributes:
        text: Statement that can be read alone; in Markdown if a person wrote it.
        notes: Where it was said; at least one, unless a person wrote it on the page.
        said: On which day.
        is_edited: A person changed the words on the page: they stay as they are.
        is_untrusted: It has low trust: they are a stranger's words.
    """

    text: str
    notes: tuple[Footnote, ...] = ()
    said: date | None = None
    is_edited: bool = False
    is_untrusted: bool = False

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the items it was made of."""
        return tuple(note.item for note in self.notes if note.item)

    @property
    def is_by_hand(self) -> bool:
        """True if a person wrote or changed it on the page."""
        return self.is_edited or not self.notes


@dataclass(frozen=True, slots=True)
class OwnText:
    """Lines of a person that are not claims, kept unchanged."""

    text: str


Line = PageClaim | OwnText


@dataclass(frozen=True, slots=True)
class Section:
    """Heading with its lines; only the first may be empty."""

    title: str
    lines: tuple[Line, ...] = ()

    @property
    def claims(self) -> tuple[PageClaim, ...]:
        """Its claims, in order."""
        return tuple(line for line in self.lines if isinstance(line, PageClaim))


@dataclass(frozen=True, slots=True)
class Page:
    """A topic's page, or one part of it.

    Attributes:
        title: Title for readers.
        sections: Sections in order.
        consolidated_at: When it was made; None as long as it never was.
        part: Which part, from 1.
        parts: Of how many.
        taken_out: Ids of items that a person took off the page: they do not come back.
        about: What the page covers, one line below its title; empty for none.
    """

    title: str
    sections: tuple[Section, ...] = ()
    consolidated_at: datetime | None = None
    part: int = 1
    parts: int = 1
    taken_out: tuple[str, ...] = ()
    about: str = ""

    @property
    def claims(self) -> tuple[PageClaim, ...]:
        """All claims, in order."""
        return tuple(claim for section in self.sections for claim in section.claims)

    @property
    def notes(self) -> tuple[Footnote, ...]:
        """All footnotes, in the order of their numbers."""
        return tuple(note for claim in self.claims for note in claim.notes)

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of its items, each once."""
        return tuple(dict.fromkeys(item for claim in self.claims for item in claim.items))

    @property
    def resources(self) -> tuple[str, ...]:
        """IDs of resources, or of sources without a resource."""
        return tuple(dict.fromkeys(note.resource or note.source for note in self.notes))

    def lines(self) -> Iterator[tuple[str, Line]]:
        """Yield every line with the title of its section."""
        for section in self.sections:
            for line in section.lines:
                yield section.title, line


def with_lines(page: Page, lines: list[tuple[str, Line]]) -> Page:
    """Return a page with other lines, grouped by section title."""
    grouped: dict[str, list[Line]] = {}
    for title, line in lines:
        grouped.setdefault(title, []).append(line)
    return replace(
        page, sections=tuple(Section(title, tuple(section_lines)) for title, section_lines in grouped.items())
    )


_ALWAYS: Final = '\\\\`*\\[\\]<>~"|$'
_SPECIAL: Final = re.compile(
    rf"(?P<coded>[\t\n{STEERING}\u200c\u200d\ufe00-\ufe0f])"
    rf"|(?P<punctuation>[{_ALWAYS}])"
    r"|(?P<underscore>(?<![^\W_])_|_(?![^\W_]))"
    r"|(?P<reference>&(?=#?\w+;))"
)
_JOINED: Final = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
"""Joining characters of emoji and many scripts, which are kept unless several follow each other."""
_OPENS: Final = re.compile(r"^( *)(\d{1,9}(?=[.)])|(?=[-+#=:(]))")
"""Beginning of a line that opens a block or resembles the date of a claim."""
_BREAK: Final = "&#xA;"
_CLAIM_START: Final = re.compile(r"^- .*", re.MULTILINE)
_FOLDED: Final = re.compile(rf"(?<!\\){_BREAK}")
_BROKEN_CLAIM: Final = re.compile(r"^- .*(?:(?<=\\)\n  .*)+", re.MULTILINE)
_HARD_BREAK: Final = re.compile(r"(?<!\\)((?:\\\\)*+)\\\n  ")
_REMEMBERED: Final = 4_096
"""Texts of one long page, about 1 MB: a page is measured, split and written."""
_SURROGATES: Final = range(0xD800, 0xE000)
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|&#x([0-9A-F]{1,6});")
MAX_TOKENS: Final = 1_500
"""Most tokens of one part of a page, estimated as for the scratchpad: on the high side."""
EDITED: Final = "*(edited)*"
UNTRUSTED: Final = "*(from an untrusted source)*"
NONE_YET: Final = "*No items yet.*"
_LABEL_PART: Final = re.compile(r"\\.|\(")
"""An escaped character, or the bracket that would end a label."""
_MOMENT: Final = "%Y-%m-%d %H:%M:%S"
_SEEN: Final = r"(?:[^\\\n]|\\.)*?"
_ID: Final = r"[a-z]{3}-[0-9a-f]{12}"
_FOOTER: Final = re.compile(
    r"^(?:---\n)?\*Last consolidated: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\*\n\*Items: \d+ \| Resources: \d+\*$",
    re.MULTILINE,
)
_TAKEN_OUT: Final = re.compile(rf"^\*Taken out by hand: ({_ID}(?:, {_ID})*)\*$", re.MULTILINE)
_SOURCES: Final = re.compile(rf"^(?:---\n+)?## {SOURCES}$", re.MULTILINE)
_NOTE: Final = re.compile(
    rf"\[\^(\d+)\]: Extracted from (?:((?:[^\\(\n]|\\.)+) )?\((?:({_ID}), )?({_ID}) at (\d+)-(\d+)(?:, ({_ID}))?\)"
    r'(?:: "((?:[^\\"\n]|\\.)*)")?'
)
_CLAIM: Final = re.compile(
    rf"- (?:\((\d{{4}}-\d\d-\d\d)\) )?({_SEEN}(?:[^\\\s]|\\.))( {re.escape(UNTRUSTED)})?(?: ((?:\[\^\d+\])+))?"
    rf"( {re.escape(EDITED)})?"
)
_NUMBER: Final = re.compile(r"\[\^(\d+)\]")
_ABOUT: Final = re.compile(r"\*About: (.+)\*")
_PART: Final = re.compile(r"\*Part (\d+) of (\d+)\.\*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


@lru_cache(maxsize=_REMEMBERED)
def escape(text: str) -> str:
    """Return a text as one line of Markdown."""
    line = _BREAK.join(map(_escape_line, text.split("\n")))
    if line[:1].isspace():
        line = f"&#x{ord(line[0]):X};{line[1:]}"
    if line[-1:].isspace():
        line = f"{line[:-1]}&#x{ord(line[-1]):X};"
    return line


def break_claims(page: str) -> str:
    """Return a page with hard breaks in its claims."""
    return _CLAIM_START.sub(lambda claim: _FOLDED.sub("\\\\\n  ", claim[0]), page)


def join_claims(page: str) -> str:
    """Return a page with each claim in one line."""
    return _BROKEN_CLAIM.sub(lambda claim: _HARD_BREAK.sub(rf"\1{_BREAK}", claim[0]), page)


def unescape(line: str) -> str:
    """Return the text that `line` shows."""
    return _ESCAPED.sub(lambda match: match[1] or _character(match[2]), line)


def _escape_line(text: str) -> str:
    return _OPENS.sub(r"\1\2\\", _SPECIAL.sub(_escape, text), count=1)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if match["coded"] is None:
        return f"\\{character}"
    return character if _JOINED.fullmatch(character) else f"&#x{ord(character):X};"


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if 0 < code <= sys.maxunicode and code not in _SURROGATES else f"&#x{digits};"


def render(page: Page) -> str:
    """Return the page as Markdown; `parse` returns the page again."""
    blocks = [f"# {escape(page.title)}".rstrip()]
    if page.about:
        blocks.append(f"*About: {escape(page.about)}*")
    if page.parts > 1:
        blocks.append(f"*Part {page.part} of {page.parts}.*")
    numbers = iter(range(1, len(page.notes) + 1))
    for section in page.sections:
        if section.title:
            blocks.append(f"## {escape(section.title)}")
        blocks.extend(_blocks(section.lines, numbers))
    if not page.sections:
        blocks.append(NONE_YET)
    if notes := page.notes:
        blocks += ["---", f"## {SOURCES}", "\n".join(map(_render_note, range(1, len(notes) + 1), notes))]
    if page.taken_out:
        blocks.append(f"*Taken out by hand: {', '.join(page.taken_out)}*")
    if page.consolidated_at is not None:
        blocks.append(
            f"---\n*Last consolidated: {page.consolidated_at:{_MOMENT}}*\n"
            f"*Items: {len(page.items)} | Resources: {len(page.resources)}*"
        )
    return break_claims("\n\n".join(blocks) + "\n")


def count_tokens(page: Page) -> int:
    """Return the estimated tokens of a page."""
    return estimate_tokens(render(page))


def split(page: Page, max_tokens: int = MAX_TOKENS) -> list[Page]:
    """Return the page in parts that fit, in order.

    A claim that is too long is a part of its own.
    """
    if count_tokens(page) <= max_tokens:
        return [page]
    frame = count_tokens(replace(page, sections=(), part=999, parts=999))
    lines = _weigh_lines(page)
    most = max_tokens - frame
    parts = _pack_lines(lines, most)
    least = sum(line.cost for line in lines) // len(parts)
    while least < most:  # the smallest bound that needs no more parts: the last one is not left with a line
        bound = (least + most) // 2
        packed = _pack_lines(lines, bound)
        if len(packed) > len(parts):
            least = bound + 1
        else:
            most, parts = bound, packed
    made = [
        with_lines(replace(page, part=number, parts=len(parts)), lines) for number, lines in enumerate(parts, start=1)
    ]
    # What a person took out is said once.
    return [made[0], *(replace(part, taken_out=()) for part in made[1:])]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A line below its heading, and what both cost, in tokens."""

    title: str
    line: Line
    cost: int
    heading: int


def _weigh_lines(page: Page) -> list[_Weighed]:
    weighed, number = list[_Weighed](), 0
    for title, line in page.lines():
        weighed.append(_Weighed(title, line, _cost(line, number), estimate_tokens(f"## {escape(title)}\n\n")))
        number += len(line.notes) if isinstance(line, PageClaim) else 0
    return weighed


def _pack_lines(lines: Sequence[_Weighed], most: int) -> list[list[tuple[str, Line]]]:
    """Return the lines in parts of limited cost."""
    parts: list[list[tuple[str, Line]]] = [[]]
    remaining, titles = most, set[str]()
    for line in lines:
        total = line.cost + (0 if line.title in titles else line.heading)
        if parts[-1] and total > remaining:
            parts.append([])
            remaining, titles = most, set()
            total = line.cost + line.heading
        parts[-1].append((line.title, line.line))
        titles.add(line.title)
        remaining -= total
    return parts


def join_parts(parts: Sequence[Page]) -> Page:
    """Return the whole page of its parts."""
    taken_out = tuple(dict.fromkeys(item_id for part in parts for item_id in part.taken_out))
    page = replace(parts[0], part=1, parts=1, taken_out=taken_out)
    return with_lines(page, [line for part in parts for line in part.lines()])


def _cost(line: Line, number: int) -> int:
    if isinstance(line, OwnText):
        return estimate_tokens(line.text + "\n\n")
    notes = "".join(_render_note(number + position, note) + "\n" for position, note in enumerate(line.notes, start=1))
    return estimate_tokens(_render_claim(line, iter(range(number + 1, number + 99))) + "\n") + estimate_tokens(notes)


def _blocks(lines: Sequence[Line], numbers: Iterator[int]) -> Iterator[str]:
    bullets: list[str] = []
    for line in lines:
        if isinstance(line, PageClaim):
            bullets.append(_render_claim(line, numbers))
            continue
        if bullets:
            yield "\n".join(bullets)
            bullets = []
        yield line.text
    if bullets:
        yield "\n".join(bullets)


def _render_claim(claim: PageClaim, numbers: Iterator[int]) -> str:
    parts = ["-"]
    if claim.said is not None:
        parts.append(f"({claim.said.isoformat()})")
    parts.append(claim.text if claim.is_by_hand else escape(claim.text))
    if claim.is_untrusted:
        parts.append(UNTRUSTED)
    if claim.notes:
        parts.append("".join(f"[^{next(numbers)}]" for _ in claim.notes))
    if claim.is_edited:
        parts.append(EDITED)
    return " ".join(parts)


def _render_note(number: int, note: Footnote) -> str:
    ids = ", ".join(filter(None, (note.resource, note.source)))
    item = f", {note.item}" if note.item else ""
    label = f"{_LABEL_PART.sub(_without_bracket, escape(note.label))} " if note.label else ""
    quote = f': "{escape(note.quote)}"' if note.quote else ""
    return f"[^{number}]: Extracted from {label}({ids} at {note.start}-{note.end}{item}){quote}"


def _without_bracket(part: re.Match[str]) -> str:
    return "\\(" if part[0] == "(" else part[0]


@dataclass
class _Reading:
    """State of parsing: sections, and pending lines of a person."""

    notes: dict[int, Footnote]
    sections: dict[str, list[Line]] = field(default_factory=dict)
    title: str = ""
    own: list[str] = field(default_factory=list)

    def begin(self, title: str) -> None:
        self.end_own()
        self.title = title
        self.sections.setdefault(title, [])

    def add(self, line: Line) -> None:
        self.sections.setdefault(self.title, []).append(line)

    def end_own(self) -> None:
        text = "\n".join(self.own).strip("\n")
        self.own.clear()
        if text:
            self.add(OwnText(text))


def parse(text: str) -> Page:
    """Return the page that `text` shows.

    The inverse of `render`. Of an edited page other lines are kept as text of a person, in their place.
    """
    text = join_claims(text.replace("\r\n", "\n").replace("\r", "\n"))
    text, moment = _cut(text, _FOOTER)
    text, taken_out = _cut(text, _TAKEN_OUT)
    body, notes, rest = _sources(text)
    lines = body.split("\n")
    title, lines = _title(lines)
    about, lines = _read_first(lines, _ABOUT)
    part, lines = _read_first(lines, _PART)
    reading = _Reading(notes)
    lines = [*lines, "", *rest]
    fenced = _find_fenced(lines)
    for position, line in enumerate(lines):
        _read(line, reading, is_code=position in fenced)
    reading.end_own()
    sections = tuple(
        Section(title, tuple(section_lines))
        for title, section_lines in sorted(reading.sections.items(), key=lambda section: section[0] != "")
    )
    return Page(
        title=title,
        sections=sections,
        consolidated_at=_parse_moment(moment[1]) if moment else None,
        part=int(part[1]) if part else 1,
        parts=int(part[2]) if part else 1,
        taken_out=tuple(taken_out[1].split(", ")) if taken_out else (),
        about=unescape(about[1]) if about else "",
    )


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, re.Match[str] | None]:
    """Return the text without the last match of a pattern."""
    match = next(reversed(list(pattern.finditer(text))), None)
    return (text[: match.start()] + text[match.end() :], match) if match else (text, None)


def _sources(text: str) -> tuple[str, dict[int, Footnote], list[str]]:
    """Return the body, the footnotes, and other lines of the list."""
    heads = list(_SOURCES.finditer(text))
    if not heads:
        return text, {}, []
    notes: dict[int, Footnote] = {}
    rest = []
    for line in text[heads[-1].end() :].split("\n"):
        match = _NOTE.fullmatch(line.rstrip())
        if match and int(match[5]) <= int(match[6]) and int(match[1]) not in notes:
            notes[int(match[1])] = _footnote(match)
        else:
            rest.append(line)
    return text[: heads[-1].start()], notes, rest


def _footnote(match: re.Match[str]) -> Footnote:
    _, label, resource, source, start, end, item, quote = match.groups()
    return Footnote(
        source, int(start), int(end), unescape(quote or ""), unescape(label or ""), resource or "", item or ""
    )


def _title(lines: list[str]) -> tuple[str, list[str]]:
    for position, line in enumerate(lines):
        if line.strip():
            match = re.fullmatch(r"#(?: (.*))?", line.rstrip())
            return (unescape(match[1] or ""), lines[position + 1 :]) if match else ("", lines)
    return "", []


def _read_first(lines: list[str], pattern: re.Pattern[str]) -> tuple[re.Match[str] | None, list[str]]:
    """Return the match of the first line with text, and the rest."""
    for place, line in enumerate(lines):
        if line.strip():
            match = pattern.fullmatch(line.strip())
            return match, lines[place + 1 :] if match else lines
    return None, lines


def _find_fenced(lines: list[str]) -> set[int]:
    """Return the numbers of lines within closed fences."""
    numbers: set[int] = set()
    opened, mark = 0, ""
    for position, line in enumerate(lines):
        if (fence := _FENCE.match(line)) is None:
            continue
        if not mark:
            opened, mark = position, fence[1]
        elif fence[1].startswith(mark):
            numbers.update(range(opened, position + 1))
            mark = ""
    return numbers


def _read(line: str, reading: _Reading, *, is_code: bool) -> None:
    if is_code:
        reading.own.append(line)
    elif line.startswith("## ") and (title := unescape(line[3:].rstrip())) not in {"", SOURCES}:
        reading.begin(title)
    elif line.strip() == NONE_YET:
        reading.end_own()
    elif (claim := _parse_claim(line, reading.notes)) is not None:
        reading.end_own()
        reading.add(claim)
    elif line.strip() or reading.own:
        reading.own.append(line.rstrip())


def _parse_claim(line: str, notes: dict[int, Footnote]) -> PageClaim | None:
    match = _CLAIM.fullmatch(line.rstrip())
    if match is None:
        return None
    day, text, untrusted, numbers, edited = match.groups()
    is_untrusted = untrusted is not None
    try:
        said_on = date.fromisoformat(day) if day else None
    except ValueError:
        return None
    own_notes = tuple(notes[number] for digits in _NUMBER.findall(numbers or "") if (number := int(digits)) in notes)
    if numbers and not own_notes:
        return None
    shown = unescape(text)
    if not own_notes:
        return PageClaim(text, (), said_on, is_edited=edited is not None, is_untrusted=is_untrusted)
    is_edited = edited is not None or escape(shown) != text
    return PageClaim(text if is_edited else shown, own_notes, said_on, is_edited=is_edited, is_untrusted=is_untrusted)


def _parse_moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
