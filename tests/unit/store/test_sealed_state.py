"""What is known of records is the same, whatever part of their journal is sealed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.files.layout import AgentFolder
from agent_memory.index.segment import Segment
from agent_memory.journal import Change, Journal
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.models import ANY_STATE, MEMORY, Listing, ListOrder, Memory, RecordState, SearchFilters
from agent_memory.store.queries import count_records, get_surroundings, list_records
from agent_memory.store.segment_builder import seal_up
from agent_memory.store.segment_opener import open_sealed_records
from agent_memory.store.state import State

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agent_memory.store.sealed_records import SealedRecords

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
ORDER = Selection(3, 2)
IDS = [f"mem-{number:012x}" for number in range(8)]
TEXTS = ["tea", "coffee", "Tea ", "ledger"]

BROKEN: list[dict[str, Any]] = [{"pinned": "perhaps", "content": "other"}, {"confidence": None}, {"confidence": "much"}]
"""Changes that break a memory, and one that mends it."""

LISTINGS = [
    *(Listing(order, states=ANY_STATE) for order in get_args(ListOrder)),
    Listing(limit=2),
    Listing("oldest", offset=1, limit=2),
    *(Listing(states=frozenset({state})) for state in get_args(RecordState)),
    Listing(states=frozenset({"expired", "superseded"}), trust="low"),
    Listing(pinned=True),
    Listing(beginning="mem-00000000000", filters=SearchFilters(category="learning")),
    Listing(beginning=IDS[3]),
    Listing(beginning="mem-\ud800"),
    Listing(session="talk"),
    Listing(session=""),
]

some_id = st.sampled_from(IDS)
some_links = st.fixed_dictionaries({"rel": st.sampled_from(["about", "derived_from"]), "id": some_id})
moments = st.integers(-40, 3).map(lambda days: (NOW + timedelta(days=days)).isoformat())


@st.composite
def changes(draw: Any) -> Change:
    """Draw one change of a memory, as programs of ours and others write it."""
    op = draw(st.sampled_from(["put", "put", "put", "patch", "touch", "delete"]))
    data: dict[str, Any] = {}
    if op == "put":
        data = {"content": draw(st.sampled_from(TEXTS)), "category": "learning", "timestamp": draw(moments)}
        data |= draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "supersedes": some_id,
                    "links": st.lists(some_links, max_size=2),
                    "pinned": st.booleans(),
                    "expires_at": moments,
                    "trust": st.sampled_from(["low", "high"]),
                    "created_by_session": st.sampled_from(["talk", "another"]),
                    "evicted_at": moments,
                    "confidence": st.sampled_from([0.5, "quite"]),
                },
            )
        )
    elif op == "patch":
        data = draw(
            st.sampled_from([{"content": "ledger"}, {"promoted_at": NOW.isoformat()}, {"pinned": True}, *BROKEN])
        )
    return Change(op, "memory", draw(some_id), data)


def written(folder: AgentFolder, every: list[Change]) -> None:
    with Journal(folder.journal, {"memory"}).locked() as writer:
        for change in every:
            writer.append([change])


def known(state: State[Memory]) -> dict[str, Any]:
    """Return everything that a state answers."""
    return {
        "records": dict(state.records),
        "invalid": dict(state.table.invalid),
        "count": len(state.records),
        "valid": {record.id for record in state.records.values() if state.is_valid(record, NOW)},
        "latest": [record.timestamp for record in state.list_newest(3, NOW)],
        "tally": count_records(state, NOW),
        "recent": sorted(map(ORDER.moment, state.list_recent(ORDER, NOW))),  # equal ones may change places
        "replaced": state.replacements.map_all(NOW),
        "around": {one: around(state, one) for one in state.records},
        "older": {one: state.replacements.list_older(one) for one in state.records},
        "same": {text: state.find_same_text(text, NOW) is not None for text in TEXTS},
        "forgotten": {text: state.was_forgotten(text) for text in TEXTS},
        "since": {one for one in state.since(3) if one in state.records},
        "expired": state.has_expired(NOW),
        "lists": [listed(state, listing) for listing in LISTINGS],
    }


def around(state: State[Memory], record_id: str) -> Any:
    """Return what is told of a record besides itself, in no order: what was sealed counts as stored before."""
    links, doubt, disputed = get_surroundings(state, state.records[record_id], NOW)
    return set(links), doubt, disputed


def listed(state: State[Memory], listing: Listing) -> Any:
    """Return which records are listed, and in which order; equal ones may change places."""
    found = list_records(state, listing, NOW)
    whole = list_records(state, replace(listing, offset=0, limit=None), NOW)
    assert len(whole.records) == found.total
    assert [*map(listing.key, whole.records)][listing.offset : listing.end] == [*map(listing.key, found.records)]
    return {record.id for record in whole.records}, [listing.key(record) for record in whole.records]


def replayed(folder: AgentFolder) -> State[Memory]:
    state = State(MEMORY, "bob")
    state.absorb(Journal(folder.journal, {"memory"}).poll())
    return state


def opened(folder: AgentFolder) -> State[Memory]:
    journal, sealed = begun(folder)
    state = State(MEMORY, "bob", sealed)
    state.absorb(journal.poll())
    return state


def begun(folder: AgentFolder) -> tuple[Journal, SealedRecords[Memory] | None]:
    journal = Journal(folder.journal, {"memory"})
    return journal, open_sealed_records(folder, MEMORY, journal)[0]


@given(parts=st.lists(st.lists(changes(), max_size=8), min_size=1, max_size=4))
def test_a_state_is_the_same_whatever_is_sealed(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[Change]]
) -> None:
    folder = AgentFolder(tmp_path_factory.mktemp("home") / "bob")
    for part in parts[:-1]:
        written(folder, part)
        seal_up(folder, MEMORY, None, least=1)
    written(folder, parts[-1])

    assert known(opened(folder)) == known(replayed(folder))


def test_recent_of_low_trust_reads_no_sealed_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = AgentFolder(tmp_path / "bob")
    fields = {"category": "learning", "trust": "low", "timestamp": NOW.isoformat()}
    low = [Change("put", "memory", memory_id, {"content": f"note {memory_id}", **fields}) for memory_id in IDS[1:]]
    written(folder, [Change("put", "memory", IDS[0], {"content": "tea", **fields, "trust": "high"}), *low])
    seal_up(folder, MEMORY, None, least=1)
    state, rows = opened(folder), list[int]()
    read = Segment.record
    monkeypatch.setattr(Segment, "record", lambda self, row: rows.append(row) or read(self, row))

    assert [record.id for record in state.list_recent(ORDER, NOW)] == [IDS[0]]
    assert len(rows) == 1


three = st.sampled_from(IDS[:3])
replacing = st.builds(
    lambda one, other, when: Change(
        "put", "memory", one, {"content": "tea", "category": "learning", "timestamp": when} | other
    ),
    three,
    st.fixed_dictionaries({}, optional={"supersedes": three}),
    st.sampled_from([(NOW - timedelta(days=days)).isoformat() for days in range(3)]),
)


@given(parts=st.lists(st.lists(replacing, max_size=4), min_size=1, max_size=4))
def test_what_replaces_each_other_all_around_is_shown_alike_whatever_is_sealed(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[Change]]
) -> None:
    """No program of ours closes such a circle; what is sealed must not tell whether one was closed and opened again."""
    folder = AgentFolder(tmp_path_factory.mktemp("home") / "bob")
    for part in parts[:-1]:
        written(folder, part)
        seal_up(folder, MEMORY, None, least=1)
    written(folder, parts[-1])
    state, whole = opened(folder), replayed(folder)

    assert known(state) == known(whole)
    assert state.replacements.circles == whole.replacements.circles


@given(parts=st.lists(st.lists(changes(), max_size=8), min_size=2, max_size=4))
def test_a_state_that_takes_new_segments_into_use_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[Change]]
) -> None:
    folder = AgentFolder(tmp_path_factory.mktemp("home") / "bob")
    state, journal = State(MEMORY, "bob"), Journal(folder.journal, {"memory"})
    for part in parts[:-1]:
        written(folder, part)
        seal_up(folder, MEMORY, None, least=1)
        written(folder, parts[-1])
        state.absorb(journal.poll())
        if (sealed := begun(folder)[1]) is not None:
            state.adopt(sealed)

        assert known(state) == known(replayed(folder))


def test_which_rows_may_be_found_follows_what_replaces_them(tmp_path: Path) -> None:
    folder = AgentFolder(tmp_path / "bob")
    put = {"content": "tea", "category": "learning", "timestamp": NOW.isoformat()}
    written(
        folder,
        [
            Change("put", "memory", IDS[0], put),
            Change("put", "memory", IDS[1], {**put, "supersedes": IDS[0]}),
            Change("put", "memory", IDS[2], {**put, "expires_at": NOW.isoformat()}),
            Change("put", "memory", IDS[3], put),
        ],
    )
    seal_up(folder, MEMORY, None, least=1)
    written(folder, [Change("put", "memory", IDS[4], {**put, "supersedes": IDS[3]})])
    state = opened(folder)

    assert state.sealed is not None
    replaced = state.replacements.list_overrides(NOW)

    shown = state.sealed.replacements.mask_visible(NOW, replaced, superseded=False)
    every = state.sealed.replacements.mask_visible(NOW - timedelta(days=1), replaced, superseded=True)

    assert [mask.tolist() for mask in shown] == [[False, True, False, False]]
    assert [mask.tolist() for mask in every] == [[True] * 4]
