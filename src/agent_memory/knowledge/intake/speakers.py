"""Find imported conversations with guessed speakers."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.drafting import FORMAT
from agent_memory.models import RESOURCE, Episode, Resource, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_memory.models import Record

TALKS_FILE: Final = RESOURCE.journal
MOST_TURNS: Final = 200_000
"""Records of turns that are read at most."""
_LOG_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
"""Ends of names of files whose roles earlier versions guessed."""
_SHOWN: Final = 10
_ADVICE: Final = (
    "Review them: `agent-memory episodes ID`. To correct one, run `agent-memory ingest --undo ID`, then ingest its "
    "file again."
)


def of_speakers(talks: Iterable[Record], turns: Iterable[Record]) -> Iterator[Concern]:
    """Yield concerns about turns with a guessed speaker."""
    logs = {talk.id: talk for talk in talks if isinstance(talk, Resource) and _is_unread_log(talk)}
    if not logs:
        return
    users, everybody, seen = Counter[str](), Counter[str](), 0
    for turn in islice(turns, MOST_TURNS):
        seen += 1
        if isinstance(turn, Episode) and (talk_id := turn.conversation or "") in logs:
            everybody[talk_id] += 1
            users[talk_id] += turn.role == "user" and not turn.speaker
    alone = {talk_id: count for talk_id, count in users.items() if count == everybody[talk_id]}
    mixed = {talk_id: count for talk_id, count in users.items() if count and talk_id not in alone}
    limit = f" The check stopped after {counted(seen, 'turn')}." if seen == MOST_TURNS else ""
    if alone:
        sentence = (
            f"{_count_turns(alone)} the user's, without an answer of anyone else: an earlier version guessed that."
        )
        yield Concern("speakers_guessed", sentence + limit, _ADVICE, details=_describe(alone, logs))
    if mixed:
        sentence = f"{_count_turns(mixed)} the user's by an earlier version, which did not check parts of messages."
        yield Concern("speakers_unchecked", sentence + limit, _ADVICE, details=_describe(mixed, logs))


def _is_unread_log(talk: Resource) -> bool:
    """Return True if an earlier version read this from a log."""
    is_import = talk.resource_type == "conversation" and talk.source.kind == "import"
    return is_import and FORMAT not in talk.metadata and talk.source.detail.lower().endswith(_LOG_SUFFIXES)


def _count_turns(counts: Mapping[str, int]) -> str:
    conversations, total = counted(len(counts), "imported conversation"), sum(counts.values())
    return counted(total, f"turn of {conversations} is called", f"turns of {conversations} are called")


def _describe(counts: Mapping[str, int], logs: Mapping[str, Resource]) -> tuple[str, ...]:
    lines = [f"{talk_id} ({visible(logs[talk_id].source.detail)}): {count:,}" for talk_id, count in counts.items()]
    return (*lines[:_SHOWN], *([f"{len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []))
