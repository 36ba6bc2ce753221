"""What a repair does: the truth only after a copy of it, everything else anew; nothing unasked, nothing twice."""

from __future__ import annotations

import fcntl
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks import repairs as repair
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.journal_survey import JournalReading
from agent_memory.care.checks.repairs import repair_all
from agent_memory.files.lock import folder_lock
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.lookups import ReplacementIndex
from agent_memory.store.shards import Shards
from tests.support import NOON, resealed, sealed_line
from tests.unit.care.checks.homes import LIVE, make_circles, rewrite_json, snapshot, spoil_vectors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.care.checks.codes import Finding, RepairAction

    Found = Callable[[], dict[str, Finding]]
    Repaired = Callable[[], list[RepairAction]]


def _damage_journal(bob: Path) -> bytes:
    journal = bob / "memories.yaml"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:4], b"junk\n", *lines[4:]]) + b'--- {"seq": 99')
    return journal.read_bytes()


def test_a_sound_home_is_left_as_it_is(bob: Path, root: Path, repaired: Repaired) -> None:
    before = snapshot(root)
    assert repaired() == []
    assert snapshot(root) == before


def test_a_journal_is_mended_after_a_copy_and_no_memory_is_lost(bob: Path, found: Found, repaired: Repaired) -> None:
    damaged = _damage_journal(bob)
    before = JournalReading(bob / "memories.yaml", "bob").load()
    (action,) = repaired()
    assert (action.code, action.done) == ("journal_lines", True)
    (copy,) = bob.glob("memories.yaml.before-repair-*")
    assert copy.read_bytes() == damaged
    assert copy.stat().st_mode & 0o777 == 0o600
    after = JournalReading(bob / "memories.yaml", "bob")
    assert after.load() == before
    assert not after.file.reader.problems
    assert not after.file.tail
    assert b"junk" in (bob / "memories.rejected.yaml").read_bytes()
    assert not {"journal_lines", "journal_tail"} & found().keys()


@pytest.mark.parametrize("header", [b"", b"--- {broken\n"])
def test_a_lost_header_is_written_anew_and_numbers_go_on(bob: Path, repaired: Repaired, header: bytes) -> None:
    journal = bob / "memories.yaml"
    journal.write_bytes(header + b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    last = JournalReading(journal, "bob").file.reader.last_seq
    assert [action.done for action in repaired()] == [True]
    after = JournalReading(journal, "bob")
    assert after.file.reader.header
    assert after.file.reader.last_seq == last
    assert len(after.load()) == LIVE


async def test_a_mended_journal_can_be_written_again_and_nothing_of_it_was_folded_away(bob: Path, root: Path) -> None:
    _damage_journal(bob)
    repair_all(root, ["bob"], now=NOON.replace(year=NOON.year + 5))
    assert b"To be forgotten" in (bob / "memories.yaml").read_bytes(), "what can be restored still can"
    storage = FileStorage("bob", root)
    assert await storage.count() == LIVE
    assert await storage.health() == {"status": "ok"}
    await storage.delete("mem-000000000005")
    await storage.close()


def test_a_newer_journal_and_what_is_derived_from_it_are_left_alone(bob: Path, repaired: Repaired) -> None:
    damaged = resealed(_damage_journal(bob).replace(b'"min_reader": 2', b'"min_reader": 3'))
    (bob / "memories.yaml").write_bytes(damaged)
    (bob / "scratchpad.yaml").unlink()
    assert repaired() == []
    assert (bob / "memories.yaml").read_bytes() == damaged
    assert not (bob / "scratchpad.yaml").exists()


def test_a_journal_in_use_is_left_and_that_is_said(
    bob: Path, repaired: Repaired, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = _damage_journal(bob)
    monkeypatch.setattr(repair, "folder_lock", lambda folder: folder_lock(folder, 0))
    with (bob / ".lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (action,) = repaired()
    assert not action.done
    assert "Nothing was written" in action.sentence
    assert (bob / "memories.yaml").read_bytes() == damaged


def test_of_a_lost_journal_the_scratchpad_is_kept_once(bob: Path, found: Found, repaired: Repaired) -> None:
    (bob / "memories.yaml").unlink()
    shown = (bob / "scratchpad.yaml").read_bytes()
    assert [action.code for action in repaired()] == ["journal_missing"]
    (copy,) = bob.glob("scratchpad.before-repair-*.yaml")
    assert copy.read_bytes() == shown
    assert repaired() == []
    assert "journal_missing" in found(), "a copy is no journal"


def test_permissions_are_closed(bob: Path, repaired: Repaired) -> None:
    bob.chmod(0o755)
    (bob / "memories.yaml").chmod(0o644)
    repaired()
    assert bob.stat().st_mode & 0o777 == 0o700
    assert (bob / "memories.yaml").stat().st_mode & 0o777 == 0o600


def test_a_broken_scratchpad_is_kept_and_rendered_anew(bob: Path, repaired: Repaired) -> None:
    pad = bob / "scratchpad.yaml"
    sound = pad.read_bytes()
    pad.write_text("- [")
    repaired()
    assert pad.read_bytes() == sound
    assert next(bob.glob("scratchpad.broken-*")).read_text() == "- ["


def test_edits_of_a_person_are_left_to_the_session(bob: Path, repaired: Repaired) -> None:
    pad = bob / "scratchpad.yaml"
    pad.write_text(pad.read_text().replace("Fact number 7", "My own words"))
    assert repaired() == []
    assert "My own words" in pad.read_text()


def test_unreadable_metadata_is_written_from_the_index_that_lies_there(
    bob: Path, root: Path, repaired: Repaired
) -> None:
    before = Shards(folder_of("bob", root)).active()
    (bob / "metadata.json").write_text("{")
    repaired()
    assert Shards(folder_of("bob", root)).active() == before
    shutil.rmtree(bob / "memories.db")
    (bob / "metadata.json").write_text("{")
    repaired()
    assert Shards(folder_of("bob", root)).active() == ("file", None)


def test_a_broken_index_is_dropped_so_that_a_session_builds_it(bob: Path, root: Path, repaired: Repaired) -> None:
    next((bob / "memories.db").glob("*/state.json")).write_text("{")
    repaired()
    assert Shards(folder_of("bob", root)).active() == ("vector", None)
    assert not [path for path in (bob / "memories.db").iterdir() if path.is_dir()]


def test_an_index_that_somebody_holds_stays_and_that_is_said(bob: Path, repaired: Repaired) -> None:
    shard = next(path for path in (bob / "memories.db").iterdir() if path.is_dir())
    unused = shard.with_name("0123456789ab")
    shutil.copytree(shard, unused)
    with (unused / "holder.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (action,) = repaired()
        assert not action.done
        assert unused.exists()
    assert [action.done for action in repaired()] == [True]
    assert not unused.exists()


def test_an_index_behind_a_link_is_never_swept(bob: Path, tmp_path: Path, repaired: Repaired) -> None:
    precious = tmp_path / "precious"
    (precious / "letters").mkdir(parents=True)
    shutil.rmtree(bob / "memories.db")
    (bob / "memories.db").symlink_to(precious)
    repaired()
    assert (precious / "letters").is_dir()


def test_vectors_of_nothing_go_and_the_others_stay(bob: Path, root: Path, found: Found, repaired: Repaired) -> None:
    journal = bob / "memories.yaml"
    at = '"at": "2026-03-01T12:00:00Z", "kind": "memory"'
    with journal.open("a") as lines:
        lines.write(sealed_line(f'--- {{"seq": 90, {at}, "op": "delete", "id": "mem-000000000005"}}\n'))
    assert "vectors_orphaned" in found()
    repaired()
    assert found()["vectors"].sentence.startswith(f"{LIVE - 1} vectors")


def test_leftovers_of_killed_processes_go_and_young_files_stay(bob: Path, root: Path) -> None:
    old, young, held = (bob / f".scratchpad.yaml.{name}.tmp" for name in ("01234567", "12345678", "23456789"))
    for path in (old, young, held):
        path.write_bytes(b"x")
    for path in (old, held):
        os.utime(path, (1, 1))
    with held.open() as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        repair_all(root, ["bob"], now=NOON)
    assert [path.exists() for path in (old, young, held)] == [False, True, True]


def test_what_is_no_file_is_moved_aside(bob: Path, found: Found, repaired: Repaired) -> None:
    for name in ("events.jsonl", "embeddings.sqlite3", ".lock"):
        (bob / name).unlink()
        (bob / name).mkdir()
    (bob / "memories.rejected.yaml").mkdir()
    assert all(action.done for action in repaired())
    codes = found()
    assert not {"audit_unusable", "vectors_broken", "lock_unusable", "rejected_unusable"} & codes.keys()
    assert codes["aside"].sentence.startswith("3 things")


def test_session_notes_that_cannot_be_read_are_moved_aside(bob: Path, root: Path, repaired: Repaired) -> None:
    (root / "_sessions" / "b.json").write_text("{")
    assert [action.code for action in repaired()] == ["session_broken"]
    assert examine(root, now=NOON).healthy
    assert [path.name.partition(".json")[0] for path in (root / "_sessions").glob("b.*")] == ["b"]


def test_a_repair_does_nothing_twice(bob: Path, root: Path, repaired: Repaired) -> None:
    _damage_journal(bob)
    rewrite_json(next((bob / "memories.db").glob("*/state.json")), format=7)
    (bob / "scratchpad.yaml").write_text("{")
    repaired()
    before = snapshot(root)
    assert repaired() == []
    assert snapshot(root) == before


def test_metadata_that_cannot_be_written_anew_is_not_moved_and_no_index_is_touched(
    bob: Path, repaired: Repaired
) -> None:
    (bob / "metadata.json").write_text("{")
    (bob / ".lock").unlink()
    (bob / ".lock").symlink_to("nowhere")
    shard = next(path for path in (bob / "memories.db").iterdir() if path.is_dir())
    assert not any(action.done for action in repaired())
    assert (bob / "metadata.json").read_text() == "{"
    assert shard.is_dir()


def test_lines_are_put_back_into_the_order_in_which_they_were_written(
    bob: Path, found: Found, repaired: Repaired
) -> None:
    journal = bob / "memories.yaml"
    before = JournalReading(journal, "bob").load()
    header, *lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([header, *reversed(lines)]))
    assert JournalReading(journal, "bob").load() != before
    assert [action.code for action in repaired()] == ["journal_lines"]
    assert JournalReading(journal, "bob").load() == before
    assert "journal_backwards" not in found()
    assert list(bob.glob("memories.yaml.before-repair-*"))


def test_a_circle_is_broken_so_that_the_latest_of_it_is_found(bob: Path, found: Found, repaired: Repaired) -> None:
    make_circles(bob / "memories.yaml")
    assert "journal_circle" in {action.code for action in repaired()}
    records = JournalReading(bob / "memories.yaml", "bob").load()
    replacements = ReplacementIndex(records)
    replacements.note(records)
    replaced = replacements.map_all(NOON)
    assert replaced["mem-000000000005"] == "mem-000000000006"
    assert {"mem-000000000006", "mem-000000000007"}.isdisjoint(replaced)
    assert "journal_circle" not in found()


def test_a_change_that_breaks_a_rule_is_followed_by_what_is_used(bob: Path, found: Found, repaired: Repaired) -> None:
    before = JournalReading(bob / "memories.yaml", "bob").load()
    with (bob / "memories.yaml").open("a") as lines:
        at = '"at": "2026-03-01T12:00:00Z", "kind": "memory"'
        lines.write(
            sealed_line(f'--- {{"seq": 91, {at}, "op": "patch", "id": "mem-000000000005", "data": {{"content": 5}}}}\n')
        )
    assert "journal_changes" in {action.code for action in repaired()}
    assert JournalReading(bob / "memories.yaml", "bob").load() == before
    assert "journal_changes" not in found()
    assert repaired() == []


def test_an_index_that_has_seen_more_than_the_journal_and_damaged_vectors_are_dropped(
    bob: Path, found: Found, repaired: Repaired
) -> None:
    rewrite_json(next((bob / "memories.db").glob("*/state.json")), seq=999)
    assert [action.code for action in repaired()] == ["index_ahead"]
    assert {"index_ahead", "index_none"} & found().keys() == {"index_none"}
    spoil_vectors(bob / "embeddings.sqlite3")
    (action,) = repaired()
    assert (action.code, action.sentence[:26]) == ("vectors_spoilt", "Removed 2 damaged vectors;")
    codes = found()
    assert "vectors_spoilt" not in codes
    assert f"{LIVE - 2} vectors of" in codes["vectors"].sentence
