"""Clients for programs: `Memory` for asyncio, `MemorySync` for everything else."""

from __future__ import annotations

from enum import Enum
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar

from agent_memory.memory.caller import Caller
from agent_memory.memory.features import attach_features
from agent_memory.memory.loop_thread import SHARED_LOOP
from agent_memory.memory.service import open_service
from agent_memory.models import Listing, filters_of
from agent_memory.settings import DEFAULT_ROOT, ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType

    from agent_memory.memory.history import RestoreResult
    from agent_memory.memory.results import Forgotten, Found, Stored, Updated
    from agent_memory.models import Memory as MemoryRecord
    from agent_memory.models import RecordVersion, SearchFilters

P = ParamSpec("P")
T = TypeVar("T")


class UnsetValue(Enum):
    """Default of an argument for which None is a value."""

    UNSET = "unset"


UNSET: Final = UnsetValue.UNSET


class Memory:
    """Long-term memory of one agent.

        async with Memory("bob") as memory:
            await memory.add("Deploy on Fridays only after smoke tests.", category="decision")
            for hit in await memory.search("when may we deploy"):
                print(hit.memory.content)

    The record class of the same name is `agent_memory.models.Memory`; methods here return such records.

    Args:
        agent_id: Name of the agent; its folder is created by the first change.
        root: Folder of all agents; the default one if omitted.
        embedder: `local`, `openai`, `none` or the name of an installed one. Search uses words alone without a model.
        project: Project of new memories; its memories come first in searches.
        session_id: Session that is named in the history of changes.

    Raises:
        ValidationError: The agent's name or the embedder is invalid.
        ConfigurationError: The backend of the agent cannot be opened.
    """

    def __init__(
        self,
        agent_id: str,
        *,
        root: str | Path | None = None,
        embedder: str = "local",
        project: str = "",
        session_id: str = "",
    ) -> None:
        settings = ServiceSettings(storage_root=str(root or DEFAULT_ROOT), embedder=embedder)
        self._service = attach_features(open_service(agent_id, settings))
        self._caller = Caller(session_id, project=project)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def add(  # noqa: PLR0913 - one argument for each field
        self,
        content: str,
        *,
        category: str = "note",
        tags: Sequence[str] = (),
        project: str | None = None,
        pinned: bool = False,
        expires_at: datetime | None = None,
        observed_at: datetime | None = None,
        supersedes: str | None = None,
    ) -> Stored:
        """Store a memory; it is on disk when this returns.

        A text that is already stored is not stored again: `duplicate` is True then.

        Args:
            content: Text of at most 10,000 characters; secrets are removed from it.
            category: One of the built-in categories, or another name in lower case.
            tags: Words to filter by.
            project: Project of the memory instead of that of the client; empty for none.
            pinned: True to keep it in the scratchpad.
            expires_at: Time from which it is not found any more.
            observed_at: Time of the event; the present if omitted.
            supersedes: ID of an older memory that this one replaces.

        Returns:
            The memory, and up to three similar ones to compare with it.

        Raises:
            ValidationError: A value is invalid, or the content is only a secret; nothing was stored.
            UnknownIdError: No memory to supersede; nothing was stored.
            StorageError: Nothing was stored.
        """
        values: dict[str, Any] = {"content": content, "category": category, "tags": list(tags), "pinned": pinned}
        values |= _drop_none(project=project, expires_at=expires_at, observed_at=observed_at, supersedes=supersedes)
        return await self._service.store(values, self._caller)

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: str | None = None,
        tags: Sequence[str] = (),
        project: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Found:
        """Return the best matches, best first.

        Args:
            query: Words, a question or the ID of a memory; an empty text lists the newest memories.
            limit: Number of results, from 1 to 100.
            category: Category that every result has.
            tags: Tags; every result has at least one.
            project: Project that every result belongs to.
            since: Earliest time of a result.
            until: Latest time of a result.

        Returns:
            An iterable of hits; `match` is strong, weak or none.

        Raises:
            ValidationError: The query, the limit or a filter is invalid.
            StorageError: The memories cannot be read.
        """
        is_filtered = category or tags or project is not None or since or until
        filters = _build_filters(category, tags, project, since, until) if is_filtered else None
        return await self._service.search(query, limit, filters, caller=self._caller)

    async def list(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        category: str | None = None,
        tags: Sequence[str] = (),
        project: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[MemoryRecord, ...]:
        """Return current memories, newest first.

        Superseded and expired ones are left out.

        Args:
            limit: Number of memories, at least 1.
            offset: Number of memories to skip.
            category: Category that every memory has.
            tags: Tags; every memory has at least one.
            project: Project that every memory belongs to.
            since: Earliest time of a memory.
            until: Latest time of a memory.

        Raises:
            ValidationError: A filter is invalid.
            StorageError: The memories cannot be read.
        """
        filters = _build_filters(category, tags, project, since, until)
        await self._service.pad.notice(self._caller)
        listed = await self._service.storage.browse(Listing(filters=filters, offset=offset, limit=limit))
        return tuple(listed.records)

    async def get(self, memory_id: str) -> MemoryRecord:
        """Return one memory, current or superseded.

        Raises:
            UnknownIdError: No such memory.
            StorageError: The memories cannot be read.
        """
        return await self._service.get(memory_id)

    async def update(  # noqa: PLR0913 - one argument for each field
        self,
        memory_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        project: str | None = None,
        pinned: bool | None = None,
        expires_at: datetime | UnsetValue | None = UNSET,
        supersedes: str | UnsetValue | None = UNSET,
    ) -> Updated:
        """Change the given fields of a memory.

        Args:
            memory_id: ID of the memory.
            content: New text of the memory.
            category: New category of the memory.
            tags: New tags instead of all existing ones.
            project: New project; empty for none.
            pinned: True to keep it in the scratchpad.
            expires_at: New time of expiry; None for never.
            supersedes: ID of an older memory that this one replaces; None for none.

        Raises:
            UnknownIdError: No such memory.
            ValidationError: A value is invalid; nothing was changed.
            StorageError: Nothing was changed.
        """
        new_tags = None if tags is None else [*tags]
        changes = _drop_none(content=content, category=category, tags=new_tags, project=project, pinned=pinned)
        clearable = {"expires_at": expires_at, "supersedes": supersedes}
        changes |= {name: value for name, value in clearable.items() if value is not UNSET}
        return await self._service.update(memory_id, changes, self._caller)

    async def delete(self, memory_id: str, *, reason: str = "") -> Forgotten:
        """Delete a memory with the older versions it replaced.

        It is hidden at once. `undo` restores it until `kept_until`.

        Args:
            memory_id: ID of the memory.
            reason: Reason to keep, at most 200 characters; storing the same text again reports it.

        Raises:
            UnknownIdError: No such memory.
            ValidationError: The reason is too long; nothing was deleted.
            StorageError: Nothing was deleted.
        """
        return await self._service.forget(memory_id, self._caller, reason=reason)

    async def history(self, memory_id: str) -> tuple[RecordVersion[MemoryRecord], ...]:
        """Return the known versions of a memory, oldest first.

        Raises:
            UnsupportedError: The backend keeps no versions.
            StorageError: The journal cannot be read.
        """
        return tuple(await self._service.history.history(memory_id))

    async def undo(self, memory_id: str) -> RestoreResult:
        """Take back the last change of a memory.

        A deleted memory is restored, a replaced one counts again, a changed one is as before, a stored one is deleted.
        An undo is a change, so a second one takes it back.

        Raises:
            UnknownIdError: No such memory, or it was purged.
            ValidationError: There is nothing to take back.
            UnsupportedError: The backend keeps no versions.
            StorageError: Nothing was changed.
        """
        return await self._service.history.undo(memory_id, self._caller)

    async def close(self) -> None:
        """Finish background work and close the files.

        Can be called more than once.
        """
        await self._service.close()


def _drop_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _build_filters(
    category: str | None,
    tags: Sequence[str],
    project: str | None,
    since: datetime | None,
    until: datetime | None,
) -> SearchFilters:
    span = {"start": since, "end": until} if since or until else None
    return filters_of({"category": category, "tags": [*tags], "project": project, "date_range": span})


def _make_blocking(
    method: Callable[Concatenate[Memory, P], Awaitable[T]],
) -> Callable[Concatenate[MemorySync, P], T]:
    """Return the blocking form of a method of `Memory`."""

    def call(self: MemorySync, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def run() -> T:
            return await method(self.memory, *args, **kwargs)

        return self.wait_for(run())

    update_wrapper(call, method)
    return call


class MemorySync:
    """Long-term memory of one agent, for programs without asyncio.

        with MemorySync("bob") as memory:
            memory.add("Deploy on Fridays only after smoke tests.")

    Has the methods of `Memory`. An event loop in a thread of its own runs them, so any thread may call them.

    Args:
        agent_id: Name of the agent; its folder is created by the first change.
        root: Folder of all agents; the default one if omitted.
        embedder: `local`, `openai`, `none` or the name of an installed one. Search uses words alone without a model.
        project: Project of new memories; its memories come first in searches.
        session_id: Session that is named in the history of changes.

    Attributes:
        memory: The asynchronous client.

    Raises:
        ValidationError: The agent's name or the embedder is invalid.
        ConfigurationError: The backend of the agent cannot be opened.
    """

    add = _make_blocking(Memory.add)
    search = _make_blocking(Memory.search)
    list = _make_blocking(Memory.list)
    get = _make_blocking(Memory.get)
    update = _make_blocking(Memory.update)
    delete = _make_blocking(Memory.delete)
    history = _make_blocking(Memory.history)
    undo = _make_blocking(Memory.undo)

    def __init__(
        self,
        agent_id: str,
        *,
        root: str | Path | None = None,
        embedder: str = "local",
        project: str = "",
        session_id: str = "",
    ) -> None:
        self.memory = Memory(agent_id, root=root, embedder=embedder, project=project, session_id=session_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish background work, close the files and release the thread.

        Can be called more than once.
        """
        self.wait_for(self.memory.close())
        SHARED_LOOP.stop(self)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the clients' thread; return its result."""
        return SHARED_LOOP.wait_for(self, work)
