"""Stages of background work, their checkpoints, and quarantined records."""

from __future__ import annotations

import asyncio
import functools
import re
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.models import MARK, StageCheckpoint, StageFailure, derived_id
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from agent_memory.store.record_storage import RecordStorage

LEAST_DEATHS: Final = 2
"""Deaths of the process in which a record was current, and from which on it is read alone."""
MOST_DEATHS: Final = 10
"""Deaths from which on a record is quarantined though its reader ends well alone: something behind the reader kills."""
_TITLE_CHARS: Final = 60
_CODE: Final = re.compile(r"quarantined (\S{1,32}) (\S{1,24})")
MODEL_SILENT: Final = "model_silent"
"""Code of a record on which a language model gave no answer in time, or raised."""
RECORD_ERRORS: Final = frozenset({"blob_missing", "blob_damaged"})
"""Codes of storage errors that are about one record, rather than about the disk."""
MODEL_UNREADABLE: Final = "model_unreadable"
"""Code of a record on which a language model gave an answer that cannot be read."""
OF_MODEL: Final = frozenset({MODEL_SILENT, MODEL_UNREADABLE})
ATTEMPTS: Final = 5
"""How often a record is tried."""
_FIRST_PAUSE: Final = 60
"""Seconds until a record that failed is tried again; the pause doubles each time."""
MOST_FAILURES: Final = 500
"""With more of them a step is broken rather than its records: it stops."""
_MOST_NEVER: Final = 20_000


@dataclass(frozen=True, slots=True)
class QuarantinedRecord:
    """A record from which nothing is derived.

    Attributes:
        id: ID of the record.
        title: What it is called, or how it begins.
        since: When it was quarantined.
        reason: Why, in one word, as in `ReaderDiedError`.
    """

    id: str
    title: str
    since: datetime
    reason: str


@functools.cache
def get_version() -> str:
    """Return the version of this package, as one word."""
    try:
        return metadata.version("amplifier-bundle-agent-memory")[:32]
    except metadata.PackageNotFoundError:
        return "unknown"


def get_title(record: object) -> str:
    """Return the title of a record, or its first words."""
    text = getattr(record, "title", "") or getattr(record, "content", "")
    return " ".join(str(text).split())[:_TITLE_CHARS]


def make_code(reason: str) -> str:
    """Return the code of a quarantine, with the version."""
    return f"quarantined {get_version()} {reason[:24]}"


def is_quarantined(failure: StageFailure) -> bool:
    """Return True if a failure quarantines its record."""
    return _CODE.fullmatch(failure.code) is not None


def is_of_older_version(failure: StageFailure) -> bool:
    """Return True if another version quarantined a record."""
    match = _CODE.fullmatch(failure.code)
    return match is not None and match[1] != get_version()


def get_reason(failure: StageFailure) -> str:
    """Return the reason of a quarantine, in one word."""
    match = _CODE.fullmatch(failure.code)
    return match[2] if match else failure.code


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that a step is to work on.

    Attributes:
        records: Records to work on, in the order in which they last changed.
        before: The few that changed just before them, as context; nothing is made of these.
        never: IDs of what the step made and a user forgot since: not to be made again.
        run: Runs a function that reads a text, off the event loop: called with it and its arguments.
    """

    records: Sequence[Any]
    before: Sequence[Any] = ()
    never: Collection[str] = frozenset()
    run: Callable[..., Awaitable[Any]] = asyncio.to_thread


class CheckpointedStage(Protocol):
    """Stage with a checkpoint.

    Attributes:
        name: Of the step, as its mark has it.
        version: Of its rules: a higher one works on everything again.
        source: Name of the kind of its records.
    """

    name: str
    version: int
    source: str


class Stage(CheckpointedStage, Protocol):
    """Stage that works on records in batches. Idempotent."""

    async def gone(self) -> Collection[str]:
        """Return the IDs of its results that were forgotten."""

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """Work on some records; results are on disk when this returns.

        Returns:
            By id, why one could not be worked on, as a code; it is tried again later. The others are done.

        Raises:
            StorageError: Nothing can be written or read now; all of them are tried again in the next run.
        """


class WholeStage(CheckpointedStage, Protocol):
    """Stage that scans everything, after the others. Idempotent."""

    def run_batches(self) -> AsyncGenerator[tuple[int, int], None]:
        """Work on due records; yield done and failed counts.

        Raises:
            StorageError: What was done before is done; the next run does the rest.
        """

    async def backlog(self) -> Backlog:
        """Return the backlog."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Backlog of one step.

    Attributes:
        stage: Name of the step.
        source: Name of the kind of its records.
        due: Records that wait, failed ones that are tried again included.
        failed: Records that failed.
        given_up: Those of them that are not tried again before the step has a new version.
        oldest: When the first of those that wait came in; None where none waits.
        codes: Why records failed, each code once.
        quarantined: Those of the failed that killed the process, and the one that read them alone.
    """

    stage: str
    source: str
    due: int = 0
    failed: int = 0
    given_up: int = 0
    oldest: datetime | None = None
    codes: tuple[str, ...] = ()
    quarantined: tuple[QuarantinedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run.

    Attributes:
        done: Records that were worked on, by the step's name.
        failed: Records that failed in it.
        is_busy: Another process does this work now; nothing was done here.
        is_over: Whether nothing is left to be done.
    """

    done: dict[str, int]
    failed: int = 0
    is_busy: bool = False
    is_over: bool = False


class StageCheckpoints:
    """The marks of one agent.

    Args:
        storage: Where they are.
    """

    def __init__(self, storage: RecordStorage[StageCheckpoint]) -> None:
        self._storage = storage

    async def of(self, stage: CheckpointedStage) -> StageCheckpoint:
        """Return the checkpoint of a stage, new before its first run."""
        return await self.of_name(stage.name, stage.source, stage.version)

    async def of_name(self, name: str, source: str, version: int = 1) -> StageCheckpoint:
        """Return the checkpoint of a stage by its names."""
        mark_id = derived_id(MARK.prefix, name, source)
        stored = await self._storage.get(mark_id)
        agent_id = self._storage.agent_id
        return stored or StageCheckpoint(agent_id=agent_id, id=mark_id, stage=name, version=version, source_kind=source)

    async def keep(self, mark: StageCheckpoint) -> None:
        """Store a changed checkpoint."""
        stored = await self._storage.get(mark.id)
        if stored is None:
            await self._storage.store(mark)
        elif stored != mark:
            fields = ("version", "through", "failures", "never")
            changes = {name: getattr(mark, name) for name in fields if getattr(stored, name) != getattr(mark, name)}
            await self._storage.update(mark.id, redact_fields(MARK, changes))


def start_checkpoint(mark: StageCheckpoint, stage: Stage, last: int) -> StageCheckpoint:
    """Return the checkpoint with which a run starts.

    Earlier versions noted records for a language model, which have the result of rules; these are left out.

    Args:
        mark: Checkpoint as stored.
        stage: Stage of the checkpoint.
        last: Number of the last change of its source.
    """
    if mark.version < stage.version or mark.through > last:
        return mark.model_copy(update={"version": max(mark.version, stage.version), "through": 0, "failures": []})
    failures = [failure for failure in mark.failures if failure.code not in OF_MODEL]
    return mark.model_copy(update={"failures": failures}) if len(failures) < len(mark.failures) else mark


def move_checkpoint(
    mark: StageCheckpoint, through: int, failed: Mapping[str, str], tried: Collection[str], now: datetime
) -> StageCheckpoint:
    """Return a mark after some records were tried.

    Args:
        mark: Checkpoint before the batch.
        through: Up to which change all is done now.
        failed: Why some of them failed, by id.
        tried: All of them.
        now: Present moment, UTC.
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
    """Return a checkpoint with further forgotten IDs."""
    new = sorted(set(gone) - set(mark.never))
    return mark.model_copy(update={"never": [*mark.never, *new][-_MOST_NEVER:]}) if new else mark


def without_never(mark: StageCheckpoint, restored: Collection[str]) -> StageCheckpoint:
    """Return a mark that does not know restored records as forgotten."""
    return mark.model_copy(update={"never": [record_id for record_id in mark.never if record_id not in restored]})


def is_to_be_tried(failure: StageFailure, now: datetime) -> bool:
    """Return True if a failed record is due again."""
    pause = _FIRST_PAUSE * 2 ** (failure.attempts - 1)
    return failure.attempts < ATTEMPTS and now.timestamp() >= failure.at + pause
