"""`VerbatimStorage`: records of one adapter, in `verbatim.yaml` of an agent's folder."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from agent_memory.errors import ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.journal import Change, PurgeList
from agent_memory.memory.consent import ConsentFiles, ConsentState, find_own_folders
from agent_memory.models import Link, derived_id, utc_now
from agent_memory.models.verbatim import VERBATIM, VerbatimRecord
from agent_memory.settings import DEFAULT_ROOT, ServiceSettings
from agent_memory.store.changes import to_replace, to_update_many
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_redaction import Redacted, make_unchanged
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.models import Clock
    from agent_memory.store.state import State

T = TypeVar("T")
Names = tuple[str, ...]
VerbatimDraft: TypeAlias = "Redacted[VerbatimRecord]"
"""Record without secrets, which can be stored."""

_MAX_DEPTH: Final = 48
"""Levels of JSON; the redactor reads some more."""
_CONTAINER: Final = "in"
"""Relation of a record to its containers, by which these list it."""


class VerbatimStorage(RecordStorage[VerbatimRecord]):
    """Records of one adapter, by names of their containers and a key.

    Several objects, threads and processes may use one folder at the same time.

    Args:
        agent_id: Name of the agent whose folder has the records.
        adapter: Name of the adapter, 1 to 24 small letters.
        root: Folder of all agents, or settings with it; that of the command line when None.
        refuse_secrets: True to raise `ValidationError` for a secret instead of replacing it by a marker.
        clock: Source of the present.
    """

    def __init__(
        self,
        agent_id: str,
        adapter: str,
        root: str | Path | ServiceSettings | None = None,
        *,
        refuse_secrets: bool = False,
        clock: Clock = utc_now,
    ) -> None:
        settings = (
            root if isinstance(root, ServiceSettings) else ServiceSettings(storage_root=str(root or DEFAULT_ROOT))
        )
        self.folder = folder_of(agent_id, settings.storage_root)
        plain = settings.model_copy(update={"embedder": "none"})
        super().__init__(Files(VERBATIM, self.folder, plain, clock).backend())
        self._consent = ConsentFiles(host=adapter)
        self._adapter = adapter
        self._may_redact = not refuse_secrets

    def get_id(self, namespace: Names, key: str) -> str:
        """Return the ID of the record with a key."""
        return derived_id(VERBATIM.prefix, self._adapter, json.dumps(namespace), key)

    def draft(self, namespace: Names, value: Any, *, key: str | None = None, **fields: Any) -> VerbatimDraft:
        """Return a record that can be stored, with secrets replaced by markers.

        Args:
            namespace: Names of its containers, the outermost first.
            value: Text or a JSON value.
            key: Name in its container; None for an item of a sequence.
            fields: Other fields of the record.

        Raises:
            TypeError: The value has something that is not JSON.
            ValidationError: It is too long or too deep, or has a secret that may not be redacted.
        """
        values = {
            "adapter": self._adapter,
            "namespace": list(namespace),
            "content": value if isinstance(value, str) else _copy_json(value),
            "is_json": not isinstance(value, str),
            "timestamp": self._clock(),
            "links": [
                Link(rel=_CONTAINER, id=self._get_container(namespace[:end])) for end in range(len(namespace) + 1)
            ],
            **fields,
        }
        if key is not None:
            values = {"key": key, "id": self.get_id(namespace, key), **values}
        names = (*namespace, key or "")
        return make_unchanged(VERBATIM, values, self.agent_id, names, may_redact=self._may_redact)

    async def find(self, namespace: Names, key: str) -> VerbatimRecord | None:
        """Return the record with a key, or None if unknown or expired."""
        record = await self.get(self.get_id(namespace, key))
        if record is None or (record.namespace, record.key) != (list(namespace), key):
            return None
        return None if record.is_expired(self._clock()) else record

    async def list_in(self, namespace: Names, limit: int | None = None) -> list[VerbatimRecord]:
        """Return the records in a container and its inner ones, oldest first.

        Args:
            namespace: Names of the container; empty for all records.
            limit: Number of records at most, the latest ones; None for all.
        """
        return await self._look(lambda state: list(islice(self._iter_latest(state, namespace), limit))[::-1])

    async def put(
        self,
        drafts: Sequence[VerbatimDraft],
        removed: Sequence[str] = (),
        *,
        check: Callable[[Mapping[str, VerbatimRecord]], None] = lambda _: None,
    ) -> None:
        """Store and delete records as one change.

        While memory is off, records can be read and deleted, and none is stored.

        A record replaces the one with its ID and keeps its timestamp; `observed_at` is the time of the last change.

        Args:
            drafts: Records of `draft`.
            removed: IDs of records to delete.
            check: Called with all records behind the lock; raises to change nothing.

        Raises:
            IdentityError: Memory is off for the agent, the folder or everywhere (`switched_off`).
        """
        if drafts:
            folders = find_own_folders(str(self.folder.path.parent), self.agent_id)
            ConsentState(self._consent.read(folders, Path.cwd())).check_enabled()
        await self._put(drafts, removed, check=check)

    async def _put(
        self,
        drafts: Sequence[VerbatimDraft],
        removed: Sequence[str] = (),
        *,
        check: Callable[[Mapping[str, VerbatimRecord]], None] = lambda _: None,
    ) -> None:
        def decide(records: Mapping[str, VerbatimRecord]) -> tuple[list[VerbatimRecord], list[str], None]:
            check(records)
            return [self._date(draft.value, records.get(draft.value.id)) for draft in drafts], list(removed), None

        await self._change(lambda state: decide(state.records))

    async def import_unknown(self, records: Sequence[VerbatimRecord], *, dry_run: bool = False) -> int:
        """Store the records of this adapter in an export; return their number.

        Known and purged ones are skipped.
        """
        purges = PurgeList(self.folder.path)
        existing = await self.get_many([record.id for record in records])
        unknown = [record for record in records if record.id not in existing and not purges.names(record.id)]
        if unknown and not dry_run:
            await self._put(
                [
                    self.draft(tuple(record.namespace), load_value(record), key=record.key, **_list_fields(record))
                    for record in unknown
                ]
            )
        return len(unknown)

    async def extend(self, expiries: Mapping[str, datetime]) -> None:
        """Set when known records expire, by ID."""

        def decide(state: State[VerbatimRecord], _: None) -> tuple[list[Change], None]:
            changes = {key: {"expires_at": moment} for key, moment in expiries.items() if key in state.records}
            return to_update_many(state, changes)

        await self._write(decide, lambda: None, is_clean=True)

    async def pop_last(self, namespace: Names) -> VerbatimRecord | None:
        """Delete and return the latest record in a container, or None."""

        def decide(state: State[VerbatimRecord]) -> tuple[list[VerbatimRecord], list[str], VerbatimRecord | None]:
            last = next(self._iter_latest(state, namespace), None)
            return [], [last.id] if last is not None else [], last

        return await self._change(decide)

    async def clear(self, namespace: Names) -> int:
        """Delete all records in a container; return their number."""

        def decide(state: State[VerbatimRecord]) -> tuple[list[VerbatimRecord], list[str], int]:
            ids = [record.id for record in self._iter_latest(state, namespace)]
            return [], ids, len(ids)

        return await self._change(decide)

    async def _change(self, decide: Callable[[State[VerbatimRecord]], tuple[list[VerbatimRecord], list[str], T]]) -> T:
        """Write the records and deletions that are decided behind the lock."""

        def to_change(state: State[VerbatimRecord], _: None) -> tuple[list[Change], T]:
            records, removed, answer = decide(state)
            return to_replace(state, records, removed), answer

        return await self._write(to_change, lambda: None, is_clean=True, rewords=True)

    def _date(self, record: VerbatimRecord, before: VerbatimRecord | None) -> VerbatimRecord:
        """Return a record with the timestamp of its earlier version.

        Raises:
            ValidationError: Its ID is that of another name.
        """
        if before is None:
            return record
        if (before.adapter, before.namespace, before.key) != (record.adapter, record.namespace, record.key):
            raise ValidationError(f"The id {record.id} is taken.", code="id_taken")
        return record.model_copy(update={"timestamp": before.timestamp, "observed_at": record.timestamp})

    def _iter_latest(self, state: State[VerbatimRecord], namespace: Names) -> Iterator[VerbatimRecord]:
        now = self._clock()
        for record in state.links.iter_linked(self._get_container(namespace), None):
            if isinstance(record, VerbatimRecord) and self._is_in(record, namespace) and not record.is_expired(now):
                yield record

    def _is_in(self, record: VerbatimRecord, namespace: Names) -> bool:
        return record.adapter == self._adapter and tuple(record.namespace[: len(namespace)]) == namespace

    def _get_container(self, namespace: Names) -> str:
        return derived_id(VERBATIM.prefix, _CONTAINER, self._adapter, json.dumps(namespace))


async def import_verbatim_records(
    records: Sequence[VerbatimRecord], settings: ServiceSettings, *, dry_run: bool
) -> int:
    """Store the unknown records of an export; return their number."""
    count = 0
    for adapter in dict.fromkeys(record.adapter for record in records):
        storage = VerbatimStorage(records[0].agent_id, adapter, settings)
        try:
            count += await storage.import_unknown(
                [record for record in records if record.adapter == adapter], dry_run=dry_run
            )
        finally:
            await storage.close()
    return count


def _list_fields(record: VerbatimRecord) -> dict[str, Any]:
    """Return the fields that an import does not change."""
    names = {"id", "timestamp", "observed_at", "expires_at", "metadata"}
    return record.model_dump(include=names)


def load_value(record: VerbatimRecord) -> Any:
    """Return the text or the JSON value of a record."""
    return json.loads(record.content) if record.is_json else record.content


def _copy_json(value: Any) -> Any:
    """Return a JSON value as a reader gets it.

    Raises:
        TypeError: The value has something that is not JSON.
        ValidationError: It is too deep.
    """
    copied = json.loads(json.dumps(value))
    level, depth = [copied], 0
    while level := [item for value in level for item in _list_items(value)]:
        depth += 1
        if depth > _MAX_DEPTH:
            raise ValidationError(f"Nothing was stored: JSON has at most {_MAX_DEPTH} levels.")
    return copied


def _list_items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
