"""How far each step is, as one record a step: read, moved on after a portion, begun anew by a new version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.pipeline.quarantine import is_quarantined
from agent_memory.knowledge.pipeline.stage import OF_MODEL
from agent_memory.models import MARK, StageCheckpoint, StageFailure, derived_id
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from agent_memory.knowledge.pipeline.stage import Marked, Stage
    from agent_memory.store.record_storage import RecordStorage

ATTEMPTS: Final = 5
"""How often a record is tried."""
_FIRST_PAUSE: Final = 60
"""Seconds until a record that failed is tried again; the pause doubles each time."""
MOST_FAILURES: Final = 500
"""With more of them a step is broken rather than its records: it stops."""
_MOST_NEVER: Final = 20_000


class Marks:
    """The marks of one agent.

    Args:
        storage: Where they are.
    """

    def __init__(self, storage: RecordStorage[StageCheckpoint]) -> None:
        self._storage = storage

    async def of(self, stage: Marked) -> StageCheckpoint:
        """Return the mark of a stage, a new one before its first run."""
        return await self.of_name(stage.name, stage.source, stage.version)

    async def of_name(self, name: str, source: str, version: int = 1) -> StageCheckpoint:
        """Return the mark of a stage by the names of the stage and its source."""
        own = derived_id(MARK.prefix, name, source)
        known = await self._storage.get(own)
        agent_id = self._storage.agent_id
        return known or StageCheckpoint(agent_id=agent_id, id=own, stage=name, version=version, source_kind=source)

    async def keep(self, mark: StageCheckpoint) -> None:
        """Put a mark in the place of the one with its id; one that says the same is not written."""
        known = await self._storage.get(mark.id)
        if known is None:
            await self._storage.store(mark)
        elif known != mark:
            fields = ("version", "through", "failures", "never")
            changes = {name: getattr(mark, name) for name in fields if getattr(known, name) != getattr(mark, name)}
            await self._storage.update(mark.id, redact_fields(MARK, changes))


def begun(mark: StageCheckpoint, stage: Stage, last: int) -> StageCheckpoint:
    """Return the mark with which a run begins: anew for a new version, and where the journal is an older copy.

    Earlier versions noted records for a language model, which have the result of rules; these are left out.

    Args:
        mark: As it stands.
        stage: The step.
        last: Number of the last change of its source.
    """
    if mark.version < stage.version or mark.through > last:
        return mark.model_copy(update={"version": max(mark.version, stage.version), "through": 0, "failures": []})
    failures = [failure for failure in mark.failures if failure.code not in OF_MODEL]
    return mark.model_copy(update={"failures": failures}) if len(failures) < len(mark.failures) else mark


def moved(
    mark: StageCheckpoint, through: int, failed: Mapping[str, str], tried: Collection[str], now: datetime
) -> StageCheckpoint:
    """Return a mark after some records were tried.

    Args:
        mark: Before that.
        through: Up to which change all is done now.
        failed: Why some of them failed, by id.
        tried: All of them.
        now: The present.
    """
    before = {failure.id: failure for failure in mark.failures}
    failures = [failure for failure in mark.failures if failure.id not in tried]
    for record_id, code in failed.items():
        attempts = before[record_id].attempts + 1 if record_id in before else 1
        failure = StageFailure(id=record_id, attempts=attempts, code=code[:64], at=int(now.timestamp()))
        if is_quarantined(failure):
            failure = failure.model_copy(update={"attempts": ATTEMPTS})  # an older version of this package reads that
        failures.append(failure)
    return mark.model_copy(update={"through": max(mark.through, through), "failures": failures})


def with_never(mark: StageCheckpoint, gone: Collection[str]) -> StageCheckpoint:
    """Return a mark that knows what was forgotten of what its step made."""
    new = sorted(set(gone) - set(mark.never))
    return mark.model_copy(update={"never": [*mark.never, *new][-_MOST_NEVER:]}) if new else mark


def without_never(mark: StageCheckpoint, restored: Collection[str]) -> StageCheckpoint:
    """Return a mark that does not know restored records as forgotten."""
    return mark.model_copy(update={"never": [one for one in mark.never if one not in restored]})


def is_to_be_tried(failure: StageFailure, now: datetime) -> bool:
    """Return True if a failed record is due again."""
    pause = _FIRST_PAUSE * 2 ** (failure.attempts - 1)
    return failure.attempts < ATTEMPTS and now.timestamp() >= failure.at + pause
