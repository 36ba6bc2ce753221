"""Format 2: each line ends with a checksum. Format 1, which has none, is read for ever; a compaction converts it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.care.journal_inspection import inspect_journal
from agent_memory.journal import Change, Journal
from agent_memory.journal.format import (
    Header,
    MalformedLineError,
    add_checksum,
    decode_entry,
    decode_header,
    encode_entry,
    encode_line,
)
from agent_memory.journal.salvage import drop_forgotten, get_rejected_path
from tests.support import FrozenClock, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

AT = "2026-03-01T12:00:00Z"
KINDS = {"memory"}
data = st.dictionaries(st.text(max_size=8), st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=3)
changes = st.lists(st.builds(Change, st.just("put"), st.just("memory"), st.just("a"), data), min_size=1, max_size=3)


@pytest.fixture(autouse=True)
def no_sync() -> Iterator[None]:
    """Spare the disk: nothing here depends on when it syncs."""
    with mock.patch.object(os, "fsync"):
        yield


def of_format_1(path: Path, *written: Change) -> None:
    """Write a journal as the first version did."""
    head = {"journal": "agent-memory", "format": 1, "min_reader": 1, "generation": "first", "last_seq": 0}
    lines = [encode_entry(seq, AT, (change,), 1) for seq, change in enumerate(written, start=1)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_line(head) + b"".join(lines))


def put(name: str) -> Change:
    return Change("put", "memory", name, {"content": f"memory {name}"})


def append(path: Path, name: str) -> None:
    with Journal(path, KINDS, clock=FrozenClock()).locked() as writer:
        writer.append([put(name)])


def ids_in(path: Path) -> list[str]:
    return [change.id for entry in Journal(path, set()).poll().entries for change in entry.changes]


@given(changes)
def test_the_checksum_is_the_last_field_and_covers_all_bytes_before_it(written: list[Change]) -> None:
    line = encode_entry(7, AT, tuple(written))
    body, _, seal = line.rpartition(b', "crc": "')
    assert seal == b'%08x"}\n' % zlib.crc32(body)
    assert decode_entry(line, 2).changes == tuple(written)
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert yaml.load(line, loader) == json.loads(line[4:])


@given(changes, st.data())
def test_a_byte_that_was_changed_anywhere_in_a_line_is_noticed(written: list[Change], draw: st.DataObject) -> None:
    line = encode_entry(7, AT, tuple(written))[:-1]
    at = draw.draw(st.integers(0, len(line) - 1))
    other = draw.draw(st.integers(0, 255).filter(lambda byte: byte != line[at]))
    if bytes([other]).isspace() and at == len(line) - 1:
        return  # the bracket at the very end: then there is no checksum, and that is what is said
    with pytest.raises(MalformedLineError):
        decode_entry(line[:at] + bytes([other]) + line[at + 1 :], 2)


@given(changes)
def test_lines_of_the_first_format_are_read_without_a_checksum_and_get_one_by_their_bytes(
    written: list[Change],
) -> None:
    line = encode_entry(7, AT, tuple(written), 1)
    assert b'"crc": "' not in line[-20:]
    assert decode_entry(line).changes == tuple(written)
    with pytest.raises(MalformedLineError, match="no checksum"):
        decode_entry(line, 2)
    assert add_checksum(line) == encode_entry(7, AT, tuple(written), 2)
    assert add_checksum(add_checksum(line)) == add_checksum(line)


def test_a_header_says_where_the_file_comes_from_and_has_a_checksum(tmp_path: Path) -> None:
    header = Header.fresh(41, "before", 17)
    assert decode_header(header.encode()) == header
    fields = json.loads(header.encode()[4:])
    assert (fields["format"], fields["min_reader"]) == (2, 2)
    assert (fields["parent"], fields["purged_seq"], list(fields)[-1]) == ("before", 17, "crc")
    with pytest.raises(MalformedLineError, match="checksum"):
        decode_header(header.encode().replace(b'"last_seq": 41', b'"last_seq": 42'))


def test_a_changed_letter_is_reported_and_set_aside_by_the_next_compaction(tmp_path: Path) -> None:
    path = tmp_path / "memories.yaml"
    for name in "abc":
        append(path, name)
    path.write_bytes(path.read_bytes().replace(b"memory b", b"memory B"))
    journal = Journal(path, KINDS)
    assert [entry.seq for entry in journal.poll().entries] == [1, 3]
    (problem,) = journal.reader.problems
    assert (problem.line, problem.reason) == (3, "its checksum does not match: it was changed")
    journal.compact()
    assert journal.reader.problems == []
    assert ids_in(path) == ["a", "c"]
    assert b"memory B" in get_rejected_path(path).read_bytes()


def test_a_journal_of_the_first_format_is_appended_to_as_it_is_and_converted_by_a_compaction(tmp_path: Path) -> None:
    path = tmp_path / "memories.yaml"
    of_format_1(path, put("a"), put("b"))
    before = path.read_bytes()
    append(path, "c")
    assert path.read_bytes() == before + encode_entry(3, AT, (put("c"),), 1)
    journal = Journal(path, KINDS, clock=FrozenClock())
    journal.poll()
    with journal.prepare_compaction() as new:
        append(path, "d")  # in the old format, and copied
        journal.put_in_place(new)
    header = decode_header(path.read_bytes().split(b"\n")[0])
    assert (header.format, header.parent, header.last_seq) == (2, "first", 3)
    assert [decode_entry(line, 2).seq for line in lines_of(path)] == [1, 2, 3, 4]
    append(path, "e")
    assert ids_in(path) == ["a", "b", "c", "d", "e"]
    assert [entry.seq for entry in journal.poll().entries] == [4, 5], "nothing of before is told again"


def test_a_newer_format_without_our_kind_of_checksum_is_not_taken_for_damage(tmp_path: Path) -> None:
    path = tmp_path / "memories.yaml"
    head = {"journal": "agent-memory", "format": 3, "min_reader": 3, "generation": "g"}
    path.write_bytes(encode_line(head) + encode_entry(1, AT, (put("a"),)))
    journal = Journal(path, KINDS)
    assert ids_in(path) == ["a"]
    journal.poll()
    assert journal.reader.too_new


def test_a_torn_line_that_is_whole_to_a_reader_of_json_is_told_by_its_checksum(tmp_path: Path) -> None:
    """What was written before a power cut may lack pages in the middle and have its end."""
    path = tmp_path / "memories.yaml"
    append(path, "a")
    torn = encode_entry(2, AT, (put("b"),))[:-1].replace(b"memory b", b"memory  ")
    path.write_bytes(path.read_bytes() + torn)
    assert not inspect_journal(path).tail_is_whole
    append(path, "c")
    assert ids_in(path) == ["a", "c"]
    assert torn in get_rejected_path(path).read_bytes().replace(b'\\"', b'"')


@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from([1, 2]))
def test_a_flipped_byte_costs_its_line_at_most(at: int, flip: int, form: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="flipped-"))
    try:
        path = folder / "memories.yaml"
        if form == 1:
            of_format_1(path, *map(put, "abcdef"))
        else:
            for name in "abcdef":
                append(path, name)
        content = bytearray(path.read_bytes())
        at %= len(content)
        content[at] ^= flip
        path.write_bytes(content)
        known = {each: put(each).data for each in "abcdef"}
        found = {c.id: c.data for entry in Journal(path, KINDS).poll().entries for c in entry.changes}
        if form == 2:
            assert all(known[each] == said for each, said in found.items()), "nothing is taken for what it is not"
        assert len(found.keys() & known.keys()) >= len(known) - 2, "a line, or two that became one"
    finally:
        shutil.rmtree(folder)


def test_what_is_left_of_a_batch_that_named_a_forgotten_record_has_a_checksum_of_its_own(tmp_path: Path) -> None:
    copy = tmp_path / "memories.rewritten-0123abcd.yaml"
    gone, kept = Change("put", "memory", "mem-00000000000a"), Change("put", "memory", "mem-00000000000b")
    copy.write_bytes(Header.fresh().encode() + encode_entry(1, AT, (gone, kept)))
    drop_forgotten(tmp_path / "memories.yaml", ["mem-00000000000a"])
    (line,) = lines_of(copy)
    assert decode_entry(line, 2).changes == (kept,)
