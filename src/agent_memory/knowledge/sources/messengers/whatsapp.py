"""Chats that WhatsApp exports as text, on any platform and locale."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.drafts import PERSON, ReceivedTurn
from agent_memory.knowledge.intake.turns import FileConversation, clean_speaker, repair_text
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DateOrder = Literal["dmy", "mdy"]
_NOTICE: Final = "\u200e"
"""Mark before a notice of the program, such as an omitted picture."""
_BEFORE_NOON: Final = ("am", "πμ", "قظ", "ص", "पूर्वाह्न", "मपू", "pg", "sa", "de", "上午", "凌晨", "早上", "午前", "오전")
_AFTER_NOON: Final = ("pm", "μμ", "بظ", "م", "अपराह्न", "मउ", "ptg", "ch", "du", "下午", "中午", "晚上", "午後", "오후")
"""Marks of the halves of a day in the locales of Unicode, without dots."""
_DOTTED: Final = r"\.?\s?"
_HALF: Final = "|".join(_DOTTED.join(map(re.escape, mark)) for mark in _BEFORE_NOON + _AFTER_NOON)
_TURN: Final = r"[\u200e\u200f]?"
"""Invisible mark of the direction of writing."""
_STAMP: Final = re.compile(
    rf"{_TURN}(?P<open>\[)?(?P<first>\d{{1,4}}){_TURN}(?P<mark>[./-])\s?(?P<second>\d{{1,2}}){_TURN}[./-]\s?"
    rf"(?P<third>\d{{1,4}})\.?(?:\s(?:à|às|г\.|kl\.|klo|um))?[,،]?\s+"  # noqa: RUF001 - Bulgarian
    rf"(?P<before>{_HALF})?\s?(?P<hour>\d{{1,2}})(?:[:.]|\sh\s)(?P<minute>\d\d)(?:[:.](?P<seconds>\d\d))?"
    rf"(?:\s?(?P<half>{_HALF})\.?|\s(?:Uhr|ч\.))?(?(open)\]\s|\s-\s)(?P<rest>.*)",
    re.IGNORECASE,
)
"""Date, time and the rest of a line: `3/2/26, 9:15 AM - Ines: words`, or with brackets."""
_TIME_FIRST: Final = re.compile(r"^(\[?)(\d{1,2}:\d\d(?::\d\d)?),? (\d{1,2}[./-]\d{1,2}[./-]\d{2,4})(?=\]| -)")
_SPEAKER: Final = re.compile(r'(?P<name>[^:"“”]{1,100}): ?(?P<words>.*)')
_PLACEHOLDER: Final = re.compile(r"<[^<>]+>")
_EDITED: Final = re.compile(r"\s{0,4}\u200e<[^<>]+>$")
_LEAST_TURNS: Final = 2
_SEEN_LINES: Final = 40
_MONTHS: Final = 12
_BUDDHIST_YEARS: Final = 543
"""Years that the calendar of Thailand is ahead."""
_FIRST_YEAR: Final = 1900


@dataclass(slots=True)
class _StampedLine:
    """Line with a stamp, with its continuation lines."""

    match: re.Match[str]
    words: str
    speaker: str

    @property
    def date(self) -> tuple[int, int, int]:
        """The three numbers of the date, as written."""
        return int(self.match["first"]), int(self.match["second"]), int(self.match["third"])


def is_whatsapp(text: str) -> bool:
    """Return True if a text begins like an exported chat."""
    lines = [line for line in islice(text.split("\n"), _SEEN_LINES) if line.strip()]
    stamped = [match for line in lines if (match := _match_stamp(line)) and _SPEAKER.fullmatch(match["rest"])]
    return bool(lines) and _match_stamp(lines[0]) is not None and len(stamped) >= _LEAST_TURNS


def _match_stamp(line: str) -> re.Match[str] | None:
    """Return the stamp of a line, also with its time first."""
    return _STAMP.match(_TIME_FIRST.sub(r"\1\3, \2", line.rstrip("\r")))


def read_whatsapp(text: str, name: str, *, me: str = "", order: DateOrder | None = None) -> FileConversation:
    """Return the conversation of an exported chat, without notices and pictures.

    Args:
        text: Whole text of the chat.
        name: Title of the conversation.
        me: Name of the user in the chat; without it nobody is the user.
        order: Order of day and month, or None to detect it.

    Raises:
        ValidationError: `unknown_speaker`: nobody has the user's name; `ambiguous_dates`: the order of day and month
            is not certain.
    """
    lines = list(_list_lines(repair_text(text)))
    speakers = list(dict.fromkeys(line.speaker for line in lines))
    if me and me not in speakers:
        raise ValidationError(
            f"Nobody in {name} is called {me!r}.", code="unknown_speaker", recovery=f"Speakers: {', '.join(speakers)}."
        )
    found_order = order or _find_order(lines)
    if found_order is None and lines:
        raise ValidationError(
            f"The order of day and month in {name} is not certain.",
            code="ambiguous_dates",
            recovery="Add --dates dmy or --dates mdy.",
        )
    turns = [_make_turn(line, found_order, is_user=line.speaker == me) for line in lines]
    note = "" if order else _describe_order(lines, found_order)
    if unread := sum(turn.said_at is None for turn in turns):
        note = f"the times of {counted(unread, 'message')} could not be read"
    begun = "\n".join((lines[0].match[0], lines[0].speaker)) if lines else ""
    key = hashlib.sha256(begun.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    said_at = next((turn.said_at for turn in turns if turn.said_at), None)
    return FileConversation(name, f"whatsapp:{key}", turns, said_at, "whatsapp", note=note)


def _make_turn(line: _StampedLine, order: DateOrder | None, *, is_user: bool) -> ReceivedTurn:
    """Return a turn; the words of other people have low trust."""
    said_at = _read_time(line, order)
    if is_user:
        return ReceivedTurn(line.words, "user", line.speaker, said_at)
    return ReceivedTurn(line.words, PERSON, line.speaker, said_at, trust="low")


def _list_lines(text: str) -> Iterator[_StampedLine]:
    """Yield the messages of people, each with all its lines."""
    current: _StampedLine | None = None
    for line in text.split("\n"):
        match = _match_stamp(line)
        if match is None:
            if current is not None:
                current.words += f"\n{line.rstrip()}"
            continue
        if current is not None and _is_said(current):
            yield current
        spoken = _SPEAKER.fullmatch(match["rest"])
        speaker = clean_speaker(spoken["name"].strip("\u200e\u200f\u202a\u202c ~")) if spoken else ""
        current = _StampedLine(match, spoken["words"] if spoken else "", speaker)
    if current is not None and _is_said(current):
        yield current


def _is_said(line: _StampedLine) -> bool:
    """Return True if a person said it; remove marks of edits."""
    is_notice = line.words.startswith(_NOTICE)
    line.words = _EDITED.sub("", line.words).strip()
    return bool(line.speaker and line.words) and not is_notice and not _PLACEHOLDER.fullmatch(line.words)


def _find_order(lines: Sequence[_StampedLine]) -> DateOrder | None:
    """Return the order of day and month, None if not certain."""
    dates = [line.date for line in lines]
    if any(first > _MONTHS for first, _, _ in dates) or any(line.match["mark"] != "/" for line in lines):
        return "dmy"  # also with the year first, which needs no order
    if any(second > _MONTHS for _, second, _ in dates) or all(map(_is_american, lines)):
        return "mdy"
    orders: tuple[DateOrder, DateOrder] = ("dmy", "mdy")
    rising = [order for order in orders if _is_rising([_read_time(line, order) for line in lines])]
    return rising[0] if len(rising) == 1 else None


def _describe_order(lines: Sequence[_StampedLine], order: DateOrder | None) -> str:
    """Return a note on the reading of the first date, or ""."""
    is_certain = any(max(line.date[:2]) > _MONTHS or line.match["mark"] == "." for line in lines)
    said_at = None if is_certain or not lines else _read_time(lines[0], order)
    flipped: DateOrder = "dmy" if order == "mdy" else "mdy"
    flipped_at = _read_time(lines[0], flipped) if said_at else None
    if said_at is None or flipped_at is None or said_at == flipped_at:
        return ""
    date = f"{lines[0].match['first']}{lines[0].match['mark']}{lines[0].match['second']}"
    return f"{date} was read as {said_at:%-d %B}; add --dates {flipped} for {flipped_at:%-d %B}"


def _is_american(line: _StampedLine) -> bool:
    """Return True for `3/2/26, 9:15 AM`, which only American English has."""
    date = [line.match[name] for name in ("first", "second", "third")]
    is_short = not any(part.startswith("0") for part in date[:2]) and len(date[2]) == len("26")
    return is_short and line.match["half"] in {"AM", "PM"}


def _is_rising(times: Sequence[datetime | None]) -> bool:
    certain = [time for time in times if time is not None]
    return len(certain) == len(times) and all(earlier <= later for earlier, later in pairwise(certain))


def _clean_half(mark: str) -> str:
    """Return the mark of half a day without dots and spaces."""
    return "".join(mark.replace(".", "").split()).lower()


def _read_time(line: _StampedLine, order: DateOrder | None) -> datetime | None:
    """Return the local time of a line, None for an impossible day."""
    first, second, third = line.date
    year, month, day = (first, second, third) if len(line.match["first"]) == len("2026") else (third, second, first)
    if order == "mdy" and year == third:
        month, day = first, second
    half = line.match["half"] or line.match["before"]
    hour = int(line.match["hour"])
    if half:
        hour = hour % 12 + 12 * (_clean_half(half) in _AFTER_NOON)
    year += 2000 if len(str(year)) <= len("26") else 0
    year -= _BUDDHIST_YEARS if year > utc_now().year + 1 else 0
    if year < _FIRST_YEAR:  # another calendar
        return None
    try:
        return datetime(year, month, day, hour, int(line.match["minute"]), int(line.match["seconds"] or 0))  # noqa: DTZ001 - the reader's zone is added later
    except ValueError:
        return None
