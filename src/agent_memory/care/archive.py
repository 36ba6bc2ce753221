"""`Archive`: archived memories of one agent, in `archive.yaml`.

A memory is archived in two steps: it is stored whole in the archive and synced, then it is moved out of
`memories.yaml`. It is restored in the opposite order, so it is in one of both files at any moment. After a crash it may
be in both: then it counts as live, and the next change of the archive deletes it there. After a crash it may also be
archived and forgotten: the archive never returns a memory that was forgotten after it was archived. Changes of an
archive wait for each other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from agent_memory.errors import ConfigurationError, UnknownIdError, ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.files.lock import archive_lock
from agent_memory.journal import GRACE
from agent_memory.memory import NOBODY
from agent_memory.memory.inbox_access import has_journal, opened_inbox
from agent_memory.models import (
    ANY_STATE,
    ARCHIVED,
    CANDIDATE,
    EVERYTHING,
    MEMORY,
    TIDY_RUN,
    ArchivedMemory,
    Listing,
    Memory,
    SearchFilters,
    TidyRun,
    filters_of,
    utc_now,
)
from agent_memory.redaction import quoted
from agent_memory.store.deletion_states import DeletionState, check_transition
from agent_memory.store.memory_storage import Files, MemoryStorage
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Candidate, Clock, SearchResults

_MATCHES: Final = 20
"""Archived memories that are compared with a request to forget."""
_BATCH: Final = 100
"""Memories that move as one change: a line of at most some megabytes."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
ASKED: Final = "asked"
"""Rule of memories that were archived on request."""


@dataclass(frozen=True, slots=True)
class ArchiveStats:
    """Counts of an archive.

    Attributes:
        memories: Number of memories, older versions included.
        first, last: Moments of the first and the last archiving, or None.
        by_rule, by_category: Number of memories by each.
        file_bytes: Size of `archive.yaml`.
    """

    memories: int
    first: datetime | None
    last: datetime | None
    by_rule: dict[str, int]
    by_category: dict[str, int]
    file_bytes: int


def whole_chains(wanted: Iterable[str], memories: Mapping[str, Memory], *, has_newer: bool = True) -> list[str]:
    """Return IDs with those of all older and newer versions.

    A version that is restored alone would count, though another one had replaced it.
    """
    newer: dict[str, list[str]] = {}
    for memory in memories.values():
        if has_newer and memory.supersedes in memories:
            newer.setdefault(memory.supersedes or "", []).append(memory.id)
    ids: dict[str, None] = {}
    pending = [memory_id for memory_id in wanted if memory_id in memories]
    while pending:
        memory_id = pending.pop()
        if memory_id in ids:
            continue
        ids[memory_id] = None
        older = memories[memory_id].supersedes
        pending += [*newer.get(memory_id, ()), *([older] if older in memories and older is not None else [])]
    return list(ids)


class Archive:
    """Archive of one agent, opened at the first call.

    Args:
        service: Service of the agent's memories.
        clock: Source of the present.
        grace: Time in which a deletion from the archive can be undone.

    Attributes:
        service, clock: As given.
        runs: Storage of the runs that archived memories.

    Raises:
        ConfigurationError: The memories are on a server, which has no archive.
    """

    def __init__(self, service: MemoryService, *, clock: Clock = utc_now, grace: timedelta = GRACE) -> None:
        settings = service.settings
        if settings.backend == "server":
            raise ConfigurationError(
                "A server keeps no archive; nothing was changed.",
                code="archive_needs_files",
                recovery="Set backend to auto, file or vector for agents whose memories are to be archived.",
            )
        self.service, self.clock = service, clock
        self._folder = folder_of(service.agent_id, settings.storage_root)
        self._file = self._folder.path / ARCHIVED.journal
        self._alone = partial(alone, self._folder.path, settings.lock_timeout)
        files = Files(ARCHIVED, self._folder, settings, clock, None, grace)
        self._archived = MemoryStorage(files.backend())  # type: ignore[arg-type]
        plain = Files(TIDY_RUN, self._folder, settings.model_copy(update={"embedder": "none"}), clock, None, grace)
        self.runs: RecordStorage[TidyRun] = RecordStorage(plain.backend())

    # -- reading ------------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return True if anything was ever archived, without opening it."""
        return self._file.exists()

    async def find_matches(self, words: str) -> list[ArchivedMemory]:
        """Return archived memories that strongly match a request to forget.

        Raises:
            StorageError: The archive cannot be read.
        """
        strong = {hit.memory.id for hit in await self.search(words, _MATCHES) if hit.match == "strong"}
        return [archived for archived in await self.everything() if archived.id in strong]

    async def search(
        self, query: str, limit: int = 5, filters: SearchFilters | dict[str, Any] | None = None, caller: Caller = NOBODY
    ) -> SearchResults:
        """Return the best matches in the archive; counts no access.

        Raises:
            ValidationError: The limit or a filter is wrong.
            StorageError: The archive cannot be read.
        """
        results = await self._archived.search(query, limit, filters_of(filters).within(caller.group))
        hidden_ids = await self._find_hidden([hit.memory for hit in results])
        for hit in [hit for hit in results if hit.memory.id in hidden_ids]:
            results.remove(hit)
        return results

    async def get(self, memory_id: str) -> ArchivedMemory | None:
        """Return the archived memory of an ID; None if live or forgotten."""
        memory = await self._archived.get(memory_id) if self.exists() else None
        return memory if isinstance(memory, ArchivedMemory) and not await self._find_hidden([memory]) else None

    async def everything(self) -> list[ArchivedMemory]:
        """Return archived memories, oldest entry first; no live or forgotten ones."""
        archived = await self._list_file()
        hidden_ids = await self._find_hidden(archived)
        return [memory for memory in archived if memory.id not in hidden_ids]

    async def load_chains(self, memory_ids: Iterable[str]) -> list[Memory]:
        """Return archived memories with the older ones that they replaced."""
        archived = {memory.id: memory for memory in await self.everything()}
        return [archived[memory_id].memory for memory_id in whole_chains(memory_ids, archived, has_newer=False)]

    async def browse(self) -> list[ArchivedMemory]:
        """Return archived memories, the last archived first."""
        return sorted(await self.everything(), key=lambda memory: (memory.archived_at, memory.timestamp), reverse=True)

    async def beginning_with(self, beginning: str) -> list[str]:
        """Return IDs of archived memories with this beginning."""
        if not self.exists():
            return []
        listing = Listing("oldest", EVERYTHING, ANY_STATE, beginning=beginning)
        archived = (await self._archived.browse(listing)).records
        hidden_ids = await self._find_hidden(archived)
        return [memory.id for memory in archived if memory.id not in hidden_ids]

    async def stats(self) -> ArchiveStats:
        """Return counts of the archive."""
        archived = await self.everything()
        moments = [memory.archived_at for memory in archived]
        return ArchiveStats(
            len(archived),
            min(moments, default=None),
            max(moments, default=None),
            dict(Counter(memory.rule for memory in archived)),
            dict(Counter(memory.category for memory in archived)),
            self._file.stat().st_size if self._file.exists() else 0,
        )

    async def _list_file(self) -> list[ArchivedMemory]:
        """Return all memories of the file, live ones too."""
        if not self.exists():
            return []
        return [memory async for memory in self._archived.iter_all() if isinstance(memory, ArchivedMemory)]

    async def _find_hidden(self, archived: Sequence[Memory]) -> Collection[str]:
        """Return IDs of archived memories that are live, or were forgotten since."""
        live_ids = await self._find_live(memory.id for memory in archived)
        return live_ids | {memory.id for memory in await self._find_forgotten(archived) if memory.id not in live_ids}

    async def _find_forgotten(self, archived: Sequence[Memory]) -> list[ArchivedMemory]:
        """Return archived memories whose text was forgotten since."""
        texts = await self.service.storage.forgotten_among([memory.content for memory in archived])
        if not texts:
            return []
        forgotten_at: dict[str, datetime] = {}
        for memory, at in await self.service.storage.forgotten():
            forgotten_at[memory.content] = max(at, forgotten_at.get(memory.content, at))
        return [
            memory
            for memory in archived
            if isinstance(memory, ArchivedMemory) and forgotten_at.get(memory.content, _NEVER) > memory.archived_at
        ]

    async def _find_live(self, memory_ids: Iterable[str]) -> set[str]:
        return set(await self.service.storage.texts_of(list(memory_ids)))

    # -- archiving ----------------------------------------------------------------------------------------------------

    async def add(self, memory_ids: Iterable[str], caller: Caller = NOBODY, *, why: str = "") -> list[ArchivedMemory]:
        """Archive memories on request, each with the older ones that it replaced.

        Args:
            memory_ids: IDs of live memories.
            caller: Session that makes the request.
            why: Reason for people, at most 300 characters.

        Raises:
            UnknownIdError: A memory does not exist; none was archived.
            ValidationError: Another memory replaces one of them and must be archived instead; or the caller may not
                archive it (`needs_user`). None was archived.
            StorageError: Memories that were archived before it stay archived.
        """
        chains: dict[str, Memory] = {}
        for memory_id in dict.fromkeys(memory_ids):
            await self.service.get(memory_id)
            if newer := (await self.service.storage.replaced_by([memory_id])).get(memory_id):
                raise ValidationError(
                    f"{memory_id} is replaced by {newer}; nothing was archived.",
                    code="replaced",
                    recovery=f"Archive {newer}: what it replaced goes with it.",
                )
            chains |= {memory.id: memory for memory in await _load_chain(self.service, memory_id)}
        await self.service.writer.check_moving(list(chains), caller)
        now = self.clock()
        records = [ArchivedMemory.of(memory, archived_at=now, rule=ASKED, why=why) for memory in chains.values()]
        return await self.put(records, caller)

    async def put(self, records: Sequence[ArchivedMemory], caller: Caller = NOBODY) -> list[ArchivedMemory]:
        """Archive memories and return them, except those used or changed since.

        Args:
            records: Memories as archived; those that replace each other are neighbours.
            caller: Session that makes the request.

        Raises:
            StorageError: Memories that were archived before it stay archived; none is lost.
        """
        async with self._alone():
            await self._delete_hidden()
            live_ids = await self._find_live(record.id for record in records)
            archived: list[ArchivedMemory] = []
            for batch in _split_chains([record for record in records if record.id in live_ids]):
                await self._archived.store_many(batch)
                moved = set(
                    await self.service.writer.move_out(
                        [record.memory for record in batch],
                        ARCHIVED.journal,
                        caller,
                        rules={record.id: record.rule for record in batch},
                        run=batch[0].run,
                    )
                )
                await self._drop(record.id for record in batch if record.id not in moved)
                archived += [record for record in batch if record.id in moved]
            return archived

    async def mend(self) -> list[str]:
        """Delete live and forgotten memories from the archive; return their IDs.

        Raises:
            StorageError: None was deleted.
        """
        async with self._alone():
            return await self._delete_hidden()

    async def _delete_hidden(self) -> list[str]:
        archived = await self._list_file()
        live_ids = await self._find_live(memory.id for memory in archived)
        dropped = await self._drop(memory.id for memory in archived if memory.id in live_ids)
        forgotten_ids = [memory.id for memory in await self._find_forgotten(archived) if memory.id not in live_ids]
        if forgotten_ids:
            await self._archived.forget_many(forgotten_ids)
        return [*dropped, *forgotten_ids]

    # -- restoring ----------------------------------------------------------------------------------------------------

    async def restore(self, memory_ids: Iterable[str], caller: Caller = NOBODY) -> list[Memory]:
        """Restore memories with all fields and all versions.

        Returns:
            All restored memories, the requested ones first.

        Raises:
            UnknownIdError: One is not in the archive; none was restored.
            ValidationError: Another text has the ID of one by now; none was restored.
            StorageError: Memories that were restored before it stay restored; none is lost.
        """
        wanted = list(dict.fromkeys(memory_ids))
        async with self._alone():
            listed = await self._list_file()
            forgotten_ids = {memory.id for memory in await self._find_forgotten(listed)}
            archived = {memory.id: memory for memory in listed if memory.id not in forgotten_ids}
            for memory_id in wanted:
                state = DeletionState.ARCHIVED if memory_id in archived else None
                check_transition("unarchive", state, quoted(memory_id))
            restored = [archived[memory_id].memory for memory_id in whole_chains(wanted, archived)]
            for batch in _split_chains(restored):
                await self.service.writer.put_back(batch, caller, was="archived")
                await self._drop(memory.id for memory in batch)
            return sorted(restored, key=lambda memory: memory.id not in wanted)

    async def forget(self, memory_id: str, caller: Caller = NOBODY, *, reason: str = "") -> Any:
        """Forget an archived memory like a live one (`MemoryService.forget`).

        Capture does not store it again, and the grace period and the reason apply. It is not live in between.

        Raises:
            UnknownIdError: It is not in the archive.
            ValidationError: The caller may not forget it (`needs_user`), or the reason is too long.
            StorageError: It is not forgotten.
        """
        archived = await self.load_chains([memory_id])
        if not archived:
            check_transition("unarchive", None, quoted(memory_id))
        done = await self.service.writer.deletion.forget_one(memory_id, caller, reason, archived)
        await self.delete([memory.id for memory in archived])
        return done

    # -- changing -----------------------------------------------------------------------------------------------------

    async def untag(self, memory_id: str, tags: Collection[str]) -> None:
        """Remove tags from an archived memory, if it exists."""
        async with self._alone():
            memory = await self._archived.get(memory_id)
            if memory is not None:
                await self._archived.update(memory_id, {"tags": [tag for tag in memory.tags if tag not in tags]})

    async def take_in(self, records: Sequence[ArchivedMemory], *, dry_run: bool = False) -> int:
        """Import archived memories of an export; return their number.

        Memories that are live, archived or forgotten here are skipped.

        Raises:
            StorageError: None was imported.
        """
        async with self._alone():
            await self._delete_hidden()
            known_ids = {memory.id for memory in await self._list_file()}
            known_ids |= set(await self._find_live(record.id for record in records))
            forgotten = await self.service.storage.forgotten_among([record.content for record in records])
            new = {
                record.id: record
                for record in records
                if record.id not in known_ids and record.content not in forgotten
            }
            if new and not dry_run:
                await self._archived.store_many(list(new.values()))
            return len(new)

    async def delete(self, memory_ids: Collection[str]) -> list[str]:
        """Delete memories from the archive; return IDs of existing ones.

        `undelete` reverses it for a time.

        Raises:
            StorageError: None was deleted.
        """
        async with self._alone():
            await self._delete_hidden()
            archived_ids = [
                memory_id for memory_id in dict.fromkeys(memory_ids) if await self._archived.get(memory_id) is not None
            ]
            if archived_ids:
                await self._archived.forget_many(archived_ids)
            return archived_ids

    async def undelete(self, memory_id: str) -> bool:
        """Restore a deletion from the archive; return True if it was possible."""
        async with self._alone():
            try:
                deleted = await self._archived.forgotten_with(memory_id)
            except UnknownIdError:
                return False
            await self._archived.store_many(deleted)
            return True

    async def compact(self, grace: timedelta | None = None) -> None:
        """Drop deleted and restored memories older than `grace`, default 30 days.

        Raises:
            StorageError: The file is as it was.
        """
        if self.exists():
            await self._archived.compact(grace)

    async def close(self) -> None:
        """Close the storages; may be called more than once."""
        await self._archived.close()
        await self.runs.close()

    async def __aenter__(self) -> Self:
        """Return the archive, closed at the end of the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the storages."""
        await self.close()

    async def _drop(self, memory_ids: Iterable[str]) -> list[str]:
        """Move live memories out of the archive."""
        memories = [await self._archived.get(memory_id) for memory_id in memory_ids]
        live = [memory for memory in memories if memory is not None]
        return await self._archived.move_out(live, MEMORY.journal, whole=False) if live else []


async def _load_chain(service: MemoryService, memory_id: str) -> list[Memory]:
    """Return a memory and the older ones that it replaced."""
    head = await service.get(memory_id)
    older = [await service.storage.get(older_id) for older_id in await service.storage.older_versions(memory_id)]
    existing = [memory for memory in older if memory is not None]
    replaced = await service.storage.replaced_by([memory.id for memory in existing])
    return [head, *(memory for memory in existing if memory.id in replaced)]


def _split_chains(records: Sequence[Any]) -> list[list[Any]]:
    """Return batches of records that keep chains of replacements together."""
    batches: list[list[Any]] = [[]]
    ids: set[str] = set()
    for record in records:
        is_joined = record.id in ids or (record.supersedes is not None and record.supersedes in ids)
        if len(batches[-1]) >= _BATCH and not is_joined:
            batches.append([])
            ids = set()
        batches[-1].append(record)
        ids |= {record.id, *([record.supersedes] if record.supersedes else [])}
    return [batch for batch in batches if batch]


open_archive: Final = Archive
"""Earlier name, for programs of other people: an archive is a context manager itself."""


@contextlib.asynccontextmanager
async def alone(folder: Path, wait: float) -> AsyncIterator[None]:
    """Hold the lock of an archive, which a dying process releases.

    Waits in a thread.

    Args:
        folder: Folder of the agent.
        wait: Seconds to wait for another process.

    Raises:
        BusyError: Another process held it all the time; nothing was moved.
        StorageError: The lock file cannot be opened.
    """
    locks = contextlib.ExitStack()
    entering = asyncio.ensure_future(asyncio.to_thread(locks.enter_context, archive_lock(folder, wait)))
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        entering.add_done_callback(lambda entered: _release(entered, locks))  # the thread may get it still
        raise
    with locks:
        yield


def _release(entered: asyncio.Future[None], locks: contextlib.ExitStack) -> None:
    entered.exception()  # marks an error as retrieved: no caller is left
    locks.close()


async def archive_expired(
    service: MemoryService, project: str, days: int, now: datetime, caller: Caller
) -> list[ArchivedMemory]:
    """Archive memories of a project older than `days`, except pinned ones.

    Args:
        service: Memory of the agent.
        project: Name of the project, not empty.
        days: Age in days.
        now: The present, UTC.
        caller: Session that gets the events.

    Raises:
        AgentMemoryError: Memories that were archived before it stay archived.
    """
    listed = (await service.storage.browse(Listing("oldest", SearchFilters(project=project)))).records
    limit = now - timedelta(days=days)
    expired = [memory.id for memory in listed if memory.timestamp < limit and not memory.pinned]
    if not expired:
        return []
    async with Archive(service) as archive:
        return await archive.add(expired, caller.as_person(), why=f"older than {days} days (retain_days of {project})")


class ArchiveWithdrawal:
    """Deletes archived memories that were forgotten or merged into such.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def withdraw(self, memory_ids: Collection[str], _: Caller) -> None:
        """Delete archived memories that were forgotten or merged into such."""
        forgotten = {memory.id for memory, _ in await self._service.storage.forgotten()}.intersection(memory_ids)
        if not forgotten:
            return
        async with Archive(self._service) as archive:
            merged = [archived.id for archived in await archive.everything() if archived.merged_into in forgotten]
            await archive.delete(merged)  # and what was forgotten itself

    async def close(self) -> None:
        """Close nothing: the archive is open only while memories are deleted."""


async def load_chains(service: MemoryService, memory_ids: Collection[str]) -> list[Memory]:
    """Return archived memories with the older ones that they replaced."""
    async with Archive(service) as archive:
        return await archive.load_chains(memory_ids)


async def recall_archived(
    service: MemoryService, memory_ids: Collection[str], sources: Collection[str], caller: Caller
) -> list[str]:
    """Restore archived memories to be changed like live ones; return IDs.

    Args:
        service: Service of the agent's memory.
        memory_ids: IDs to restore; unknown ones are ignored.
        sources: IDs of records; memories that link to one are restored, too.
        caller: Session that gets events.

    Raises:
        StorageError: Memories that were restored before it stay restored; none is lost.
    """
    async with Archive(service) as archive:
        wanted = [
            memory.id
            for memory in await archive.everything()
            if memory.id in memory_ids or any(link.id in sources for link in memory.links)
        ]
        return [memory.id for memory in await archive.restore(wanted, caller)] if wanted else []


async def find_stored_apart(
    service: MemoryService, words: str
) -> tuple[list[ArchivedMemory] | None, list[Candidate] | None]:
    """Return archived memories and waiting notes that match a request to forget.

    None for a place without a file.

    Args:
        service: Service of the agent's memory.
        words: Words of the request.

    Raises:
        StorageError: The archive or the inbox cannot be read.
    """
    archived, waiting = None, None
    if has_journal(service.agent_id, service.settings, ARCHIVED):
        async with Archive(service) as archive:
            archived = await archive.find_matches(words)
    if has_journal(service.agent_id, service.settings, CANDIDATE):
        async with opened_inbox(service) as inbox:
            waiting = await inbox.find_matches(words)
    return archived, waiting
