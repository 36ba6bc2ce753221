"""What a look at the marks alone says of background work, for people. Pure: marks in, concerns out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted, few
from agent_memory.knowledge.pipeline.marks import ATTEMPTS
from agent_memory.knowledge.pipeline.quarantine import get_reason, is_quarantined
from agent_memory.knowledge.pipeline.stage import OF_MODEL
from agent_memory.models import StageCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_memory.models import StageFailure


def of_marks(records: Iterable[object], titles: Callable[[str], str] = str) -> Iterator[Concern]:
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
            yield Concern(
                "tasks_waiting",
                f"{what}: {counted(len(waiting), 'record')} failed and will be tried again.",
                details=few([f"{failed.id}: {failed.code}" for failed in waiting]),
            )
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
