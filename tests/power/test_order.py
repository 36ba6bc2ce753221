"""Written, synced, acknowledged: in this order, for names too, and with one sync of a file for a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.power import scenarios
from tests.power.checker import JOURNAL, gaps, record, syncs_per_ack
from tests.power.deaths import AFTER_A_DEATH
from tests.power.scenarios import ALONE, FOLDER, ROOT
from tests.power.tracing import reason_not_to, trace

if TYPE_CHECKING:
    from tests.power.events import Event
    from tests.power.scenarios import Scenario

UNTRACEABLE = reason_not_to()


def steps(events: list[Event]) -> list[str]:
    """Return what is done to the journal and to folders, as words."""
    watched = {JOURNAL, "", *(str(parent) for parent in Path(JOURNAL).parents)}
    return [f"{event.do} {event.path}" for event in events if event.do == "ack" or event.path in watched]


@pytest.mark.parametrize("scenario", [*ALONE, *AFTER_A_DEATH], ids=lambda each: each.__name__)
def test_nothing_is_acknowledged_before_it_is_on_the_disk_under_its_name(scenario: Scenario, tmp_path: Path) -> None:
    assert gaps(record(scenario, tmp_path)) == []


def test_the_first_store_in_a_new_home_syncs_each_new_folder_then_the_file_then_answers(tmp_path: Path) -> None:
    done = steps(record(scenarios.first_store, tmp_path))
    first = done[: done.index("ack store") + 1]
    for folder, parent in ((".amplifier", ""), (ROOT, ".amplifier"), (FOLDER, ROOT)):
        assert f"sync {parent}" in first[first.index(f"mkdir {folder}") :]
    assert f"sync {FOLDER}" in first[first.index(f"create {JOURNAL}") :]
    assert first[-3:] == [f"write {JOURNAL}", f"sync {JOURNAL}", "ack store"]


def test_each_later_write_is_one_write_one_sync_and_the_answer(tmp_path: Path) -> None:
    done = steps(record(scenarios.changes, tmp_path))
    rest = done[done.index("ack store") + 1 :]
    assert [step.split()[0] for step in rest] == ["write", "sync", "ack"] * (len(rest) // 3)
    assert {step.split()[1] for step in rest if not step.startswith("ack")} == {JOURNAL}


def test_a_store_costs_one_sync_of_a_file(tmp_path: Path) -> None:
    assert set(syncs_per_ack(record(scenarios.changes, tmp_path), "store")) == {1}


def test_a_compaction_syncs_the_new_file_before_the_rename_and_the_folder_after_it(tmp_path: Path) -> None:
    events = record(scenarios.compactions, tmp_path)
    renames = [at for at, event in enumerate(events) if event.do == "rename" and event.other == JOURNAL]
    assert len(renames) == 3, "two that were asked for, and before them the one that an old deletion brings about"
    for at in renames:
        new = events[at].path
        assert ("sync", new) in [(event.do, event.path) for event in events[:at]]
        assert (events[at + 1].do, events[at + 1].path) == ("sync", FOLDER)


def test_an_index_is_synced_whole_before_it_is_named_and_named_before_it_is_used(tmp_path: Path) -> None:
    events = record(scenarios.moved, tmp_path)
    named = next(
        at for at, event in enumerate(events) if event.do == "rename" and Path(event.path).name.startswith(".new-")
    )
    used = next(at for at, event in enumerate(events) if event.do == "rename" and event.other.endswith("metadata.json"))
    switched = [at for at, event in enumerate(events) if event.other.endswith("metadata.json") and at > named]
    unfinished, folder = events[named].path, f"{FOLDER}/memories.db"
    synced = {event.path for event in events[:named] if event.do == "sync"}
    made = {event.path for event in events[:named] if event.do == "create" and event.path.startswith(unfinished)}
    gone = {event.path for event in events[:named] if event.do in {"unlink", "rename"}}
    assert made - gone <= synced
    assert used < named, "a note of the backend before"
    assert ("sync", folder) in [(event.do, event.path) for event in events[named : switched[0]]]


@pytest.mark.skipif(UNTRACEABLE is not None, reason=str(UNTRACEABLE))
@pytest.mark.parametrize("name", ["first_store", "a_day"])
def test_the_kernel_hears_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    traced = trace(name, tmp_path / "base", tmp_path / "trace")
    assert gaps(traced) == []
    assert set(syncs_per_ack(traced, "store")) == {1}
    (tmp_path / "again").mkdir()
    recorded = record(getattr(scenarios, name), tmp_path / "again")
    assert steps(traced) == steps(recorded)


@pytest.mark.skipif(UNTRACEABLE is not None, reason=str(UNTRACEABLE))
def test_a_store_without_a_sync_shows_in_what_the_kernel_hears(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    traced = trace("first_store", tmp_path / "base", tmp_path / "trace", "no_file_sync")
    assert any(f"the bytes of {JOURNAL} are not synced" in gap for gap in gaps(traced))
