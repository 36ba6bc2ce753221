"""Sets of memories and questions for the retrieval benchmark: LoCoMo conversations, or any set in JSON lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

MAX_CHARS: Final = 10_000  # what a memory may hold
_EVIDENCE: Final = re.compile(r"D\d+:\d+")
_SESSION: Final = re.compile(r"session_(\d+)")
_ANSWERABLE: Final = (1, 2, 3, 4)  # 5 is adversarial: it has no evidence to find
_UNDATED: Final = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Item:
    """One memory to store; `session` is empty when nothing says in which session it was made."""

    key: str
    text: str
    when: datetime
    session: str


@dataclass(frozen=True)
class Query:
    """One question and the keys of the memories that answer it."""

    text: str
    gold: tuple[str, ...]
    category: str


@dataclass
class Group:
    """Memories of one agent and the questions asked of it.

    Attributes:
        name: Conversation or group.
        skipped: Questions left out because none of their evidence is among the memories.
        cut: Memories shortened to what a memory may hold.
    """

    name: str
    items: list[Item] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    skipped: int = 0
    cut: int = 0

    @property
    def now(self) -> datetime:
        """The day after the last session."""
        return max((item.when for item in self.items), default=_UNDATED) + timedelta(days=1)

    def add(self, key: str, text: str, when: datetime, session: str) -> None:
        """Add a memory, cut to what one may hold."""
        self.cut += len(text) > MAX_CHARS
        self.items.append(Item(key, text[:MAX_CHARS], when, session))

    def ask(self, text: str, gold: Collection[str], category: str) -> None:
        """Add a question, unless none of its evidence is here."""
        known = {item.key for item in self.items}
        found = tuple(dict.fromkeys(key for key in gold if key in known))
        if found:
            self.queries.append(Query(text, found, category))
        else:
            self.skipped += 1


def load_locomo(path: Path, wanted: Collection[str], unit: Literal["turn", "session"]) -> list[Group]:
    """Read LoCoMo conversations.

    Args:
        path: The data set's JSON file.
        wanted: Names such as `conv-26`; empty takes all.
        unit: `turn`: a memory is `Speaker: text [image caption]`. `session`: all turns of a session, one a line.

    Raises:
        ValueError: A wanted conversation is not in the file.
    """
    conversations = json.loads(path.read_text("utf-8"))
    names = [conversation["sample_id"] for conversation in conversations]
    unknown = set(wanted) - set(names)
    if unknown:
        raise ValueError(f"no conversation {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [conversation for conversation in conversations if not wanted or conversation["sample_id"] in wanted]
    return [_conversation(conversation, unit) for conversation in chosen]


def _conversation(data: dict[str, Any], unit: Literal["turn", "session"]) -> Group:
    group = Group(data["sample_id"])
    talk = data["conversation"]
    numbers = sorted(int(match[1]) for key in talk if (match := _SESSION.fullmatch(key)))
    for number in numbers:
        session = f"{group.name}-session-{number}"
        when = _moment(talk[f"session_{number}_date_time"])
        turns = [(turn["dia_id"], _turn(turn)) for turn in talk[f"session_{number}"]]
        if unit == "turn":
            for key, text in turns:
                group.add(key, text, when, session)
        elif turns:
            group.add(f"D{number}", "\n".join(text for _, text in turns), when, session)
    for question in data["qa"]:
        if question["category"] not in _ANSWERABLE:
            continue
        evidence = [key for text in question["evidence"] for key in _EVIDENCE.findall(text)]
        gold = evidence if unit == "turn" else [key.partition(":")[0] for key in evidence]
        group.ask(question["question"], gold, str(question["category"]))
    return group


def _turn(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [{caption}]" if caption else "")


def load_jsonl(path: Path) -> list[Group]:
    """Read a set of JSON lines.

    Each line is `{"type": "memory", "id", "text", "group", "date"?}` or
    `{"type": "query", "text", "gold": [ids], "group", "category"?}`.

    Each group is an agent of its own; which session made a memory is not known.

    Raises:
        ValueError: A line is of neither type, or a date cannot be read; names the line.
    """
    groups: dict[str, Group] = {}
    queries: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = json.loads(line)
            name = str(row.get("group", ""))
            if row.get("type") == "memory":
                date = row.get("date")
                try:
                    when = _moment(str(date)) if date else _UNDATED
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: {error}") from None
                groups.setdefault(name, Group(name)).add(str(row["id"]), row["text"], when, session="")
            elif row.get("type") == "query":
                queries.append(row)
            else:
                raise ValueError(f"{path}, line {number}: type is neither memory nor query")
    for row in queries:
        name = str(row.get("group", ""))
        gold = [str(key) for key in row["gold"]]
        groups.setdefault(name, Group(name)).ask(row["text"], gold, str(row.get("category", "all")))
    return list(groups.values())


def _moment(text: str) -> datetime:
    """Read `1:56 pm on 8 May, 2023`, an ISO date, or an ISO date and time; without a zone it is UTC."""
    for form in ("%I:%M %p on %d %B, %Y", "%d %B, %Y", "%d %B %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d"):
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is not a date this benchmark can read") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
