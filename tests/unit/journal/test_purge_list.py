"""The list of what was purged: ids and keyed fingerprints, whatever a killed process left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError
from agent_memory.journal import Change, PurgeList, check_purges
from agent_memory.journal.format import encode_entry

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-01-01T00:00:00+00:00"
ID, OTHER = "mem-00000000000a", "mem-00000000000b"
TEXT = "Ann's salary is seventy-two thousand."


def test_without_a_list_nothing_is_barred_and_nothing_is_made(tmp_path: Path) -> None:
    listed = PurgeList(tmp_path)
    assert (listed.purges(), listed.names(ID), listed.has(TEXT)) == ([], False, False)
    assert listed.filter_line(b"any line\n") == b"any line\n"
    assert not listed.path.exists()


def test_ids_and_texts_are_known_to_every_process_however_they_are_written(tmp_path: Path) -> None:
    before = PurgeList(tmp_path)
    assert not before.names(ID)
    PurgeList(tmp_path).begin([ID], [TEXT, "ab"], AT)
    assert before.names(ID)
    assert before.has("ann's  SALARY is seventy-two\nthousand.")
    assert not before.has("Ann's salary is seventy-two.")
    assert not before.has("ab")  # too short to be told from others
    assert before.bars(OTHER, {"content": TEXT})
    assert not before.bars(OTHER, {"why": TEXT})


def test_a_fingerprint_is_of_this_folder_alone(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        found.append(PurgeList(tmp_path / name).begin([ID], [TEXT], AT).fingerprints)
    assert found[0] != found[1]


def test_a_purge_is_unfinished_until_it_is_done(tmp_path: Path) -> None:
    listed = PurgeList(tmp_path)
    purge = listed.begin([ID], [TEXT], AT)
    assert [each.id for each in listed.list_unfinished()] == [purge.id]
    (concern,) = check_purges(tmp_path)
    assert concern.code == "purge_unfinished"
    listed.finish(purge, {"files": ["memories.yaml"]}, AT)
    assert (listed.list_unfinished(), list(check_purges(tmp_path))) == ([], [])
    assert dict(listed.purges()[0].receipt or {}) == {"files": ["memories.yaml"]}


def test_a_torn_line_counts_as_not_written_and_the_next_is_whole(tmp_path: Path) -> None:
    listed = PurgeList(tmp_path)
    listed.begin([ID], [TEXT], AT)
    with listed.path.open("ab") as file:
        file.write(b'--- {"purge": "x", "at": "y", "st')
    listed.begin([OTHER], ["The harbour has two cranes."], AT)
    assert [each.ids for each in PurgeList(tmp_path).purges()] == [(ID,), (OTHER,)]


def test_a_line_of_a_journal_loses_what_was_purged_and_keeps_the_rest(tmp_path: Path) -> None:
    listed = PurgeList(tmp_path)
    listed.begin([ID], [TEXT], AT)
    gone, kept = Change("put", "memory", ID, {"content": "x"}), Change("put", "memory", OTHER, {"content": "y"})
    same = Change("put", "memory", "mem-00000000000c", {"content": TEXT.upper()})
    assert listed.filter_line(encode_entry(1, AT, (gone,))) == b""
    assert listed.filter_line(encode_entry(1, AT, (same,))) == b""
    assert listed.filter_line(encode_entry(1, AT, (kept,))) == encode_entry(1, AT, (kept,))
    both = listed.filter_line(encode_entry(1, AT, (gone, kept)))
    assert OTHER.encode() in both
    assert ID.encode() not in both


def test_without_its_key_ids_count_still_and_nothing_new_is_begun(tmp_path: Path) -> None:
    listed = PurgeList(tmp_path)
    listed.begin([ID], [TEXT], AT)
    (tmp_path / "purge.key").unlink()
    anew = PurgeList(tmp_path)
    assert (anew.names(ID), anew.has(TEXT)) == (True, False)
    with pytest.raises(StorageError, match=r"purge\.key"):
        anew.begin([OTHER], [TEXT], AT)
