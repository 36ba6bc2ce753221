"""A text as a row of tokens with tags: numbers, dates in digits, times of day, and words that a lexicon knows."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from agent_memory.times.reading.digits import DIGITS, number_tags
from agent_memory.times.reading.grammar import Item
from agent_memory.times.reading.marks import MARKS, NONE
from agent_memory.times.reading.pieces import CAREFULLY, OF_DIGITS, PARTS, Between, Number, asks_behind

if TYPE_CHECKING:
    from agent_memory.times.reading.lexicon import Lexicon
    from agent_memory.times.reading.marks import Tags
    from agent_memory.times.reading.pieces import Kind

_TOKEN: Final = re.compile(
    r"(?=\S)(?:(?P<word>(?<!\w)[qh][1-4](?!\w)|[^\W\d_]{1,40}(?:['\u2019][^\W\d_]{1,3}(?!\w))?)"
    r"|(?P<mark>[^\w\s])"
    r"|(?P<iso>(?<!\d)(?<!\d[.:/-])(?:1[5-9]|20)\d\d(?P<sep>[-/.])(?:0?[1-9]|1[0-2])(?P=sep)(?:3[01]|[12]\d|0?[1-9])(?![\d]|[./]\d)"
    r"(?:T\d\d:?\d\d(?::?\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?)"
    r"|(?P<dmy>(?<![\w./=])(?P<a>\d{1,2})(?P<sep2>[-/.])(?P<b>\d{1,2})(?P=sep2)(?P<y>\d{4}|\d\d)(?![\w]|[./]\w))"
    r"|(?P<compact>(?<![\w./-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![\w/-]|\.\w))"
    r"|(?P<ym>(?<![\w./-])(?P<ym_y>(?:19|20)\d\d)[-/](?P<ym_m>0?[1-9]|1[0-2])(?![\w./-])"
    r"|(?<![\w./-])(?P<my_m>0?[1-9]|1[0-2])[-/](?P<my_y>(?:19|20)\d\d)(?![\w/-]|\.\w))"
    r"|(?P<clock>(?<![\w.:/])(?P<h>[01]?\d|2[0-4])(?:(?::(?P<mi>[0-5]\d)(?::[0-5]\d(?:[.,]\d{1,6})?)?)\s?(?P<ap>[ap]\.?m\.?|[ap](?![\w']))?"
    r"|(?:[.](?P<mi2>[0-5]\d))?(?:\s?\.?(?P<ap2>[ap]m|[ap]\.m\.)|(?P<ap3>[ap]))|(?P<uhr>h[0-5]\d))(?![\w:]|\.\d))"
    r"|(?P<md>(?<![\w./$:])(?P<md_a>\d{1,2})(?P<md_sep>[-/.])(?P<md_b>\d{1,2})(?![\w%:]|[./]\w))"
    r"|(?P<decade>(?<![\w./])(?:(?P<dec_c>1[5-9]|20)?(?P<dec>\d)0)(?:\s?'?s)(?!\w))"
    r"|(?P<part>(?<![\w./])(?P<part_y>(?:19|20)\d\d)[ /-]?(?P<part_of>[qh][1-4]|W(?P<week>[0-5]\d)(?:-[1-7])?)(?!\w))"
    r"|(?P<ordinal>(?<![\w./-])\d{1,2}(?:st|nd|rd|th|er|re|e|\u00ba|\u00aa)(?!\w))"
    r"|(?P<number>\d{1,12}(?:[.,:]\d{1,12}){0,8})"
    r"|(?P<other>\w{1,40}))|(?P<break>\n[ \t]*\n)",
    re.IGNORECASE,
)
_BLANK: Final = ("", " ")
_GLUE_BEFORE: Final = "_$@#\\=&{%<[`"
_GLUE_BEHIND: Final = frozenset("_@(=\\[`{")


def tokens(text: str, lexicon: Lexicon) -> list[Item]:
    """Return the tokens of a text, in order: white space is none, and a run of those without tags is one.

    Where spaces part words, a table of whole pieces tells what most of them are; only what has digits, or means more
    by what stands beside it, is read token by token.
    """
    if lexicon.is_unspaced:
        return each_token(text, lexicon)
    parts = [*PARTS.split(text), ""]  # two behind each word
    return lexicon.merged(_told(text, lexicon, parts, [*map(lexicon.pieces.__getitem__, parts)]), text)


def each_token(text: str, lexicon: Lexicon) -> list[Item]:
    """Return the same without the table."""
    found: list[Item] = []
    _carefully(text, lexicon, found, [len(text)], 0, is_open=True)
    return lexicon.merged(found, text)


def _told(text: str, lexicon: Lexicon, parts: list[str], kinds: list[Kind]) -> list[Item]:
    ends = [*accumulate(map(len, parts))]
    found: list[Item] = []
    done, is_open = 0, True  # how far it was read; whether a token without tags would be noted
    for at in [at for at, kind in enumerate(kinds) if kind]:
        kind, end = kinds[at], ends[at]
        start = end - len(parts[at])
        if start < done:
            continue
        if is_open and text[done:start].strip():
            found.append(Item(done, start, NONE))
            is_open = False
        if isinstance(kind, Between):
            if kind is CAREFULLY or (isinstance(kind, Number) and OF_DIGITS.match(text, end)):
                done, is_open = _carefully(text, lexicon, found, ends, at, is_open=is_open)
                continue
            is_open = _between(found, kind, start, is_open=is_open)
            done = end
        elif parts[at - 1] == " " == parts[at + 1] or not _is_code(text, start, end):
            found.append(Item(start, end, kind))
            done, is_open = end, True
            if _asks_plainly(parts, kinds, at, kind):
                done = ends[at + 2]
                found.append(Item(ends[at + 1], done, _behind(parts[at + 2], kind)))
                is_open = bool(found[-1].tags)
    if is_open and text[done:].strip():
        found.append(Item(done, len(text), NONE))
    return found


def _between(found: list[Item], kind: Between, start: int, *, is_open: bool) -> bool:
    """Take in what stands between two words, and return whether a token without tags would be noted behind it."""
    for offset, behind, tags in kind:
        if tags or is_open:
            found.append(Item(start + offset, start + behind, tags))
            is_open = bool(tags)
    return is_open


def _asks_plainly(parts: list[str], kinds: list[Kind], at: int, tags: Tags) -> bool:
    """Tell whether it matters what is behind a word, and that is but a space and a word that no lexicon has."""
    if not asks_behind(tags) or kinds[at + 1] or kinds[at + 2]:
        return False
    return parts[at + 1].isspace() and bool(parts[at + 2])


def _carefully(
    text: str, lexicon: Lexicon, found: list[Item], ends: list[int], at: int, *, is_open: bool
) -> tuple[int, bool]:
    """Read a piece, and as much behind it as belongs to it, token by token.

    Returns:
        Where it was read to, the end of a piece; and whether a token without tags would be noted there.
    """
    before = found[-1].tags if found and is_open else NONE
    limit = ends[at]
    for match in _TOKEN.finditer(text, ends[at - 1] if at else 0):
        begin, end = match.span()
        if begin >= limit and not asks_behind(before):
            break
        if end > limit:
            limit = ends[bisect_left(ends, end, at)]
        if lexicon.is_unspaced and match.lastgroup == "word" and not match[0].isascii():
            for item in lexicon.parted(match[0], begin):
                if item.tags or (found and found[-1].tags):
                    found.append(item)
            before, is_open = NONE, False
            continue
        tags = _tags(text, match, lexicon, before)
        if tags or is_open:
            found.append(Item(begin, end, tags))
        before, is_open = tags, bool(tags)
        if text[end:limit] in _BLANK and not asks_behind(before):
            break
    return limit, is_open


def _tags(text: str, match: re.Match[str], lexicon: Lexicon, before: Tags) -> Tags:
    """Return the tags of a token behind one with others."""
    kind = match.lastgroup
    if kind == "mark":
        return MARKS.get(match[0], NONE)
    if kind != "word":
        return DIGITS[kind](text, match)
    tags = lexicon.tags(match[0])
    if tags:
        return NONE if _is_code(text, *match.span()) else tags
    return _behind(match[0], before) if before else NONE


def _is_code(text: str, start: int, end: int) -> bool:
    """Tell whether a word is part of a name in code, or of an address."""
    is_member = start > 1 and text[start - 1] == "." and text[start - 2].isalpha()
    has_member = text[end : end + 1] == "." and text[end + 1 : end + 2].isalpha()
    is_glued = start > 0 and (text[start - 1] in _GLUE_BEFORE or text[start - 1].isdigit())
    return is_member or has_member or is_glued or text[end : end + 1] in _GLUE_BEHIND


def _behind(word: str, before: Tags) -> Tags:
    """Return the tags of a word that no lexicon has: a name behind what may be a first name, a noun behind a number."""
    if "YEAR" in before and word.endswith("s"):
        return NOUN
    if ("MONTH" in before or "SEASON" in before) and word[0].isupper() and word[-1].islower():
        return NAME
    return NONE


NOUN: Final[Tags] = {"NOT_BEHIND_YEAR": 0}
NAME: Final[Tags] = {"NAME": 0}


TAG_SETS: Final = (
    *(frozenset(number_tags(f"{value}")) for value in (*range(100), 1000, 2000, 3000)),
    *(frozenset(number_tags(f"{value:02}")) for value in range(10)),
    *(frozenset(tags) for tags in MARKS.values()),
    *(
        frozenset({tag})
        for tag in ("DATE", "DATE_MIXED", "DATE_DOTTED", "YEAR_MONTH", "CLOCK", "GLUED", "DECADE", "YEAR_PART")
    ),
    *(frozenset({"PAIR", tag}) for tag in ("SPREAD", "SLASHED", "DOTTED")),
    frozenset({"DAY", "ORDINAL", "ORDINAL_DIGITS"}),
    frozenset({"YEAR", "NUM"}),
    frozenset(NOUN),
    frozenset(NAME),
)
"""The sets of tags of tokens that are no words."""
