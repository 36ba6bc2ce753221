"""Entities of one group: read by name and in time, merged, split and forgotten."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.knowledge.entities.matching.normal_forms import full_form, normal_form
from agent_memory.knowledge.entities.merges import (
    NameEvidence,
    find_root,
    is_by_removed_rules,
    is_common_use,
    is_guessed_relation,
    is_named_by_person,
    merge,
)
from agent_memory.knowledge.intake.withdrawal import get_forgotten_sources
from agent_memory.knowledge.pipeline.stages import Marks, with_never
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


class _MergedEntity(Protocol):
    """An entity with all merged into it."""

    @property
    def entity(self) -> Entity: ...

    @property
    def merged(self) -> tuple[Entity, ...]: ...


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """Numbers of forgotten entities, relations and records of mentions."""

    entities: int
    relations: int
    mentions: int


async def forget_entity(knowledge: Knowledge, known: _MergedEntity) -> RemovedCounts:
    """Forget an entity and all merged into it.

    Other entities of the same texts stay.

    Raises:
        StorageError: Some may be forgotten; a second call forgets the rest.
    """
    ids = [known.entity.id, *(entity.id for entity in known.merged)]
    marks = Marks(knowledge.marks)
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


async def _remove_names(knowledge: Knowledge, mention: EntityMentions, ids: Collection[str]) -> None:
    rows = list(zip(mention.content.splitlines(), mention.entities, mention.at, strict=False))
    left = [row for row in rows if row[1] not in ids]
    if not left:
        await knowledge.mentions.forget_many([mention.id])
        return
    links = [link.model_dump() for link in mention.links if not (link.rel == NAMES and link.id in ids)]
    changes: dict[str, Any] = {
        "content": "\n".join(name for name, _, _ in left),
        "at": [at for _, _, at in left],
        "links": links,
    }
    await knowledge.mentions.update(mention.id, redact_fields(MENTIONS, changes))


_LEAST_CHARS: Final = 16
"""Characters that are shown of a text in addition to the name, if it has as many."""
_ALIKE: Final = 0.7
"""Least similarity of a mistyped name to that of an entity."""


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
        return [one for name, one in rows if one in self.by_id and not is_common_use(name, self.by_id[one])]

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
        found = [
            self._build_merged(view, each, counts)
            for each in view.by_id.values()
            if view.get_root(each) is each and entity_type in {None, each.entity_type}
        ]
        return sorted(found, key=lambda each: (-each.mentions, each.entity.name.casefold(), each.entity.id))

    async def get(self, name: str) -> MergedEntity:
        """Return an entity by name, alias, or the beginning of its ID.

        Raises:
            UnknownIdError: There is none, or there are several.
            StorageError: They cannot be read.
        """
        view = await self._load_view()
        found = {view.get_root(each).id: view.get_root(each) for each in _find_by_name(view.by_id.values(), name)}
        if len(found) != 1:
            several = ", ".join(sorted(each.name for each in found.values())[:5])
            raise UnknownIdError(
                f"{len(found)} entities are called like that: {several}."
                if found
                else f"No entity is called {quoted(name)}.{_suggest_name(view.by_id.values(), name)}",
                code="ambiguous_entity" if found else "unknown_entity",
                recovery="`agent-memory entities` lists those there are; ids begin with ent-.",
            )
        (entity,) = found.values()
        return self._build_merged(view, entity, await self._count_sources(view))

    async def relations(self, known: MergedEntity, as_of: datetime | None = None) -> list[Relation]:
        """Return the relations of an entity in the order of their start.

        Args:
            known: Entity with all merged into it.
            as_of: Moment at which the relations hold; None for all.

        Raises:
            StorageError: They cannot be read.
        """
        ids = [known.entity.id, *(each.id for each in known.merged)]
        found = {each.id: each for one in ids for each in await self._knowledge.relations.linked_to(one)}
        own = [each for each in found.values() if each.group == self.group and not is_guessed_relation(each)]
        told = [each for each in own if as_of is None or each.holds_at(as_of)]
        return sorted(told, key=lambda each: (each.valid_from or each.timestamp, each.id))

    async def timeline(self, known: MergedEntity, as_of: datetime | None = None) -> list[TimelineEntry]:
        """Return the timeline of an entity.

        A source has its relations, and the first sentence with the entity if that is in no relation.

        Args:
            known: Entity with all merged into it.
            as_of: Moment at which an entry was known or held; None for all.

        Raises:
            StorageError: The records cannot be read.
        """
        view = await self._load_view()
        own = {known.entity.id, *(each.id for each in known.merged)}
        relations = await self.relations(known)
        found = [_make_entry(each, own, view) for each in relations if as_of is None or each.holds_at(as_of)]
        related: dict[str, list[str]] = {}
        for each in relations:  # also those that do not hold then: their words would say that they do
            related.setdefault(_get_source_id(each.links), []).append(each.content)
        mentions = view.get_mentions(own)
        texts, orders = await self._load_texts([_get_source_id(each.links) for each in [*mentions, *relations]])
        for mention in mentions:
            moment, source = mention.moment, _get_source_id(mention.links)
            words, told = _get_sentence(mention, own, texts.get(source, "")), related.get(source, [])
            is_told = bool(told) and (source not in texts or any(words in each or each in words for each in told))
            if not is_told and (as_of is None or moment <= as_of):
                found.append(TimelineEntry(moment, "mention", words, source, trust=mention.trust, record=mention))
        return sorted(found, key=lambda each: (each.at, orders.get(each.source, 0), each.source, each.what))

    async def merge(self, one: MergedEntity, other: MergedEntity, why: str = "a person said so") -> None:
        """Merge an entity into another one. Reversible with `split`.

        Raises:
            ValidationError: They are the same already.
            StorageError: Nothing was changed.
        """
        if one.entity.id == other.entity.id:
            raise ValidationError("They are the same already; nothing was changed.", code="same_entity")
        told = {"stage": "person", "score": 1.0, "evidence": [why]}
        await self._link(one.entity, other.entity.id, {"merge": told})

    async def split(self, known: MergedEntity) -> list[Entity]:
        """Split off all that was merged into an entity, and return it.

        Raises:
            StorageError: Some may be split off; a second call splits off the rest.
        """
        apart = [each for each in known.merged if each.merged_into == known.entity.id]
        for each in apart:
            told = {**_plain(each.metadata.get("merge")), "into": known.entity.id}
            await self._link(each, None, {"split": told})
        return apart

    async def forget(self, known: MergedEntity) -> RemovedCounts:
        """Forget an entity, its relations and mentions; the texts stay.

        Raises:
            StorageError: Some may be forgotten; a second call forgets the rest.
        """
        return await forget_entity(self._knowledge, known)

    async def _link(self, entity: Entity, into: str | None, told: dict[str, Any]) -> None:
        links = [link.model_dump() for link in entity.links if link.rel != MERGED_INTO]
        links += [] if into is None else [Link(rel=MERGED_INTO, id=into).model_dump()]
        kept = {key: value for key, value in entity.metadata.items() if key not in {"merge", "split", "maybe"}}
        await self._knowledge.entities.update(entity.id, {"links": links, "metadata": {**kept, **told}})

    async def _load_view(self) -> _View:
        """Return the shown entities: not guesses, nor names seen once."""
        own = {each.id: each for each in await self._knowledge.entities.valid() if each.group == self.group}
        mentions = [each for each in await self._knowledge.mentions.valid() if each.group == self.group]
        evidence = NameEvidence(mentions)
        shown = {entity.id for entity in own.values() if evidence.is_shown(entity)}
        shown |= {
            entity.merged_into for entity in own.values() if is_named_by_person(entity) and entity.merged_into in own
        }
        view = _View({entity_id: entity for entity_id, entity in own.items() if entity_id in shown}, mentions)
        for entity in view.by_id.values():
            root = view.get_root(entity)
            if root is not entity:
                view.into.setdefault(root.id, []).append(entity)
        return view

    async def _count_sources(self, view: _View) -> dict[str, int]:
        """Return how many sources name each entity."""
        sources: dict[str, set[str]] = {}
        named = [(view.list_named(each), each.links) for each in view.mentions]
        relations = [each for each in await self._knowledge.relations.valid() if each.group == self.group]
        named += [([each.from_id, each.to_id], each.links) for each in relations if not is_guessed_relation(each)]
        for ids, links in named:
            for entity in filter(None, map(view.by_id.get, ids)):
                sources.setdefault(view.get_root(entity).id, set()).add(_get_source_id(links))
        return {entity_id: len(found) for entity_id, found in sources.items()}

    async def _load_texts(self, sources: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
        """Return the beginnings of texts, and the order of turns.

        Sources with a forgotten part have no text.
        """
        knowledge = self._knowledge
        forgotten = await get_forgotten_sources(knowledge)
        episodes = await knowledge.episodes.valid_among([one for one in sources if one.startswith(EPISODE.prefix)])
        documents = await knowledge.resources.valid_among([one for one in sources if one.startswith(RESOURCE.prefix)])
        every = (*episodes.items(), *documents.items())
        texts = {one: each.content for one, each in every if one not in forgotten}
        return texts, {one: each.order for one, each in episodes.items()}

    def _build_merged(self, view: _View, entity: Entity, counts: dict[str, int]) -> MergedEntity:
        merged = tuple(sorted(view.into.get(entity.id, ()), key=lambda each: each.name))
        every, whole = [entity, *merged], entity
        for each in merged:
            with contextlib.suppress(ValidationError):  # more than can be told apart again: it is shown without
                whole = merge(whole, each)
        names = dict.fromkeys(name for each in every for name in (each.name, *each.aliases))
        maybe = [_plain(each.metadata.get("maybe")).get("id") for each in every]
        maybe += [
            each.id
            for each in view.by_id.values()
            if _plain(each.metadata.get("maybe")).get("id") in {one.id for one in every} and view.get_root(each) is each
        ]
        others = dict.fromkeys(view.get_root(view.by_id[str(one)]).id for one in maybe if one in view.by_id)
        others.pop(entity.id, None)
        return MergedEntity(whole, tuple(names), merged, tuple(others), counts.get(entity.id, 0))


def _find_by_name(entities: Iterable[Entity], name: str) -> list[Entity]:
    """Find entities by ID, by the form of the name, else by a word."""
    every, wanted = list(entities), normal_form(name)
    by_id = [each for each in every if name.startswith("ent-") and each.id.startswith(name)]
    if by_id:
        return by_id
    for form in (full_form, normal_form):
        exact = [each for each in every if form(name) in map(form, (each.name, *each.aliases))]
        if exact:
            return exact
    return [each for each in every if wanted and wanted in normal_form(each.name).split()]


def _suggest_name(entities: Iterable[Entity], name: str) -> str:
    """Return a question with the name most like a mistyped one, or ""."""
    known = {normal_form(each.name): each.name for each in entities}
    near = get_close_matches(normal_form(name), known, 1, _ALIKE)
    return f" Did you mean {known[near[0]]}?" if near else ""


def _plain(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _get_source_id(links: Sequence[Link]) -> str:
    return next((link.id for link in links if link.rel == FROM), "")


def _get_sentence(mention: EntityMentions, own: set[str], text: str) -> str:
    """Return the first sentence with an entity, or the name without a text.

    A short one, such as a greeting, goes on with the next: "Thanks, Ann! The contract is signed."
    """
    rows = zip(mention.content.splitlines(), mention.entities, mention.at, strict=False)
    name, at = next(((name, at) for name, one, at in rows if one in own), ("", 0))
    spans = list(find_sentences(text, max(0, at - MAX_CHARS), min(len(text), at + MAX_CHARS)))
    for place, (start, end) in enumerate(spans):
        if start <= at < end:
            least = len(name) + _LEAST_CHARS
            whole = next((last for _, last in spans[place:] if last - start >= least), spans[-1][1])
            return " ".join(text[start:whole].split())
    return name


def _make_entry(relation: Relation, own: set[str], view: _View) -> TimelineEntry:
    is_subject = relation.from_id in own
    other = view.by_id.get(relation.to_id if is_subject else relation.from_id)
    return TimelineEntry(
        relation.valid_from or relation.moment,
        relation.relation_type,
        relation.content,
        _get_source_id(relation.links),
        relation.valid_to,
        view.get_root(other).name if other is not None else "",
        is_subject,
        relation.trust,
    )


Entities, KnownEntity, Moment = EntityReader, MergedEntity, TimelineEntry
"""Earlier names of the classes."""
