"""Check imported conversations for turns that an earlier version called the user's without reading their role."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.doctor.reading import Reading
from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted
from agent_memory.knowledge.intake.drafting import FORMAT
from agent_memory.models import EPISODE, RESOURCE, visible
from agent_memory.service.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.models import Resource

_LOG_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
"""Ends of names of files whose roles earlier versions guessed."""
MOST_TURNS: Final = 200_000
_SHOWN: Final = 10


def examine_speakers(case: Case) -> Iterator[Concern]:
    """Yield imported conversations whose speakers no reader of formats has decided; changes nothing."""
    if case.path != case.folder.path / EPISODE.journal:
        return
    unread = _find_unread(case)
    users, everybody, seen = Counter[str](), Counter[str](), 0
    for states, _ in case.journal.portions() if unread else ():
        if seen > MOST_TURNS:
            break
        for turn in (turn for state in states for turn in state.records.values()):
            seen += 1
            if (talk := turn.conversation or "") in unread:
                everybody[talk] += 1
                users[talk] += turn.role == "user" and not turn.speaker
    alone = {talk: count for talk, count in users.items() if count == everybody[talk]}
    mixed = {talk: count for talk, count in users.items() if count and talk not in alone}
    limit = f" Only the first {MOST_TURNS:,} turns were checked." if seen > MOST_TURNS else ""
    advice = (
        "Review them: `agent-memory episodes ID`. To correct one, run `agent-memory ingest --undo ID`, then ingest its "
        "file again."
    )
    if alone:
        sentence = f"{_count_turns(alone)} the user's, and nobody else speaks there: an earlier version guessed that."
        yield Concern("speakers_guessed", sentence + limit, advice, details=_describe(alone, unread))
    if mixed:
        sentence = f"{_count_turns(mixed)} the user's by an earlier version, which did not check parts of messages."
        yield Concern("speakers_unchecked", sentence + limit, advice, details=_describe(mixed, unread))


def _find_unread(case: Case) -> dict[str, Resource]:
    """Return the conversations that earlier versions read from log files, by ID."""
    path = case.folder.path / RESOURCE.journal
    kinds = tuple(kind for kind in KINDS if kind.journal == RESOURCE.journal)
    return {
        record.id: record
        for record in Reading(path, case.folder.agent_id, kinds).load().values()
        if record.id.startswith(RESOURCE.prefix)
        and record.resource_type == "conversation"
        and record.source.kind == "import"
        and FORMAT not in record.metadata
        and record.source.detail.lower().endswith(_LOG_SUFFIXES)
    }


def _count_turns(talks: dict[str, int]) -> str:
    turns = counted(sum(talks.values()), "turn")
    verb = "is" if sum(talks.values()) == 1 else "are"
    return f"{turns} of {counted(len(talks), 'imported conversation')} {verb} called"


def _describe(talks: dict[str, int], resources: dict[str, Resource]) -> tuple[str, ...]:
    lines = [f"{talk} ({visible(resources[talk].source.detail)}): {count:,}" for talk, count in talks.items()]
    return (*lines[:_SHOWN], *([f"{len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []))
