"""Words of time by language, tokens of texts, and rules over them.

Each kind of token is one character, so that a rule is a short regular expression over a string of such characters.
Patterns have no unbounded repetition, and at each token the longest rule wins: time is linear in the number of tokens.

`language/patterns/<language>.txt` has the words. Each line is a kind, then words by value; a value without "=" is 0. A
language needs no other file for dates. Kinds whose words are not their own name:

- NAME_MONTH and VERB_MONTH are words with another meaning, read as months only in a context of time. LOW_MONTH is such
  a word in lower case. SHORT_WEEKDAY is an abbreviation, read only next to "on" or a date.
- OFFSET counts units from now: 1 is the next one. COMING_OFFSET counts days of the week from today.
- DAY_NAME counts days from now. NUM, TENS and NTH are numbers in words. VAGUE is an unsure number.
- AGO_BEFORE is "ago" in front of the number. PART_OF_DAY and PART_OF_YEAR name parts.
- Words of EVERY, MEASURE and LABEL show that the words next to them name another thing than a date.
- FREQUENT are words by which the language is detected, CLAUSE words that begin a clause.
- AHEAD and PAST are regular expressions for verbs of future and past: verbs of closed classes, infinitives, frequent
  irregular pasts, and endings of regular pasts.
- DAY_FIRST says that 3/4 is in April.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.late import compile_late
from agent_memory.times.days import MONTHS, WEEKDAYS, DaySpan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_KINDS: Final = re.findall(
    r"\w+",
    """
    OTHER PLURAL NAME BREAK COMMA DASH SLASH DOT DIGITS COUNT YEAR DATE DATE_PAIR PAIR YEAR_MONTH CLOCK SPREAD NTH
    NTH_DIGITS DECADE YEAR_PART MONTH NAME_MONTH VERB_MONTH LOW_MONTH WEEKDAY SHORT_WEEKDAY UNIT TIME_UNIT SEASON
    PART_OF_YEAR OFFSET COMING_OFFSET WEEK_OF REST DAY_NAME NUM TENS VAGUE PART_OF_DAY AGO AGO_BEFORE
    LATER EARLIER ARTICLE_A THE OF IN ON AT FOR
    FROM TO UNTIL SINCE BEFORE AFTER BY BETWEEN AND OR MORE LESS THAN NO END EARLY LATE MID END_OF CALENDAR_WEEK OCLOCK
    EVERY MEASURE LABEL NOW DAY_NODE NODE BOUND
    """,
)
CHARS: Final = {kind: chr(0x100 + number) for number, kind in enumerate(_KINDS)}
_CLASSES: Final = {
    "DAY": "DIGITS NTH NTH_DIGITS NUM TENS",
    "NUMBER": "DIGITS COUNT NUM TENS ARTICLE_A",
    "ANY_MONTH": "MONTH NAME_MONTH VERB_MONTH",
    "ANY_WEEKDAY": "WEEKDAY SHORT_WEEKDAY",
    "ORDINAL": "NTH NTH_DIGITS",
    "SPAN": "NODE DAY_NODE",
    "ANY_OFFSET": "OFFSET COMING_OFFSET",
    "UP_TO": "TO UNTIL DASH",
    "LEADING_WORD": "IN OF SINCE UNTIL BEFORE AFTER BETWEEN EARLY LATE MID THAN END",
}
_CHARS_BY_NAME: Final = CHARS | {
    name: "".join(CHARS[kind] for kind in kinds.split()) for name, kinds in _CLASSES.items()
}
"""Characters of each kind and class of kinds."""
_ELEMENT: Final = re.compile(r"(?:([a-z]\w*):)?([A-Z][A-Z_]*)")


class DayNode(NamedTuple):
    """Node of the grammar: days that words name.

    Attributes:
        days: Days that the words name.
        in_year: Returns the same days of a given year; None if the words name a year.
        bound, named: Values as in `TimeMention`.
        rule: Name of the rule.
    """

    days: DaySpan
    in_year: Callable[[int], DaySpan] | None = None
    bound: str = "at"
    named: tuple[DaySpan, ...] = ()
    rule: str = ""


@dataclass(slots=True)
class Token:
    """Token or node: its span in the text, kind and value."""

    start: int
    end: int
    kind: str
    value: Any = None


class ReadingContext(NamedTuple):
    """The point from which words are understood.

    Attributes:
        moment: When they were said.
        is_future: True if they are about the future.
        day_first: True if 3/4 is in April.
        has_second_meaning: True for the second meaning of words on which people differ, such as "next Friday".
    """

    moment: datetime
    is_future: bool
    day_first: bool
    has_second_meaning: bool

    @property
    def today(self) -> date:
        """The day of saying."""
        return self.moment.date()


@dataclass(frozen=True, eq=False)  # tuples of rules are keys
class Rule:
    """Pattern of kinds; `read` gets named values, and returns None to refuse."""

    name: str
    pattern: str
    read: Callable[..., DayNode | None]

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern over characters of kinds, compiled at the first use."""
        return re.compile(_ELEMENT.sub(_replace_element, self.pattern).replace(" ", ""))

    @cached_property
    def needs(self) -> tuple[frozenset[str], ...]:
        """Characters of each element that every match holds.

        Compiling takes 0.5 ms; most rules are refused without it.
        """
        outer, groups = self.pattern, 1
        while groups:
            outer, groups = _GROUP.subn("", outer)
        elements = (_ELEMENT.fullmatch(word) for word in outer.split())
        return tuple(frozenset(_CHARS_BY_NAME[element[2]]) for element in elements if element)


_GROUP: Final = re.compile(r"\([^()]*\)\S*")
"""Innermost group, optional or not."""


def _replace_element(match: re.Match[str]) -> str:
    name, kind = match.groups()
    return f"(?P<{name}>[{_CHARS_BY_NAME[kind]}])" if name else f"[{_CHARS_BY_NAME[kind]}]"


def apply_rules(tokens: list[Token], rules: tuple[Rule, ...], get_view: Callable[[int], ReadingContext]) -> list[Token]:
    """Merge each group of tokens that a rule reads."""
    row = "".join(CHARS[token.kind] for token in tokens)
    merged: list[Token] = []
    done = 0
    for begin in _BEGIN.finditer(row):
        start = begin.start()
        if start < done:
            continue
        stop = _INERT.search(row, start, start + _REACH)
        before = row[max(0, start - _REACH_BEFORE) : start]
        matches = _find_matches(rules, before, row[start : stop.end() if stop else start + _REACH])
        token, length = _read_matches(tokens, start, matches, get_view) if matches else (None, 0)
        if token is not None:
            merged += [*tokens[done:start], token]
            done = start + length
    return merged + tokens[done:]


_BEGIN: Final = re.compile(
    f"[^{''.join(CHARS[kind] for kind in ('OTHER', 'PLURAL', 'NAME', 'BREAK', 'COMMA', 'DOT'))}]"
)
"""Finds kinds with which a rule may begin."""
_INERT: Final = re.compile(f"[{''.join(CHARS[kind] for kind in ('OTHER', 'PLURAL', 'NAME', 'BREAK'))}]")
"""Finds kinds that no rule reads over."""
_REACH_BEFORE, _REACH = 3, 20


class RuleMatch(NamedTuple):
    """Rule that matches, number of tokens, and position of each value."""

    rule: Rule
    length: int
    values: tuple[tuple[str, int], ...]


@lru_cache(maxsize=4_096)
def _find_matches(rules: tuple[Rule, ...], before: str, row: str) -> tuple[RuleMatch, ...]:
    """Return the rules that match at the start, longest first.

    The cache helps because the same few rows come often.
    """
    text, start = before + row[:_REACH], len(before)
    text_kinds = frozenset(text)
    matches = [
        RuleMatch(
            rule,
            match.end() - start,
            tuple((name, match.start(name) - start) for name in match.groupdict() if match[name]),
        )
        for rule in rules
        if not any(map(text_kinds.isdisjoint, rule.needs))
        if (match := rule.regex.match(text, start)) and match.end() > start
    ]
    return tuple(sorted(matches, key=lambda match: -match.length))


def _read_matches(
    tokens: list[Token], start: int, matches: Iterable[RuleMatch], get_view: Callable[[int], ReadingContext]
) -> tuple[Token | None, int]:
    for rule, length, places in matches:
        values = {name: tokens[start + place].value for name, place in places}
        try:
            node = rule.read(get_view(tokens[start].start), **values)
        except (ValueError, OverflowError):  # 31 February, 9,000 years ago
            continue
        if node is not None and node.days.first_day < node.days.end_day:
            node = node if node.rule else node._replace(rule=rule.name)
            kind = "BOUND" if node.bound != "at" else "DAY_NODE" if node.days.length == 1 else "NODE"
            return Token(tokens[start].start, tokens[start + length - 1].end, kind, node), length
    return None, 0


_TOKEN: Final = compile_late(
    r"(?P<part>(?<![\w./])(?P<part_y>(?:19|20)\d\d)[ /-]?(?:(?P<part_of>[qh][1-4])"
    r"|W(?P<week>[0-5]\d)(?:-(?P<weekday>[1-7]))?)(?!\w)|(?<![\w./])W(?P<week2>[0-5]\d)/(?P<year2>20\d\d)(?!\w))"
    r"|(?P<word>(?P<stem>[^\W\d_]{1,40})(?:['\u2019-][^\W\d_]{1,9}(?![\w]))?)|(?P<iso>(?<!\d)(?<!\d[.:/-])(?:1[5-9]"
    r"|20)\d\d(?P<sep>[-/.])(?:0?[1-9]|1[0-2])(?P=sep)(?:3[01]|[12]\d|0?[1-9])(?!\d"
    r"|[./]\d)(?:T\d\d:?\d\d(?::?\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!T?\d))"
    r"|(?P<date>(?<![\w./=])(?P<a>\d{1,2})(?P<sep2>[-/.])(?P<b>\d{1,2})(?P=sep2)(?P<y>\d{4}|\d\d)(?![\w]|[./]\w))"
    r"|(?P<compact>(?<![\w./-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:T\d{4,6}Z?)?(?![\w/-]|\.\w))"
    r"|(?P<month>(?<![\w./-])(?:(?P<ym_y>(?:19|20)\d\d)(?:-(?=[01])|/)(?P<ym_m>0?[1-9]|1[0-2])|(?P<my_m>0?[1-9]"
    r"|1[0-2])[-/](?P<my_y>(?:19|20)\d\d))(?![\w/-]|\.\w))|(?P<han>(?<!\d)(?:19|20)\d\d年\d{1,2}月\d{1,2}[日号號](?!以|から|まで"
    r"|前|后|後))|(?P<clock>(?<![\w.:/])(?:[01]?\d|2[0-4])(?::[0-5]\d(?::[0-5]\d(?:[.,]\d{1,6})?)?\s?(?:[ap]\.?m\b\.?)?"
    r"|(?:\.[0-5]\d)?\s?[ap]\.?m\b\.?|h[0-5]\d)(?![\w:]|\.\d))|(?P<pair>(?<![\w./$:-])(?P<pair_a>\d{1,2})"
    r"(?P<pair_sep>[-/.\u2013])(?P<pair_b>\d{1,2})(?![\w%:]|[./-]\w))|(?P<decade>(?<![\w./])(?:1[5-9]|20)\d0'?s(?!\w))"
    r"|(?P<nth>(?<![\w./-])\d{1,2}(?:st|nd|rd|th|er|º)(?!\w))|(?P<number>\d{1,12}(?:[.,:]\d{1,12}){0,8})"
    r"|(?P<break>\n[ \t]*\n)|(?P<mark>[^\w\s])|(?P<other>\w{1,40})",
    re.IGNORECASE,
)
_HAN_DAYS: Final = {
    "今天": 0, "今日": 0, "明天": 1, "明日": 1, "后天": 2, "後天": 2, "明後日": 2,
    "大后天": 3, "大後天": 3, "昨天": -1, "昨日": -1,
    "前天": -2, "一昨日": -2, "大前天": -3,
}  # fmt: skip
_HAN: Final = compile_late(
    rf"(?:(?P<day>{'|'.join(sorted(_HAN_DAYS, key=len, reverse=True))})"
    r"|(?P<offset>[上下这這本先今来])个?(?:周|週|星期|礼拜)の?(?P<weekday>[一二三四五六日天月火水木金土])(?:曜日?)?)(?!以|の?\d|から|まで|前|后|後|至)"
)
_HAN_REL: Final = {"上": -1, "先": -1, "下": 1, "来": 1}
_HAN_WEEKDAYS: Final = ("一二三四五六日天", "月火水木金土日")
_MARKS: Final = {",": "COMMA", **dict.fromkeys("-\u2013—~", "DASH"), "/": "SLASH", ".": "DOT"}
_CODE_BEFORE: Final = "_$@#\\=&{%<[`"
_CODE_AFTER: Final = "_@(=\\[`{"
_MONEY: Final = "$€£¥#"
_HOLIDAYS: Final = frozenset(("black", "good", "ash", "cyber", "easter", "palm", "super", "boxing"))
"""First words of names that end like a day of the week."""
_PLURAL: Final = compile_late(r"(?!(?:was|has|does|this)$)[a-z]{2,}[^\W\d_su]s")
_PHRASE_CHARS: Final = 40
_FIRST_YEAR, _LAST_YEAR, _MAX_DAY, _PIVOT = 1000, 2199, 31, 30
_MONTHS, _MAX_DIGIT, _LONG_YEAR, _SHORT = 12, 9, 4, 2
_MONTH: Final = rf"(?:{'|'.join(MONTHS)})"
_TIME: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE: Final = r"(?:[+-]\d\d:?\d\d|Z|[A-Z]{3,5})"
_WEEKDAY: Final = rf"(?:{'|'.join(day[:3] for day in WEEKDAYS)})"
_TIMESTAMP: Final = compile_late(
    rf"(?<![\w/])(?:(?:{_WEEKDAY}\s)?(?P<month>{_MONTH})\s{{1,2}}(?P<day>\d\d?)\s{_TIME}(?:\s{_ZONE})?\s(?P<year>\d{{4}})"
    rf"|(?:{_WEEKDAY},?\s)?(?P<day2>\d\d?)[\s-](?P<month2>{_MONTH})[\s-](?P<year2>\d{{4}})\s{_TIME}"
    rf"|(?P<day3>\d\d)/(?P<month3>{_MONTH})/(?P<year3>\d{{4}}):{_TIME})(?:\s[+-]\d\d:?\d\d|\s(?:UTC|GMT)\b)?(?!\w)",
    re.IGNORECASE,
)


def replace_timestamps(text: str) -> tuple[str, dict[int, int]]:
    """Replace timestamps by ISO dates of the same length.

    Returns the ends, too: that of each date with that of its timestamp.
    """
    ends: dict[int, int] = {}

    def replace(match: re.Match[str]) -> str:
        groups = match.groupdict()
        day, month, year = (next(groups[name + suffix] for suffix in ("", "2", "3") if groups[name + suffix])
                            for name in ("day", "month", "year"))  # fmt: skip
        try:
            iso = date(int(year), MONTHS.index(month.lower()) + 1, int(day)).isoformat()
        except ValueError:
            return match[0]
        ends[match.start() + len(iso)] = match.end()
        return iso.ljust(len(match[0]))

    return _TIMESTAMP.sub(replace, text), ends


def tokenize(text: str, vocabulary: LanguageWords) -> list[Token]:
    """Return the tokens of a text in order, without white space."""
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.search(text, position):
        group = match.lastgroup or ""
        end = match.end()
        if group == "word":
            token = _read_word(text, match, vocabulary)
        elif group == "mark":
            token = Token(match.start(), end, _MARKS.get(match[0], "OTHER"))
        else:
            token = Token(match.start(), end, *_read_digits(text, match, group))
        position = token.end
        if not _merge_number(tokens, token):
            tokens.append(token)
    return tokens


def _merge_number(tokens: list[Token], token: Token) -> bool:
    """Merge "twenty-two" into the token before; return True if done."""
    before = tokens[-1] if tokens else None
    if before is not None and before.kind == "DASH" and len(tokens) > 1 and before.start == tokens[-2].end:
        before = tokens[-2]
    if before is None or before.kind != "TENS" or token.kind not in {"NUM", "NTH"} or token.value > _MAX_DIGIT:
        return False
    if before is not tokens[-1]:
        tokens.pop()
    before.end, before.kind, before.value = token.end, token.kind, before.value + token.value
    return True


def _read_word(text: str, match: re.Match[str], vocabulary: LanguageWords) -> Token:
    start, end = match.span()
    if not match[0].isascii() and (han := _HAN.search(text, start, end)):
        return Token(han.start(), han.end(), "DAY_NAME", *_read_han(han))
    stem = match["stem"].lower()
    if stem in vocabulary.first_words:
        phrase = vocabulary.phrases.match(text[start : start + _PHRASE_CHARS].lower())
        after = start + phrase.end() if phrase else start
        if phrase and not text[after : after + 1].isalnum():
            end = after
    entry = vocabulary.words.get(text[start:end].lower())
    if entry is None and end == match.end():
        entry, end = vocabulary.words.get(stem), match.end("stem")
    if entry is None:
        kind = "NAME" if match[0][0].isupper() and match[0][1:].islower() else "OTHER"
        return Token(start, match.end(), "PLURAL" if _PLURAL.fullmatch(match[0]) else kind)
    kind, value = entry
    if text[start].islower():
        kind = {"VERB_MONTH": "LOW_MONTH", "SHORT_WEEKDAY": "OTHER"}.get(kind, kind)
    if (
        (stem == "dec" and text[start].islower())
        or _is_code(text, start, end)
        or (kind == "WEEKDAY" and _follows_holiday(text, start))
    ):
        return Token(start, end, "OTHER")
    return Token(start, end, kind, value)


def _follows_holiday(text: str, start: int) -> bool:
    words = text[max(0, start - 12) : start].split()
    return bool(words) and words[-1].lower() in _HOLIDAYS


def _read_han(match: re.Match[str]) -> tuple[Any]:
    if match["day"]:
        return (_HAN_DAYS[match["day"]],)
    names = _HAN_WEEKDAYS["曜" in match[0]]
    number = min(names.index(match["weekday"]), 6)
    return ((_HAN_REL.get(match["offset"], 0), number),)


def _is_code(text: str, start: int, end: int) -> bool:
    """Return True if a word is part of code or an address."""
    is_member = start > 1 and text[start - 1] == "." and text[start - 2].isalpha()
    has_member = text[end : end + 1] == "." and text[end + 1 : end + 2].isalpha()
    is_glued = start > 0 and (text[start - 1] in _CODE_BEFORE or text[start - 1].isdigit())
    return is_member or has_member or is_glued or (end < len(text) and text[end] in _CODE_AFTER)


def _read_digits(text: str, match: re.Match[str], group: str) -> tuple[str, Any]:
    """Return the kind and value of a token with digits."""
    if group == "number":
        return _read_number(text, match)
    reader = _READERS.get(group)
    return reader(match, [int(part) for part in re.findall(r"\d+", match[0])]) if reader else ("OTHER", None)


def _read_date(match: re.Match[str], numbers: list[int]) -> tuple[str, Any]:
    year = match["y"]
    if match["sep2"] == "." and len(year) < _LONG_YEAR:
        return "OTHER", None  # a version
    if match["sep2"] == "." and numbers[1] <= _MONTHS:  # no language writes the month first with dots
        return "DATE", tuple(numbers[::-1])
    full = numbers[2] if len(year) == _LONG_YEAR else numbers[2] + (2000 if numbers[2] < _PIVOT else 1900)
    return "DATE_PAIR", (numbers[0], numbers[1], full)


def _read_part(match: re.Match[str], numbers: list[int]) -> tuple[str, Any]:
    if match["week2"]:
        return "YEAR_PART", (numbers[1], (numbers[0], 0))
    if match["part_of"]:
        return "YEAR_PART", (numbers[0], match["part_of"].lower())
    return "YEAR_PART", (numbers[0], (int(match["week"]), int(match["weekday"] or 0)))


def _read_pair(match: re.Match[str], numbers: list[int]) -> tuple[str, Any]:
    kind = "PAIR" if match["pair_sep"] in "/." else "SPREAD"
    return (kind, (*numbers,)) if max(numbers) <= _MAX_DAY and min(numbers) else ("OTHER", None)


_READERS: Final[dict[str, Callable[[re.Match[str], list[int]], tuple[str, Any]]]] = {
    "iso": lambda match, numbers: ("DATE", _read_moment(match[0].upper()) or (*numbers[:3],)),
    "compact": lambda match, numbers: ("DATE", (int(match[0][:4]), int(match[0][4:6]), int(match[0][6:8]))),  # noqa: ARG005
    "han": lambda match, numbers: ("DATE", (*numbers,)),  # noqa: ARG005
    "date": _read_date,
    "month": lambda match, numbers: ("YEAR_MONTH", (*numbers,) if match["ym_y"] else (*numbers[::-1],)),
    "part": _read_part,
    "clock": lambda match, numbers: ("CLOCK", None),  # noqa: ARG005
    "pair": _read_pair,
    "decade": lambda match, numbers: ("DECADE", (numbers[0], 10)),  # noqa: ARG005
    "nth": lambda match, numbers: ("NTH_DIGITS", numbers[0]),  # noqa: ARG005
    "break": lambda match, numbers: ("BREAK", None),  # noqa: ARG005
}
"""Readers of a token with digits, by the group of the pattern."""


def _read_moment(text: str) -> datetime | None:
    """Return a moment that has an offset, or None."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # 2023-5-3, or the hour 25
        return None
    return moment if moment.tzinfo else None


def _read_number(text: str, match: re.Match[str]) -> tuple[str, Any]:
    start, end = match.span()
    before, after = text[start - 1 : start], text[end : end + 1]
    before = text[start - 2 : start - 1] if before == " " and text[start - 2 : start - 1] in {*_MONEY} else before
    if not (match[0].isdecimal() and match[0].isascii()) or before in {*_MONEY, "_", "\\", "="} or after in {"%", "_"}:
        return "OTHER", None
    if before.isalpha() or after.isalpha() or (before in {".", ":"} and start > 1 and text[start - 2].isdigit()):
        return "OTHER", None
    value = int(match[0])
    if len(match[0]) == _LONG_YEAR and _FIRST_YEAR <= value <= _LAST_YEAR:
        return "YEAR", value
    return ("DIGITS" if 1 <= value <= _MAX_DAY and len(match[0]) <= _SHORT else "COUNT"), value


class LanguageWords(NamedTuple):
    """Words of time in one language.

    Attributes:
        words: Kind and value of each word or phrase, in lower case.
        phrases: Finds phrases of several words.
        first_words: Beginnings of phrases.
        cues: Finds words of future (group `ahead`) and past.
        frequent: Words by which the language is detected.
        clause_words: Words that begin a clause.
        day_first: True if 3/4 is in April, None if people of that language differ.
    """

    words: dict[str, tuple[str, Any]]
    phrases: re.Pattern[str]
    first_words: frozenset[str]
    cues: re.Pattern[str]
    frequent: frozenset[str]
    clause_words: tuple[str, ...]
    day_first: bool | None


FOLDER = resources.files("agent_memory") / "language" / "patterns"
"""Folder with one file of words of time for each language."""
_DEFAULT: Final = "en"
_OTHER_LINES: Final = frozenset(("#", "FREQUENT", "CLAUSE", "AHEAD", "PAST", "DAY_FIRST"))
_WORD: Final = compile_late(r"[^\W\d_]+")
_READ_CHARS: Final = 400
"""Characters that decide the language of a text."""


@cache
def list_languages() -> tuple[str, ...]:
    """Return the codes of all languages with a file, English first."""
    codes = (file.name.removesuffix(".txt") for file in FOLDER.iterdir() if file.name.endswith(".txt"))
    return tuple(sorted(codes, key=lambda code: (code != _DEFAULT, code)))


@cache
def get_vocabulary(language: str) -> LanguageWords:
    """Return the words of a language such as "de-AT", English by default."""
    code = language[:2].lower() if language[:2].lower() in list_languages() else _DEFAULT
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for line in (FOLDER / f"{code}.txt").read_text(encoding="utf-8").splitlines():
        kind, _, content = line.partition(" ")
        lines[kind].append(content)
    words: dict[str, tuple[str, Any]] = {}
    for kind, contents in lines.items():  # of a word on two lines, the second counts
        for group in " ".join(contents).split() if kind not in _OTHER_LINES else ():
            value, _, names = group.rpartition("=")
            entry = kind, value if value.isidentifier() else int(value or 0)
            words |= {name.replace("_", " "): entry for name in names.split(",")}
    phrases = sorted((re.escape(word) for word in words if not word.isalpha()), key=len, reverse=True)
    return LanguageWords(
        words,
        phrases=re.compile("|".join(phrases)),
        first_words=frozenset(_WORD.findall(word)[0] for word in words if not word.isalpha()),
        cues=re.compile(rf"(?P<ahead>{'|'.join(lines['AHEAD'])})|(?P<past>{'|'.join(lines['PAST'])})", re.IGNORECASE),
        frequent=frozenset(" ".join(lines["FREQUENT"]).split()),
        clause_words=tuple(" ".join(lines["CLAUSE"]).split()),
        day_first="DAY_FIRST" in lines or None,
    )


def detect_language(text: str) -> str:
    """Return the language of a text, English by default.

    This package imports no other, so it counts frequent words and words of time itself.
    """
    words = _WORD.findall(text[:_READ_CHARS].lower())
    vocabularies = {code: get_vocabulary(code) for code in list_languages()}

    def count(code: str) -> int:
        return sum(word in vocabularies[code].frequent or word in vocabularies[code].words for word in words)

    return max(vocabularies, key=count)


_SENTENCE_END: Final = compile_late(r"[.!?;](?=\s{1,9}[^\Wa-z\d_]|\s{0,9}$)|\n")


@cache
def compile_clause_break() -> re.Pattern[str]:
    """Return the pattern of a comma or a clause's first word."""
    words = (word for code in list_languages() for word in get_vocabulary(code).clause_words)
    return re.compile(rf",|\b(?:{'|'.join(words)})\b", re.IGNORECASE)


class TenseReader:
    """Tense at each place of a text.

    The verbs of the sentence decide, on either side of the date. If they differ, those of the date's own clause do; if
    these differ as well, or no verb exists, the tense is unknown.

    Args:
        text: Text to read.
        language: Such as "en".
    """

    def __init__(self, text: str, language: str) -> None:
        cues = [*get_vocabulary(language).cues.finditer(text)]
        self._places = [cue.start() for cue in cues]
        self._ahead = [0, *accumulate(cue["ahead"] is not None for cue in cues)]
        self._sentences = [match.end() for match in _SENTENCE_END.finditer(text)] if cues else []
        self._clauses = [match.end() for match in compile_clause_break().finditer(text)] if cues else []

    def is_ahead(self, place: int) -> bool | None:
        """Return True for the future, False for the past, None if unknown."""
        if not self._places:
            return None
        start, end = _find_span(self._sentences, place)
        clause = _find_span(self._clauses, place)
        tense = self._find_tense(start, end)
        return self._find_tense(max(start, clause[0]), min(end, clause[1])) if tense is None else tense

    def _find_tense(self, start: int, end: int) -> bool | None:
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        ahead = self._ahead[last] - self._ahead[first]
        return None if first == last or 0 < ahead < last - first else ahead > 0


def _find_span(ends: list[int], place: int) -> tuple[int, int]:
    """Return the span between two ends around a place."""
    number = bisect_right(ends, place)
    return ends[number - 1] if number else 0, ends[number] if number < len(ends) else sys.maxsize
