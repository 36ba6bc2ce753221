"""What speaks against reading an expression as a time: another meaning, a count, somebody's name, the future.

Whoever is in doubt says nothing: a wrong stretch of time hides what is asked for, none only leaves it where it is.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.times.asked.english import LED, YEAR

REACH: Final = 60
"""Characters before an expression in which what leads up to it stands."""

_UNITS: Final = (
    r"ms|s|secs?|mins?|h|hrs?|[kmgt]i?b|px|pt|percent|usd|eur|people|persons?|men|women|children|x|[kmg]?hz|rpm|fps"
    r"|[kcm]?m|kg"
)
_NO_PLURAL: Final = r"was|has|does|its|ours|hers|yours|theirs|always|sometimes|perhaps|besides|towards|says|as|were"
_COUNTED: Final = re.compile(
    r"\s?[%\u20ac$]|\s+(?:(?:more|new|other|different|active|open|failed|concurrent|of\s+(?:the|these|those|our|my))\s+)?"
    rf"(?:(?:{_UNITS})\b|(?!(?:{_NO_PLURAL})\b)(?-i:[a-z]+[a-hj-rtv-z]s)\b)(?!['\u2019])",
    re.IGNORECASE,
)
"""What stands behind a number that counts: a unit, or several of something, in small letters ("5 users")."""
_DATED: Final = re.compile(r"\b(?:on|the|dated)\s+$", re.IGNORECASE)

_LABEL: Final = re.compile(
    r"\b(?:v|ver|version|release|build|tag|patch|revision|rev|port|ticket|issue|bug|pr|mr|room|chapter|section|page|line"
    r"|row|step|item|case|test|error|code|status|rfc|iso|model|part|number|no|nr|id|figure|table|task|story|epic"
    r"|question)s?[.:#]?\s*$",
    re.IGNORECASE,
)
_MEASURE: Final = re.compile(
    r"\b(?:limit|size|count|timeout|max(?:imum)?|min(?:imum)?|total|number|length|width|height|batch|port|value|id|code"
    r"|threshold|delay|rate|capacity|cost|price|weight|resolution|average|sum|depth|speed|balance|score)s?\s+(?:of|from)\s+$",
    re.IGNORECASE,
)
_RANGE: Final = re.compile(rf"(?<!\d)(?!{YEAR}\b)\d+\s+(?:and|to|until|till|through)\s+$", re.IGNORECASE)
_OTHER_YEAR: Final = re.compile(r"\b(?:fiscal|financial|school|academic|tax)\s+$", re.IGNORECASE)

_OTHER_WORDS: Final = frozenset({"may", "mar", "march", "jan", "dec", "sept", "sep", "oct", "apr"})
"""Months that are verbs, names that are cut short, or something else."""
_PEOPLE: Final = frozenset({"april", "may", "june", "jan", "august"})
_BY_DAY: Final = re.compile(
    r"\b(?:on|since|until|till|before|after|from|between|(?:between|from)\s.{1,20})\s+$", re.IGNORECASE
)
_GOES_ON: Final = re.compile(
    r"(?!\w)\W*(?:$|[.,;:?!)\]]|\s(?:about|at|in|on|with|for|by|the|an?|we|i|he|she|they|it|you|did|do|does|was|were|is"
    r"|are|had|has|have|and|or|of|to|when|while|what|who|whom|which|from|our|my|her|his|their|as|after|before|because"
    r"|that|this|these|those|since|until|so|but|already|there|here|how|than|regarding|concerning|between)\b)",
    re.IGNORECASE,
)
"""The end, or a word that no name of anything goes on with."""
_HAS: Final = re.compile(r"\s+(?:ha(?:s|ve|d)|do|did|as)\b")
_STOPS: Final = re.compile(r"\s*(?:$|[.,;:?!)\]])")

_ACTS_BEFORE: Final = re.compile(
    r"\b(?:do|does|did|ask|asks|asked|tell|tells|told|meet|meets|met|call|calls|called|thank|thanked|hire|hired|invite"
    r"|invited|dear|hi|hey|hello)\s+$",
    re.IGNORECASE,
)
_ACTS_BEHIND: Final = re.compile(
    r"['\u2019]s\b|\s+(?:said|says|told|tells|asked|asks|wrote|writes|wants|wanted|likes|liked|lives|lived|works|worked"
    r"|prefers|preferred|thinks|thought|owns|loves|hates|needs|and\s+I)\b",
    re.IGNORECASE,
)

_OUTSIDE: Final = re.compile(
    r"\b(?:next|coming|upcoming|every|each|except|excluding|besides|without|other\s+than|apart\s+from|outside"
    r"|not\s+(?:in|on|during|from)|n['\u2019]t\s+(?:in|on|during|from))\s+(?:(?:in|on|for|from|of|during|the)\s+)*$",
    re.IGNORECASE,
)
_AHEAD: Final = re.compile(
    r"(?:\b(?:will|shall|due|deadline|going\s+to|(?:scheduled|planned)\s+(?:for|on))\b|['\u2019]ll\b)[^.?!\n]*$",
    re.IGNORECASE,
)
_ALLOWED: Final = re.compile(r"\b(?:can|may|should|must)\b[^.?!\n]*$", re.IGNORECASE)
_UP_TO_A_DAY: Final = re.compile(r"\b(?:before|after|until|till)\s+(?:the\s+)?$", re.IGNORECASE)
_PAST: Final = re.compile(
    r"\b(?:did|was|were|had|been|said|told|wrote|made|broke|went|came|took|gave|got|met|\w{2,}[^\We]ed)\b",
    re.IGNORECASE,
)
_SINCE: Final = re.compile(r"\bsince\s+(?:the\s+)?$", re.IGNORECASE)
_COUNTED_FROM: Final = re.compile(
    r"\b(?:(?:the|a|an|one)\s+(?:day|night|evening|morning|week|weekend|month|year)"
    r"|(?:\d+|two|three|four|five|six|seven|eight|nine|ten|few|several|some)\s+(?:day|week|month|year)s)"
    r"\s+(?:before|after|following|prior\s+to|preceding)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_RUNS: Final = re.compile(
    r"\b(?:is|are|am|was|were|be|been|runs?|running|ran|still|based|depends?|built|stays?|remains?|now)\s+on\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_ON: Final = re.compile(r"\bon\s+(?:the\s+)?$", re.IGNORECASE)
_SOMETIME: Final = re.compile(
    r"\b(?:on|of|since|until|till|before|after|by|from|to|and|between|dated|through)\s+(?:the\s+)?$", re.IGNORECASE
)


def words_before(text: str, at: int) -> str:
    """Return what stands before a place, as far as it may lead up to it."""
    return text[max(0, at - REACH) : at]


def is_led(text: str, start: int) -> bool:
    """Tell whether what stands before a year, a season or a month says that it is one."""
    return LED.search(words_before(text, start)) is not None


def is_elsewhen(text: str, start: int) -> bool:
    """Tell whether what is asked for lies outside of an expression: "next June", "not in June", "the day after"."""
    led = words_before(text, start)
    return _OUTSIDE.search(led) is not None or _COUNTED_FROM.search(led) is not None


def is_ahead(text: str, start: int, *, weekday: bool = False) -> bool:
    """Tell whether an expression without a year lies ahead: "what is due in June?"."""
    led = words_before(text, start)
    if _SINCE.search(led):
        return False
    return _AHEAD.search(led) is not None or (weekday and _ALLOWED.search(led) is not None)


def may_lie_ahead(text: str, start: int) -> bool:
    """Tell whether "before Friday" may be the Friday to come: nothing before it or behind tells of the past."""
    return _UP_TO_A_DAY.search(words_before(text, start)) is not None and _PAST.search(text) is None


def is_counted(text: str, start: int, end: int) -> bool:
    """Tell whether the number that an expression ends with counts something: "May 5 users"."""
    return _COUNTED.match(text, end) is not None and _DATED.search(words_before(text, start)) is None


def is_of_another_kind(text: str, start: int) -> bool:
    """Tell whether a year begins on another day than the first of January."""
    return _OTHER_YEAR.search(words_before(text, start)) is not None


def is_measure(text: str, start: int, end: int) -> bool:
    """Tell whether what looks like a year is a quantity: "in 2000 characters", "a limit of 2000"."""
    led = words_before(text, start)
    return _COUNTED.match(text, end) is not None or _MEASURE.search(led) is not None or _RANGE.search(led) is not None


def is_labelled(text: str, start: int) -> bool:
    """Tell whether a number is that of a version, a ticket, a page."""
    return _LABEL.search(words_before(text, start)) is not None


def is_version(text: str, start: int, said: str) -> bool:
    """Tell whether three short numbers between dots may be a version: "1.2.20", "since 10.3.26"."""
    led = words_before(text, start)
    day, month, _ = said.replace(" ", "").split(".")
    if month.startswith("0"):
        return _SOMETIME.search(led) is None
    return day <= "12" or len(day) == 1 or _ON.search(led) is None or _RUNS.search(led) is not None


def is_fraction(text: str, start: int) -> bool:
    """Tell whether nothing leads up to three short numbers between slashes."""
    return _SOMETIME.search(words_before(text, start)) is None


def is_other_word(name: str, text: str, start: int, end: int) -> bool:
    """Tell whether a month beside a number, in small letters, may be a verb or a word cut short: "3 may fail"."""
    if name[0].isupper() or name.rstrip(".") not in _OTHER_WORDS:
        return False
    if _BY_DAY.search(words_before(text, start)):
        return _GOES_ON.match(text, end) is None
    return _STOPS.match(text, end) is None


def is_no_month(name: str, text: str, start: int, end: int) -> bool:
    """Tell whether a month by itself is another word, or somebody's name."""
    plain = name.lower().rstrip(".")
    led = words_before(text, start)
    if _ACTS_BEFORE.search(led):
        return True
    if is_led(text, start):
        return False
    return plain in _OTHER_WORDS or (plain in _PEOPLE and _ACTS_BEHIND.match(text, end) is not None)


def is_verb(name: str, text: str, end: int) -> bool:
    """Tell whether "this may" goes on as a verb does: "this may be wrong"."""
    return name in {"may", "march"} and (_HAS.match(text, end) is not None or not ends_there(text, end))


def ends_there(text: str, end: int) -> bool:
    """Tell whether an expression is no part of a name that goes on behind it: "in Spring Security"."""
    return _GOES_ON.match(text, end) is not None
