"""Regions of a typed message that its author did not type: what machines printed, and prose of another author.

The signs are data, in `patterns/foreign.yaml`. Lines in, lines out: what is taken out leaves an empty line.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from agent_memory.capture.rules import any_of

_MAX_LINE: Final = 2000
"""Characters of a line that are looked at; what makes it a machine's shows early."""

_CODE_SIGNS: Final = frozenset("{}[]()<>=;|\\/_+*&^%$#@~`")
_CODE_SHARE: Final = 0.2
_MIN_CODE_CHARS: Final = 12
_GAP: Final = 2
"""Lines between two of a machine that count as the machine's too."""

_MANY_LINES: Final = 5
_LONG_LEFT: Final = 1500
"""Characters. More than this, left over from a message that was mostly a machine's, is not separated."""

_LONG_LEAD: Final = 300
_LONG_PARAGRAPH: Final = 280
_LONG_MESSAGE: Final = 500
_ENGLISH_WORDS: Final = 4
_ENGLISH: Final = re.compile(r"\b(?:the|of|and|is|are|to|for|with|in)\b", re.IGNORECASE)
SELF: Final = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|we|we're|our|us|let's|lets|please|pls)\b|\?", re.IGNORECASE)
_FEW_HEADINGS: Final = 2
_FEW_SIGNS: Final = 3
"""Of a document; fewer may be a person's emphasis."""

_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+\S")
_LABEL: Final = re.compile(r"^\s*(?:[-*+\u2022]\s+|\d{1,2}[.)]\s+)?\*\*[^*\n]{2,80}\*\*")
_RULE: Final = re.compile(r"^\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*$")
_EMOJI_LED: Final = re.compile(r"^\s*(?:[-*+]\s+)?[\u2190-\u21ff\u2600-\u27bf\U0001f300-\U0001faff]")


_sign: Final = functools.partial(any_of, "foreign")


def is_machine_line(line: str) -> bool:
    """Return True if a machine wrote this line, or a person wrote it for one: log, trace, terminal, code, data."""
    line = line[:_MAX_LINE]
    if line.startswith(("    ", "\t")) and not line.strip().startswith(("-", "*")):
        return True
    return (
        _sign("machine_line", r"\s*(?:%s)").match(line) is not None
        or _sign("machine_anywhere", "(?-i:%s)").search(line) is not None
        or _reads_like_code(line)
    )


def _reads_like_code(line: str) -> bool:
    bare = "".join(line.split())
    if len(bare) < _MIN_CODE_CHARS:
        return False
    return sum(character in _CODE_SIGNS for character in bare) > _CODE_SHARE * len(bare)


def without_machine_regions(lines: list[str]) -> list[str]:
    """Blank out what machines wrote: their lines, the few between two of them, and the rest of a block of them."""
    machine = [bool(line.strip()) and is_machine_line(line) for line in lines]
    if not any(machine):
        return lines
    _bridge(lines, machine)
    _fill_blocks(lines, machine)
    kept = ["" if flag else line for line, flag in zip(lines, machine, strict=True)]
    taken = sum(len(line) for line, flag in zip(lines, machine, strict=True) if flag)
    left = sum(map(len, kept))
    if sum(machine) >= _MANY_LINES and taken > left:
        return _ends_of(kept, machine) if left <= _LONG_LEFT else []
    return kept


def _bridge(lines: list[str], machine: list[bool]) -> None:
    """Mark the lines that stand between two of a machine, when they are few."""
    last = -1
    between = 0
    for position, flag in enumerate(machine):
        if not flag:
            between += bool(lines[position].strip())
            continue
        if last >= 0 and 0 < between <= _GAP:
            machine[last:position] = [True] * (position - last)
        last, between = position, 0


def _fill_blocks(lines: list[str], machine: list[bool]) -> None:
    """Mark the rest of each block (lines without an empty one between) of which a machine wrote most."""
    start = 0
    for position in range(len(lines) + 1):
        if position < len(lines) and lines[position].strip():
            continue
        block = machine[start:position]
        if sum(block) > len(block) / 2:
            first = start + (start == 0)  # the first line of a message introduces what follows
            machine[first:position] = [True] * (position - first)
        start = position + 1


def _ends_of(kept: list[str], machine: list[bool]) -> list[str]:
    """Keep what was said before the first and after the last line of a machine."""
    first = machine.index(True)
    last = len(machine) - machine[::-1].index(True)
    return [line if position < first or position >= last else "" for position, line in enumerate(kept)]


def without_announced(lines: list[str]) -> list[str]:
    """Drop what follows words such as "Here is what the page says:", but for a last paragraph of the author's own.

    A first line may also be the address that the rest comes from, or say what to do with it ("Translate this:").
    """
    first = next((position for position, line in enumerate(lines) if line.strip()), 0)
    for position, line in enumerate(lines):
        found = _sign("announces_paste").search(line[:_MAX_LINE])
        if found is None and position == first:
            found = _sign("opens_paste", r"\W*(?:%s)").match(line[:_MAX_LINE])
        if found is None or not (line[found.end() :].strip() or any(lines[position + 1 :])):
            continue
        tail = _last_words(lines, position + 1)
        return [*lines[:position], line[: found.end()], *[""] * (tail - position - 1), *lines[tail:]]
    return lines


def without_document(lines: list[str]) -> list[str]:
    """Drop a document with headings or labels, from its first sign on, but for a last paragraph of the author's own."""
    headings = [n for n, line in enumerate(lines) if _HEADING.match(line)]
    others = [n for n, line in enumerate(lines) if _LABEL.match(line) or _RULE.match(line) or _EMOJI_LED.match(line)]
    if len(headings) < _FEW_HEADINGS and len(headings) + len(others) < _FEW_SIGNS:
        return lines
    marks = sorted([*headings, *others])
    lead = lines[: marks[0]]
    tail = _last_words(lines, marks[-1] + 1)
    if sum(map(len, lead)) > _LONG_LEAD:
        lead = [""] * len(lead)
    return [*lead, *[""] * (tail - marks[0]), *lines[tail:]]


def _last_words(lines: list[str], start: int) -> int:
    """Return where the last paragraph begins, if that is after `start` and its author speaks in it; else the end."""
    end = len(lines)
    while end > start and not lines[end - 1].strip():
        end -= 1
    first = end
    while first > start and lines[first - 1].strip():
        first -= 1
    stands_apart = start < first < end
    return first if stands_apart and _sign("returns_to_self", r"\W*(?:%s)").match(lines[first]) else len(lines)


def without_impersonal(lines: list[str]) -> list[str]:
    """Drop long English lines in a long message that name no first person, ask nothing and beg for nothing."""
    if sum(map(len, lines)) < _LONG_MESSAGE:
        return lines
    return ["" if _is_impersonal(line) else line for line in lines]


def _is_impersonal(line: str) -> bool:
    if len(line) < _LONG_PARAGRAPH or SELF.search(line.replace("\u2019", "'")):
        return False
    return len(_ENGLISH.findall(line)) >= _ENGLISH_WORDS
