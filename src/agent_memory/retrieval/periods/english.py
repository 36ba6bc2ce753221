"""English words of time, and the expressions they form.

Only patterns and tables stand here: what an expression means is read in `expressions`, what leads up to it in `bounds`.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.retrieval.dates import WEEKDAYS

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
_COUNT: Final = rf"(?:\d{{1,3}}|{'|'.join(NUMBERS)})(?:\s+of)?"
_UNIT: Final = r"(?:day|week|month|year)"
_NAMED_UNIT: Final = rf"(?:week(?:end)?|month|quarter|year|{'|'.join(WEEKDAYS)}|{'|'.join(SEASONS)}|{MONTH})"

EXPRESSION: Final = re.compile(
    r"(?<![\w./-])(?:"
    r"(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    r"|(?P<iso_month>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))"
    r"|(?P<dotted>\d{1,2}\.\s?\d{1,2}\.\s?(?:\d{4}|\d\d))"
    r"|(?P<slashed>\d{1,2}/\d{1,2}/(?:\d{4}|\d\d))"
    rf"|(?P<day1>{DAY})\s+(?:of\s+)?(?P<month1>{MONTH})(?:,?\s+(?P<year1>{YEAR}))?"
    rf"|(?P<month2>{MONTH})\s+(?:the\s+)?(?P<day2>{DAY})(?!\d)(?:,?\s+(?P<year2>{YEAR}))?"
    rf"|(?:the\s+)?(?:last|past|previous)\s+(?P<span>{_COUNT})\s+(?P<span_unit>{_UNIT})s?"
    rf"|(?P<ago>{_COUNT})\s+(?P<ago_unit>{_UNIT})s?\s+ago"
    rf"|(?P<which>this|last|past|previous|current)\s+(?P<unit>{_NAMED_UNIT})"
    r"|(?P<relative>today|tonight|this\s+(?:morning|afternoon|evening)|last\s+night|(?:the\s+)?day\s+before\s+yesterday"
    r"|yesterday)"
    rf"|(?:(?P<quarter>q[1-4])|(?P<nth>{'|'.join(NTH)})\s+quarter)(?:\s+(?:of\s+)?(?P<year3>{YEAR}))?"
    rf"|(?P<season>{'|'.join(SEASONS)})(?:\s+(?:of\s+)?(?P<year4>{YEAR}))?"
    rf"|on\s+(?P<weekday>{'|'.join(WEEKDAYS)})"
    rf"|(?P<month3>{MONTH})(?:,?\s+(?:of\s+)?(?P<year5>{YEAR}))?"
    rf"|(?P<year6>{YEAR})"
    r")(?![\w-])",
    re.IGNORECASE,
)
LED: Final = re.compile(
    r"\b(?:in|of|since|until|till|during|before|after|by|from|last|this|early|late|mid|between|year"
    rf"|(?:\d\d|{MONTH}|{'|'.join(SEASONS)})\s+(?:and|to|through))[ -](?:the\s+)?$",
    re.IGNORECASE,
)
"""What stands before a year, a season, or a month that may be another word."""
ACTS: Final = re.compile(r"\b(?:do|does|did)\s+$", re.IGNORECASE)  # "what did April say": somebody of that name
