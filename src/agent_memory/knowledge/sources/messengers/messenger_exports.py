"""Exports of Slack, Telegram and Discord.

Words of other people, bots and forwarded messages have low trust. Only the name of `--me` is the user.
"""

from __future__ import annotations

import html
import posixpath
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import PERSON, UNKNOWN, ReceivedTurn, SkippedPart
from agent_memory.knowledge.intake.turns import FileConversation, clean_speaker, parse_moment, repair_text, to_mapping
from agent_memory.knowledge.sources.json_records import JsonRecord, iter_elements, read_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from agent_memory.knowledge.sources.import_parts import ImportPart
    from agent_memory.knowledge.sources.source_files import SourceFile, SourceTree

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


# -- Slack ------------------------------------------------------------------------------------------------------------


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


# -- Telegram ---------------------------------------------------------------------------------------------------------


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


# -- Discord ----------------------------------------------------------------------------------------------------------


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
