"""What a step of background work is, and what it is given. Nothing here does anything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.pipeline.quarantine import QuarantinedRecord


MODEL_SILENT: Final = "model_silent"
"""Code of a record on which a language model gave no answer in time, or raised."""
RECORD_ERRORS: Final = frozenset({"blob_missing", "blob_damaged"})
"""Codes of storage errors that are about one record, rather than about the disk."""
MODEL_UNREADABLE: Final = "model_unreadable"
"""Code of a record on which a language model gave an answer that cannot be read."""
OF_MODEL: Final = frozenset({MODEL_SILENT, MODEL_UNREADABLE})


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


class Marked(Protocol):
    """What a mark says how far it is.

    Attributes:
        name: Of the step, as its mark has it.
        version: Of its rules: a higher one works on everything again.
        source: Name of the kind of its records.
    """

    name: str
    version: int
    source: str


class Stage(Marked, Protocol):
    """One step. Doing it again for the same records makes nothing twice: what it makes has ids made of its sources."""

    async def gone(self) -> Collection[str]:
        """Return the ids of what it made and somebody forgot, as far as that is still known."""

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """Work on some records; results are on disk when this returns.

        Returns:
            By id, why one could not be worked on, as a code; it is tried again later. The others are done.

        Raises:
            StorageError: Nothing can be written or read now; all of them are tried again in the next run.
        """


class Whole(Marked, Protocol):
    """A step that looks at all there is, behind those that work record by record; what it makes is there once, too."""

    def portions(self) -> AsyncGenerator[tuple[int, int], None]:
        """Do what is due, some of it at a time; yield how much was done and how much failed, when it is on the disk.

        Raises:
            StorageError: What was done before is done; the next run does the rest.
        """

    async def backlog(self) -> Backlog:
        """Return how much there is to do."""


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
class Ran:
    """What a run did.

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
