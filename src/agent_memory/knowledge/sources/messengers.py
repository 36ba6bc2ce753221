"""Chats of WhatsApp, Slack, Telegram and Discord.

Words of other people, bots and forwarded messages have low trust. Only the name of `--me` is the user.
"""

from __future__ import annotations

import hashlib
import html
import posixpath
import re
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.drafts import PERSON, UNKNOWN, ReceivedTurn, SkippedPart
from agent_memory.knowledge.intake.turns import FileConversation, clean_speaker, parse_moment, repair_text, to_mapping
from agent_memory.knowledge.sources.json_records import JsonRecord, iter_elements, read_list
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent_memory.knowledge.sources.source_files import ImportPart, SourceFile, SourceTree

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


MESSAGES: Final = "messages"
_SLACK_SUBTYPES: Final = frozenset({None, "me_message", "thread_broadcast", "file_share", "bot_message"})
"""Subtypes of Slack messages with words; others are notices."""
_DISCORD_TYPES: Final = frozenset({"Default", "Reply"})
_SLACK_TOKEN: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


class _PersonNames:
    """Names of the people in a chat.

    Args:
        me: Name of the user in the chat; without it, all are other people.
    """

    def __init__(self, me: str) -> None:
        self._me = me
        self._names: dict[str, None] = {}

    def make_turn(
        self, text: str, names: Iterable[Any], said_at: datetime | None, *, is_own: bool = True
    ) -> ReceivedTurn:
        """Return a turn whose speaker is the first name.

        Args:
            text: Words of the message.
            names: Names of one person, the shown one first.
            said_at: Time of the message.
            is_own: False for words of a bot, or of another author.
        """
        cleaned = [clean_speaker(name) for name in names if isinstance(name, str)]
        speaker = next(filter(None, cleaned), "")
        if is_own:
            self._names |= dict.fromkeys(filter(None, cleaned))
        if is_own and self._me and self._me in cleaned:
            return ReceivedTurn(text, "user", speaker, said_at)
        return ReceivedTurn(text, PERSON if is_own and speaker else UNKNOWN, speaker, said_at, trust="low")

    def check_me(self, name: str, known_names: Iterable[str] = ()) -> None:
        """Check that a person has the name of the user.

        Raises:
            ValidationError: No speaker has it (`unknown_speaker`).
        """
        if self._me and self._names and self._me not in self._names and self._me not in known_names:
            raise ValidationError(
                f"Nobody in {name} is called {self._me!r}.",
                code="unknown_speaker",
                recovery=f"Speakers: {', '.join(self._names)}.",
            )


def _build_talk(
    form: str, title: str, chat_id: object, turns: list[ReceivedTurn], first_id: object
) -> FileConversation:
    """Return the conversation of a chat, or of a part of it."""
    said_at = next((turn.said_at for turn in turns if turn.said_at), None)
    return FileConversation(repair_text(title), f"{form}:{chat_id}:{first_id}", turns, said_at, form)


def read_slack(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the conversation of one day of a channel."""
    users = {user_id: names for user_id, *names in _list_slack_users(file, tree)}
    people, turns, first_id = _PersonNames(tree.me), list[ReceivedTurn](), None
    for record in iter_elements(file):
        message = record.value
        if not isinstance(message, dict) or not isinstance(message.get("text"), str):
            yield SkippedPart(f"message {record.number}")
        elif message.get("type") == "message" and message.get("subtype") in _SLACK_SUBTYPES and message["text"].strip():
            first_id = first_id or message.get("ts")
            turns.append(_read_slack_message(message, users, people))
    people.check_me(file.name, chain.from_iterable(users.values()))
    channel = posixpath.basename(file.folder) or tree.name
    if turns:
        yield _build_talk("slack", f"#{channel} {posixpath.splitext(file.base_name)[0]}", channel, turns, first_id)


def _read_slack_message(
    message: Mapping[str, Any], users: Mapping[str, list[str]], people: _PersonNames
) -> ReceivedTurn:
    shown = to_mapping(message.get("user_profile"))
    user_id = str(message.get("user") or "")
    is_bot = bool(message.get("bot_id") or message.get("subtype") == "bot_message")
    names = [*users.get(user_id, ()), shown.get("display_name"), shown.get("real_name"), message.get("username")]
    said_at = parse_moment(message.get("ts"))
    return people.make_turn(_render_slack(message["text"], users), [*names, user_id], said_at, is_own=not is_bot)


def _list_slack_users(file: SourceFile, tree: SourceTree) -> Iterator[list[str]]:
    """Yield ID and names of each user that an export lists."""
    listed = tree.find_linked(file, "../users.json") or tree.find_linked(file, "users.json")
    for record in iter_elements(listed) if listed is not None else ():
        user = to_mapping(record.value)
        profile = to_mapping(user.get("profile"))
        names = [profile.get("display_name"), user.get("real_name"), profile.get("real_name"), user.get("name")]
        if isinstance(user.get("id"), str):
            yield [user["id"], *(name for name in names if isinstance(name, str) and name)]


def _render_slack(text: str, users: Mapping[str, list[str]]) -> str:
    """Return a text with names and links in place of Slack's marks."""

    def replace(token: re.Match[str]) -> str:
        sign, target, label = token[1], token[2], token[3] or ""
        if sign == "@":
            return "@" + (label or next(iter(users.get(target, ())), target))
        if sign:
            return sign.replace("!", "@") + (label or target)
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_SLACK_TOKEN.sub(replace, repair_text(text)))


def read_telegram(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the conversations of a chat, or of a full export."""
    people = _PersonNames(tree.me)
    fields, messages = read_list(file, MESSAGES)
    if fields:
        yield from _read_telegram_chat(fields, messages, people)
    else:
        for place, chat in _list_telegram_chats(file):
            if isinstance(chat, dict) and isinstance(chat.get(MESSAGES), list):
                yield from _read_telegram_chat(chat, _iter_numbered(chat[MESSAGES]), people, f" of {place}")
            else:
                yield SkippedPart(place)
    people.check_me(file.base_name)


def _list_telegram_chats(file: SourceFile) -> Iterator[tuple[str, Any]]:
    """Yield the chats of a full export with their places."""
    for record in iter_elements(file):
        lists = [to_mapping(to_mapping(record.value).get(key)).get("list") for key in ("chats", "left_chats")]
        chats = [chat for part in lists if isinstance(part, list) for chat in part]
        yield from ((f"chat {number}", chat) for number, chat in enumerate(chats, 1))
        if not chats:
            yield "the list of chats", None


def _iter_numbered(values: Iterable[Any]) -> Iterator[JsonRecord]:
    return (JsonRecord(number, value) for number, value in enumerate(values, 1))


def _read_telegram_chat(
    chat: Mapping[str, Any], messages: Iterable[JsonRecord], people: _PersonNames, place: str = ""
) -> Iterator[ImportPart]:
    turns, first_id = list[ReceivedTurn](), None
    for record in messages:
        message = record.value
        if not isinstance(message, dict) or "type" not in message:
            yield SkippedPart(f"message {record.number}{place}")
        elif message["type"] == "message" and (text := _render_telegram(message.get("text")).strip()):
            first_id = first_id or message.get("id")
            turns.append(_read_telegram_message(message, text, people))
    if turns:
        yield _build_talk("telegram", str(chat.get("name") or ""), chat.get("id"), turns, first_id)


def _read_telegram_message(message: Mapping[str, Any], text: str, people: _PersonNames) -> ReceivedTurn:
    """Return the turn of a message; forwarded words are of their author."""
    is_own = not any(key in message for key in ("forwarded_from", "saved_from", "via_bot"))
    speaker = message.get("from") if is_own else message.get("forwarded_from") or message.get("saved_from")
    said_at = parse_moment(message.get("date_unixtime")) or parse_moment(message.get("date"))
    return people.make_turn(text, [speaker], said_at, is_own=is_own)


def _render_telegram(text: Any) -> str:
    """Return the text of a message, with the address of a link."""
    if isinstance(text, list):
        return "".join(map(_render_telegram, text))
    if isinstance(text, dict):
        words, address = _render_telegram(text.get("text")), text.get("href")
        return f"{words} ({address})" if isinstance(address, str) and address not in {"", words} else words
    return repair_text(text) if isinstance(text, str) else ""


def read_discord(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the conversation of a channel."""
    people, turns, first_id = _PersonNames(tree.me), list[ReceivedTurn](), None
    fields, messages = read_list(file, MESSAGES)
    channel = fields.get("channel")
    if not isinstance(channel, dict):
        yield SkippedPart("the channel")
        return
    for record in messages:
        message = record.value
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            yield SkippedPart(f"message {record.number}")
        elif message.get("type") in _DISCORD_TYPES and message["content"].strip():
            first_id = first_id or message.get("id")
            turns.append(_read_discord_message(message, people))
    people.check_me(file.base_name)
    if turns:
        yield _build_talk("discord", f"#{channel.get('name')}", channel.get("id"), turns, first_id)


def _read_discord_message(message: Mapping[str, Any], people: _PersonNames) -> ReceivedTurn:
    author = to_mapping(message.get("author"))
    names = [author.get("nickname"), author.get("name")]
    said_at, is_own = parse_moment(message.get("timestamp")), author.get("isBot") is False or "isBot" not in author
    return people.make_turn(repair_text(message["content"]), names, said_at, is_own=is_own)
