"""Entities of one group: read, merged, split and forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.knowledge.entities.matching.normal_forms import full_form, normal_form
from agent_memory.knowledge.entities.merges import (
    NameCounts,
    find_root,
    is_by_removed_rules,
    is_common_use,
    is_guessed_relation,
    is_named_by_person,
    merge,
)
from agent_memory.knowledge.intake.withdrawal import get_forgotten_sources
from agent_memory.knowledge.pipeline.stages import StageCheckpoints, with_never
from agent_memory.language.sentences import MAX_CHARS, find_sentences
from agent_memory.models import EPISODE, MENTIONS, MERGED_INTO, NAMES, RESOURCE, Link
from agent_memory.models.knowledge import ENTITY_STAGE
from agent_memory.models.memory import FROM
from agent_memory.redaction import quoted
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, EntityMentions, Relation, Trust

_LEAST_CHARS: Final = 16
"""Characters that are shown of a text in addition to the name, if it has as many."""
_ALIKE: Final = 0.7
"""Least similarity of a mistyped name to that of an entity."""


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """Numbers of forgotten entities, relations and records of mentions."""

    entities: int
    relations: int
    mentions: int


async def _remove_names(knowledge: Knowledge, mention: EntityMentions, ids: Collection[str]) -> None:
    rows = list(zip(mention.content.splitlines(), mention.entities, mention.at, strict=False))
    remaining = [row for row in rows if row[1] not in ids]
    if not remaining:
        await knowledge.mentions.forget_many([mention.id])
        return
    links = [link.model_dump() for link in mention.links if not (link.rel == NAMES and link.id in ids)]
    changes: dict[str, Any] = {
        "content": "\n".join(name for name, _, _ in remaining),
        "at": [start for _, _, start in remaining],
        "links": links,
    }
    await knowledge.mentions.update(mention.id, redact_fields(MENTIONS, changes))


@dataclass(frozen=True, slots=True)
class MergedEntity:
    """An entity with all merged into it.

    Attributes:
        entity: Entity that the others were merged into.
        names: All names, its own first.
        merged: Entities that were merged into it.
        maybe: IDs of entities that may be the same.
        mentions: Number of sources that name it.
    """

    entity: Entity
    names: tuple[str, ...]
    merged: tuple[Entity, ...] = ()
    maybe: tuple[str, ...] = ()
    mentions: int = 0


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the timeline of an entity.

    Attributes:
        at: Moment of saying, or the start of a relation.
        what: `mention`, or the type of a relation.
        text: Words around the name, or of the relation.
        source: ID of the episode or resource.
        until: End of a relation; None if it still holds.
        other: Name of the other entity of a relation.
        is_subject: True if the relation is said of this entity.
        trust: Trust of the words.
        record: Record of a mention.
    """

    at: datetime
    what: str
    text: str
    source: str
    until: datetime | None = None
    other: str = ""
    is_subject: bool = True
    trust: Trust = "medium"
    record: EntityMentions | None = None


@dataclass(slots=True)
class _View:
    """The shown entities of one group, and the records that name entities."""

    by_id: dict[str, Entity]
    mentions: Sequence[EntityMentions] = ()
    into: dict[str, list[Entity]] = field(default_factory=dict)

    def list_named(self, mentions: EntityMentions) -> list[str]:
        """Return the ids of the shown entities that a record names."""
        rows = zip(mentions.content.splitlines(), mentions.entities, strict=False)
        return [
            entity_id
            for name, entity_id in rows
            if entity_id in self.by_id and not is_common_use(name, self.by_id[entity_id])
        ]

    def get_mentions(self, ids: Collection[str]) -> list[EntityMentions]:
        """Return the newest record of each source that names some entities."""
        naming = [record for record in self.mentions if not set(ids).isdisjoint(self.list_named(record))]
        ordered = sorted(naming, key=is_by_removed_rules, reverse=True)
        return list({_get_source_id(record.links): record for record in ordered}.values())

    def get_root(self, entity: Entity) -> Entity:
        return find_root(entity, self.by_id)


class EntityReader:
    """Reads, merges, splits and forgets the entities of one group.

    A group sees its own entities and none of another; None sees those of no group.

    Args:
        knowledge: Records of the agent.
        group: Group as `tenant:session`; empty for records without a group.
    """

    def __init__(self, knowledge: Knowledge, group: str = "") -> None:
        self._knowledge, self.group = knowledge, group

    async def all(self, entity_type: str | None = None) -> list[MergedEntity]:
        """Return the entities, the most named ones first.

        Raises:
            StorageError: They cannot be read.
        """
        view = await self._load_view()
        counts = await self._count_sources(view)
        merged = [
            self._build_merged(view, entity, counts)
            for entity in view.by_id.values()
            if view.get_root(entity) is entity and entity_type in {None, entity.entity_type}
        ]
        return sorted(merged, key=lambda entity: (-entity.mentions, entity.entity.name.casefold(), entity.entity.id))

    async def get(self, name: str) -> MergedEntity:
        """Return an entity by name, alias, or the beginning of its ID.

        Raises:
            UnknownIdError: No entity matches, or several do.
            StorageError: They cannot be read.
        """
        view = await self._load_view()
        roots = {
            view.get_root(candidate).id: view.get_root(candidate)
            for candidate in _find_by_name(view.by_id.values(), name)
        }
        if len(roots) != 1:
            several = ", ".join(sorted(candidate.name for candidate in roots.values())[:5])
            raise UnknownIdError(
                f"{len(roots)} entities are called like that: {several}."
                if roots
                else f"No entity is called {quoted(name)}.{_suggest_name(view.by_id.values(), name)}",
                code="ambiguous_entity" if roots else "unknown_entity",
                recovery="`agent-memory knowledge entities` lists those there are; ids begin with ent-.",
            )
        (entity,) = roots.values()
        return self._build_merged(view, entity, await self._count_sources(view))

    async def relations(self, merged: MergedEntity, as_of: datetime | None = None) -> list[Relation]:
        """Return the relations of an entity in the order of their start.

        Args:
            merged: Entity with all merged into it.
            as_of: Moment at which the relations hold; None for all.

        Raises:
            StorageError: They cannot be read.
        """
        ids = [merged.entity.id, *(item.id for item in merged.merged)]
        by_id = {item.id: item for entity_id in ids for item in await self._knowledge.relations.linked_to(entity_id)}
        relations = [item for item in by_id.values() if item.group == self.group and not is_guessed_relation(item)]
        holding = [item for item in relations if as_of is None or item.holds_at(as_of)]
        return sorted(holding, key=lambda item: (item.valid_from or item.timestamp, item.id))

    async def timeline(self, merged: MergedEntity, as_of: datetime | None = None) -> list[TimelineEntry]:
        """Return the timeline of an entity.

        A source has its relations, and the first sentence with the entity if that is in no relation.

        Args:
            merged: Entity with all merged into it.
            as_of: Moment at which an entry was known or held; None for all.

        Raises:
            StorageError: The records cannot be read.
        """
        view = await self._load_view()
        own_ids = {merged.entity.id, *(item.id for item in merged.merged)}
        relations = await self.relations(merged)
        entries = [_make_entry(item, own_ids, view) for item in relations if as_of is None or item.holds_at(as_of)]
        related: dict[str, list[str]] = {}
        for item in relations:  # also those that do not hold then: their words would say that they do
            related.setdefault(_get_source_id(item.links), []).append(item.content)
        mentions = view.get_mentions(own_ids)
        texts, orders = await self._load_texts([_get_source_id(item.links) for item in [*mentions, *relations]])
        for mention in mentions:
            moment, source = mention.moment, _get_source_id(mention.links)
            words, contents = _get_sentence(mention, own_ids, texts.get(source, "")), related.get(source, [])
            is_told = bool(contents) and (
                source not in texts or any(words in item or item in words for item in contents)
            )
            if not is_told and (as_of is None or moment <= as_of):
                entries.append(TimelineEntry(moment, "mention", words, source, trust=mention.trust, record=mention))
        return sorted(entries, key=lambda item: (item.at, orders.get(item.source, 0), item.source, item.what))

    async def merge(self, source: MergedEntity, target: MergedEntity, why: str = "a person said so") -> None:
        """Merge an entity into another one. Reversible with `split`.

        Raises:
            ValidationError: They are the same already.
            StorageError: Nothing was changed.
        """
        if source.entity.id == target.entity.id:
            raise ValidationError("They are the same already; nothing was changed.", code="same_entity")
        details = {"stage": "person", "score": 1.0, "evidence": [why]}
        await self._link(source.entity, target.entity.id, {"merge": details})

    async def split(self, merged: MergedEntity) -> list[Entity]:
        """Split off all that was merged into an entity, and return it.

        Raises:
            StorageError: Some may be split off; a second call splits off the rest.
        """
        apart = [entity for entity in merged.merged if entity.merged_into == merged.entity.id]
        for entity in apart:
            details = {**_plain(entity.metadata.get("merge")), "into": merged.entity.id}
            await self._link(entity, None, {"split": details})
        return apart

    async def forget(self, merged: MergedEntity) -> RemovedCounts:
        """Forget an entity and all merged into it; the texts stay.

        Its relations and mentions go with it. Other entities of the same texts stay.

        Raises:
            StorageError: Some may be forgotten; a second call forgets the rest.
        """
        ids = [merged.entity.id, *(entity.id for entity in merged.merged)]
        knowledge, marks = self._knowledge, StageCheckpoints(self._knowledge.marks)
        for source in (EPISODE.name, RESOURCE.name):
            await marks.keep(with_never(await marks.of_name(ENTITY_STAGE, source), ids))
        relations = {relation.id for entity_id in ids for relation in await knowledge.relations.linked_to(entity_id)}
        if relations:
            await knowledge.relations.forget_many(sorted(relations))
        mentions = {record.id: record for entity_id in ids for record in await knowledge.mentions.linked_to(entity_id)}
        for record in mentions.values():
            await _remove_names(knowledge, record, ids)
        existing = await knowledge.entities.valid_among(ids)
        # the entity that the others were merged into is the last, so that a second call finds it
        await knowledge.entities.forget_many([entity_id for entity_id in reversed(ids) if entity_id in existing])
        return RemovedCounts(len(existing), len(relations), len(mentions))

    async def _link(self, entity: Entity, into: str | None, details: dict[str, Any]) -> None:
        links = [link.model_dump() for link in entity.links if link.rel != MERGED_INTO]
        links += [] if into is None else [Link(rel=MERGED_INTO, id=into).model_dump()]
        metadata = {key: value for key, value in entity.metadata.items() if key not in {"merge", "split", "maybe"}}
        await self._knowledge.entities.update(entity.id, {"links": links, "metadata": {**metadata, **details}})

    async def _load_view(self) -> _View:
        """Return the shown entities: not guesses, nor names seen once."""
        entities = {
            record.id: record for record in await self._knowledge.entities.valid() if record.group == self.group
        }
        mentions = [record for record in await self._knowledge.mentions.valid() if record.group == self.group]
        evidence = NameCounts(mentions)
        shown = {entity.id for entity in entities.values() if evidence.is_shown(entity)}
        shown |= {
            entity.merged_into
            for entity in entities.values()
            if is_named_by_person(entity) and entity.merged_into in entities
        }
        view = _View({entity_id: entity for entity_id, entity in entities.items() if entity_id in shown}, mentions)
        for entity in view.by_id.values():
            root = view.get_root(entity)
            if root is not entity:
                view.into.setdefault(root.id, []).append(entity)
        return view

    async def _count_sources(self, view: _View) -> dict[str, int]:
        """Return the number of sources of each entity."""
        sources: dict[str, set[str]] = {}
        named = [(view.list_named(record), record.links) for record in view.mentions]
        relations = [record for record in await self._knowledge.relations.valid() if record.group == self.group]
        named += [
            ([record.from_id, record.to_id], record.links) for record in relations if not is_guessed_relation(record)
        ]
        for ids, links in named:
            for entity in filter(None, map(view.by_id.get, ids)):
                sources.setdefault(view.get_root(entity).id, set()).add(_get_source_id(links))
        return {entity_id: len(source_ids) for entity_id, source_ids in sources.items()}

    async def _load_texts(self, sources: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
        """Return the beginnings of texts, and the order of turns.

        Sources with a forgotten part have no text.
        """
        knowledge = self._knowledge
        forgotten = await get_forgotten_sources(knowledge)
        episodes, documents = await knowledge.load_sources(sources)
        records = (*episodes.items(), *documents.items())
        texts = {source_id: record.content for source_id, record in records if source_id not in forgotten}
        return texts, {source_id: record.order for source_id, record in episodes.items()}

    def _build_merged(self, view: _View, entity: Entity, counts: dict[str, int]) -> MergedEntity:
        merged = tuple(sorted(view.into.get(entity.id, ()), key=lambda member: member.name))
        members = [entity, *merged]
        names = dict.fromkeys(name for member in members for name in (member.name, *member.aliases))
        maybe = [_plain(member.metadata.get("maybe")).get("id") for member in members]
        maybe += [
            member.id
            for member in view.by_id.values()
            if _plain(member.metadata.get("maybe")).get("id") in {candidate.id for candidate in members}
            and view.get_root(member) is member
        ]
        suggested = dict.fromkeys(
            view.get_root(view.by_id[str(candidate)]).id for candidate in maybe if candidate in view.by_id
        )
        suggested.pop(entity.id, None)
        return MergedEntity(merge(entity, *merged), tuple(names), merged, tuple(suggested), counts.get(entity.id, 0))


def _find_by_name(entities: Iterable[Entity], name: str) -> list[Entity]:
    """Find entities by ID, by form of the name, or by word."""
    candidates, wanted = list(entities), normal_form(name)
    by_id = [entity for entity in candidates if name.startswith("ent-") and entity.id.startswith(name)]
    if by_id:
        return by_id
    for form in (full_form, normal_form):
        exact = [entity for entity in candidates if form(name) in map(form, (entity.name, *entity.aliases))]
        if exact:
            return exact
    return [entity for entity in candidates if wanted and wanted in normal_form(entity.name).split()]


def _suggest_name(entities: Iterable[Entity], name: str) -> str:
    """Return a question with the most similar name, or ""."""
    names = {normal_form(entity.name): entity.name for entity in entities}
    near = get_close_matches(normal_form(name), names, 1, _ALIKE)
    return f" Did you mean {names[near[0]]}?" if near else ""


def _plain(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _get_source_id(links: Sequence[Link]) -> str:
    return next((link.id for link in links if link.rel == FROM), "")


def _get_sentence(mention: EntityMentions, own_ids: set[str], text: str) -> str:
    """Return the first sentence with an entity, or its name.

    A short one, such as a greeting, includes the next: "Thanks, Ann! The contract is signed."
    """
    rows = zip(mention.content.splitlines(), mention.entities, mention.at, strict=False)
    name, position = next(((name, position) for name, entity_id, position in rows if entity_id in own_ids), ("", 0))
    spans = list(find_sentences(text, max(0, position - MAX_CHARS), min(len(text), position + MAX_CHARS)))
    for place, (start, end) in enumerate(spans):
        if start <= position < end:
            least = len(name) + _LEAST_CHARS
            stop = next((last for _, last in spans[place:] if last - start >= least), spans[-1][1])
            return " ".join(text[start:stop].split())
    return name


def _make_entry(relation: Relation, own_ids: set[str], view: _View) -> TimelineEntry:
    is_subject = relation.from_id in own_ids
    second = view.by_id.get(relation.to_id if is_subject else relation.from_id)
    return TimelineEntry(
        relation.valid_from or relation.moment,
        relation.relation_type,
        relation.content,
        _get_source_id(relation.links),
        relation.valid_to,
        view.get_root(second).name if second is not None else "",
        is_subject,
        relation.trust,
    )


Entities, KnownEntity, Moment = EntityReader, MergedEntity, TimelineEntry
"""Earlier names of the classes."""
