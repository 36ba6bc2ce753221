"""Markdown as a page again: what was rendered exactly, and what a person made of it without losing a line. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from agent_memory.knowledge.topics.escaping import escaped, fold, unescaped
from agent_memory.knowledge.topics.page import SOURCES, Footnote, Line, OwnText, Page, PageClaim, Section
from agent_memory.knowledge.topics.rendering import EDITED, NONE_YET, UNTRUSTED

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


@dataclass
class _Reading:
    """Sections so far, and lines of a person that are not yet one text."""

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

    Of a text that `render` made it is the very page. A person may have changed anything: lines that are no claims are
    kept as text of theirs, in their place.
    """
    text = fold(text.replace("\r\n", "\n").replace("\r", "\n"))
    text, moment = _cut(text, _FOOTER)
    text, taken_out = _cut(text, _TAKEN_OUT)
    body, notes, rest = _sources(text)
    lines = body.split("\n")
    title, lines = _title(lines)
    about, lines = _read_first(lines, _ABOUT)
    part, lines = _read_first(lines, _PART)
    reading = _Reading(notes)
    lines = [*lines, "", *rest]
    fenced = _fenced(lines)
    for at, line in enumerate(lines):
        _read(line, reading, is_code=at in fenced)
    reading.end_own()
    sections = tuple(
        Section(title, tuple(own)) for title, own in sorted(reading.sections.items(), key=lambda each: each[0] != "")
    )
    return Page(
        title=title,
        sections=sections,
        consolidated_at=_moment(moment[1]) if moment else None,
        part=int(part[1]) if part else 1,
        parts=int(part[2]) if part else 1,
        taken_out=tuple(taken_out[1].split(", ")) if taken_out else (),
        about=unescaped(about[1]) if about else "",
    )


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, re.Match[str] | None]:
    """Return the text without the last place where the pattern stands."""
    found = next(reversed(list(pattern.finditer(text))), None)
    return (text[: found.start()] + text[found.end() :], found) if found else (text, None)


def _sources(text: str) -> tuple[str, dict[int, Footnote], list[str]]:
    """Return what stands before the list of sources, the footnotes, and all other lines of the list."""
    heads = list(_SOURCES.finditer(text))
    if not heads:
        return text, {}, []
    notes: dict[int, Footnote] = {}
    rest = []
    for line in text[heads[-1].end() :].split("\n"):
        found = _NOTE.fullmatch(line.rstrip())
        if found and int(found[5]) <= int(found[6]) and int(found[1]) not in notes:
            notes[int(found[1])] = _footnote(found)
        else:
            rest.append(line)
    return text[: heads[-1].start()], notes, rest


def _footnote(found: re.Match[str]) -> Footnote:
    _, label, resource, source, start, end, item, quote = found.groups()
    return Footnote(
        source, int(start), int(end), unescaped(quote or ""), unescaped(label or ""), resource or "", item or ""
    )


def _title(lines: list[str]) -> tuple[str, list[str]]:
    for at, line in enumerate(lines):
        if line.strip():
            found = re.fullmatch(r"#(?: (.*))?", line.rstrip())
            return (unescaped(found[1] or ""), lines[at + 1 :]) if found else ("", lines)
    return "", []


def _read_first(lines: list[str], pattern: re.Pattern[str]) -> tuple[re.Match[str] | None, list[str]]:
    """Return the match of the first line with text, and the rest."""
    for place, line in enumerate(lines):
        if line.strip():
            match = pattern.fullmatch(line.strip())
            return match, lines[place + 1 :] if match else lines
    return None, lines


def _fenced(lines: list[str]) -> set[int]:
    """Return which lines stand within fences, these included. One that is never closed is none, and hides no claim."""
    found: set[int] = set()
    opened, mark = 0, ""
    for at, line in enumerate(lines):
        if (fence := _FENCE.match(line)) is None:
            continue
        if not mark:
            opened, mark = at, fence[1]
        elif fence[1].startswith(mark):
            found.update(range(opened, at + 1))
            mark = ""
    return found


def _read(line: str, reading: _Reading, *, is_code: bool) -> None:
    if is_code:
        reading.own.append(line)
    elif line.startswith("## ") and (title := unescaped(line[3:].rstrip())) not in {"", SOURCES}:
        reading.begin(title)
    elif line.strip() == NONE_YET:
        reading.end_own()
    elif (claim := _claim(line, reading.notes)) is not None:
        reading.end_own()
        reading.add(claim)
    elif line.strip() or reading.own:
        reading.own.append(line.rstrip())


def _claim(line: str, notes: dict[int, Footnote]) -> PageClaim | None:
    found = _CLAIM.fullmatch(line.rstrip())
    if found is None:
        return None
    day, text, untrusted, numbers, edited = found.groups()
    is_untrusted = untrusted is not None
    try:
        said = date.fromisoformat(day) if day else None
    except ValueError:
        return None
    own = tuple(notes[number] for each in _NUMBER.findall(numbers or "") if (number := int(each)) in notes)
    if numbers and not own:
        return None
    shown = unescaped(text)
    if not own:
        return PageClaim(text, (), said, is_edited=edited is not None, is_untrusted=is_untrusted)
    is_edited = edited is not None or escaped(shown) != text
    return PageClaim(text if is_edited else shown, own, said, is_edited=is_edited, is_untrusted=is_untrusted)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
