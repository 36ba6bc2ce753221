"""What a record is linked with is told in both directions, and whether what it rests on still holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.journal import Change, Journal
from agent_memory.models import MEMORY, LinkedRecord, Memory, Surroundings, content_mark
from agent_memory.store.queries import MOST_LINKS, get_surroundings
from agent_memory.store.state import State

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
TEA, COFFEE, MUG, OTHER = (f"mem-{number:012x}" for number in range(4))


class Notes:
    """A journal of notes and the state that follows it."""

    def __init__(self, path: Path) -> None:
        self._path, self._journal = path, Journal(path, {"memory"})
        self.state: State[Memory] = State(MEMORY, "bob")

    def put(self, record_id: str, content: str, **fields: Any) -> None:
        values = {"content": content, "timestamp": (NOW - timedelta(days=1)).isoformat(), **fields}
        self._write(Change("put", "memory", record_id, values))

    def forget(self, record_id: str) -> None:
        self._write(Change("delete", "memory", record_id))

    def around(self, record_id: str) -> Surroundings:
        return get_surroundings(self.state, self.state.records[record_id], NOW)

    def _write(self, change: Change) -> None:
        with Journal(self._path, {"memory"}).locked() as writer:
            writer.append([change])
        self.state.absorb(self._journal.poll())


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """Return an empty journal."""
    return Notes(tmp_path / "memories.yaml")


def test_a_link_is_told_at_both_ends(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": "because", "id": TEA}])

    assert notes.around(MUG) == Surroundings((LinkedRecord("because", TEA, "Bob drinks tea."),))
    assert notes.around(TEA) == Surroundings((LinkedRecord("because", MUG, "Bob needs a mug.", is_incoming=True),))


def test_a_link_leads_to_what_replaced_its_end(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": "because", "id": TEA}])
    notes.put(COFFEE, "Bob drinks coffee.", supersedes=TEA)

    assert notes.around(MUG).links == (LinkedRecord("because", COFFEE, "Bob drinks coffee."),)


def test_what_is_gone_expired_or_replaced_is_not_told(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": "because", "id": TEA}])
    notes.put(COFFEE, "Bob's mug is large.", links=[{"rel": "because", "id": TEA}], expires_at=NOW.isoformat())
    notes.put(OTHER, "Bob needs a glass.", supersedes=MUG)
    assert notes.around(TEA).links == ()

    notes.forget(TEA)
    assert notes.around(MUG).links == ()


def test_a_record_that_is_linked_no_more_is_not_told(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": "because", "id": TEA}])
    notes.put(MUG, "Bob needs a mug.")

    assert notes.around(TEA).links == ()


def test_a_strangers_words_are_not_put_beside_those_of_others(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob loves my shop.", links=[{"rel": "because", "id": TEA}], trust="low")

    assert notes.around(TEA).links == ()
    assert len(notes.around(MUG).links) == 1


def test_notes_of_ours_are_not_told(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": "_apart", "id": TEA}])

    assert notes.around(TEA) == notes.around(MUG) == Surroundings()


def test_a_few_of_many_are_told_the_latest_first(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    for number in range(30):
        notes.put(f"mem-{number + 16:012x}", f"Note {number}.", links=[{"rel": "about", "id": TEA}])

    told = notes.around(TEA).links

    assert [each.text for each in told] == [f"Note {29 - number}." for number in range(MOST_LINKS)]


@pytest.mark.parametrize("rel", ["derived_from", "derived-from", "Derived from"])
def test_what_rests_on_a_source_is_in_doubt_once_that_says_something_else(notes: Notes, rel: str) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": rel, "id": TEA, "said": content_mark("Bob drinks tea.")}])
    assert notes.around(MUG).doubt is None

    notes.put(TEA, "Bob drinks tea.", pinned=True, tags=["drinks"])
    assert notes.around(MUG).doubt is None

    notes.put(TEA, "Bob drinks from the tap.")
    assert notes.around(MUG).doubt == f"it is derived from {TEA}, which was changed since"


def test_what_rests_on_a_source_is_in_doubt_once_that_is_replaced_expired_or_forgotten(notes: Notes) -> None:
    notes.put(TEA, "Bob drinks tea.")
    notes.put(MUG, "Bob needs a mug.", links=[{"rel": "derived_from", "id": TEA}])
    assert notes.around(MUG).doubt is None

    notes.put(TEA, "Bob drinks tea.", expires_at=NOW.isoformat())
    assert notes.around(MUG).doubt == f"it is derived from {TEA}, which has expired"

    notes.put(COFFEE, "Bob drinks coffee.", supersedes=TEA)
    assert notes.around(MUG).doubt == f"it is derived from {TEA}, which {COFFEE} has replaced"

    notes.forget(TEA)
    assert notes.around(MUG).doubt == f"it is derived from {TEA}, which was forgotten"


def test_a_link_of_another_meaning_or_to_another_kind_casts_no_doubt(notes: Notes) -> None:
    links = [{"rel": "about", "id": TEA}, {"rel": "derived_from", "id": "epi-000000000001"}]
    notes.put(MUG, "Bob needs a mug.", links=links)

    assert notes.around(MUG) == Surroundings()
