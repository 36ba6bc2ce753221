"""`MemoryStore`: entries go in as records of each kind, and come out as entries."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks.health_report import list_backlog
from agent_memory.care.importance import ENTRY_TYPES
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.lifecycle import ImportanceLevel, MemoryEntry, MemoryEntryType, MemoryStore, MemoryStoreConfig
from agent_memory.memory import Caller
from tests.support import raises, read_files

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Trust
    from tests.support import FrozenClock

TYPES = MemoryEntryType
OTHERS = {TYPES.INTERACTION, TYPES.CONTEXT}
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


def entry(text: str, entry_type: str = TYPES.KNOWLEDGE, **fields: Any) -> MemoryEntry:
    return MemoryEntry(entry_type=entry_type, content={"text": text}, **fields)


async def texts(store: MemoryStore, query: str, **options: Any) -> list[str]:
    return [each.text for each in await store.retrieve_relevant(query, **options)]


@pytest.mark.parametrize("entry_type", ENTRY_TYPES)
async def test_each_type_of_entry_comes_back_as_it_went_in(store: MemoryStore, entry_type: str) -> None:
    stored = await store.store_entry(
        entry(
            "The harbour crane needs a new cable.",
            entry_type,
            session_id="session-7",
            summary="Crane cable",
            keywords=["crane", "Cable"],
            semantic_tags=["harbour"],
            temporal_context={"season": "spring"},
            source="user_interaction",
            importance_score=0.7,
            pinned=entry_type == TYPES.PATTERN,
            related_entries=["mem-000000000001" if entry_type in OTHERS else "elsewhere"],
        )
    )
    found = await store.get_entry_by_id(stored)
    assert found is not None
    assert (found.entry_type, found.text, found.summary) == (
        entry_type,
        "The harbour crane needs a new cable.",
        "Crane cable",
    )
    assert (found.keywords, found.temporal_context) == (["crane", "Cable"], {"season": "spring"})
    assert (found.semantic_tags, found.importance_score) == (["harbour"], 1.0 if entry_type == TYPES.PATTERN else 0.7)
    assert found.related_entries == ["mem-000000000001" if entry_type in OTHERS else "elsewhere"]
    assert found.session_id == ("" if entry_type == TYPES.CONTEXT else "session-7")
    assert [each.text for each in await store.retrieve_relevant("harbour crane cable")] == [found.text]
    assert [
        each.entry_type for each in await store.retrieve_relevant("harbour crane cable", entry_types=[entry_type])
    ] == [entry_type]


@pytest.mark.parametrize("given", ["entry_001", "my/own id", str(uuid.UUID(int=2**100 + 7)), "world_model:42"])
@pytest.mark.parametrize("entry_type", [TYPES.PREFERENCE, TYPES.INTERACTION, TYPES.CONTEXT])
async def test_an_id_of_the_programs_own_finds_its_entry(store: MemoryStore, given: str, entry_type: str) -> None:
    assert await store.store_entry(entry("Maria likes tea.", entry_type, entry_id=given)) == given
    found = await store.get_entry_by_id(given)
    assert found is not None
    assert (found.entry_id, found.text) == (given, "Maria likes tea.")
    assert await store.get_entry_by_id(found.record_id) is not None
    assert await store.delete_entry(given)
    assert await store.get_entry_by_id(given) is None


async def test_without_one_it_has_that_of_its_record(store: MemoryStore) -> None:
    assert (await store.store_entry(entry("Maria likes tea."))).startswith("mem-")
    assert (await store.store_entry(entry("Maria likes tea.", TYPES.INTERACTION))).startswith("epi-")
    assert (await store.store_entry(entry("Maria likes tea.", TYPES.CONTEXT))).startswith("res-")


async def test_secrets_reach_no_file(store: MemoryStore, root: Path) -> None:
    for entry_type in (TYPES.KNOWLEDGE, TYPES.INTERACTION, TYPES.CONTEXT):
        stored = await store.store_entry(
            entry(f"The key is {SECRET} for {entry_type}.", entry_type, summary=f"Key {SECRET}")
        )
        found = await store.get_entry_by_id(stored)
        assert found is not None
        assert "[redacted:" in found.text
    await store.service.settle()
    assert not [path for path, content in read_files(root) if SECRET.encode() in content]


async def test_the_same_text_is_stored_once(store: MemoryStore) -> None:
    first = await store.store_entry(entry("Maria likes tea.", entry_id="first"))
    assert await store.store_entry(entry("Maria likes  tea.", entry_id="second")) == first


async def test_many_entries_are_stored_as_one_by_one(store: MemoryStore, root: Path) -> None:
    known = await store.store_entry(entry("Maria likes tea."))
    given = [
        entry("The ferry leaves at nine.", importance_score=0.9, semantic_tags=["boats"], session_id="s1"),
        entry("Maria  likes tea."),
        *[entry(f"Turn {n}", TYPES.INTERACTION, session_id=f"s{n % 2}", importance_score=0.3) for n in range(4)],
        entry("The ferry leaves at nine."),
        entry("An own name.", entry_id="own"),
        entry("The ferry leaves at ten.", TYPES.CORRECTION),
        entry(f"The build server of the harbour signs with {SECRET}", TYPES.CONTEXT),
        entry(f"The staging server of the harbour signs with {SECRET}", TYPES.INSIGHT),
    ]
    ids = await store.store_entries(given)
    assert (ids[1], ids[6], ids[7]) == (known, ids[0], "own")
    found = [await store.get_entry_by_id(each) for each in ids]
    assert [each.entry_type for each in found if each] == [each.entry_type for each in given]
    assert [each.importance_score for each in found if each][2:6] == [0.3] * 4
    first = found[0]
    assert first is not None
    assert (first.importance_score, first.semantic_tags, first.session_id) == (0.9, ["boats"], "s1")
    assert [each.text for each in await store.get_conversation_history("s1")] == ["Turn 3", "Turn 1"]
    await store.settle()
    assert not [path for path, content in read_files(root) if SECRET.encode() in content]


@pytest.mark.parametrize("trust", ["high", "medium", "low"])
async def test_many_entries_are_trusted_as_one_is(store: MemoryStore, clock: FrozenClock, trust: Trust) -> None:
    async with MemoryStore(service=store.service, caller=Caller(trust=trust), clock=clock) as own:
        for entry_type in (TYPES.INSIGHT, TYPES.INTERACTION):
            one = await own.store_entry(entry(f"The ferry is late, an {entry_type}.", entry_type, source="user"))
            (many,) = await own.store_entries([entry(f"The boat is blue, an {entry_type}.", entry_type, source="user")])
            records = [await own.kept.get(each) for each in (one, many)]
            assert len({each.trust for each in records if each}) == 1


async def test_many_entries_one_of_which_has_no_words_are_refused(store: MemoryStore) -> None:
    with raises(ValidationError, "empty_entry"):
        await store.store_entries([entry("Maria likes tea."), MemoryEntry()])
    assert (await store.get_memory_statistics())["total_entries"] == 0


async def test_entries_before_too_long_memory_are_not_stored(store: MemoryStore) -> None:
    with raises(ValidationError, "invalid"):
        await store.store_entries([entry("Maria likes tea."), entry("tea " * 5_000)])
    assert (await store.get_memory_statistics())["total_entries"] == 0


async def test_an_entry_that_is_stored_again_is_changed(store: MemoryStore) -> None:
    for text in ("The boat is blue.", "The boat is red."):
        await store.store_entry(entry(text, entry_id="boat"))
    found = await store.get_entry_by_id("boat")
    assert found is not None
    assert found.text == "The boat is red."
    assert (await store.get_memory_statistics())["total_entries"] == 1


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (MemoryEntry(entry_type="rumour", content={"text": "x"}), "unknown_entry_type"),
        (MemoryEntry(content={}), "empty_entry"),
        (MemoryEntry(content={"text": "x"}, importance_score=3), "invalid"),
    ],
)
async def test_what_is_no_entry_is_refused(store: MemoryStore, wrong: MemoryEntry, code: str) -> None:
    with raises(ValidationError, code):
        await store.store_entry(wrong)
    metrics = store.performance_metrics.get_summary()
    assert metrics["store"]["errors"] == 1


async def test_content_without_a_text_is_read_as_a_whole(store: MemoryStore) -> None:
    stored = await store.store_entry(MemoryEntry(content={"port": 5432, "host": "db one"}))
    found = await store.get_entry_by_id(stored)
    assert found is not None
    assert found.content == {"text": "port: 5432\nhost: db one", "port": 5432, "host": "db one"}


async def test_a_correction_replaces_its_parent(store: MemoryStore) -> None:
    old = await store.store_entry(entry("The backup runs at two.", TYPES.LEARNING))
    await store.store_entry(entry("The backup runs at four.", TYPES.CORRECTION, parent_entry=old))
    assert await texts(store, "when does the backup run") == ["The backup runs at four."]
    (found,) = await store.retrieve_relevant("backup runs", entry_types=[TYPES.CORRECTION])
    assert found.parent_entry == old


async def test_importance_that_was_given_stays_and_any_other_is_calculated_anew(
    store: MemoryStore, clock: FrozenClock
) -> None:
    given = await store.store_entry(entry("Keep the red valve shut.", importance_score=ImportanceLevel.HIGH))
    computed = await store.store_entry(entry("The green valve squeaks."))
    pinned = await store.store_entry(entry("The blue valve leaks.", pinned=True))
    before = [await store.get_entry_by_id(each) for each in (given, computed, pinned)]
    clock.advance(days=20)
    after = [await store.get_entry_by_id(each) for each in (given, computed, pinned)]
    assert [each.importance_score for each in before + after if each][::3] == [0.8, 0.8]
    assert [each.importance_score for each in before + after if each][2::3] == [1.0, 1.0]
    assert before[1]
    assert after[1]
    assert before[1].importance_score
    assert after[1].importance_score
    assert before[1].importance_score - after[1].importance_score == pytest.approx(0.25 * 20 / 30)


# -- retrieval --------------------------------------------------------------------------------------------------------


async def test_finds_entries_of_all_kinds_and_counts_an_access_of_memories(store: MemoryStore) -> None:
    for entry_type in (TYPES.INSIGHT, TYPES.INTERACTION, TYPES.CONTEXT):
        await store.store_entry(entry(f"The ferry to Elba leaves at nine, says an {entry_type}.", entry_type))
    found = await store.retrieve_relevant("when does the ferry to Elba leave")
    assert {each.entry_type for each in found} == {TYPES.INSIGHT, TYPES.INTERACTION, TYPES.CONTEXT}
    assert all(each.relevance and 0.6 <= each.relevance <= 1 for each in found)
    await store.settle()
    (insight,) = await store.retrieve_relevant("ferry to Elba", entry_types=[TYPES.INSIGHT])
    assert insight.access_count == 1


async def test_shows_what_lies_in_a_time_alone(store: MemoryStore, clock: FrozenClock) -> None:
    now = clock()
    for days in (1, 10, 40):
        for entry_type in (TYPES.LEARNING, TYPES.INTERACTION):
            moment = now - timedelta(days=days)
            await store.store_entry(entry(f"Ferry note {days} {entry_type}.", entry_type, timestamp=moment))
    found = await store.retrieve_relevant("ferry note", time_range=(now - timedelta(days=20), now - timedelta(days=5)))
    assert sorted(each.text for each in found) == ["Ferry note 10 interaction.", "Ferry note 10 learning."]


async def test_time_counts_where_the_question_speaks_of_it_alone(store: MemoryStore, clock: FrozenClock) -> None:
    old = entry("The ferry was late.", TYPES.LEARNING, timestamp=clock() - timedelta(days=200), importance_score=0.5)
    new = entry("The ferry was full.", TYPES.LEARNING, timestamp=clock() - timedelta(days=1), importance_score=0.5)
    for each in (old, new):
        await store.store_entry(each)
    plain = {
        each.text: each.relevance for each in await store.retrieve_relevant("how was the ferry", relevance_threshold=0)
    }
    assert plain[old.text] == plain[new.text]
    assert (await texts(store, "how was the ferry yesterday", relevance_threshold=0))[0] == new.text


async def test_importance_of_zero_is_not_rated(store: MemoryStore) -> None:
    stored = [
        await store.store_entry(entry(f"Checkout {name} loses users.", importance_score=score))
        for name, score in (("a", 0.0), ("b", None))
    ]
    rated, unrated = [await store.get_entry_by_id(entry_id) for entry_id in stored]
    assert rated is not None
    assert unrated is not None
    assert rated.importance_score
    assert rated.importance_score == unrated.importance_score


async def test_closed_store_leaves_no_background_work(root: Path) -> None:
    async with MemoryStore(MemoryStoreConfig(storage_path=str(root))) as own:
        await own.store_entry(entry("We moved the release to Friday.", TYPES.INTERACTION, session_id="s1"))
        await own.store_entry(entry("The harbour has two cranes.", TYPES.CONTEXT))
        assert await list_backlog(own.service)
    async with MemoryStore(MemoryStoreConfig(storage_path=str(root))) as again:
        assert await list_backlog(again.service) == []


async def test_importance_counts_once(store: MemoryStore) -> None:
    for importance in (0.2, 1.0):
        await store.store_entry(entry(f"The ferry has number {importance}.", importance_score=importance))
    first, second = await store.retrieve_relevant("ferry number", relevance_threshold=0)
    assert first.relevance
    assert second.relevance
    assert first.importance_score == 1.0
    raw = [relevance ** (1 / 0.32) for relevance in (first.relevance, second.relevance)]
    assert raw[0] - raw[1] == pytest.approx(0.1 * 0.8 / (0.3 + 0.1), abs=1e-4)  # no embedder: meaning has no weight


async def test_words_of_strangers_count_half(store: MemoryStore, clock: FrozenClock) -> None:
    async with MemoryStore(service=store.service, caller=Caller(trust="low"), clock=clock) as stranger:
        await stranger.store_entry(entry("The ferry number is ten.", importance_score=0.5))
    await store.store_entry(entry("The ferry number is nine.", importance_score=0.5))
    ours, theirs = await store.retrieve_relevant("ferry number", relevance_threshold=0.0)
    assert ours.text == "The ferry number is nine."
    assert theirs.relevance == pytest.approx((ours.relevance or 0) / 2)


@pytest.mark.parametrize(
    "options",
    [
        {"max_results": 0},
        {"max_results": 101},
        {"relevance_threshold": 1.5},
        {"entry_types": ["rumour"]},
        {"time_range": ("now",)},
    ],
)
async def test_refuses_wrong_arguments(store: MemoryStore, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        await store.retrieve_relevant("ferry", **options)


async def test_another_group_is_not_there(store: MemoryStore, root: Path, clock: FrozenClock) -> None:
    def of(group: str) -> MemoryStore:
        return MemoryStore(service=store.service, caller=Caller(group=group), clock=clock)

    async with of("acme:one") as one, of("acme:two") as two:
        stored = [
            await one.store_entry(entry(f"The ferry sails, {each}.", each))
            for each in (TYPES.INTERACTION, TYPES.CONTEXT, TYPES.INSIGHT)
        ]
        assert len(await one.retrieve_relevant("ferry")) == 3
        assert await two.retrieve_relevant("ferry") == []
        assert await two.get_conversation_history() == []
        assert [await two.get_entry_by_id(each) for each in stored] == [None, None, None]


# -- lists ------------------------------------------------------------------------------------------------------------


async def test_tells_the_history_of_a_session_newest_first(store: MemoryStore, clock: FrozenClock) -> None:
    for number in range(5):
        for session in ("session-1", "session-2"):
            await store.store_entry(entry(f"Turn {number}", TYPES.INTERACTION, session_id=session, timestamp=clock()))
        clock.advance(minutes=1)
    await store.store_entry(entry("No turn.", session_id="session-1"))
    history = await store.get_conversation_history("session-1", max_entries=3)
    assert [(each.text, each.session_id) for each in history] == [(f"Turn {n}", "session-1") for n in (4, 3, 2)]
    assert len(await store.get_conversation_history()) == 10
    lately = await store.get_conversation_history("session-2", time_range=(clock() - timedelta(minutes=2), clock()))
    assert [each.text for each in lately] == ["Turn 4", "Turn 3"]


async def test_the_same_words_said_twice_are_two_turns(store: MemoryStore) -> None:
    ids = [await store.store_entry(entry("Yes.", TYPES.INTERACTION, session_id="s1")) for _ in range(2)]
    assert len(set(ids)) == 2


async def test_tells_what_was_learned_the_most_important_first(store: MemoryStore) -> None:
    for importance, entry_type in (
        (0.3, TYPES.PATTERN),
        (0.9, TYPES.LEARNING),
        (0.6, TYPES.INSIGHT),
        (1.0, TYPES.KNOWLEDGE),
    ):
        tags = ["Deploys"] if importance > 0.5 else []
        learned = entry(f"Learned {importance}", entry_type, importance_score=importance, semantic_tags=tags)
        await store.store_entry(learned)
    assert [each.importance_score for each in await store.get_learning_patterns()] == [0.9, 0.6, 0.3]
    assert [each.importance_score for each in await store.get_learning_patterns("deploys")] == [0.9, 0.6]


# -- changes ----------------------------------------------------------------------------------------------------------


async def test_changes_what_is_open_and_refuses_the_rest(store: MemoryStore) -> None:
    stored = await store.store_entry(
        entry("The boat is blue.", TYPES.SUCCESS, entry_id="boat", semantic_tags=["paint"])
    )
    assert await store.update_entry(
        stored, {"content": {"text": "The boat is red.", "since": "May"}, "keywords": ["boat"], "importance_score": 0.4}
    )
    found = await store.get_entry_by_id(stored)
    assert found is not None
    assert (found.text, found.content["since"], found.keywords) == ("The boat is red.", "May", ["boat"])
    assert (found.importance_score, found.semantic_tags, found.entry_type) == (0.4, ["paint"], TYPES.SUCCESS)
    assert await store.update_entry(stored, {"importance_score": None, "related_entries": ["elsewhere-1"]})
    again = await store.get_entry_by_id(stored)
    assert again is not None
    assert (again.importance_score != 0.4, again.related_entries, again.entry_id) == (True, ["elsewhere-1"], "boat")
    for closed in ("entry_id", "timestamp", "access_count", "text_embedding", "__class__"):
        with raises(ValidationError, "not_changeable"):
            await store.update_entry(stored, {closed: 1})
    assert not await store.update_entry("unknown", {"summary": "x"})


async def test_says_when_it_was_stored_and_changed(store: MemoryStore, clock: FrozenClock) -> None:
    for entry_type in (TYPES.INSIGHT, TYPES.INTERACTION):
        begun = clock()
        stored = await store.store_entry(entry(f"The boat is blue, an {entry_type}.", entry_type, timestamp=begun))
        first = await store.get_entry_by_id(stored)
        await store.update_entry(stored, {"pinned": True})
        assert first is not None
        assert (first.created_at, first.updated_at) == (begun, begun)
        now = clock.advance(hours=3)
        await store.update_entry(stored, {"summary": "Blue"})
        changed = await store.get_entry_by_id(stored)
        assert changed is not None
        assert (changed.created_at, changed.updated_at, changed.summary, changed.pinned) == (begun, now, "Blue", True)


async def test_what_was_said_cannot_be_made_unsaid(store: MemoryStore) -> None:
    stored = await store.store_entry(entry("The boat is blue.", TYPES.INTERACTION))
    with raises(ValidationError, "not_changeable"):
        await store.update_entry(stored, {"content": {"text": "The boat is red."}})
    assert await store.update_entry(stored, {"importance_score": 0.9})
    found = await store.get_entry_by_id(stored)
    assert found is not None
    assert (found.text, found.importance_score) == ("The boat is blue.", 0.9)


async def test_a_memory_that_was_deleted_can_be_brought_back(store: MemoryStore) -> None:
    stored = await store.store_entry(entry("Maria likes tea."))
    assert await store.delete_entry(stored)
    assert not await store.delete_entry(stored)
    assert await texts(store, "what does Maria like") == []
    await store.service.history.restore(stored)
    assert await texts(store, "what does Maria like") == ["Maria likes tea."]


async def test_counts_what_there_is(store: MemoryStore) -> None:
    for entry_type in ENTRY_TYPES:
        await store.store_entry(entry(f"One {entry_type} of many", entry_type))
    await store.retrieve_relevant("many")
    told = await store.get_memory_statistics()
    assert told["total_entries"] == len(ENTRY_TYPES)
    assert told["entries_by_type"] == dict.fromkeys(ENTRY_TYPES, 1)
    assert told["storage_size_mb"] > 0
    assert (told["cache_hit_rate"], told["query_cache_hit_rate"], told["large_files"]) == (None, None, [])
    summary = told["performance_metrics"]
    assert (summary["store"]["count"], summary["retrieve"]["count"]) == (len(ENTRY_TYPES), 1)
    assert summary["retrieve"]["results"] > 0


async def test_errors_of_the_memory_keep_their_code_and_tell_no_text(store: MemoryStore, root: Path) -> None:
    await store.store_entry(entry("Maria likes tea."))
    journal = root / "bob" / "memories.yaml"
    journal.unlink()
    journal.mkdir()
    with pytest.raises(AgentMemoryError) as caught:
        await store.store_entry(entry("Maria likes coffee."))
    assert caught.value.code
    assert "Maria" not in str(caught.value)
    assert store.performance_metrics.get_summary()["store"]["errors"] == 1


async def test_two_groups_may_give_the_same_id_and_say_the_same(store: MemoryStore, clock: FrozenClock) -> None:
    async def kept(group: str, text: str) -> str | None:
        async with MemoryStore(service=store.service, caller=Caller(group=group), clock=clock) as own:
            await own.store_entry(entry(text, entry_id="first"))
            found = await own.get_entry_by_id("first")
            return found and found.text

    assert await kept("acme:one", "The ferry sails.") == "The ferry sails."
    assert await kept("acme:two", "The ferry is full.") == "The ferry is full."
    assert await kept("acme:three", "The ferry sails.") == "The ferry sails."


@pytest.mark.model
async def test_what_shares_no_word_is_found_by_meaning_among_entries_of_all_kinds(root: Path) -> None:
    config = MemoryStoreConfig(storage_path=str(root))
    async with MemoryStore(config, agent_id="bob") as store:
        await store.store_entry(entry("The database password rotates monthly.", TYPES.LEARNING))
        await store.store_entry(entry("Maria is allergic to peanuts.", TYPES.INTERACTION))
        await store.store_entry(entry("The quarterly report is due on Friday.", TYPES.CONTEXT))
        assert (await texts(store, "which food must she avoid"))[0] == "Maria is allergic to peanuts."
        first, *_ = await store.retrieve_relevant("when do we change the credentials")
        assert first.text == "The database password rotates monthly."
        assert (await store.get_memory_statistics())["cache_hit_rate"] == 1.0
