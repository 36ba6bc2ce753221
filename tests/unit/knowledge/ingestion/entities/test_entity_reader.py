"""Who and what is spoken of is known by group, told in time, and merged so that it can be taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.ingestion import (
    EntityDeduplicator,
    EntityExtractionConfig,
    EntityExtractor,
    Episode,
    MemoryIngestor,
    Turn,
)
from agent_memory.knowledge.entities.entity_drafts import get_entity_id
from agent_memory.knowledge.entities.entity_repository import EntityReader
from agent_memory.knowledge.intake.drafts import ReceivedDocument
from agent_memory.knowledge.intake.drafts import ReceivedTurn as Said
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import undo
from agent_memory.memory import NOBODY
from agent_memory.models import Entity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock

SAID = datetime(2026, 3, 14, 12, tzinfo=UTC)
GROUP, OTHER = "acme:7f3a", "umbrella:1"


def row(subject: str, related: str, relation: str = "works_at", **details: object) -> dict[str, object]:
    """Return a declared relation; by default a subject has one of its type at a time."""
    return {"from": subject, "type": relation, "to": related, "single": relation == "works_at", **details}


MEETING = ("I met Tobias Reuter in Berlin.", row("Tobias Reuter", "Berlin", "met_in"))
NICKNAME = ("We call him Tobsen Maier, he lives in Hamburg.", row("Tobsen Maier", "Hamburg", "lives_in"))
AT_INITECH = ("Tobias Reuter works at Initech.", row("Tobias Reuter", "Initech"))
AT_ACME = ("Tobias Reuter works at Acme GmbH.", row("Tobias Reuter", "Acme GmbH"))
AT_GLOBEX = ("Tobias Reuter works at Globex Inc.", row("Tobias Reuter", "Globex Inc"))


@pytest.fixture
async def ingestor(knowledge: Knowledge, service: MemoryService) -> AsyncIterator[MemoryIngestor]:
    """Return an ingestor without a model."""
    opened = MemoryIngestor(knowledge=knowledge, service=service)
    yield opened
    await opened.close()


def make_turn(words: str | tuple[object, ...], days: int = 0) -> Turn:
    """Return a turn of a text, or of a text with its declared relations."""
    text, *rows = (words,) if isinstance(words, str) else words
    metadata = {"relations": rows} if rows else {}
    return Turn(str(text), timestamp=SAID + timedelta(days=days), metadata=metadata)


async def say(ingestor: MemoryIngestor, *turns: str | tuple[object, ...], group: str = GROUP) -> None:
    """Ingest what a user says, a day apart, and work on it."""
    tenant, _, session = group.partition(":")
    for number, words in enumerate(turns):
        await ingestor.ingest_turn(make_turn(words, number), SimpleNamespace(tenant_id=tenant, id=session))
    await ingestor.background.settle()


async def read(ingestor: MemoryIngestor, knowledge: Knowledge, said: Said) -> None:
    """Ingest a text of an untrusted source, and work on it."""
    await Ingest(knowledge).turn(said, conversation="res-0123456789ab", order=9, group=GROUP)
    await ingestor.background.tell()
    await ingestor.background.settle()


async def test_what_is_named_is_an_entity_of_its_group_with_where_it_was_named(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(ingestor, MEETING, "Tobias Reuter runs api.example.org.")
    entities = EntityReader(knowledge, GROUP)
    known = {each.entity.name: each for each in await entities.all()}
    assert {"Tobias Reuter", "Berlin", "api.example.org"} <= known.keys()
    assert known["Tobias Reuter"].mentions == 2
    assert {known["Tobias Reuter"].entity.entity_type, known["Berlin"].entity.entity_type} == {"name"}
    moments = await entities.timeline(known["Berlin"])
    assert [(each.what, each.text, each.at) for each in moments] == [("met_in", "I met Tobias Reuter in Berlin.", SAID)]
    source = await knowledge.episodes.get(moments[0].source)
    assert source is not None
    assert "Berlin" in source.content
    assert await EntityReader(knowledge, OTHER).all() == []
    assert await EntityReader(knowledge).all() == []


@pytest.mark.parametrize(
    ("details", "first", "last"),
    [
        ({"valid_from": "2025-03-01"}, datetime(2025, 3, 1, tzinfo=UTC), None),
        (
            {"valid_from": "2023-05-01", "valid_to": "2023-08-01T00:00:00Z"},
            datetime(2023, 5, 1, tzinfo=UTC),
            datetime(2023, 8, 1, tzinfo=UTC),
        ),
        ({"valid_to": "2024-03-01"}, None, datetime(2024, 3, 1, tzinfo=UTC)),
        ({"valid_to": "2026-05-02"}, SAID, datetime(2026, 5, 2, tzinfo=UTC)),
        ({}, SAID, None),
    ],
)
async def test_declared_relation_has_its_dates_else_that_of_saying(
    ingestor: MemoryIngestor,
    knowledge: Knowledge,
    details: dict[str, str],
    first: datetime | None,
    last: datetime | None,
) -> None:
    await say(ingestor, (AT_INITECH[0], row("Tobias Reuter", "Initech", **details)))
    entities = EntityReader(knowledge, GROUP)
    (relation,) = await entities.relations(await entities.get("Tobias Reuter"))
    assert (relation.relation_type, relation.valid_from, relation.valid_to) == ("works_at", first, last)
    assert relation.content == "Tobias Reuter works at Initech."


async def test_what_was_over_already_ends_nothing_that_holds(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, AT_INITECH, (AT_ACME[0], row("Tobias Reuter", "Acme GmbH", valid_to="2024-03-01")))
    entities = EntityReader(knowledge, GROUP)
    relations = await entities.relations(await entities.get("Tobias Reuter"))
    over = datetime(2024, 3, 1, tzinfo=UTC)
    assert {(each.valid_from, each.valid_to) for each in relations} == {(SAID, None), (None, over)}


async def test_working_again_makes_nothing_twice(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    await say(ingestor, MEETING)
    counts = [await each.count() for each in (knowledge.entities, knowledge.mentions, knowledge.relations)]
    mark = next(each for each in await knowledge.marks.valid() if each.stage == "entities" and each.through)
    await knowledge.marks.update(mark.id, {"through": 0})
    again = MemoryIngestor(knowledge=knowledge, service=service)
    await again.background.tell()
    await again.background.settle()
    assert [await each.count() for each in (knowledge.entities, knowledge.mentions, knowledge.relations)] == counts
    await again.close()


async def test_a_person_merges_and_splits(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, MEETING, NICKNAME)
    entities = EntityReader(knowledge, GROUP)
    one, other = await entities.get("Tobias Reuter"), await entities.get("Tobsen Maier")
    await entities.merge(other, one)
    both = await entities.get("tobsen maier")
    assert (both.entity.id, both.names, both.mentions) == (one.entity.id, ("Tobias Reuter", "Tobsen Maier"), 2)
    assert [each.what for each in await entities.timeline(both)] == ["met_in", "lives_in"]
    assert [each.name for each in await entities.split(both)] == ["Tobsen Maier"]
    assert (await entities.get("Tobsen Maier")).entity.id == other.entity.id
    with pytest.raises(ValidationError, match="same already"):
        await entities.merge(one, one)


async def test_who_is_forgotten_stays_forgotten_and_the_others_stay(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(ingestor, MEETING, AT_INITECH, "Tobias Reuter called.")
    entities = EntityReader(knowledge, GROUP)
    gone = await entities.forget(await entities.get("Tobias Reuter"))
    assert (gone.entities, gone.mentions) == (1, 3)
    assert gone.relations >= 1
    with pytest.raises(UnknownIdError):
        await entities.get("Tobias Reuter")
    assert await knowledge.relations.valid() == []
    berlin = await entities.get("Berlin")
    assert [each.text for each in await entities.timeline(berlin)] == ["I met Tobias Reuter in Berlin."]
    assert berlin.mentions == 1
    await say(ingestor, ("Tobias Reuter lives in Hamburg.", row("Tobias Reuter", "Hamburg", "lives_in")))
    assert {each.entity.name for each in await entities.all()} == {"Berlin", "Initech", "Hamburg"}
    assert await knowledge.relations.valid() == []
    assert all("Reuter" not in each.content for each in await knowledge.mentions.valid())


async def test_who_was_merged_is_forgotten_whole(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, MEETING, NICKNAME)
    entities = EntityReader(knowledge, GROUP)
    await entities.merge(await entities.get("Tobsen Maier"), await entities.get("Tobias Reuter"))
    assert (await entities.forget(await entities.get("Tobias Reuter"))).entities == 2
    assert {each.entity.name for each in await entities.all()} == {"Berlin", "Hamburg"}


async def test_a_name_that_is_nobody_is_told_with_what_to_do(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, "I met Tobias Reuter in Berlin.")
    with pytest.raises(UnknownIdError, match="No entity") as caught:
        await EntityReader(knowledge, GROUP).get("Hugo Balder")
    assert "agent-memory knowledge entities" in caught.value.recovery


async def test_undoing_takes_what_nothing_else_names(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    await say(ingestor, MEETING)
    await say(ingestor, "Tobias Reuter called, and then Tobias Reuter left.", group="acme:2")
    conversations = {each.group: each.id for each in await knowledge.resources.valid()}
    await undo(knowledge, service, [conversations[GROUP]], NOBODY)
    assert await EntityReader(knowledge, GROUP).all() == []
    assert [each.entity.name for each in await EntityReader(knowledge, "acme:2").all()] == ["Tobias Reuter"]


async def test_a_duplicate_is_looked_for_in_its_group_alone(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, ("PostgreSQL runs on db-1.", row("PostgreSQL", "db-1", "runs_on")))
    new = Entity(agent_id="bob", name="postgresql", entity_type="product", group=GROUP)
    deduplicator = EntityDeduplicator(knowledge)
    found = await deduplicator.find_duplicate(new, GROUP)
    assert found is not None
    assert found.id == get_entity_id("PostgreSQL", GROUP)
    assert await deduplicator.find_duplicate(new, OTHER) is None
    merged = await deduplicator.merge_entities(found, new)
    assert (merged.id, merged.valid_from) == (found.id, found.valid_from)
    with pytest.raises(ValidationError, match="tenant and a session"):
        await deduplicator.find_duplicate(new, "everything")


async def test_a_batch_keeps_its_order(ingestor: MemoryIngestor) -> None:
    session = SimpleNamespace(tenant_id="acme", id="1")
    said = [
        await ingestor.ingest_turn(Turn(text, timestamp=SAID + timedelta(days=at)), session)
        for at, text in enumerate(["I met Tobias Reuter.", "Nothing at all happened.", "We flew to Berlin."])
    ]
    found = await EntityExtractor(EntityExtractionConfig(min_confidence="low")).extract_batch(said)
    assert [[one.name for one in each.entities] for each in found] == [["Tobias Reuter"], [], ["Berlin"]]


async def test_a_later_relation_ends_the_one_before_it_and_both_are_told_in_time(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(ingestor, AT_ACME, "Nothing new.", AT_GLOBEX)
    entities = EntityReader(knowledge, GROUP)
    tobias = await entities.get("Tobias Reuter")
    first, second = await entities.relations(tobias)
    assert [each.relation_type for each in (first, second)] == ["works_at", "works_at"]
    assert (first.valid_from, first.valid_to) == (SAID, SAID + timedelta(days=2))
    assert (second.valid_from, second.valid_to) == (SAID + timedelta(days=2), None)
    for day, other in ((0, "Acme GmbH"), (1, "Acme GmbH"), (2, "Globex Inc"), (9, "Globex Inc")):
        moments = await entities.timeline(tobias, SAID + timedelta(days=day))
        assert [each.other.rstrip(".") for each in moments if each.what == "works_at"] == [other]


async def test_an_older_statement_that_comes_later_ends_when_the_newer_one_began(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(ingestor, AT_ACME)
    await ingestor.ingest_turn(make_turn(AT_GLOBEX, -30), SimpleNamespace(tenant_id="acme", id="7f3a"))
    await ingestor.background.settle()
    entities = EntityReader(knowledge, GROUP)
    older, newer = await entities.relations(await entities.get("Tobias Reuter"))
    assert (older.valid_from, older.valid_to) == (SAID - timedelta(days=30), SAID)
    assert (newer.valid_from, newer.valid_to) == (SAID, None)


async def test_a_stranger_ends_nothing_that_a_user_said(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, AT_ACME)
    text, relation = "Tobias Reuter works at Mallory Ltd.", row("Tobias Reuter", "Mallory Ltd")
    said = Said(text, role="tool", said_at=SAID + timedelta(days=1), metadata={"relations": [relation]})
    await read(ingestor, knowledge, said)
    known = {each.trust: each for each in await knowledge.relations.valid()}
    assert known.keys() == {"high", "low"}
    assert known["high"].valid_to is None


@pytest.mark.parametrize("order", ["user first", "stranger first"])
async def test_a_stranger_gives_no_name_to_what_a_user_speaks_of(
    ingestor: MemoryIngestor, knowledge: Knowledge, order: str
) -> None:
    """Nor does a name that a stranger gave stand for what a user names: it may be the same, and a person says so."""
    relation = row("Tobias M. Reuter", "Bitcoin", "pays_in")
    said = Said("Tobias M. Reuter pays in Bitcoin.", role="tool", said_at=SAID, metadata={"relations": [relation]})
    if order == "stranger first":
        await read(ingestor, knowledge, said)
    await say(ingestor, AT_INITECH)
    if order == "user first":
        await read(ingestor, knowledge, said)
    entities = EntityReader(knowledge, GROUP)
    own, foreign = await entities.get("Tobias Reuter"), await entities.get("Tobias M. Reuter")
    assert (own.entity.trust, own.names) == ("high", ("Tobias Reuter",))
    assert foreign.entity.trust == "low"
    assert (own.maybe, foreign.maybe) == ((foreign.entity.id,), (own.entity.id,))


async def test_a_user_gives_the_spelling_of_what_a_stranger_named_first(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    relation = row("TOBIAS REUTER", "Berlin", "met_in")
    said = Said("We saw TOBIAS REUTER in Berlin.", role="tool", said_at=SAID, metadata={"relations": [relation]})
    await read(ingestor, knowledge, said)
    assert (await EntityReader(knowledge, GROUP).get("Tobias Reuter")).entity.name == "TOBIAS REUTER"
    await say(ingestor, AT_INITECH)
    known = await EntityReader(knowledge, GROUP).get("Tobias Reuter")
    assert (known.entity.name, known.entity.trust) == ("Tobias Reuter", "high")


@pytest.mark.parametrize(
    "order",
    [
        ("Acme Corp", "Acme GmbH", "Acme"),
        ("Acme", "Acme GmbH", "Acme Corp"),
        ("Acme GmbH", "Acme", "Acme Corp"),
    ],
)
async def test_firms_of_two_legal_forms_stay_two_though_a_third_name_fits_both(
    ingestor: MemoryIngestor, knowledge: Knowledge, order: tuple[str, ...]
) -> None:
    await say(ingestor, *((f"We sell to {name} in Turin.", row(name, "Turin", "buys_in")) for name in order))
    entities = EntityReader(knowledge, GROUP)
    one, other = await entities.get("Acme GmbH"), await entities.get("Acme Corp")
    assert one.entity.id != other.entity.id
    assert not {"Acme GmbH", "Acme Corp"} <= set(one.names)
    assert not {"Acme GmbH", "Acme Corp"} <= set(other.names)


async def test_a_relation_is_ended_by_one_of_another_thing_and_not_by_another_name_of_the_same(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(ingestor, AT_ACME, ("Tobias Reuter works at Acme.", row("Tobias Reuter", "Acme")))
    entities = EntityReader(knowledge, GROUP)
    assert (await entities.get("Acme")).names == ("Acme GmbH", "Acme")
    assert [each.valid_to for each in await entities.relations(await entities.get("Tobias Reuter"))] == [None, None]


async def test_a_relation_told_under_another_name_of_somebody_ends_the_one_before(
    ingestor: MemoryIngestor, knowledge: Knowledge, clock: FrozenClock
) -> None:
    await say(ingestor, ("Toby Reuter works at Acme GmbH.", row("Toby Reuter", "Acme GmbH")), MEETING)
    entities = EntityReader(knowledge, GROUP)
    clock.advance(seconds=1)
    await entities.merge(await entities.get("Toby Reuter"), await entities.get("Tobias Reuter"))
    await ingestor.ingest_turn(make_turn(AT_INITECH, 9), SimpleNamespace(tenant_id="acme", id="7f3a"))
    await ingestor.background.settle()
    known = await entities.get("Tobias Reuter")
    relations = [each for each in await entities.relations(known) if each.relation_type == "works_at"]
    told = {each.content: each.valid_to for each in relations}
    assert told == {
        "Toby Reuter works at Acme GmbH.": SAID + timedelta(days=9),
        "Tobias Reuter works at Initech.": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        "I love " + "Ann " * 3000,
        "Mr. " + "Xanadu" * 1700 + " called.",
        "We met __proto__ and constructor there.",
    ],
)
async def test_what_is_too_long_or_a_part_of_a_program_is_no_entity(
    ingestor: MemoryIngestor, knowledge: Knowledge, text: str
) -> None:
    await say(ingestor, text)
    assert [each.entity.name for each in await EntityReader(knowledge, GROUP).all()] == []


async def test_a_name_in_letters_of_another_alphabet_is_not_the_name_it_looks_like(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    own, foreign = "Alice Meyer", "\u0410lice Meyer"
    await say(ingestor, *((f"{name} works at Initech.", row(name, "Initech")) for name in (own, foreign)))
    known = await EntityReader(knowledge, GROUP).get("Alice Meyer")
    assert (known.names, known.mentions) == (("Alice Meyer",), 1)


async def test_a_duplicate_of_less_trust_is_not_sure(knowledge: Knowledge) -> None:
    """Else the caller would merge it, and a stranger's name would find what a user speaks of."""
    known = Entity(agent_id="bob", name="PostgreSQL", entity_type="product", group=GROUP, trust="high")
    await knowledge.entities.store(known)
    finder = EntityDeduplicator(knowledge)
    for trust, found in (("high", known.id), ("medium", known.id), ("low", None)):
        asked = Entity(agent_id="bob", name="postgres", entity_type="product", group=GROUP, trust=trust)
        got = await finder.find_duplicate(asked, GROUP)
        assert (got.id if got is not None else None) == found


@pytest.mark.parametrize(
    ("details", "over"),
    [({"valid_to": "2026-03-14"}, datetime(2026, 3, 14, tzinfo=UTC)), ({}, SAID + timedelta(days=1))],
)
async def test_what_is_said_to_be_over_holds_no_more(
    ingestor: MemoryIngestor, knowledge: Knowledge, details: dict[str, str], over: datetime
) -> None:
    began = row("Tobias Reuter", "Initech", valid_from="2025-03-01", single=False)
    left = row("Tobias Reuter", "Initech", ended=True, single=False, **details)
    await say(ingestor, (AT_INITECH[0], began), ("Tobias Reuter left Initech.", left))
    entities = EntityReader(knowledge, GROUP)
    known = await entities.get("Tobias Reuter")
    before, end = await entities.relations(known)
    assert (before.valid_from, before.valid_to) == (datetime(2025, 3, 1, tzinfo=UTC), over)
    assert (end.valid_from, end.valid_to) == (over, over)
    assert [each.id for each in await entities.relations(known, over - timedelta(days=1))] == [before.id]
    assert await entities.relations(known, over) == []


async def test_an_end_that_is_known_first_ends_what_began_before_it(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(
        ingestor,
        ("Tobias Reuter left Initech.", row("Tobias Reuter", "Initech", ended=True, valid_to="2026-03-01")),
        (AT_INITECH[0], row("Tobias Reuter", "Initech", valid_from="2025-03-01")),
        (AT_ACME[0], row("Tobias Reuter", "Acme GmbH", valid_from="2025-06-01")),
    )
    entities = EntityReader(knowledge, GROUP)
    found = await entities.relations(await entities.get("Tobias Reuter"))
    told = {(each.valid_from, each.valid_to) for each in found}
    assert (datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)) in told
    assert (datetime(2025, 6, 1, tzinfo=UTC), None) in told


async def test_relations_bad_row_is_left_out_with_reason(
    ingestor: MemoryIngestor, knowledge: Knowledge, caplog: pytest.LogCaptureFixture
) -> None:
    text = "Tobias Reuter works at Initech."
    bad = row("Tobias Reuter", "Init")
    await say(ingestor, (text, bad, row("Tobias Reuter", "Initech", since="May"), row("Tobias Reuter", "Initech")))
    (relation,) = await knowledge.relations.valid()
    assert relation.content == text
    assert "relation 1: to is not in the text" in caplog.text
    assert "relation 2: since is not known" in caplog.text
    assert "Tobias" not in caplog.text


async def test_document_metadata_declares_relations(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    document = ReceivedDocument("The billing service.\n\nbilling-api depends on Redis.", title="Services")
    declared = {"relations": [row("billing-api", "Redis", "depends_on")]}
    await Ingest(knowledge).resource(document, metadata=declared)
    await ingestor.background.tell()
    await ingestor.background.settle()
    entities = EntityReader(knowledge)
    (relation,) = await entities.relations(await entities.get("billing-api"))
    assert (relation.relation_type, relation.content) == ("depends_on", "billing-api depends on Redis.")


async def test_extractor_episode_metadata_gives_relations() -> None:
    text, relation = AT_INITECH
    episode = Episode("epi-0123456789ab", GROUP, str(text), metadata={"relations": [relation]})
    result = await EntityExtractor().extract(episode)
    (related,) = result.relationships
    assert (related.from_name, related.relation_type, related.to_name) == ("Tobias Reuter", "works_at", "Initech")
    assert [entity.name for entity in result.entities if entity.confidence == "high"] == ["Tobias Reuter", "Initech"]


async def test_a_greeting_is_shown_with_what_is_said_behind_it_in_the_order_of_the_talk(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    for number in range(6):
        turn = Turn(f"Thanks, Tobias Reuter! Part {number} of the contract is signed now.", timestamp=SAID)
        await ingestor.ingest_turn(turn, SimpleNamespace(tenant_id="acme", id="7f3a"))
    await ingestor.background.settle()
    entities = EntityReader(knowledge, GROUP)
    told = [each.text for each in await entities.timeline(await entities.get("Tobias Reuter"))]
    assert told == [f"Thanks, Tobias Reuter! Part {number} of the contract is signed now." for number in range(6)]


async def names_shown(knowledge: Knowledge) -> dict[str, str]:
    """Return the types of the entities that are shown, by name."""
    return {each.entity.name: each.entity.entity_type for each in await EntityReader(knowledge, GROUP).all()}


async def test_entities_name_seen_twice_is_shown_with_both_texts(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    await say(ingestor, "I met Tobias Reuter in Berlin.")
    assert await names_shown(knowledge) == {}
    await say(ingestor, "We called Tobias Reuter again.")
    assert await names_shown(knowledge) == {"Tobias Reuter": "name"}
    entities = EntityReader(knowledge, GROUP)
    known = await entities.get("Tobias Reuter")
    assert (known.mentions, len(await entities.timeline(known))) == (2, 2)


@pytest.mark.parametrize("between", [0, 120])
async def test_entities_speaker_is_found_in_earlier_texts_of_the_chat(
    ingestor: MemoryIngestor, knowledge: Knowledge, between: int
) -> None:
    texts = [
        "Tom works for Northwind.",
        "Tom lives in Bremen.",
        *(f"Crate {number} is full." for number in range(between)),
    ]
    turns = [*(Said(text, "person", "Ada") for text in texts), Said("I leave on Friday.", "person", "Tom")]
    chat = await Ingest(knowledge).conversation("chat", title="chat", group=GROUP)
    await Ingest(knowledge).turns(turns, conversation=chat.record.id, group=GROUP)
    await ingestor.background.tell()
    await ingestor.background.settle()
    entities = EntityReader(knowledge, GROUP)
    known = await entities.get("Tom")
    assert (known.entity.entity_type, known.mentions) == ("person", 3)
    assert {moment.text for moment in await entities.timeline(known)} == {*texts[:2], turns[-1].text}


async def test_entities_reading_again_adds_names_that_are_known_now(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    await say(ingestor, "Tom lives in Bremen.", "See PROJ-12, and ask Tom about it.")
    await read(ingestor, knowledge, Said("I leave on Friday.", "person", "Tom"))
    entities = EntityReader(knowledge, GROUP)
    assert (await entities.get("Tom")).mentions == 1
    for mark in [each for each in await knowledge.marks.valid() if each.stage == "entities" and each.through]:
        await knowledge.marks.update(mark.id, {"through": 0})
    again = MemoryIngestor(knowledge=knowledge, service=service)
    await again.background.tell()
    await again.background.settle()
    await again.close()
    assert (await entities.get("Tom")).mentions == 3
    assert (await entities.get("PROJ-12")).mentions == 1


async def test_entities_name_twice_in_one_text_is_shown(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, "I met Tobias Reuter, and later Tobias Reuter left.")
    assert await names_shown(knowledge) == {"Tobias Reuter": "name"}


async def test_entities_word_in_small_letters_is_not_shown(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, "I love Pilates.", "I do pilates daily.", "I met Pilates fans, she likes Pilates.")
    assert await names_shown(knowledge) == {}


async def test_entities_read_again_counts_a_source_once(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    await say(ingestor, "I met Tobias Reuter in Berlin.")
    for mark in [each for each in await knowledge.marks.valid() if each.stage == "entities" and each.through]:
        await knowledge.marks.update(mark.id, {"through": 0})
    again = MemoryIngestor(knowledge=knowledge, service=service)
    await again.background.tell()
    await again.background.settle()
    await again.close()
    assert await names_shown(knowledge) == {}


async def test_entities_form_gives_the_type_at_first_sight(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, "See src/app/main.py, PROJ-12 and https://acme.dev/x, or ask bob@acme.com.")
    assert await names_shown(knowledge) == {
        "src/app/main.py": "file", "PROJ-12": "issue", "https://acme.dev/x": "url", "bob@acme.com": "mail",
    }  # fmt: skip


async def test_entities_sentence_alone_makes_no_relation(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, "I think Tobias Reuter works at Initech.", "No, Tobias Reuter left Initech, I think.")
    assert await knowledge.relations.valid() == []


@pytest.mark.parametrize("declared", [row("Tobias Reuter", "Initech", ended=True), row("Tobias Reuter", "Acme GmbH")])
async def test_relation_of_document_ends_none_of_user(
    ingestor: MemoryIngestor, knowledge: Knowledge, declared: dict[str, object]
) -> None:
    await say(ingestor, AT_INITECH)
    text, said_at = f"{AT_INITECH[0]} {AT_ACME[0]}", SAID + timedelta(days=5)
    document = ReceivedDocument(text, "staff.md", said_at=said_at, metadata={"relations": [declared]})
    await Ingest(knowledge).resource(document, group=GROUP)
    await ingestor.background.tell()
    await ingestor.background.settle()
    relations = await EntityReader(knowledge, GROUP).relations(
        await EntityReader(knowledge, GROUP).get("Tobias Reuter")
    )
    assert [relation.valid_to for relation in relations if relation.trust == "high"] == [None]
    assert {relation.trust for relation in relations} == {"high", "medium"}


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
async def test_relation_beyond_calendar_is_left_out_alone(
    ingestor: MemoryIngestor, knowledge: Knowledge, moment: str
) -> None:
    beyond = row("Tobias Reuter", "Initech", valid_from=moment)
    await say(ingestor, (f"{AT_INITECH[0]} {AT_ACME[0]}", beyond, AT_ACME[1]))
    relations = await EntityReader(knowledge, GROUP).relations(
        await EntityReader(knowledge, GROUP).get("Tobias Reuter")
    )
    assert [relation.content for relation in relations] == [AT_ACME[0]]


async def test_relation_name_with_line_break_is_one_line(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    await say(ingestor, (AT_ACME[0], row("Tobias Reuter", "Acme\nGmbH")))
    names = {known.entity.name for known in await EntityReader(knowledge, GROUP).all()}
    assert names == {"Tobias Reuter", "Acme GmbH"}
