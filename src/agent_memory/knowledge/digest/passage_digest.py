"""Digest of passages: lists them and stores statements that their quotes support."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.digest.agreement import (
    QuotedPlace,
    choose_words,
    find_lead,
    find_sentence,
    find_sentence_before,
    tells_decision,
)
from agent_memory.knowledge.entities.entity_drafts import get_entity_id
from agent_memory.knowledge.entities.merges import REMOVED_RULES, list_cluster
from agent_memory.knowledge.entities.name_finder import BY_CAPITALS
from agent_memory.knowledge.entities.relations import (
    RELATIONS,
    ExtractedRelationship,
    make_relations,
    read_relations,
    store_relations,
)
from agent_memory.knowledge.intake.document_index import get_path, is_at
from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
from agent_memory.knowledge.passages.items import (
    BEFORE,
    SpokenTurn,
    get_place,
    get_speaker,
    is_passage,
    list_source_ids,
    split_turns,
)
from agent_memory.knowledge.passages.sections import SEPARATOR, find_words
from agent_memory.knowledge.pipeline.stages import StageCheckpoints
from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.memory.caller import is_seen
from agent_memory.memory.trust import lowest
from agent_memory.memory.views import shorten_line
from agent_memory.models import (
    DIGEST,
    ENTITY,
    EPISODE,
    MENTIONS,
    NAMES,
    RESOURCE,
    Episode,
    Listing,
    Resource,
    SearchFilters,
    derived_id,
    get_statement_id,
    sees,
    to_own_zone,
    to_text,
    visible,
)
from agent_memory.models.clock import get_saying_metadata
from agent_memory.models.knowledge import ENTITY_STAGE
from agent_memory.models.memory import FROM, SECTION
from agent_memory.redaction import quoted
from agent_memory.store.record_redaction import make_record, with_fields
from agent_memory.times import times_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.inbox import HeldCandidates
    from agent_memory.models import Memory

    _SourceTexts = dict[str, tuple[Resource | Episode | None, str]]
    Hold = Callable[[Mapping[str, Any]], Awaitable[HeldCandidates | None]]

_MAY_BE_HIDDEN: Final = frozenset({BY_CAPITALS, REMOVED_RULES})
DIGESTED_AT: Final = "digested_at"
"""Key of the metadata of a passage of which statements were made, with the time."""
_GIVEN: Final = frozenset({"id", "timestamp"})
"""Fields that a memory gets when it is stored."""
_MOST_NAMES: Final = 10
_MOST_LABEL: Final = 120
"""Characters of the name of a document."""
MOST_TOKENS: Final = 2_000
"""Estimated tokens of the passages that are handed out at once."""
_ROW_TOKENS: Final = 15
"""Tokens of the ID and the heading of such a passage."""


async def note_entities(knowledge: Knowledge, items: Iterable[Mapping[str, Any]]) -> None:
    """Store owners, entities and relations of statements, except forgotten ones.

    Args:
        knowledge: Records of the agent.
        items: Fields of the statements.

    Raises:
        StorageError: Some may be stored; doing it again stores none twice.
    """
    marks = [await StageCheckpoints(knowledge.marks).of_name(ENTITY_STAGE, kind.name) for kind in (EPISODE, RESOURCE)]
    forgotten = {record_id for mark in marks for record_id in mark.never}
    for item in items:
        details = item["metadata"]
        relations = [ExtractedRelationship.model_validate(row) for row in details.get(RELATIONS, ())]
        declared = {name for relation in relations for name in relation.names}
        names = {" ".join(name.split()) for name in (details.get("owner", ""), *details.get("entities", ()))} - {""}
        ids = {name: get_entity_id(name, item["group"]) for name in sorted(names | declared)}
        ids = {name: entity_id for name, entity_id in ids.items() if entity_id not in forgotten}
        for name, entity_id in ids.items():
            await _note_entity(knowledge, name, entity_id, item)
        mentions_id = derived_id(MENTIONS.prefix, item["id"], DIGEST)
        if ids and await knowledge.mentions.get(mentions_id) is None:
            links = [*item["links"], *({"rel": NAMES, "id": entity_id} for entity_id in ids.values())]
            values = {**_head(item), "links": links, "content": "\n".join(ids), "at": [details["at"][0]] * len(ids)}
            record = make_record(MENTIONS, values, knowledge.agent_id)
            await knowledge.mentions.store_many([with_fields(record, id=mentions_id)])
        if relations:
            await _note_relations(knowledge, relations, ids, item)


async def _note_relations(
    knowledge: Knowledge, relations: Iterable[ExtractedRelationship], ids: Mapping[str, str], item: Mapping[str, Any]
) -> None:
    """Store the relations that a statement declares."""
    quoted = [relation.model_copy(update={"quote": item["content"]}) for relation in relations]
    source = (item["id"], item["links"][0]["id"])
    records = make_relations(_head(item), knowledge.agent_id, quoted, ids, source)
    by_id = {entity.id: entity for entity in await knowledge.entities.valid() if entity.group == item["group"]}
    await store_relations(knowledge, records, lambda entity_id: list_cluster(entity_id, by_id))


async def _note_entity(knowledge: Knowledge, name: str, entity_id: str, item: Mapping[str, Any]) -> None:
    """Store an entity, or show one that was hidden."""
    existing = await knowledge.entities.get(entity_id)
    if existing is None:
        values = {**_head(item), "name": name, "entity_type": "name", "confidence": 1.0}
        record = make_record(ENTITY, values, knowledge.agent_id)
        await knowledge.entities.store_many([with_fields(record, id=entity_id)])
    elif existing.source.detail in _MAY_BE_HIDDEN:
        await knowledge.entities.update(entity_id, {"source": {"kind": "extraction", "detail": DIGEST}})


def _head(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("timestamp", "observed_at", "group", "source", "trust")}


@dataclass(frozen=True, slots=True)
class QuotedStatement:
    """A statement of an agent, with its passage and its quote.

    Attributes:
        passage: ID of the passage.
        quote: Words copied from the passage.
        text: Statement that can be read alone.
        is_decision: Whether it says what was decided.
        owner: Who is to do it; a name in the passage.
        date: When it is due, as in the quote.
        entities: Names that it is about; names in the passage.
        relations: Relations that it declares, as `read_relations` takes them.
    """

    passage: str
    quote: str
    text: str
    is_decision: bool = False
    owner: str = ""
    date: str = ""
    entities: Sequence[str] = ()
    relations: Sequence[Mapping[str, Any]] = ()


@dataclass(slots=True)
class DigestOutcome:
    """Outcome of handing statements back.

    Attributes:
        stored: Items that were stored.
        refused: Texts of refused statements, each with the reason.
        held: Texts of statements that wait for a person's yes.
        verbatim: IDs of items in the words of the document, rather than of the agent.
    """

    stored: list[Memory] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    verbatim: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class DuePassages:
    """Passages that are handed out, and how many there are.

    Attributes:
        passages: Passages without statements yet, as many as fit.
        total: Passages of the document.
        digested: Passages of it that have statements.
        files: Names of their documents, by the ID of the passage.
    """

    passages: Sequence[Memory]
    total: int
    digested: int
    files: Mapping[str, str] = field(default_factory=dict)


class PassageDigest:
    """Makes statements of passages with the agent of a session.

    Args:
        knowledge: Documents of the agent.
        service: Memories of the agent.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService) -> None:
        self._knowledge, self._service = knowledge, service

    async def hand_out(self, document: str, caller: Caller) -> DuePassages:
        """Return passages without statements.

        Args:
            document: ID, title, alias or path of a document; an empty one means all documents and talks.
            caller: Session that asks: it gets what it may see.

        Raises:
            ValidationError: No document or several have that name.
            StorageError: The passages cannot be read.
        """
        if document.strip():
            passages = await self._list_document(await self._find_document(document, caller), caller)
        else:
            passages = await list_passages(self._service, caller)
        passages = await self._leave_forgotten(passages)
        due = [passage for passage in passages if DIGESTED_AT not in passage.metadata]
        taken = take_first(due)
        return DuePassages(taken, len(passages), len(passages) - len(due), await self._name_files(taken))

    async def list_due(self, caller: Caller) -> list[Memory]:
        """Return all passages without statements, oldest first.

        Args:
            caller: Session that asks: it gets what it may see.

        Raises:
            StorageError: The passages cannot be read.
        """
        passages = await list_passages(self._service, caller)
        return await self._leave_forgotten([item for item in passages if DIGESTED_AT not in item.metadata])

    async def check_document(self, document: str, caller: Caller) -> None:
        """Check that a name is empty or names one document.

        Raises:
            ValidationError: No document or several have that name.
            StorageError: The documents cannot be read.
        """
        if document.strip():
            await self._find_document(document, caller)

    async def take_back(
        self,
        statements: Iterable[QuotedStatement],
        done: Iterable[str],
        caller: Caller,
        hold: Hold | None = None,
        *,
        author: str = "",
    ) -> DigestOutcome:
        """Store statements, or the sentences that they quote; note digested passages.

        Args:
            statements: Statements of the agent.
            done: IDs of passages that say nothing more.
            caller: Session that asks.
            hold: Function that keeps fields of a memory for a person's yes; it returns None if they may be stored.
            author: Value of `by` in the metadata of the statements, empty for the session's agent.

        Raises:
            ValidationError: A statement may not be stored; none was.
            StorageError: Some may be stored; doing it again stores none twice.
        """
        outcome = DigestOutcome()
        items: dict[str, dict[str, Any]] = {}
        finished = dict.fromkeys(done)
        texts: _SourceTexts = {}
        for statement in statements:
            item, reason = await self._check(statement, caller, texts)
            if reason:
                outcome.refused.append((statement.text, reason))
                continue
            finished[statement.passage] = None
            if author:
                item["metadata"]["by"] = author
            held = await hold({name: item[name] for name in item.keys() - _GIVEN}) if hold is not None else None
            if held is None:
                item["metadata"] = items.get(item["id"], item)["metadata"] | item["metadata"]
                items[item["id"]] = item
            elif held.ids:
                outcome.held.append(item["content"])
            else:
                outcome.refused.append((statement.text, held.explain()))
                continue
            if item["content"] != " ".join(statement.text.split()):
                outcome.verbatim.add(item["id"])
        if items:
            outcome.stored = (await self._service.writer.store_items(list(items.values()), caller)).stored
            await note_entities(self._knowledge, items.values())
        await self._note_digested(finished, caller)
        return outcome

    async def _leave_forgotten(self, passages: list[Memory]) -> list[Memory]:
        """Return the passages without forgotten text."""
        forgotten = await ForgottenTexts(self._knowledge, self._service).find_items(passages)
        return [passage for passage in passages if passage.id not in forgotten]

    async def _find_document(self, word: str, caller: Caller) -> Resource:
        """Return the document or conversation that a word names.

        Raises:
            ValidationError: It names none (`unknown_document`) or several (`several_documents`).
        """
        wanted = _normalize_name(word)
        visible_records = [
            record for record in await self._knowledge.resources.valid() if sees(caller.group, record.facets)
        ]
        named = [record for record in visible_records if wanted == record.id or is_at(record, word.strip())]
        named = named or [record for record in visible_records if wanted in map(_normalize_name, _list_names(record))]
        if len(named) > 1:
            listed = ", ".join(f"{record.id} ({_get_label(record, is_path=True)})" for record in named[:_MOST_NAMES])
            raise ValidationError(
                f"{len(named)} documents are called {quoted(word)}.",
                code="several_documents",
                recovery=f"Ask the user which one is meant, and give its ID: {listed}.",
            )
        if not named:
            titles = ", ".join(quoted(_get_label(record)) for record in visible_records[-_MOST_NAMES:])
            raise ValidationError(
                f"No document is called {quoted(word)}.",
                code="unknown_document",
                recovery=f"Name one of {titles}." if titles else "Run agent-memory ingest FILE first.",
            )
        return named[0]

    async def _list_document(self, record: Resource, caller: Caller) -> list[Memory]:
        """Return the visible passages of a document or conversation in order."""
        turns = sorted(await self._knowledge.episodes.linked_to(record.id), key=lambda turn: turn.order)
        passages: dict[str, Memory] = {}
        for source in (record.id, *(turn.id for turn in turns)):
            linked = [item for item in await self._service.storage.linked_to(source) if is_passage(item)]
            linked.sort(key=lambda item: get_place(item, source) or (0, 0))
            passages |= {item.id: item for item in linked if is_seen(item, caller)}
        current = await self._service.storage.valid_among([*passages])
        return [item for item in passages.values() if item.id in current]

    async def _name_files(self, passages: Iterable[Memory]) -> dict[str, str]:
        """Return document titles by passage; paths where titles are ambiguous."""
        sources = {item.id: list_source_ids(item) for item in passages}
        ids = [source for listed in sources.values() for source in listed]
        records = await self._knowledge.resources.valid_among(ids)
        counts = Counter(map(_get_label, records.values()))
        names = {
            source: _get_label(record, is_path=counts[_get_label(record)] > 1) for source, record in records.items()
        }
        first = {
            item_id: next((source for source in listed if source in names), "") for item_id, listed in sources.items()
        }
        return {item_id: names[source] for item_id, source in first.items() if source}

    async def _check(
        self, statement: QuotedStatement, caller: Caller, texts: _SourceTexts
    ) -> tuple[dict[str, Any], str]:
        """Return a statement as fields of an item, or a refusal.

        Texts of sources are added to `texts`, so that several statements read them once.
        """
        passage = await self._service.storage.get(statement.passage)
        if passage is None or not is_passage(passage) or not is_seen(passage, caller):
            return {}, "its passage does not exist"
        for source in list_source_ids(passage):
            if source not in texts:
                texts[source] = await self._read(source)
            record, text = texts[source]
            place = get_place(passage, source)
            turns = _list_turns(record, text) if record is not None else []
            quote = _find_quote(statement.quote, text, place, turns, passage) if place is not None else None
            if record is None or place is None or quote is None:
                continue
            turn = next((turn for turn in reversed(turns) if turn.start <= quote[0]), SpokenTurn(text))
            asked = _find_asked(passage, text[slice(*place)]) if turn.speaker and quote[0] >= place[0] else ""
            names = (turn.speaker, record.title) if isinstance(record, Resource) else (turn.speaker,)
            quoted_place = _locate(turn, quote, passage, asked, names)
            words, reason = choose_words(statement.text, quoted_place)
            stated = replace(statement, text=words)
            reason = reason or _check_details(statement, passage.content)
            reason = reason or _check_relations(stated, quoted_place, passage)
            if reason:
                return {}, reason
            stated = replace(stated, is_decision=statement.is_decision and tells_decision(quoted_place))
            item = _make_item(stated, passage, source, quote, caller, self._now())
            context = {"speaker": turn.speaker, SECTION: quoted_place.heading}
            item["metadata"] |= {name: value for name, value in context.items() if value}
            return item, ""
        return {}, "its quote is not in the passage"

    async def _read(self, source: str) -> tuple[Resource | Episode | None, str]:
        storage = self._knowledge.episodes if source.startswith(EPISODE.prefix) else self._knowledge.resources
        record: Any = await storage.get(source)
        text = "" if record is None else await self._knowledge.text_of(record)
        return record, await ForgottenTexts(self._knowledge, self._service).remove_forgotten(text, " ")

    async def _note_digested(self, ids: Iterable[str], caller: Caller) -> None:
        changes: dict[str, dict[str, Any]] = {}
        for passage_id in ids:
            passage = await self._service.storage.get(passage_id)
            if passage is not None and is_passage(passage) and is_seen(passage, caller):
                changes[passage_id] = {"metadata": {**passage.metadata, DIGESTED_AT: self._now()}}
        await self._service.writer.update_items(changes, caller)

    def _now(self) -> str:
        return to_text(self._knowledge.clock())


async def list_passages(service: MemoryService, caller: Caller) -> list[Memory]:
    """Return the passages that a session may see, oldest first.

    Raises:
        StorageError: They cannot be read.
    """
    if not (await service.storage.tally()).items:
        return []
    listing = Listing("oldest", SearchFilters(include_items=True, only_items=True))
    records = (await service.storage.browse(listing)).records
    return [record for record in records if is_passage(record) and is_seen(record, caller)]


def _list_turns(record: Resource | Episode, text: str) -> list[SpokenTurn]:
    """Return the turns of talk with their speakers; none of a document."""
    if isinstance(record, Episode):
        return [SpokenTurn(text, get_speaker(record))]
    return split_turns(text) if record.resource_type == "conversation" else []


def _find_quote(
    quote: str, text: str, place: tuple[int, int], turns: Iterable[SpokenTurn], passage: Memory
) -> tuple[int, int] | None:
    """Return the place of a quote in a passage or its question."""
    words = find_words(quote, text, *place)
    earlier = [turn.start for turn in turns if turn.start < place[0]][-BEFORE:]
    if words is not None or not earlier or find_words(quote, passage.content) is None:
        return words
    return find_words(quote, text, earlier[0], place[0])


def _find_asked(passage: Memory, words: str) -> str:
    """Return the question above the words of a turn, with its label."""
    above = passage.content.removesuffix(words)
    return above if above != passage.content and "\n" in above else ""


def _locate(turn: SpokenTurn, quote: tuple[int, int], passage: Memory, asked: str, names: Sequence[str]) -> QuotedPlace:
    """Return a quote with what is around it."""
    heading = str(passage.metadata.get("heading", ""))
    place = (quote[0] - turn.start, quote[1] - turn.start)
    start, end = find_sentence(turn.text, place)
    return QuotedPlace(
        turn.text[slice(*place)],
        turn.text[start:end],
        find_lead(turn.text, (start, end), heading.rpartition(SEPARATOR)[2]),
        (find_sentence_before(turn.text, start), asked),
        heading,
        names,
    )


def _normalize_name(name: str) -> str:
    return name.casefold().strip().removeprefix("the ").strip()


def _list_names(record: Resource) -> list[str]:
    """Return the names of a document: title, title without the ending, aliases."""
    aliases = record.metadata.get("aliases")
    return [
        record.title,
        Path(record.title).stem,
        get_path(record),
        *map(str, aliases if isinstance(aliases, list) else ()),
    ]


def _get_label(record: Resource, *, is_path: bool = False) -> str:
    """Return the title of a document, or its path, as one line."""
    name = " ".join(visible((get_path(record) if is_path else "") or record.title or record.id).split())
    return f"…{name[-_MOST_LABEL:]}" if is_path and len(name) > _MOST_LABEL else shorten_line(name, _MOST_LABEL)


def _check_details(statement: QuotedStatement, content: str) -> str:
    """Return a reason if a passage lacks a detail of its statement."""
    for name in (statement.owner, statement.date, *statement.entities):
        if name.strip() and find_words(name.casefold(), content.casefold()) is None:
            return f"{name.strip()} is not in the passage"
    return ""


def _check_relations(statement: QuotedStatement, place: QuotedPlace, passage: Memory) -> str:
    """Return a reason if a quote lacks details of its relations."""
    relations, left_out = read_relations(list(statement.relations), f"{place.quote}\n{statement.text}")
    said_at = to_own_zone(passage.moment, passage.metadata)
    days = {said_at.date()}.union(
        *((mention.first_day, mention.end_day) for mention in times_in(place.sentence, said_at))
    )
    for relation in relations:
        dates = (relation.valid_from, relation.valid_to)
        if missing := [date for date in dates if date is not None and date.date() not in days]:
            left_out.append(f"the quote of a relation does not name the day {missing[0]:%Y-%m-%d}")
    return next(iter(left_out), "")


def _make_item(
    statement: QuotedStatement, passage: Memory, source: str, place: tuple[int, int], caller: Caller, now: str
) -> dict[str, Any]:
    details: dict[str, Any] = {
        "owner": statement.owner.strip(),
        "due": statement.date.strip(),
        "entities": list(statement.entities),
        RELATIONS: [dict(row) for row in statement.relations],
    }
    metadata: dict[str, Any] = {
        "at": [*place],
        "passage": passage.id,
        **{name: value for name, value in details.items() if value},
    }
    metadata |= {key: passage.metadata[key] for key in ["path"] if key in passage.metadata}
    metadata |= get_saying_metadata(passage.metadata)
    text, trust = statement.text, lowest(caller.trust, passage.trust, "medium")
    return {
        "id": get_statement_id(passage.belongs_to, trust, passage.id, text),
        "content": text,
        "category": "decision" if statement.is_decision else "note",
        "timestamp": now,
        "observed_at": None if passage.observed_at is None else to_text(passage.observed_at),
        "source": {"kind": "extraction", "detail": DIGEST},
        "trust": trust,
        "group": passage.belongs_to,
        "links": [{"rel": FROM, "id": source}],
        "metadata": metadata,
    }


def take_first(passages: Sequence[Memory]) -> list[Memory]:
    """Return the first passages that fit into one answer or prompt."""
    room = MOST_TOKENS
    taken: list[Memory] = []
    for passage in passages:
        room -= _ROW_TOKENS + estimate_tokens(passage.content)
        if taken and room < 0:
            break
        taken.append(passage)
    return taken
