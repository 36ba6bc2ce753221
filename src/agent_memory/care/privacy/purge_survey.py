"""Survey of records: their texts, secrets, and dependent records.

Read from the journals, so that it is also known of what was forgotten since.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.encryption import AgentBlobs
from agent_memory.errors import StorageError
from agent_memory.journal import Change, list_texts
from agent_memory.journal.reader import JournalReader
from agent_memory.models import (
    DIGEST,
    ENTITY,
    ENTITY_KINDS,
    EPISODE,
    MENTIONS,
    NAMES,
    PART_OF,
    RELATION,
    SUMMARY,
    TOPIC,
    PlacedItem,
)
from agent_memory.models.knowledge import DERIVED_TOPICS
from agent_memory.models.memory import ALSO, FROM, PASSAGE
from agent_memory.models.text import folded_text
from agent_memory.redaction import SecretRedactor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from agent_memory.files.layout import AgentFolder

_EXTRACTION: Final = "extraction"
_RETOLD: Final = frozenset({RELATION.name, SUMMARY.name})
"""Kinds that repeat words of each of their sources, so that they go with any of these."""
_NO_WORDS: Final = frozenset({TOPIC.name, *(kind.name for kind in ENTITY_KINDS)})
"""Kinds whose texts are names, or words of others: elsewhere these stay."""
_LEAST_CUT: Final = 12
"""Bytes of a title: a shorter one may be the beginning of anything."""
_CUT: Final = "…. ".encode()
"""End of a title that was cut."""


@dataclass(slots=True)
class _RecordHistory:
    """History of one record in the journals.

    Attributes:
        kind: Name of its kind; either one of an archived memory.
        texts: All its texts in the order of writing.
        links: Last links as pairs of relation and ID.
        is_live: True if it exists.
        is_item: True if it was extracted from others.
        is_made: True if it is a page of extracted subjects.
        is_title: True if its text is only a title.
        metadata: Last metadata of the record.
        detail: `source.detail` of an item; empty for other records.
        passages: IDs of the passages that an agent made this statement from.
        blobs: Names of long texts that it had.
        made_of: All items that were ever on a page of extracted subjects.
    """

    kind: str
    texts: dict[str, None] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    is_live: bool = False
    is_item: bool = False
    is_title: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    passages: set[str] = field(default_factory=set)
    blobs: dict[str, None] = field(default_factory=dict)
    made_of: set[str] = field(default_factory=set)
    is_made: bool = False

    def take(self, change: Change) -> None:
        """Apply a change."""
        data = change.data
        self.is_live = change.op != "delete" and (self.is_live or change.op == "put")
        self.texts |= dict.fromkeys(list_texts(data))
        if isinstance(links := data.get("links"), list):
            pairs = [(item.get("rel"), item.get("id")) for item in links if isinstance(item, dict)]
            self.links = tuple(
                [(rel, target) for rel, target in pairs if isinstance(rel, str) and isinstance(target, str)]
            )
        if isinstance(source := data.get("source"), dict):
            self.is_item = source.get("kind") == _EXTRACTION
            self.detail = str(source.get("detail") or "") if self.is_item else ""
            self.is_made = change.kind == TOPIC.name and source.get("detail") in DERIVED_TOPICS
        if change.op == "put":
            self.is_title = data.get("resource_type") == "conversation" and not data.get("chars")
        if isinstance(metadata := data.get("metadata"), dict):
            self.metadata = metadata
        if isinstance(items := data.get("item_ids"), list):
            self.made_of |= {item for item in items if isinstance(item, str)}
        if isinstance(blob := data.get("blob"), str) and blob:
            self.blobs[blob] = None

    @property
    def from_sources(self) -> list[str]:
        """IDs of the sources that it was drawn from, in order."""
        return [source for rel, source in self.links if rel == FROM]

    def sources(self, *relations: str) -> set[str]:
        """Return linked IDs, of some relations or of any."""
        return {target for rel, target in self.links if not relations or rel in relations}


class PurgeSurvey:
    """History of all records in an agent's journals. Blocking.

    Args:
        folder: Folder of the agent.

    Raises:
        StorageError: A journal cannot be read.
    """

    def __init__(self, folder: AgentFolder) -> None:
        self._blobs = AgentBlobs(folder)
        self._known: dict[str, _RecordHistory] = {}
        for journal in folder.journals():
            for entry in JournalReader(journal, with_purged=True).poll().entries:
                for change in entry.changes:
                    self._known.setdefault(change.id, _RecordHistory(change.kind)).take(change)
        self._linked: defaultdict[str, set[str]] = defaultdict(set)
        for record_id, history in self._known.items():
            for source_id in history.sources() | history.made_of:
                self._linked[source_id].add(record_id)
        self._link_statements()

    def _link_statements(self) -> None:
        """Link the statements of agents with their passages."""
        items = {
            record_id: PlacedItem(record_id, record.detail, record.from_sources, record.metadata)
            for record_id, record in self._known.items()
            if record.detail
        }
        for statement in (item for item in items.values() if item.detail == DIGEST):
            near = {item_id for source in statement.sources for item_id in self._linked[source]}
            near = items.keys() & (near | {str(statement.metadata.get(PASSAGE))})
            passages = {item_id for item_id in near if statement.follows(items[item_id])}
            self._known[statement.id].passages = passages
            for passage_id in passages:
                self._linked[passage_id].add(statement.id)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all records."""
        return tuple(self._known)

    def list_texts(self, record_id: str) -> tuple[str, ...]:
        """Return every text that a record ever had, oldest first."""
        return tuple(self._known[record_id].texts)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._known

    def long_texts(self) -> set[str]:
        """Return names of the long texts of all records, forgotten ones too."""
        return {name for history in self._known.values() for name in history.blobs}

    def said_by(self, record_ids: Collection[str], resting: Collection[str] = ()) -> tuple[str, ...]:
        """Return the texts to search for when these records are purged.

        All that they ever said, the words that items of them quote, and the titles that were cut from these. Of what
        merely rests on others items alone: turns and names are said by others, too.

        Args:
            record_ids: IDs of the purged records.
            resting: IDs of those that depend on the others.
        """
        texts: dict[str, None] = {}
        for history in (
            self._known[record_id]
            for record_id in record_ids
            if record_id in self._known and self._speaks(record_id, resting)
        ):
            texts |= history.texts
            texts |= dict.fromkeys(self._find_quoted(history))
        return tuple(texts | dict.fromkeys(self._find_titles(texts)))

    def _speaks(self, record_id: str, resting: Collection[str]) -> bool:
        """Return True if the words of a record are searched elsewhere."""
        history = self._known[record_id]
        return not history.is_title and (
            record_id not in resting or (history.is_item and history.kind not in _NO_WORDS)
        )

    def saying(self, texts: Iterable[str], but: Collection[str]) -> set[str]:
        """Return other records with only these texts."""
        wanted = {folded_text(text) for text in texts}
        return {
            record_id
            for record_id, history in self._known.items()
            if record_id not in but and history.texts and any(folded_text(text) in wanted for text in history.texts)
        }

    def resting_on(self, record_ids: Collection[str]) -> set[str]:
        """Return records that depend on some records alone.

        These are turns, items, pages, mentions and names.

        Also relations and summaries of a source of one of these, though others say the same: they repeat its words.
        What is left of them is rebuilt.
        """
        gone, waiting = set(record_ids), list(record_ids)
        while waiting:
            new = {
                near_id for near_id in self._near(waiting.pop()) if near_id not in gone and self._rests(near_id, gone)
            }
            gone |= new
            waiting += new
        return gone.difference(record_ids)

    def _near(self, record_id: str) -> set[str]:
        """Return records that may depend on a record."""
        near_ids = set(self._linked[record_id])
        history = self._known.get(record_id)
        if history is not None and history.kind == MENTIONS.name:
            near_ids |= history.sources(NAMES)
        if history is not None and history.is_item and history.kind not in _NO_WORDS:
            near_ids |= {
                retold_id
                for source in history.sources(FROM)
                for retold_id in self._linked[source]
                if self._known[retold_id].kind in _RETOLD
            }
        return near_ids & self._known.keys()

    def _rests(self, record_id: str, gone: Collection[str]) -> bool:
        history = self._known[record_id]
        if history.kind == EPISODE.name:
            return not history.sources(PART_OF).isdisjoint(gone)
        if history.kind in _RETOLD:
            return True
        if history.kind == ENTITY.name:
            naming = {other_id for other_id in self._linked[record_id] if self._known[other_id].kind == MENTIONS.name}
            return history.is_item and all(other_id in gone or not self._known[other_id].is_live for other_id in naming)
        if not history.passages.isdisjoint(gone):
            return True
        if history.is_made:
            return not any(
                other_id in self and self._known[other_id].is_live for other_id in history.made_of.difference(gone)
            )
        sources = history.sources(FROM)
        return (history.is_item or history.kind == MENTIONS.name) and bool(sources) and sources <= set(gone)

    # -- words --------------------------------------------------------------------------------------------------------

    def _find_quoted(self, item: _RecordHistory) -> Iterator[str]:
        """Yield the words of an item and those in its sources."""
        if not item.is_item:
            return
        if isinstance(speaker := item.metadata.get("speaker"), str) and speaker:
            yield from (text.removeprefix(f"{speaker}: ") for text in item.texts)
        also = item.metadata.get(ALSO)
        places = {
            **dict.fromkeys(item.sources(FROM), item.metadata.get("at")),
            **(also if isinstance(also, dict) else {}),
        }
        for source, place in places.items():
            history = self._known.get(source)
            match place:
                case [int(begin), int(end)] if history is not None:
                    yield from (text[begin:end] for text in self._whole(history) if text[begin:end].strip())

    def _whole(self, source: _RecordHistory) -> Iterator[str]:
        yield from source.texts
        for name in source.blobs:
            with contextlib.suppress(StorageError):  # it is missing or damaged
                yield self._blobs.read(name)

    def _find_titles(self, texts: Collection[str]) -> Iterator[str]:
        """Yield the titles of conversations that are beginnings of some texts."""
        wanted = {folded_text(text) for text in texts}
        for history in self._known.values():
            for text in history.texts if history.is_title else ():
                begun = folded_text(text).rstrip(_CUT)
                if len(begun) >= _LEAST_CUT and any(whole_text.startswith(begun) for whole_text in wanted):
                    yield text.rstrip("…. ")


class RecordWithSecrets(NamedTuple):
    """One record whose text has secrets.

    Attributes:
        id: ID of the record, live, forgotten or archived.
        kinds: Kinds of the secrets, in order of appearance.
        text: First of its texts with secrets; each secret is replaced by its kind.
    """

    id: str
    kinds: tuple[str, ...]
    text: str


def find_stored_secrets(folder: AgentFolder) -> list[RecordWithSecrets]:
    """Return records with secrets, earlier versions included. Blocking: reads each journal whole.

    Raises:
        StorageError: A journal cannot be read.
    """
    survey, redactor = PurgeSurvey(folder), SecretRedactor()
    records = []
    for record_id in survey.ids:
        redactions = [redactor.redact(text) for text in survey.list_texts(record_id)]
        with_secrets = [redaction for redaction in redactions if redaction.kinds]
        if with_secrets:
            kinds = dict.fromkeys(kind for redaction in with_secrets for kind in redaction.kinds)
            records.append(RecordWithSecrets(record_id, tuple(kinds), with_secrets[0].text))
    return records
