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
_KEPT: Final = 4_096
"""Stretches of a row whose rules are kept."""


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


@dataclass(frozen=True, eq=False)  # each is itself alone: tuples of them are keys
class _Compiled:
    rule: Rule
    regex: re.Pattern[str]
    tags: dict[str, str]


class Fit(NamedTuple):
    """A rule that fits at an item: over how many items, and where each value of it is.

    Attributes:
        values: The name and the tag of each, and how many items behind; below 0 where there is none.
    """

    rule: Rule
    length: int
    values: tuple[tuple[str, str, int], ...]


class Stage:
    """The rules of a round.

    Args:
        rules: By the character that they may begin with, in order.
        alone: The characters that may be all that a rule reads.

    Attributes:
        begins: Finds, in a row, where any rule may begin.
    """

    def __init__(self, rules: Mapping[str, tuple[_Compiled, ...]], alone: Iterable[str]) -> None:
        self.begins = re.compile(f"{_class(alone)}|{_class(rules)}(?!x|\\Z)")
        self._rules = rules
        self._any_of = {some: _any_of(some) for some in set(rules.values())}
        self._known: dict[str, tuple[Fit, ...]] = {}
        patterns = [each.rule.pattern for some in rules.values() for each in some]
        self._reach = max((len(_ELEMENT.findall(each)) for each in patterns), default=0) + 1

    def fits(self, row: str, at: int) -> tuple[Fit, ...]:
        """Return the rules that fit at a place of a row, the longest first.

        A rule looks at one item before, and not beyond an item without tags. So what stands there tells all, and the
        same few stretches come again and again.
        """
        end = row.find("x", at, at + self._reach) + 1 or at + self._reach
        if not at:
            return self._fitting(row[:end], 0)
        seen = row[at - 1 : end]
        found = self._known.get(seen)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[seen] = self._fitting(seen, 1)
        return found

    def _fitting(self, row: str, at: int) -> tuple[Fit, ...]:
        rules = self._rules[row[at]]
        if self._any_of[rules].match(row, at) is None:
            return ()
        found = []
        for one in rules:
            match = one.regex.match(row, at)
            if match is not None:
                values = ((name, tag, match.start(name) - at) for name, tag in one.tags.items())
                found.append(Fit(one.rule, match.end() - at, tuple(values)))
        return tuple(sorted(found, key=lambda each: -each.length))


def _any_of(rules: Iterable[_Compiled]) -> re.Pattern[str]:
    return re.compile("|".join(re.sub(r"\(\?P<\w+>", "(?:", each.regex.pattern) for each in rules))


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
        """Return the rules of a round."""
        by_char: dict[str, list[_Compiled]] = {}
        alone: set[str] = set()
        for rule in rules:
            tags: dict[str, str] = {}
            regex = re.compile(_ELEMENT.sub(lambda one: self._element(one, tags), rule.pattern).replace(" ", ""))  # noqa: B023
            first, length = _first(_PART.findall(_AROUND.sub("", rule.pattern)), 0)[:2]
            chars = [char for one, char in self._chars.items() if first & one]
            for char in chars:
                by_char.setdefault(char, []).append(_Compiled(rule, regex, tags))
            alone.update(chars if length == 1 else ())
        return Stage({char: tuple(some) for char, some in by_char.items()}, alone)

    def _element(self, one: re.Match[str], tags: dict[str, str]) -> str:
        name, tag, optional = one.groups()
        chars = self._class(tag)
        if name is None:
            return chars + optional
        tags[name] = tag
        return f"(?P<{name}>{chars}){optional}"

    def _class(self, tag: str) -> str:
        return _class(char for one, char in self._chars.items() if tag in one)


def _class(chars: Iterable[str]) -> str:
    """Return a pattern for any of some characters."""
    some = "".join(chars)
    return f"[{some}]" if some else "[^\\s\\S]"


def _first(parts: Sequence[str], at: int) -> tuple[set[str], int, int]:
    """Return the tags that a pattern may begin with, how many items it reads at least, and where it ends."""
    tags: set[str] = set()
    lengths = [0]  # of each alternative
    while at < len(parts) and parts[at][0] != ")":
        part = parts[at]
        if part == "|":
            lengths.append(0)
        else:
            begins, length, optional = {part.rstrip("?")}, 1, part.endswith("?")
            if part == "(":
                begins, length, at = _first(parts, at + 1)
                optional = parts[at].endswith("?")
            if not lengths[-1]:  # nothing that must stand has come in this alternative
                tags |= begins
            lengths[-1] += 0 if optional else length
        at += 1
    return tags, min(lengths), at


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
        if at < done or not (fits := stage.fits(row, at)):
            continue
        length, node = _best(items, at, fits, seen)
        if node is not None:
            new = Item(items[at].start, items[at + length - 1].end, _tags_of(node))
            made += [*items[done:at], new]
            chars += [row[done:at], tables.row([new])]
            done = at + length
    return (made + items[done:], "".join(chars) + row[done:]) if done else (items, row)


def _best(items: list[Item], at: int, fits: Iterable[Fit], seen: Callable[[int], Seen]) -> tuple[int, Node | None]:
    for fit in fits:
        values = {name: items[at + behind].tags[tag] if behind >= 0 else None for name, tag, behind in fit.values}
        try:
            node = fit.rule.read(values, seen(items[at].start))
        except (ValueError, OverflowError):  # 31 February, 9,000 years ago
            node = None
        if node is not None and node.days.first < node.days.behind:  # "next 0 weeks" is no stretch
            return fit.length, node if node.rule else Node(node.days, fit.rule.name, *node[2:])
    return 0, None


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
