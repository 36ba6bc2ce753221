"""English words of time, and the expressions they form.

Only patterns and tables stand here: what an expression means is read in `expressions`, what speaks against it in
`doubts`, what leads up to it in `bounds`.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.times.days import WEEKDAYS

SEASONS: Final = {"winter": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9}
"""The month each begins with, in the north."""

_UP_TO_TWELVE: Final = "a/an/one two/couple three/few four five six seven eight nine ten eleven twelve"
NUMBERS: Final = {word: at for at, words in enumerate(_UP_TO_TWELVE.split(), 1) for word in words.split("/")}
NTH: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}

MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
DAY: Final = r"[0-3]?\d(?:st|nd|rd|th)?"
YEAR: Final = r"(?:19|20)\d\d"
WEEKDAY: Final = rf"(?:{'|'.join(WEEKDAYS)})"
SEASON: Final = rf"(?:{'|'.join(SEASONS)})"
_COUNT: Final = rf"(?:\d{{1,3}}|(?:a\s+)?(?:few|couple)|{'|'.join(NUMBERS)})(?:\s+of)?"
_UNIT: Final = r"(?:minute|hour|day|week|month|quarter|year)"
_NAMED_UNIT: Final = rf"(?:hour|week(?:end)?|month|quarter|year|{WEEKDAY}|{SEASON}|{MONTH})"
_CLOCK: Final = (
    r"(?:T\d\d(?::?\d\d(?::?\d\d(?:[.,]\d{1,9})?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
    r"|\s+\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?Z?)"
)


def _of_year(name: str) -> str:
    """Return a pattern of the year behind a month, a season or a quarter."""
    return rf"(?:,?\s+(?:of\s+)?(?P<{name}>{YEAR}|['\u2019]\d\d|(?:this|the|last|past|previous)\s+year))"


EXPRESSION: Final = re.compile(
    r"(?:(?<![\w./#@$\u20ac\u00a3\\-])|(?<=\bmid-))(?<!\d:)(?:"
    rf"(?P<iso>\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}})(?P<clock>{_CLOCK})?"
    r"|(?P<iso_week>(?:19|20)\d\d-?W(?:0[1-9]|[1-4]\d|5[0-3])(?:-[1-7])?)"
    rf"|(?P<quarter_year>{YEAR})[\s/-]?(?P<quarter_behind>q[1-4])"
    r"|(?P<iso_month>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))"
    r"|(?P<dotted>\d{1,2}\.\s?\d{1,2}\.\s?(?:\d{4}|\d\d))"
    r"|(?P<slashed>\d{1,2}/\d{1,2}/(?:\d{4}|\d\d))"
    rf"|(?:the\s+)?(?P<day1>{DAY})\s+(?:of\s+)?(?P<month1>{MONTH}){_of_year('year1')}?"
    rf"|(?P<month2>{MONTH})\s+(?:the\s+)?(?P<day2>{DAY})(?!\d){_of_year('year2')}?"
    rf"|(?:the\s+)?(?:last|past|previous)\s+(?P<span>{_COUNT})\s+(?P<span_unit>{_UNIT})s?(?!\s+of\b)"
    rf"|(?P<ago>{_COUNT})\s+(?P<ago_unit>{_UNIT})s?\s+ago"
    rf"|(?P<which>this|last|past|previous|current)\s+(?P<unit>{_NAMED_UNIT})(?!\s+of\b)"
    r"|(?:over|at|on|during)\s+the\s+(?P<weekend>weekend)(?!\s+of\b)"
    r"|(?P<relative>today|tonight|this\s+(?:morning|afternoon|evening)|last\s+night|(?:the\s+)?day\s+before\s+yesterday"
    r"|yesterday)"
    rf"|(?:(?P<quarter>q[1-4])(?:/(?P<slashed_year>{YEAR}))?|(?P<nth>{'|'.join(NTH)})\s+quarter){_of_year('year3')}?"
    r"(?!\s+of\b)"
    rf"|(?:h(?P<half>[12])|(?P<nth_half>first|second)\s+half)\s{{0,20}}{_of_year('year7')}"
    rf"|(?:(?:calendar\s+)?(?P<week>week\s+\d\d?)(?=,?\s+(?:of\s+)?{YEAR})|(?:cw|kw|calendar\s+week)\s?(?P<week_number>\d\d?))"
    rf"{_of_year('year8')}?"
    rf"|(?P<season>{SEASON}){_of_year('year4')}?"
    rf"|(?P<weekday>{WEEKDAY})"
    rf"|(?P<month3>{MONTH}){_of_year('year5')}?"
    rf"|(?P<called>(?:the\s+)?year\s+)?(?P<year6>{YEAR})"
    r")(?![\w@\\-]|[./:]\d|[./]\w)",
    re.IGNORECASE,
)
"""Which groups are filled tells what it is: the first of each kind is a key of what reads it, see `expressions`."""

_SEVERAL: Final = r"(?:and|to|through|thru|until|till|[-\u2013\u2014])"
LED: Final = re.compile(
    r"\b(?:in|of|since|until|till|during|before|after|by|from|over|through|throughout|last|this|early|late|mid|year"
    rf"|(?:{MONTH}|{SEASON}|quarter)(?:\s+{YEAR})?\s+(?:to|through|until|till)|between\s{{1,20}}[^.?!]{{1,30}}?\s{{1,20}}and"
    rf"|(?:from|between)\s+(?:the\s+)?(?:year\s+)?{YEAR}\s+{_SEVERAL}|between)[ -](?:the\s+)?$",
    re.IGNORECASE,
)
"""What stands before a year, a season, or a month that may be another word."""

ON_A_DAY: Final = re.compile(
    rf"\b(?:(?:on|since|from|between|before|after|until|till)\s+(?:the\s+)?"
    rf"|(?:from|between)\s+{WEEKDAY}\s+{_SEVERAL}\s+|on\s+{WEEKDAY}(?:,\s+|,?\s+(?:and|or)\s+))$",
    re.IGNORECASE,
)
"""What stands before the name of a day of the week that is one day, and not any such day."""
