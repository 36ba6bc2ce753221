"""`Entities`: who and what one agent knows of, group by group: found by name, told in time, merged and split."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities.matching import full_form, normal_form
from agent_memory.entities.merging import find_root, merge
from agent_memory.entities.removed_rules import is_by_removed_rules, is_declared, is_guessed_relation
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.ingestion.entities.evidence import NameEvidence, is_common_use
from agent_memory.ingestion.entities.forgetting import forget_entity
from agent_memory.knowledge.intake.undoing import SUMMARIES
from agent_memory.knowledge.items.sentences import MAX_CHARS, spans_of
from agent_memory.models import EPISODE, MERGED_INTO, RESOURCE, Link
from agent_memory.models.digest_statements import FROM
from agent_memory.redaction import quoted
from agent_memory.tasks.marks import Marks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from agent_memory.ingestion.entities.forgetting import Gone
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, Mentions, Relation, Trust

_LEAST_CHARS: Final = 16
"""Beside the name, of what is shown of a text, if there are as many."""
_ALIKE: Final = 0.7
"""How much of a mistyped name must be that of an entity."""


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity, with what was merged into it.

    Attributes:
        entity: The one that the others are the same as.
        names: All its names, its own first.
        merged: Those that are the same as it.
        maybe: Ids of those that may be, by their own word or by its.
        mentions: How many sources speak of it.
    """

    entity: Entity
    names: tuple[str, ...]
    merged: tuple[Entity, ...] = ()
    maybe: tuple[str, ...] = ()
    mentions: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the time of an entity.

    Attributes:
        at: When it was said, or from when on it holds.
        what: `mention`, or the type of a relation.
        text: The words around the name, or those that say how they stand to each other.
        source: Id of the episode or resource.
        until: From when on it does not hold any more.
        other: The other entity of a relation, by its name.
        is_subject: Whether it is said of this entity.
        trust: Of the words.
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
    record: Mentions | None = None


@dataclass(slots=True)
class _View:
    """The shown entities of one group, and the records that name entities."""

    by_id: dict[str, Entity]
    mentions: Sequence[Mentions] = ()
    into: dict[str, list[Entity]] = field(default_factory=dict)

    def list_named(self, mentions: Mentions) -> list[str]:
        """Return the ids of the shown entities that a record names."""
        rows = zip(mentions.content.splitlines(), mentions.entities, strict=False)
        return [one for name, one in rows if one in self.by_id and not is_common_use(name, self.by_id[one])]

    def get_mentions(self, ids: Collection[str]) -> list[Mentions]:
        """Return the records that name some entities, one of each source: the newest reader's."""
        naming = [record for record in self.mentions if not set(ids).isdisjoint(self.list_named(record))]
        ordered = sorted(naming, key=is_by_removed_rules, reverse=True)
        return list({_source_of(record.links): record for record in ordered}.values())

    def same(self, entity: Entity) -> Entity:
        return find_root(entity, self.by_id)


class Entities:
    """Reads what background work drew, and lets a person merge and split.

    A group sees its own entities and none of another; None sees those of no group.

    Args:
        knowledge: The records.
        group: `tenant:session`; empty for what belongs to no group.
    """

    def __init__(self, knowledge: Knowledge, group: str = "") -> None:
        self._knowledge, self.group = knowledge, group

    async def all(self, entity_type: str | None = None) -> list[KnownEntity]:
        """Return the entities, those that most sources name first.

        Raises:
            StorageError: They cannot be read.
        """
        view = await self._view()
        counts = await self._counts(view)
        found = [
            self._known(view, each, counts)
            for each in view.by_id.values()
            if view.same(each) is each and entity_type in {None, each.entity_type}
        ]
        return sorted(found, key=lambda each: (-each.mentions, each.entity.name.casefold(), each.entity.id))

    async def get(self, name: str) -> KnownEntity:
        """Return the entity of a name, an alias, an id or the beginning of one.

        Raises:
            UnknownIdError: There is none, or there are several.
            StorageError: They cannot be read.
        """
        view = await self._view()
        found = {view.same(each).id: view.same(each) for each in _of_name(view.by_id.values(), name)}
        if len(found) != 1:
            several = ", ".join(sorted(each.name for each in found.values())[:5])
            raise UnknownIdError(
                f"{len(found)} entities are called like that: {several}."
                if found
                else f"No entity is called {quoted(name)}.{_meant(view.by_id.values(), name)}",
                code="ambiguous_entity" if found else "unknown_entity",
                recovery="`agent-memory entities` lists those there are; ids begin with ent-.",
            )
        (entity,) = found.values()
        return self._known(view, entity, await self._counts(view))

    async def relations(self, known: KnownEntity, as_of: datetime | None = None) -> list[Relation]:
        """Return the relations of an entity, by when they began; with a moment only those that hold at it.

        Raises:
            StorageError: They cannot be read.
        """
        ids = [known.entity.id, *(each.id for each in known.merged)]
        found = {each.id: each for one in ids for each in await self._knowledge.relations.linked_to(one)}
        own = [each for each in found.values() if each.group == self.group and not is_guessed_relation(each)]
        told = [each for each in own if as_of is None or each.holds_at(as_of)]
        return sorted(told, key=lambda each: (each.valid_from or each.timestamp, each.id))

    async def timeline(self, known: KnownEntity, as_of: datetime | None = None) -> list[Moment]:
        """Return what was said of an entity, in the order of time; with a moment, what was known or held then.

        Of each source that is the relations it tells, and the sentence that names the entity first, if that tells none.

        Raises:
            StorageError: The records cannot be read.
        """
        view = await self._view()
        own = {known.entity.id, *(each.id for each in known.merged)}
        relations = await self.relations(known)
        found = [_told(each, own, view) for each in relations if as_of is None or each.holds_at(as_of)]
        related: dict[str, list[str]] = {}
        for each in relations:  # also those that do not hold then: their words would say that they do
            related.setdefault(_source_of(each.links), []).append(each.content)
        mentions = view.get_mentions(own)
        texts, orders = await self._texts([_source_of(each.links) for each in [*mentions, *relations]])
        for mention in mentions:
            moment, source = mention.moment, _source_of(mention.links)
            words, told = _around(mention, own, texts.get(source, "")), related.get(source, [])
            is_told = bool(told) and (source not in texts or any(words in each or each in words for each in told))
            if not is_told and (as_of is None or moment <= as_of):
                found.append(Moment(moment, "mention", words, source, trust=mention.trust, record=mention))
        return sorted(found, key=lambda each: (each.at, orders.get(each.source, 0), each.source, each.what))

    async def merge(self, one: KnownEntity, other: KnownEntity, why: str = "a person said so") -> None:
        """Have one entity be the same as another one from now on; `split` takes it back.

        Raises:
            ValidationError: They are the same already.
            StorageError: Nothing was changed.
        """
        if one.entity.id == other.entity.id:
            raise ValidationError("They are the same already; nothing was changed.", code="same_entity")
        told = {"stage": "person", "score": 1.0, "evidence": [why]}
        await self._link(one.entity, other.entity.id, {"merge": told})

    async def split(self, known: KnownEntity) -> list[Entity]:
        """Have all that was merged into an entity stand by itself again; return these.

        Raises:
            StorageError: Some may stand by themselves; doing it again does the rest.
        """
        apart = [each for each in known.merged if each.merged_into == known.entity.id]
        for each in apart:
            told = {**_plain(each.metadata.get("merge")), "into": known.entity.id}
            await self._link(each, None, {"split": told})
        return apart

    async def forget(self, known: KnownEntity) -> Gone:
        """Forget an entity, how it stands to others, and where it is named; the texts stay.

        Raises:
            StorageError: Some may be forgotten; doing it again does the rest.
        """
        return await forget_entity(self._knowledge, known)

    async def _link(self, entity: Entity, into: str | None, told: dict[str, Any]) -> None:
        links = [link.model_dump() for link in entity.links if link.rel != MERGED_INTO]
        links += [] if into is None else [Link(rel=MERGED_INTO, id=into).model_dump()]
        kept = {key: value for key, value in entity.metadata.items() if key not in {"merge", "split", "maybe"}}
        await self._knowledge.entities.update(entity.id, {"links": links, "metadata": {**kept, **told}})

    async def _view(self) -> _View:
        """Return the entities that are shown: not those of removed rules, nor names that were seen once."""
        own = {each.id: each for each in await self._knowledge.entities.valid() if each.group == self.group}
        mentions = [each for each in await self._knowledge.mentions.valid() if each.group == self.group]
        evidence = NameEvidence(mentions)
        shown = {entity.id for entity in own.values() if evidence.is_shown(entity)}
        shown |= {entity.merged_into for entity in own.values() if is_declared(entity) and entity.merged_into in own}
        view = _View({entity_id: entity for entity_id, entity in own.items() if entity_id in shown}, mentions)
        for entity in view.by_id.values():
            root = view.same(entity)
            if root is not entity:
                view.into.setdefault(root.id, []).append(entity)
        return view

    async def _counts(self, view: _View) -> dict[str, int]:
        """Return how many sources name each entity."""
        sources: dict[str, set[str]] = {}
        named = [(view.list_named(each), each.links) for each in view.mentions]
        relations = [each for each in await self._knowledge.relations.valid() if each.group == self.group]
        named += [([each.from_id, each.to_id], each.links) for each in relations if not is_guessed_relation(each)]
        for ids, links in named:
            for entity in filter(None, map(view.by_id.get, ids)):
                sources.setdefault(view.same(entity).id, set()).add(_source_of(links))
        return {entity_id: len(found) for entity_id, found in sources.items()}

    async def _texts(self, sources: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
        """Return texts of sources, of long ones the beginning, and the places of turns in their conversations.

        Those of which something was forgotten have no text.
        """
        knowledge = self._knowledge
        forgotten = frozenset((await Marks(knowledge.marks).of(SUMMARIES)).never)
        episodes = await knowledge.episodes.valid_among([one for one in sources if one.startswith(EPISODE.prefix)])
        documents = await knowledge.resources.valid_among([one for one in sources if one.startswith(RESOURCE.prefix)])
        every = (*episodes.items(), *documents.items())
        texts = {one: each.content for one, each in every if one not in forgotten}
        return texts, {one: each.order for one, each in episodes.items()}

    def _known(self, view: _View, entity: Entity, counts: dict[str, int]) -> KnownEntity:
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
            if _plain(each.metadata.get("maybe")).get("id") in {one.id for one in every} and view.same(each) is each
        ]
        others = dict.fromkeys(view.same(view.by_id[str(one)]).id for one in maybe if one in view.by_id)
        others.pop(entity.id, None)
        return KnownEntity(whole, tuple(names), merged, tuple(others), counts.get(entity.id, 0))


def _of_name(entities: Iterable[Entity], name: str) -> list[Entity]:
    """Return the entities of a name: by id, by the form of a name, with its legal form or without, else by a word."""
    every, wanted = list(entities), normal_form(name)
    by_id = [each for each in every if name.startswith("ent-") and each.id.startswith(name)]
    if by_id:
        return by_id
    for form in (full_form, normal_form):
        exact = [each for each in every if form(name) in map(form, (each.name, *each.aliases))]
        if exact:
            return exact
    return [each for each in every if wanted and wanted in normal_form(each.name).split()]


def _meant(entities: Iterable[Entity], name: str) -> str:
    """Return the question whether the name most like a mistyped one was meant, or nothing."""
    known = {normal_form(each.name): each.name for each in entities}
    near = get_close_matches(normal_form(name), known, 1, _ALIKE)
    return f" Did you mean {known[near[0]]}?" if near else ""


def _plain(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _source_of(links: Sequence[Link]) -> str:
    return next((link.id for link in links if link.rel == FROM), "")


def _around(mention: Mentions, own: set[str], text: str) -> str:
    """Return the sentence in which a source first names an entity; the name where its text is not at hand.

    A short one, such as a greeting, goes on with those behind it: "Thanks, Ann! The contract is signed."
    """
    rows = zip(mention.content.splitlines(), mention.entities, mention.at, strict=False)
    name, at = next(((name, at) for name, one, at in rows if one in own), ("", 0))
    spans = list(spans_of(text, max(0, at - MAX_CHARS), min(len(text), at + MAX_CHARS)))
    for place, (start, end) in enumerate(spans):
        if start <= at < end:
            least = len(name) + _LEAST_CHARS
            whole = next((last for _, last in spans[place:] if last - start >= least), spans[-1][1])
            return " ".join(text[start:whole].split())
    return name


def _told(relation: Relation, own: set[str], view: _View) -> Moment:
    is_subject = relation.from_id in own
    other = view.by_id.get(relation.to_id if is_subject else relation.from_id)
    return Moment(
        relation.valid_from or relation.moment,
        relation.relation_type,
        relation.content,
        _source_of(relation.links),
        relation.valid_to,
        view.same(other).name if other is not None else "",
        is_subject,
        relation.trust,
    )
