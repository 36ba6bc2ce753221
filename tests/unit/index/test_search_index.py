"""`SearchIndex`: what is found, in which order, and what is said about the rest."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.embeddings import EmbeddingWorker, VectorCache
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError
from agent_memory.index import (
    DenseIndex,
    QueryCosines,
    RankingSettings,
    SearchIndex,
    SearchLimits,
    SearchScope,
    read_question,
)
from agent_memory.models import MEMORY, Document, Memory, SearchFilters, SearchRequest
from tests.rows import check_rows

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)


def make(number: int, content: str, **fields: Any) -> Document:
    memory = {"agent_id": "bob", "id": f"mem-{number:012x}", "content": content, "timestamp": NOW, **fields}
    return MEMORY.document(Memory.model_validate(memory))


def asked(query: str, limit: int = 5, *, explain: bool = False, **filters: Any) -> SearchRequest:
    return SearchRequest(query, limit, NOW, SearchFilters.model_validate(filters), explain=explain)


def ids(index: SearchIndex, query: str, limit: int = 10, **filters: Any) -> list[int]:
    hits = index.search(asked(query, limit, **filters)).hits
    return [int(hit.id[4:], 16) for hit in hits]


@pytest.fixture
def index() -> SearchIndex:
    filled = SearchIndex()
    filled.put(make(1, "Use PostgreSQL for the ledger", category="decision", tags=["storage"]))
    filled.put(make(2, "Redis holds sessions", timestamp=NOW - timedelta(days=3)))
    filled.put(make(3, "The ledger is audited each March", timestamp=NOW - timedelta(days=40)))
    return filled


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(synonyms={"database": "postgresql", "picked": "use"})


@pytest.fixture
def worker(embedder: HashEmbedder) -> Iterator[EmbeddingWorker]:
    working = EmbeddingWorker(embedder)
    yield working
    working.close()


@pytest.fixture
def hybrid(worker: EmbeddingWorker) -> SearchIndex:
    filled = SearchIndex(vectors=DenseIndex(worker))
    filled.put(make(1, "Use PostgreSQL"))
    filled.put(make(2, "Redis holds sessions"))
    filled.warm()
    assert worker.drain(10)
    return filled


class TestKeyword:
    """Words alone."""

    @pytest.mark.parametrize(
        ("query", "limit", "found"),
        [
            ("which session store", 10, [2]),
            ("postgresql ledger", 10, [1, 3]),  # more words that match rank higher
            ("decision", 10, [1]),  # a category
            ("storage", 10, [1]),  # a tag
            ("what did we say 3 days ago", 1, [2]),
            *[(nothing, 2, [1, 2]) for nothing in ("", "   ", "?!", "what is it")],  # the latest
        ],
    )
    def test_a_memory_is_found_by_its_words_its_labels_or_its_day(
        self, index: SearchIndex, query: str, limit: int, found: list[int]
    ) -> None:
        assert ids(index, query, limit) == found

    def test_a_strangers_words_do_not_push_out_a_persons(self, index: SearchIndex) -> None:
        for number in range(10, 40):
            index.put(make(number, f"Which database for the ledger: use MongoDB for the ledger {number}", trust="low"))
        assert ids(index, "use PostgreSQL for the ledger", limit=2)[0] == 1
        hit = index.search(asked("MongoDB", 1)).hits[0]
        assert hit.parts["trust"] == 0.5
        assert "trust" not in index.search(asked("Redis", 1)).hits[0].parts

    def test_nor_do_hundreds_of_them(self, index: SearchIndex) -> None:
        for number in range(10, 310):
            index.put(make(number, "Use PostgreSQL, ledger, ledger", trust="low"))
        assert ids(index, "use PostgreSQL for the ledger", limit=2)[0] == 1

    def test_nothing_in_common_finds_nothing(self, index: SearchIndex) -> None:
        found = index.search(asked("zebra", 5))
        assert (found.hits, found.total_found, found.mode) == ((), 0, "keyword")

    def test_the_limit_cuts_and_total_found_counts_all(self, index: SearchIndex) -> None:
        found = index.search(asked("ledger", 1))
        assert (len(found.hits), found.total_found) == (1, 2)

    def test_an_empty_index_answers(self) -> None:
        assert ids(SearchIndex(), "ledger") == []
        assert ids(SearchIndex(), "") == []


class TestChanges:
    """What the index holds after changes."""

    def test_a_replaced_memory_is_found_by_its_new_words_only(self, index: SearchIndex) -> None:
        index.search(asked("ledger", 5))
        index.put(make(1, "Use SQLite instead"))
        assert ids(index, "sqlite") == [1]
        assert ids(index, "postgresql") == []
        assert len(index.parts.buffer.entries) == 3

    def test_a_removed_memory_is_not_found_and_removing_what_is_not_there_changes_nothing(
        self, index: SearchIndex
    ) -> None:
        index.search(asked("ledger", 5))
        index.remove("mem-ffffffffffff")
        assert len(index.parts.buffer.entries) == 3
        index.remove("mem-000000000001")
        assert ids(index, "ledger") == [3]

    def test_a_touch_counts_without_indexing_anew(self, index: SearchIndex) -> None:
        index.search(asked("ledger", 5))
        for count in range(1, 50):
            index.put(
                make(1, "Use PostgreSQL for the ledger", category="decision", tags=["storage"], access_count=count)
            )
        assert len(index.parts.buffer.ids) == 3
        assert max(index.parts.buffer.ids) == 2
        hit = next(hit for hit in index.search(asked("ledger", 5)).hits if hit.id.endswith("1"))
        assert hit.parts["access"] == pytest.approx(1.5)

    def test_warming_in_steps_ends_with_everything_read(self, index: SearchIndex) -> None:
        assert not index.warm(at_most=2)
        assert index.warm(at_most=2)

    def test_a_memory_removed_before_it_was_read_leaves_nothing(self) -> None:
        index = SearchIndex()
        index.put(make(1, "ledger"))
        index.remove("mem-000000000001")
        assert index.warm()
        assert ids(index, "ledger") == []


class TestScores:
    """Order and bounds."""

    @check_rows(("first", "second"), [({"timestamp": NOW - timedelta(days=300)}, {}), ({}, {"access_count": 5})])
    def test_the_newer_or_the_more_used_of_two_equals_comes_first(
        self, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        index = SearchIndex()
        index.put(make(1, "use tabs", **first))
        index.put(make(2, "use tabs", **second))
        assert ids(index, "tabs") == [2, 1]

    @check_rows("word", ["now", "replaced", "moved", "instead"])
    def test_search_words_of_change_keep_order(self, word: str) -> None:
        index = SearchIndex()
        index.put(make(1, "indent by tabs twice"))
        index.put(make(2, f"indent by tabs {word}"))
        index.put(make(3, "indent by tabs thrice"))
        assert len({hit.score for hit in index.search(asked("which tabs indent", 5)).hits}) == 1

    def test_equal_scores_have_a_stable_order(self) -> None:
        index = SearchIndex()
        for number in (5, 3, 4):
            index.put(make(number, "use tabs"))
        assert ids(index, "tabs") == [3, 4, 5]

    @given(
        st.lists(
            st.tuples(st.text(min_size=1, max_size=40), st.integers(-400, 4000), st.integers(0, 10**6)), max_size=8
        ),
        st.text(max_size=40),
    )
    def test_scores_lie_between_zero_and_one_and_fall(self, rows: list[tuple[str, int, int]], query: str) -> None:
        index = SearchIndex()
        for number, (text, age, count) in enumerate(rows):
            index.put(
                make(number, f"x{text}".replace("\0", ""), timestamp=NOW - timedelta(days=age), access_count=count)
            )
        found = index.search(asked(query, 100))
        scores = [hit.score for hit in found.hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert found.total_found >= len(scores)


class TestFilters:
    """Conditions that hits must meet."""

    def test_only_what_is_allowed_is_found_and_counted(self, index: SearchIndex) -> None:
        found = index.search(asked("ledger", category="decision"))
        assert [hit.id[-1] for hit in found.hits] == ["1"]
        assert found.total_found == 1

    def test_what_is_hidden_is_not_found_whatever_the_filters_say(self, index: SearchIndex) -> None:
        for request in (asked("ledger"), asked("ledger", category="note"), asked("")):
            found = index.search(request, hidden=["mem-000000000001", "mem-000000000002"])
            assert [hit.id[-1] for hit in found.hits] == ["3"]

    def test_the_latest_are_filtered_too(self, index: SearchIndex) -> None:
        assert ids(index, "", category="note") == [2, 3]

    def test_a_rare_match_of_the_filter_is_found_behind_hundreds_of_better_hits(self) -> None:
        index = SearchIndex()
        for number in range(600):
            index.put(make(number, "ledger ledger"))
        index.put(make(999, "a long remark that mentions the ledger once", category="insight"))
        assert ids(index, "ledger", category="insight") == [999]


class TestExplain:
    """What was left out, and why."""

    def test_what_was_filtered_or_cut_is_named_when_asked(self, index: SearchIndex) -> None:
        assert index.search(asked("ledger", 1)).rejected == ()
        index.put(make(4, "ledger colours"))
        found = index.search(asked("ledger", 1, explain=True, category="note"))
        reasons = {one.id[-1]: one.reason for one in found.rejected}
        assert reasons == {"1": "filtered", "3": "beyond_limit"}

    def test_what_lies_below_the_floor_is_named_with_its_cosine(self, hybrid: SearchIndex) -> None:
        found = hybrid.search(asked("database picked", 5, explain=True))
        assert [(one.id[-1], one.reason) for one in found.rejected] == [("2", "below_floor")]
        assert found.rejected[0].parts["cosine"] < 0.3


class TestHybrid:
    """Words and embeddings."""

    def test_meaning_finds_what_words_do_not(self, hybrid: SearchIndex) -> None:
        found = hybrid.search(asked("database picked", 5))
        assert found.mode == "hybrid"
        assert [(hit.id[-1], hit.match_type) for hit in found.hits] == [("1", "vector")]

    def test_a_hit_by_both_is_called_hybrid_and_carries_both_raw_parts(self, hybrid: SearchIndex) -> None:
        hit = hybrid.search(asked("PostgreSQL", 1)).hits[0]
        assert hit.match_type == "hybrid"
        assert hit.parts["bm25"] > 0
        assert hit.parts["cosine"] > 0.3

    def test_the_users_own_threshold_replaces_the_embedders(self, worker: EmbeddingWorker) -> None:
        index = SearchIndex(RankingSettings(similarity_threshold=0.99), DenseIndex(worker))
        index.put(make(1, "Use PostgreSQL for money"))
        index.warm()
        assert worker.drain(10)
        assert ids(index, "database") == []
        assert ids(index, "postgresql") == [1]

    def test_until_the_model_is_there_words_answer_and_say_so(
        self, worker: EmbeddingWorker, embedder: HashEmbedder
    ) -> None:
        embedder.gate.clear()
        index = SearchIndex(vectors=DenseIndex(worker))
        index.put(make(1, "Use PostgreSQL"))
        assert index.search(asked("postgresql", 5)).mode == "keyword"
        embedder.gate.set()
        assert worker.drain(10)
        assert index.search(asked("postgresql", 5)).mode == "hybrid"

    def test_a_query_that_cannot_be_embedded_is_answered_by_words(
        self, hybrid: SearchIndex, embedder: HashEmbedder, worker: EmbeddingWorker
    ) -> None:
        embedder.failure = EmbeddingError("the model broke")
        found = hybrid.search(asked("redis", 5))
        assert (found.mode, [hit.id[-1] for hit in found.hits]) == ("keyword", ["2"])
        assert worker.status.problem == "the model broke"

    def test_a_new_memory_without_vector_is_not_held_back(self, hybrid: SearchIndex, embedder: HashEmbedder) -> None:
        for number in range(10, 40):
            hybrid.put(make(number, f"filler {number}"))
        hybrid.warm()
        hybrid.vectors.ready  # noqa: B018  collects what is there
        embedder.gate.clear()
        hybrid.put(make(50, "sessions are signed"))
        found = ids(hybrid, "signed sessions")
        embedder.gate.set()
        assert found[0] == 50

    def test_total_found_counts_each_hit_once_with_and_without_a_filter(
        self, hybrid: SearchIndex, worker: EmbeddingWorker
    ) -> None:
        for number in range(100, 400):
            hybrid.put(make(number, f"database of region {number}" if number % 2 else f"PostgreSQL of {number}"))
        hybrid.warm()
        assert worker.drain(10)
        plain = hybrid.search(asked("PostgreSQL", 5))
        filtered = hybrid.search(asked("PostgreSQL", 5), hidden=["mem-unknown"])
        assert plain.total_found == filtered.total_found == 301
        assert plain.hits == filtered.hits

    def test_a_vector_given_from_outside_is_used(self, hybrid: SearchIndex, embedder: HashEmbedder) -> None:
        known = replace(read_question("unheard-of", NOW), vector=embedder.embed_query("postgresql"))
        assert [hit.id[-1] for hit in hybrid.search(asked("unheard-of"), known).hits] == ["1"]

    def test_a_question_can_be_read_and_embedded_before_the_search(self, hybrid: SearchIndex) -> None:
        request = asked("database picked")
        question = hybrid.embed_question(hybrid.parse_question(request))
        assert question.vector is not None
        assert hybrid.search(request, question) == hybrid.search(request)

    def test_the_filters_of_a_request_go_down_to_what_compares_embeddings(self, worker: EmbeddingWorker) -> None:
        scopes: list[SearchScope | None] = []

        class Watched(DenseIndex):
            def cosines(self, query: Any, scope: SearchScope | None = None) -> QueryCosines:
                scopes.append(scope)
                return super().cosines(query, scope)

        index = SearchIndex(vectors=Watched(worker))
        index.put(make(1, "Use PostgreSQL", category="decision"))
        index.warm()
        assert worker.drain(10)
        request = asked("database", category="decision")
        index.search(request)
        index.search(asked("database"))
        assert scopes[0] is not None
        assert scopes[0].filters == request.filters.with_items  # there are none to leave out
        assert scopes[0].admits("mem-000000000001")
        assert scopes[1] is None

    def test_pruning_keeps_the_vectors_of_memories_not_read_yet(self, tmp_path: Path, embedder: HashEmbedder) -> None:
        first, second = (EmbeddingWorker(embedder, VectorCache(tmp_path / "v")) for _ in range(2))
        index, late = SearchIndex(vectors=DenseIndex(first)), SearchIndex(vectors=DenseIndex(second))
        for number, text in enumerate(["kept", "dropped"]):
            index.put(make(number, text))
        index.warm()
        assert first.drain(10)
        late.put(make(0, "kept"))
        assert late.prune() == 1
        assert second.drain(10)
        assert embedder.embedded == ["kept", "dropped"]
        for worker in (first, second):
            worker.close()

    def test_removed_and_replaced_memories_lose_their_meaning(
        self, hybrid: SearchIndex, worker: EmbeddingWorker
    ) -> None:
        hybrid.remove("mem-000000000002")
        hybrid.put(make(1, "completely different"))
        hybrid.warm()
        assert worker.drain(10)
        assert ids(hybrid, "database picked") == []


class TestTalks:
    """Turns of a talk."""

    @pytest.fixture
    def talk(self) -> SearchIndex:
        index = SearchIndex()
        lines = [
            "Ann: Hey, how are you?",
            "Ben: Fine! I bought a kayak last week.",
            "Ann: Where did you get it?",
            "Ben: At the harbour shop near the old lighthouse, they had a sale.",
            "Ann: Nice.",
            "Ben: See you!",
        ]
        for number, line in enumerate(lines):
            index.put(make(number, line, created_by_session="s1", tags=["boat"] if "kayak" in line else []))
        return index

    def test_an_answer_is_found_by_the_words_of_its_question(self, talk: SearchIndex) -> None:
        assert 3 in ids(talk, "kayak harbour", limit=2)
        assert "window" in talk.search(asked("kayak harbour", 1)).hits[0].parts

    def test_who_is_asked_about_decides_between_speakers(self, talk: SearchIndex) -> None:
        talk.put(make(20, "Ann: I bought a kayak once in spring", created_by_session="s1"))
        assert ids(talk, "What did Ben say about a kayak?", limit=1) == [1]
        assert ids(talk, "What did Ann say about a kayak?", limit=1) == [20]

    def test_beside_turns_a_fact_counts_as_a_talk_of_its_own(self, talk: SearchIndex) -> None:
        talk.put(make(30, "The red kayak paddle hangs in the boathouse"))
        best = talk.search(asked("where is the red kayak paddle", 1)).hits[0]
        assert best.id == "mem-00000000001e"
        assert (best.parts["length"], best.parts["speaker"], best.parts["session"]) == (1, 0.5, 1)

    def test_labels_of_notes_are_nobody_who_speaks(self) -> None:
        index = SearchIndex()
        for number, line in enumerate(["Note: use uv", "Decision: no ORM", "Note: ruff", "Decision: uv it is"]):
            index.put(make(number, line, created_by_session="s1"))
        assert {hit.parts["speaker"] for hit in index.search(asked("decision on uv", 5)).hits} == {0.5}

    @check_rows("form", ["{}: {}", "{1}", "**{}:** {}", "[10:02] {} says: {}", '{{"speaker": "{}", "text": "{}"}}'])
    def test_an_answer_is_found_by_the_words_of_its_question_in_any_form(self, form: str) -> None:
        index = SearchIndex()
        lines = [
            "Where did you buy the kayak?",
            "By the old lighthouse.",
            "So nice!",
            "I know.",
            "Any tea?",
            "No, thanks.",
        ]
        for number, line in enumerate(lines):
            index.put(make(number, form.format(("Ann", "Ben")[number % 2], line), created_by_session="s1"))
        assert ids(index, "where was the kayak bought", limit=2) == [0, 1]

    def test_facts_without_a_session_have_no_evidence_from_one(self) -> None:
        index = SearchIndex()
        for number, line in enumerate(["use uv", "no ORM", "ruff", "uv it is", "tea"]):
            index.put(make(number, line))
        assert all("window" not in hit.parts for hit in index.search(asked("uv", 5)).hits)

    def test_of_notes_of_one_session_those_beside_the_best_are_not_brought_in(self) -> None:
        index = SearchIndex()
        for number, line in enumerate(
            ["Ann prefers tea", "Lea drives a van", "backups run at two", "the API moves", "uv"]
        ):
            index.put(make(number, line, created_by_session="s1"))
        assert ids(index, "when do backups run") == [2]

    def test_a_neighbour_the_filter_forbids_is_not_brought_in(self, talk: SearchIndex) -> None:
        found = ids(talk, "kayak", tags=["boat"])
        assert found == [1]


# -- stretches of time ------------------------------------------------------------------------------------------------


@pytest.fixture
def dated() -> SearchIndex:
    filled = SearchIndex()
    for number, (content, day) in enumerate(
        [
            ("The ledger uses MySQL", "2025-05-20"),
            ("Deploys go to Heroku", "2025-06-03"),
            ("The ledger was moved to PostgreSQL", "2025-07-01"),
            ("The crane broke on 14 July", "2025-07-16"),
            ("We decided on blue buttons", "2026-01-20"),
            ("Standup at ten", "2026-01-21"),
        ],
        start=1,
    ):
        filled.put(make(number, content, timestamp=f"{day}T09:00:00Z"))
    return filled


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what did we decide last week", [5, 6]),
        ("what happened in June", [2]),
        ("what changed before June 2025", [1]),
        ("what went wrong on 14 July 2025", [4]),
        ("ledger in May", [1]),
        ("ledger since 15 June 2025", [3]),
    ],
)
def test_what_was_so_at_the_time_that_is_asked_about_comes_first(
    dated: SearchIndex, question: str, first: list[int]
) -> None:
    assert ids(dated, question)[: len(first)] == first


def test_what_was_so_in_a_time_is_found_by_that_alone_and_is_an_answer(dated: SearchIndex) -> None:
    known = dated.search(asked("what happened last week?"))
    empty = dated.search(asked("what happened in 2019?"))
    assert [int(hit.id[4:], 16) for hit in known.hits] == [6, 5]
    assert (known.match, empty.match) == ("strong", "none")


def test_a_date_range_that_is_asked_for_is_not_widened_by_the_words(dated: SearchIndex) -> None:
    assert ids(dated, "ledger in May", date_range={"start": "2025-07-01", "end": "2025-07-10"}) == [3]


def test_a_time_brings_up_what_is_near_in_no_way(hybrid: SearchIndex, worker: EmbeddingWorker) -> None:
    hybrid.put(make(77, "xylophone", timestamp=NOW - timedelta(days=400)))
    hybrid.warm()
    assert worker.drain(20)
    assert ids(hybrid, "what happened in December 2024")[0] == 77


# -- match ------------------------------------------------------------------------------------------------------------


def test_match_with_smaller_limit_is_the_same(index: SearchIndex) -> None:
    answer = index.search(asked("PostgreSQL ledger"))
    assert answer.match == "strong"
    for request in (asked("PostgreSQL ledger", 1), asked("PostgreSQL ledger", explain=True)):
        other = index.search(request)
        assert (other.match, other.strength) == (answer.match, answer.strength)


def test_match_with_fewer_shared_words_is_weaker(index: SearchIndex) -> None:
    first, second = index.search(asked("PostgreSQL ledger")).hits
    assert (first.parts["share"], second.parts["share"]) == (1.0, 0.25)  # "PostgreSQL" has three terms
    answer = index.search(asked("ledger violin colour mountain"))
    assert (answer.match, answer.strength) == ("weak", 0.25)


def test_match_with_shared_identifier_is_strong() -> None:
    index = SearchIndex()
    index.put(make(1, "billing-api listens on 8080"))
    index.put(make(2, "billing-web listens on 8081"))
    answer = index.search(asked("what opens, closes, drops and resets billing-api connections"))
    assert [(hit.id[-1], hit.match) for hit in answer.hits] == [("1", "strong"), ("2", "weak")]


def test_match_without_words_other_memories_have_is_weak() -> None:
    index = SearchIndex()
    for number, text in enumerate(["water the cactus", "ferns live in the lobby"]):
        index.put(make(number, text))
    assert index.search(asked("water the cactus")).match == "strong"
    assert index.search(asked("water the ferns")).match == "weak"


def test_match_without_words_no_memory_has_is_strong() -> None:
    index = SearchIndex()
    for number, text in enumerate(["water the cactus", "ferns live in the lobby"]):
        index.put(make(number, text))
    assert index.search(asked("water the cactus violin mountain")).match == "strong"


def test_match_without_shared_words_is_none(index: SearchIndex) -> None:
    assert index.search(asked("xylophone")).match == "none"


def test_match_of_empty_query_is_absent(index: SearchIndex) -> None:
    latest = index.search(asked(""))
    assert (latest.match, latest.strength) == (None, None)
    assert {hit.match for hit in latest.hits} == {None}


def test_match_by_meaning_grows_with_cosine(hybrid: SearchIndex, worker: EmbeddingWorker) -> None:
    hybrid.warm()
    assert worker.drain(20)
    near, far = hybrid.search(asked("which database was picked")), hybrid.search(asked("who plays the violin"))
    assert (near.strength or 0) > (far.strength or 0)


def test_what_is_like_a_text_is_looked_up_by_its_rarest_words_as_far_as_may_be_read() -> None:
    filled = SearchIndex(limits=SearchLimits(compared=3))
    for number in range(6):
        filled.put(make(number, f"The ledger of shop {number} is audited"))
    filled.put(make(6, "The heron stands in the ledger"))
    filled.put(make(7, "The heron and the otter"))
    alike = filled.alike("The otter sees the heron at the ledger", 8)
    assert dict(alike) == {"mem-000000000006": 0.5, "mem-000000000007": 0.5}  # of: otter, see, heron, ledger
    assert filled.alike("The ledger", 8) == []  # of so many, any would do


def test_latest_with_one_timestamp_is_the_last_stored_for_any_limit() -> None:
    filled = SearchIndex()
    filled.put(make(1, "one tea", timestamp=NOW))
    filled.put(make(2, "two tea", timestamp=NOW))
    assert ids(filled, "", 1) == [2]
    filled.put(make(1, "one coffee", timestamp=NOW))  # reworded: it keeps its place
    assert ids(filled, "", 1) == ids(filled, "", 2)[:1] == [2]


@pytest.mark.parametrize(("scale", "match"), [(1.0, "weak"), (2.0, "strong")])
def test_grade_scales_the_cosine_of_an_embedder(
    embedder: HashEmbedder, worker: EmbeddingWorker, hybrid: SearchIndex, scale: float, match: str
) -> None:
    embedder.similarity_threshold, embedder.cosine_scale = 0.1, scale  # type: ignore[attr-defined]
    hybrid.put(make(1, "tea with milk and honey and lemon and sugar"))
    hybrid.put(make(2, "anyone interested"))
    hybrid.warm()
    assert worker.drain(20)
    hits = hybrid.search(asked("tea unheard unknown untold")).hits
    assert [(hit.parts["cosine"] < 0.35, hit.match) for hit in hits[:1]] == [(True, match)]
