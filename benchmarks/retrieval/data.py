"""Sets of memories and questions for the retrieval benchmark: LoCoMo conversations, or any set in JSON lines."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.forms import FORMS, NAME, OBSERVATIONS

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

MAX_CHARS: Final = 10_000  # what a memory may hold
_EVIDENCE: Final = re.compile(r"D\d+:\d+")
_SESSION: Final = re.compile(r"session_(\d+)")
_ANSWERABLE: Final = (1, 2, 3, 4)  # 5 is adversarial: it has no evidence to find
_LOST: Final = "lost"  # a key that no memory has
_UNDATED: Final = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SetItem:
    """One memory to store; `session` is empty when nothing says in which session it was made."""

    key: str
    text: str
    when: datetime
    session: str
    category: str = "note"


@dataclass(frozen=True)
class SetQuery:
    """One question.

    Attributes:
        text: Its words.
        gold: Keys of the memories that answer it; none when nothing does.
        category: As the set names it.
        now: When it is asked; None for the day after the last memory.
    """

    text: str
    gold: tuple[str, ...]
    category: str
    now: datetime | None = None


@dataclass
class QuestionGroup:
    """Memories of one agent and the questions asked of it.

    Attributes:
        name: Conversation or group.
        queries: Questions that a memory answers.
        unanswerable: Questions of which the set says that no memory answers them.
        skipped: Questions left out because none of their evidence is among the memories.
        cut: Memories shortened to what a memory may hold.
    """

    name: str
    items: list[SetItem] = field(default_factory=list)
    queries: list[SetQuery] = field(default_factory=list)
    unanswerable: list[SetQuery] = field(default_factory=list)
    skipped: int = 0
    cut: int = 0

    @property
    def now(self) -> datetime:
        """The day after the last session."""
        return max((item.when for item in self.items), default=_UNDATED) + timedelta(days=1)

    def add(self, key: str, text: str, when: datetime, session: str, category: str = "note") -> None:
        """Add a memory, cut to what one may hold."""
        self.cut += len(text) > MAX_CHARS
        self.items.append(SetItem(key, text[:MAX_CHARS], when, session, category))

    def ask(self, text: str, gold: Collection[str], category: str, now: datetime | None = None) -> None:
        """Add a question, unless none of its evidence is here."""
        known = {item.key for item in self.items}
        found = tuple(dict.fromkeys(key for key in gold if key in known))
        query = SetQuery(text, found, category, now)
        if found:
            self.queries.append(query)
        elif gold:
            self.skipped += 1
        else:
            self.unanswerable.append(query)


def load_locomo(path: Path, form: str = NAME) -> list[QuestionGroup]:
    """Read LoCoMo conversations; a memory is one turn with its image's caption.

    Args:
        path: The data set's JSON file.
        form: How a turn is written, one of `FORMS`; or `OBSERVATIONS`, a memory each.
    """
    return [_conversation(conversation, form) for conversation in json.loads(path.read_text("utf-8"))]


def _conversation(data: dict[str, Any], form: str) -> QuestionGroup:
    group = QuestionGroup(data["sample_id"])
    drawn: dict[str, list[str]] = defaultdict(list)  # evidence -> keys of the facts drawn from it
    for number in sorted(int(match[1]) for key in data["conversation"] if (match := _SESSION.fullmatch(key))):
        if form == OBSERVATIONS:
            _add_facts(group, data, number, drawn)
        else:
            _add_turns(group, data, number, form)
    for question in data["qa"]:
        if question["category"] in _ANSWERABLE:
            gold = [key for text in question["evidence"] for key in _EVIDENCE.findall(text)]
            if form == OBSERVATIONS:
                gold = [key for each in gold for key in drawn[each]]
            group.ask(question["question"], gold or [_LOST], str(question["category"]))
    return group


def _add_turns(group: QuestionGroup, data: dict[str, Any], number: int, form: str) -> None:
    session, when = _about(group, data, number)
    for turn in data["conversation"][f"session_{number}"]:
        group.add(turn["dia_id"], _turn(turn, when, form), when, session)


def _add_facts(group: QuestionGroup, data: dict[str, Any], number: int, drawn: dict[str, list[str]]) -> None:
    session, when = _about(group, data, number)
    told = data.get("observation", {}).get(f"session_{number}_observation", {})
    for fact, evidence in (pair for of_one in told.values() for pair in of_one):
        key = f"O{number}:{len(group.items)}"
        group.add(key, fact, when, session)
        for each in _EVIDENCE.findall(str(evidence)):
            drawn[each].append(key)


def _about(group: QuestionGroup, data: dict[str, Any], number: int) -> tuple[str, datetime]:
    return f"{group.name}-session-{number}", _moment(data["conversation"][f"session_{number}_date_time"])


def _turn(turn: dict[str, Any], when: datetime, form: str) -> str:
    caption = turn.get("blip_caption")
    return FORMS[form](turn["speaker"], turn["text"] + (f" [{caption}]" if caption else ""), when)


def load_jsonl(path: Path, form: str = NAME) -> list[QuestionGroup]:
    """Read a set of JSON lines.

    Each line is `{"type": "memory", "id", "text", "group", "date"?, "session"?, "speaker"?, "category"?}` or
    `{"type": "query", "text", "gold": [ids], "group", "category"?, "now"?}`.

    Each group is an agent of its own; where no session is given, which one made a memory is not known. A memory with a
    speaker is a turn of a talk, written in `form`. A question whose `gold` is empty has no answer in the set.

    Raises:
        ValueError: A line is of neither type, or a date cannot be read; names the line.
    """
    groups: dict[str, QuestionGroup] = {}
    queries: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = json.loads(line)
            if row.get("type") == "memory":
                try:
                    _add(groups, row, form)
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: {error}") from None
            elif row.get("type") == "query":
                queries.append(row)
            else:
                raise ValueError(f"{path}, line {number}: type is neither memory nor query")
    for row in queries:
        name = str(row.get("group", ""))
        gold = [str(key) for key in row.get("gold", ())]
        now = _moment(str(row["now"])) if row.get("now") else None
        group = groups.setdefault(name, QuestionGroup(name))
        group.ask(row["text"], gold, str(row.get("category", "all")), now)
    return list(groups.values())


def _add(groups: dict[str, QuestionGroup], row: dict[str, Any], form: str) -> None:
    name, date, speaker = str(row.get("group", "")), row.get("date"), row.get("speaker")
    when = _moment(str(date)) if date else _UNDATED
    text = FORMS[form](speaker, row["text"], when) if speaker else row["text"]
    group = groups.setdefault(name, QuestionGroup(name))
    group.add(str(row["id"]), text, when, str(row.get("session", "")), str(row.get("category", "note")))


def has_speakers(path: Path) -> bool:
    """Return True if a set of JSON lines has turns of speakers."""
    with path.open(encoding="utf-8") as lines:
        return any(json.loads(line).get("speaker") for line in lines if line.strip())


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
