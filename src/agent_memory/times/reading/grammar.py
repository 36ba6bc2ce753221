"""Rules over a row of items: which tags stand in which order, and what that means.

Each item has tags with a value each. The set of its tags is one character, so that a rule is a regular expression over
a string of such characters, and a tag is a class of them. A rule has no unbounded repetition, and at each item the
longest rule wins: the time is linear in the number of items.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import date, datetime, time

    from agent_memory.times.days import Days

_ELEMENT: Final = re.compile(r"(?:([a-z]\w*):)?([A-Z][A-Z_]*)(\??)")
_PART: Final = re.compile(r"(?:[a-z]\w*:)?([A-Z][A-Z_]*\??|\)\??|[(|])")
_AROUND: Final = re.compile(r"\(\?<?[=!][^)]*\)")
_FIRST: Final = 0xE000
"""Of the characters for sets of tags: the private use area."""


class Node(NamedTuple):
    """Days that words name.

    Attributes:
        days: Which.
        rule: The rule that read them.
        again: The like of a given year, where the words tell no year.
        bound, named, clock: See `TimeMention`.
    """

    days: Days
    rule: str = ""
    again: Callable[[int], Days | None] | None = None
    bound: str = "at"
    named: tuple[Days, ...] = ()
    clock: tuple[time, ...] = ()


@dataclass(slots=True)  # hundreds are made of a page: this takes half the time of a NamedTuple or a frozen one
class Item:
    """A token, or what a rule made of several: where it stands, and its tags with their values."""

    start: int
    end: int
    tags: Mapping[str, Any]


class Seen(NamedTuple):
    """Whence a time is seen: the moment, its day, and whether the words speak of what is to come."""

    moment: datetime
    today: date
    ahead: bool
    day_first: bool


Values = dict[str, Any]


class Rule(NamedTuple):
    """A pattern of tags and what it means; a reader that returns None refuses."""

    name: str
    pattern: str
    read: Callable[[Values, Seen], Node | None]


class _Compiled(NamedTuple):
    rule: Rule
    regex: re.Pattern[str]
    tags: dict[str, str]


class Stage(NamedTuple):
    """The rules of a round: what they begin with, and by that character whether any fits, and which there are."""

    begins: re.Pattern[str]
    rules: Mapping[str, tuple[re.Pattern[str], tuple[_Compiled, ...]]]


class Tables:
    """The characters for sets of tags, and the rules compiled to them.

    Args:
        sets: Every set of tags that an item may have.
    """

    def __init__(self, sets: Iterable[frozenset[str]]) -> None:
        self._chars = {one: chr(_FIRST + at) for at, one in enumerate(dict.fromkeys(sets))}
        self._by_keys: dict[tuple[str, ...], str] = {(): "x"}

    def row(self, items: Iterable[Item]) -> str:
        """Return the characters of items; one of no known set of tags is that of none."""
        known = self._by_keys
        chars = []
        for item in items:
            keys = tuple(item.tags)
            char = known.get(keys)
            if char is None:
                char = known[keys] = self._chars.get(frozenset(keys), "x")
            chars.append(char)
        return "".join(chars)

    def any_of(self, *tags: str) -> re.Pattern[str]:
        """Return what finds, in a row, the items that have any of these tags."""
        return re.compile("|".join(map(self._class, tags)))

    def compiled(self, rules: Sequence[Rule]) -> Stage:
        """Return rules by the character they may begin with."""
        by_char: dict[str, list[_Compiled]] = {}
        for rule in rules:
            tags: dict[str, str] = {}
            regex = re.compile(_ELEMENT.sub(lambda one: self._element(one, tags), rule.pattern).replace(" ", ""))  # noqa: B023
            for char in self._begins(rule.pattern):
                by_char.setdefault(char, []).append(_Compiled(rule, regex, tags))
        any_of = {
            char: re.compile("|".join(re.sub(r"\(\?P<\w+>", "(?:", each.regex.pattern) for each in some))
            for char, some in by_char.items()
        }
        begins = re.compile(f"[{''.join(by_char)}]" if by_char else "[^\\s\\S]")
        return Stage(begins, {char: (any_of[char], tuple(some)) for char, some in by_char.items()})

    def _element(self, one: re.Match[str], tags: dict[str, str]) -> str:
        name, tag, optional = one.groups()
        chars = self._class(tag)
        if name is None:
            return chars + optional
        tags[name] = tag
        return f"(?P<{name}>{chars}){optional}"

    def _class(self, tag: str) -> str:
        chars = "".join(char for one, char in self._chars.items() if tag in one)
        return f"[{chars}]" if chars else "[^\\s\\S]"

    def _begins(self, pattern: str) -> str:
        tags, _ = _first(_PART.findall(_AROUND.sub("", pattern)), 0)[:2]
        return "".join(char for one, char in self._chars.items() if tags & one)


def _first(parts: Sequence[str], at: int) -> tuple[set[str], bool, int]:
    """Return the tags that a pattern may begin with, whether it may be empty, and where it ends."""
    tags: set[str] = set()
    may_be_empty = False
    is_open = True  # nothing that must stand has come in this alternative
    while at < len(parts) and parts[at][0] != ")":
        part = parts[at]
        if part == "|":
            may_be_empty |= is_open
            is_open = True
        else:
            begins, optional = {part.rstrip("?")}, part.endswith("?")
            if part == "(":
                begins, optional, at = _first(parts, at + 1)
                optional |= parts[at].endswith("?")
            if is_open:
                tags |= begins
                is_open = optional
        at += 1
    return tags, may_be_empty or is_open, at


def rewritten(
    items: list[Item], row: str, tables: Tables, stage: Stage, seen: Callable[[int], Seen]
) -> tuple[list[Item], str]:
    """Return the items with each stretch that a rule reads as one item, and their characters.

    Args:
        items: In order.
        row: Their characters.
        tables: Of the characters.
        stage: The rules.
        seen: Whence what begins at a character is seen.
    """
    made: list[Item] = []
    chars: list[str] = []
    done = 0
    for begin in stage.begins.finditer(row):
        at = begin.start()
        any_of, rules = stage.rules[begin[0]]
        if at < done or any_of.match(row, at) is None:
            continue
        behind, node = _best(items, row, at, rules, seen)
        if node is not None:
            new = Item(items[at].start, items[behind - 1].end, _tags_of(node))
            made += [*items[done:at], new]
            chars += [row[done:at], tables.row([new])]
            done = behind
    return (made + items[done:], "".join(chars) + row[done:]) if done else (items, row)


def _best(
    items: list[Item], row: str, at: int, rules: Sequence[_Compiled], seen: Callable[[int], Seen]
) -> tuple[int, Node | None]:
    found = [(match, one) for one in rules if (match := one.regex.match(row, at)) is not None]
    found.sort(key=lambda each: -each[0].end())
    for match, one in found:
        values = {
            name: items[place].tags[tag] if (place := match.start(name)) >= 0 else None
            for name, tag in one.tags.items()
        }
        try:
            node = one.rule.read(values, seen(items[at].start))
        except (ValueError, OverflowError):  # 31 February, 9,000 years ago
            node = None
        if node is not None and node.days.first < node.days.behind:  # "next 0 weeks" is no stretch
            return match.end(), node if node.rule else Node(node.days, one.rule.name, *node[2:])
    return at, None


_DAY: Final = {"NODE", "DAY_NODE"}
NODE_SETS: Final = (
    frozenset({"NODE"}),
    frozenset({"NODE", "YEARLESS"}),
    frozenset(_DAY),
    frozenset({*_DAY, "YEARLESS"}),
    frozenset({"BOUND"}),
)
"""The sets of tags of items made of others."""


def _tags_of(node: Node) -> dict[str, Any]:
    if node.bound != "at":
        return {"BOUND": node}
    tags = {"NODE": node}
    if (node.days.behind - node.days.first).days == 1:
        tags["DAY_NODE"] = node
    if node.again is not None:
        tags["YEARLESS"] = node
    return tags
