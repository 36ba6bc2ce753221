"""Records of one agent that are not memories."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from agent_memory.encryption import AgentBlobs
from agent_memory.errors import ConfigurationError
from agent_memory.files.layout import folder_of
from agent_memory.journal import GRACE
from agent_memory.models import ENTITY, EPISODE, MARK, MENTIONS, RELATION, RESOURCE, SUMMARY, TOPIC, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.store.change_log import sweep_blobs
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from agent_memory.embeddings import Embedder
    from agent_memory.encryption.blobs import SweepResult
    from agent_memory.models import (
        Clock,
        Entity,
        EntityMentions,
        Episode,
        Kind,
        Relation,
        Resource,
        StageCheckpoint,
        Summary,
        Topic,
    )


class Knowledge:
    """Documents, conversations and derived records of one agent.

    Opens nothing until the first call and creates nothing until the first write. Several objects, threads and processes
    may use one folder at the same time.

    Args:
        agent_id: Name of the agent.
        settings: Where the folder is, ranking and embedder; the defaults when omitted.
        clock: Source of the present.
        embedder: One of the caller's own, instead of that of `settings`. Only with it do turns and summaries get
            vectors: else their passages have them.
        grace: How long what was forgotten or replaced can be brought back.

    Attributes:
        folder: Folder of the agent.
        resources, episodes, topics, marks, summaries, entities, mentions, relations: The records of each kind.
        blobs: Texts that are too long for a line.

    Raises:
        ConfigurationError: The settings ask for a server, which keeps memories alone.
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The folder leads out of the storage root.
    """

    def __init__(
        self,
        agent_id: str,
        settings: ServiceSettings | None = None,
        *,
        clock: Clock = utc_now,
        embedder: Embedder | None = None,
        grace: timedelta = GRACE,
    ) -> None:
        settings = settings or ServiceSettings()
        if settings.backend == "server":
            raise ConfigurationError(
                "A server keeps an agent's own memories; documents and conversations are kept in files. Nothing was "
                "changed, and memories are stored and found as before.",
                code="knowledge_needs_files",
                recovery="Set backend to auto, file or vector for agents that are given documents or conversations.",
            )
        self.folder = folder_of(agent_id, settings.storage_root)
        self.blobs = AgentBlobs(self.folder)
        self.settings, self.clock = settings, clock

        def open_storage(kind: Kind[Any], kind_settings: ServiceSettings) -> RecordStorage[Any]:
            files = Files(
                kind, self.folder, kind_settings, clock, embedder if kind_settings is settings else None, grace
            )
            return RecordStorage(files.backend())

        self.resources: RecordStorage[Resource] = open_storage(RESOURCE, settings)
        without = settings.model_copy(update={"embedder": "none"})  # their passages have vectors; marks need none
        text_settings = without if embedder is None else settings
        self.episodes: RecordStorage[Episode] = open_storage(EPISODE, text_settings)
        self.topics: RecordStorage[Topic] = open_storage(TOPIC, without)
        self.marks: RecordStorage[StageCheckpoint] = open_storage(MARK, without)
        self.summaries: RecordStorage[Summary] = open_storage(SUMMARY, text_settings)
        self.entities: RecordStorage[Entity] = open_storage(ENTITY, without)
        self.mentions: RecordStorage[EntityMentions] = open_storage(MENTIONS, without)
        self.relations: RecordStorage[Relation] = open_storage(RELATION, without)

    @property
    def agent_id(self) -> str:
        """Whose, in the spelling of the folder."""
        return self.folder.agent_id

    @property
    def storages(self) -> tuple[RecordStorage[Any], ...]:
        """Of all kinds."""
        derived = self.summaries, self.entities, self.mentions, self.relations
        return self.resources, self.episodes, self.topics, self.marks, *derived

    def of(self, kind: str) -> RecordStorage[Any]:
        """Return the records of the kind of this name.

        Raises:
            KeyError: The kind is not part of knowledge.
        """
        return {storage.kind.name: storage for storage in self.storages}[kind]

    async def text_of(self, record: Resource | Episode) -> str:
        """Return the whole text of a record.

        Raises:
            StorageError: Its file is missing or damaged; `record.content` has the beginning.
        """
        return await asyncio.to_thread(self.blobs.read, record.blob) if record.blob else record.content

    async def load_sources(self, ids: Iterable[str]) -> tuple[dict[str, Episode], dict[str, Resource]]:
        """Return valid turns among IDs, and their resources with those among IDs.

        Raises:
            StorageError: They cannot be read.
        """
        named = list(dict.fromkeys(ids))
        turn_ids = [record_id for record_id in named if record_id.startswith(EPISODE.prefix)]
        turns = await self.episodes.valid_among(turn_ids) if turn_ids else {}
        homes = {turn.conversation for turn in turns.values() if turn.conversation}
        homes.update(record_id for record_id in named if record_id.startswith(RESOURCE.prefix))
        return turns, await self.resources.valid_among(sorted(homes)) if homes else {}

    async def list_versions(self, resource: Resource) -> list[Resource]:
        """Return a document and the versions before it, newest first.

        Raises:
            StorageError: They cannot be read.
        """
        versions: dict[str, Resource] = {}
        record: Resource | None = resource
        while record is not None and record.id not in versions:
            versions[record.id] = record
            record = await self.resources.get(record.supersedes) if record.supersedes else None
        return list(versions.values())

    async def compact(self, grace: timedelta | None = None) -> SweepResult:
        """Compact the journals; `timedelta(0)` deletes forgotten records for good.

        Raises:
            StorageError: The files are as they were, or some of them are.
        """
        of_each = {storage.kind.journal: storage for storage in self.storages}
        for name, storage in of_each.items():
            if (self.folder.path / name).exists():
                await storage.compact(grace)
        return await self.sweep(grace)

    async def sweep(self, grace: timedelta | None = None) -> SweepResult:
        """Delete unreferenced long texts older than the grace time.

        Raises:
            StorageError: A file that may name one cannot be read; nothing was removed.
        """
        default = self.resources.grace or GRACE
        return await asyncio.to_thread(sweep_blobs, self.folder, default if grace is None else grace)

    async def close(self) -> None:
        """Close files and threads. May be called more than once."""
        for storage in self.storages:
            await storage.close()

    async def __aenter__(self) -> Self:
        """Return the records, closed at the end of the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close files and threads."""
        await self.close()
