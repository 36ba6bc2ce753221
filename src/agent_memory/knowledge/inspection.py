"""Concerns about knowledge for the doctor: stages, pages, speakers. Reads; changes nothing."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.files.concerns import Concern
from agent_memory.files.entries import describe_path_type, get_disk_size, get_path_type
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.intake.drafts import FORMAT
from agent_memory.knowledge.pages.page_files import MAX_BYTES, NO_PAGE, get_topic
from agent_memory.knowledge.pipeline.stages import ATTEMPTS, OF_MODEL, get_reason, is_quarantined
from agent_memory.models import RESOURCE, Episode, Resource, StageCheckpoint, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_memory.models import Record, StageFailure

TALKS_FILE: Final = RESOURCE.journal
MOST_TURNS: Final = 200_000
"""Records of turns that are read at most."""
_LOG_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
"""Ends of names of files whose roles earlier versions guessed."""
_SHOWN: Final = 10
_ADVICE: Final = (
    "Review them: `agent-memory knowledge episodes ID`. To correct one, run `agent-memory ingest --undo ID`, "
    "then ingest its file again."
)


def check_stages(records: Iterable[object], titles: Callable[[str], str] = str) -> Iterator[Concern]:
    """Yield concerns about failed records, retried or not, per step.

    Args:
        records: Records of the agent; only those of class `StageCheckpoint` count.
        titles: Returns the title of a record for its ID.
    """
    for mark in records:
        if not isinstance(mark, StageCheckpoint):
            continue
        failures = [failed for failed in mark.failures if failed.code not in OF_MODEL and not is_quarantined(failed)]
        quarantined = [failure for failure in mark.failures if is_quarantined(failure)]
        ended = [failure for failure in failures if failure.attempts >= ATTEMPTS]
        waiting = [failure for failure in failures if failure.attempts < ATTEMPTS]
        what = f"{mark.stage} of {mark.source_kind}s"
        if ended:
            yield Concern(
                "tasks_failed",
                f"{what}: {counted(len(ended), 'record')} failed {ATTEMPTS} times and will be tried again by a newer "
                "version alone; they are kept as they came in, and all others were worked on.",
                "Where a long text is missing, bring it back and change the record, or take the text in again.",
                details=few([f"{failed.id}: {failed.code}" for failed in ended]),
            )
        if waiting:
            sentence = f"{what}: {counted(len(waiting), 'record')} failed and will be tried again."
            yield Concern("tasks_waiting", sentence, details=few([f"{failed.id}: {failed.code}" for failed in waiting]))
        if quarantined:
            yield Concern(
                "tasks_quarantined",
                f"{what}: {counted(len(quarantined), 'record is', 'records are')} quarantined: reading the text ended "
                "the process twice, and a process of its own. It is stored and found by words; nothing is derived.",
                "`agent-memory ingest --retry ID` tries again, and so does each new version.",
                details=few([_describe(failure, titles) for failure in quarantined]),
            )


def _describe(failure: StageFailure, titles: Callable[[str], str]) -> str:
    """Return a line about a quarantined record."""
    since = f"{datetime.fromtimestamp(failure.at, UTC):%Y-%m-%d %H:%M}"
    return f"{failure.id} ({titles(failure.id)}) since {since}: {get_reason(failure)}"


def check_pages(folder: Path) -> Iterator[Concern]:
    """Yield concerns about the folder `topics` of an agent."""
    kind = get_path_type(folder, follow=True)
    if kind == "missing":
        return
    if kind != "folder":
        yield Concern(
            "topics_unusable",
            f"topics is {describe_path_type(kind)} instead of a folder, so no page is written. Everything else works.",
            "Move it away; the next background work rebuilds the pages.",
        )
        return
    names = sorted(path.name for path in folder.iterdir())
    pages = [name for name in names if get_topic(name) and not find_obstacle(folder / name)]
    aside = [name for name in names if NO_PAGE in name]
    odd = [name for name in names if name not in pages and name not in aside]
    if pages:
        yield Concern("topics", f"{counted(len(pages), 'file')} with pages.", size=get_disk_size(folder))
    if aside:
        sentence = f"{counted(len(aside), 'entry was', 'entries were')} no page and moved out of the place of one."
        remedy = "Look through them; nothing reads them, and they may be removed."
        yield Concern("topics_aside", sentence, remedy, details=few(aside))
    if odd:
        yield Concern(
            "topics_odd",
            f"{counted(len(odd), 'entry', 'entries')} in topics/ can be no page.",
            "Move them elsewhere: a page of that name takes their place.",
            details=few([f"{name}: {find_obstacle(folder / name) or 'not named as a page'}" for name in odd]),
        )


def find_obstacle(path: Path) -> str:
    """Return a reason against a page in an entry, or ""."""
    kind = get_path_type(path)
    if kind != "file":
        return describe_path_type(kind)
    if get_disk_size(path) > MAX_BYTES:
        return "larger than 4 MiB"
    return "" if os.access(path, os.R_OK) else "not readable"


def check_speakers(talks: Iterable[Record], turns: Iterable[Record]) -> Iterator[Concern]:
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
        yield Concern("speakers_guessed", sentence + limit, _ADVICE, details=_describe_talks(alone, logs))
    if mixed:
        sentence = f"{_count_turns(mixed)} the user's by an earlier version, which did not check parts of messages."
        yield Concern("speakers_unchecked", sentence + limit, _ADVICE, details=_describe_talks(mixed, logs))


def _is_unread_log(talk: Resource) -> bool:
    """Return True if an earlier version read this from a log."""
    is_import = talk.resource_type == "conversation" and talk.source.kind == "import"
    return is_import and FORMAT not in talk.metadata and talk.source.detail.lower().endswith(_LOG_SUFFIXES)


def _count_turns(counts: Mapping[str, int]) -> str:
    conversations, total = counted(len(counts), "imported conversation"), sum(counts.values())
    return counted(total, f"turn of {conversations} is called", f"turns of {conversations} are called")


def _describe_talks(counts: Mapping[str, int], logs: Mapping[str, Resource]) -> tuple[str, ...]:
    lines = [f"{talk_id} ({visible(logs[talk_id].source.detail)}): {count:,}" for talk_id, count in counts.items()]
    return (*lines[:_SHOWN], *([f"{len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []))
