"""A journal whose fields are encrypted: what is read with the key, without one, with another one; what is refused."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.care.journal_inspection import inspect_journal
from agent_memory.errors import ReadOnlyError, StorageError, ValidationError
from agent_memory.journal import AS_IT_STANDS, IDENTITY, Change, Journal, Records, apply_change
from agent_memory.journal.codec import decode_changes, encode_changes
from agent_memory.journal.format import MalformedLineError, decode_entry, decode_header
from agent_memory.journal.salvage import get_rejected_path
from tests.support import FrozenClock, Scrambling, header_of, lines_of, raises, resealed

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.journal import Codec

AT: Final = "2026-03-01T12:00:00Z"
NOW: Final = timedelta(0)
TEXT: Final = "the harbour opens at nine"


@pytest.fixture
def path(root: Path) -> Path:
    return root / "bob" / "memories.yaml"


def journal_at(path: Path, codec: Codec, clock: FrozenClock | None = None) -> Journal:
    return Journal(path, {"memory"}, codec=codec, clock=clock or FrozenClock())


def write(journal: Journal, *changes: Change) -> None:
    with journal.locked() as writer:
        writer.append(changes)


def put(record_id: str, **data: object) -> Change:
    return Change("put", "memory", record_id, dict(data))


def patch(record_id: str, **data: object) -> Change:
    return Change("patch", "memory", record_id, dict(data))


def records_in(path: Path, codec: Codec) -> Records:
    records: Records = {}
    for entry in journal_at(path, codec).poll().entries:
        for change in entry.changes:
            apply_change(records, change, entry.at)
    return records


def moved(line: bytes, was: bytes, now: bytes) -> bytes:
    assert was in line
    return resealed(line.replace(was, now))


def test_fields_are_encrypted_and_the_rest_of_a_line_stays_readable(path: Path) -> None:
    codec = Scrambling()
    write(
        journal_at(path, codec), put("a", content=TEXT), Change("touch", "memory", "a"), Change("delete", "memory", "b")
    )
    line = json.loads(lines_of(path)[0][4:])
    assert TEXT.encode() not in path.read_bytes()
    assert line["seq"] == 1
    assert [(one["op"], one["kind"], one["id"]) for one in line["entries"]] == [
        ("put", "memory", "a"),
        ("touch", "memory", "a"),
        ("delete", "memory", "b"),
    ]
    assert [list(one.get("data", {})) for one in line["entries"]] == [["encrypted"], [], []]


def test_its_header_names_the_key_and_keeps_versions_that_know_none_from_writing(path: Path) -> None:
    write(journal_at(path, Scrambling()), put("a", x=1))
    header = decode_header(header_of(path))
    assert (header.key, header.format, header.min_reader) == ("first", 3, 3)


def test_a_journal_without_a_key_is_written_as_ever(path: Path) -> None:
    write(journal_at(path, IDENTITY), put("a", x=1))
    header = json.loads(header_of(path)[4:])
    assert (header["format"], header["min_reader"], "key" in header) == (2, 2, False)
    assert json.loads(lines_of(path)[0][4:])["data"] == {"x": 1}


data = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.booleans()),
    max_size=4,
)
changes = st.builds(Change, st.sampled_from(["put", "patch", "mark"]), st.just("memory"), st.sampled_from("ab"), data)


@given(st.lists(changes | st.builds(Change, st.just("touch"), st.just("memory"), st.just("a")), min_size=1, max_size=4))
def test_what_is_encoded_is_decoded_the_same(written: list[Change]) -> None:
    codec = Scrambling()
    line = encode_changes(codec, 7, AT, tuple(written), 3)
    assert decode_changes(codec, decode_entry(line, 3)).changes == tuple(written)
    assert encode_changes(IDENTITY, 7, AT, decode_entry(line, 3).changes) == line


@given(changes, st.integers(2, 9), st.sampled_from(["memory", "topic"]), st.sampled_from("ab"))
def test_what_was_encoded_for_one_place_is_read_in_no_other(
    change: Change, seq: int, kind: str, record_id: str
) -> None:
    codec = Scrambling()
    data = decode_entry(encode_changes(codec, 2, AT, (change,))).changes[0].data
    elsewhere = decode_entry(encode_changes(IDENTITY, seq, AT, (Change(change.op, kind, record_id, data),)))
    if (seq, kind, record_id) == (2, change.kind, change.id):
        assert decode_changes(codec, elsewhere).changes == (change,)
        return
    with pytest.raises(MalformedLineError, match="cannot be decrypted"):
        decode_changes(codec, elsewhere)


@pytest.mark.parametrize(
    ("given_key", "header_key", "code"),
    [(None, "first", "encrypted"), ("second", "first", "wrong_key"), ("first", None, "not_encrypted")],
)
def test_with_the_wrong_key_or_none_nothing_is_read_or_touched(
    path: Path, given_key: str | None, header_key: str | None, code: str
) -> None:
    def codec(key: str | None) -> Codec:
        return IDENTITY if key is None else Scrambling(key)

    write(journal_at(path, codec(header_key)), put("a", content=TEXT))
    before, names = path.read_bytes(), sorted(path.parent.iterdir())
    journal = journal_at(path, codec(given_key))
    for _ in range(2):
        with raises(StorageError, code):
            journal.poll()
        with raises(StorageError, code):
            write(journal, put("b", x=1))
        with raises(StorageError, code):
            journal.compact(grace=NOW)
    assert inspect_journal(path, codec=codec(given_key)).trouble is not None
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == names


def test_without_a_key_a_damaged_header_does_not_make_it_a_plain_journal(path: Path) -> None:
    write(journal_at(path, Scrambling()), put("a", content=TEXT))
    path.write_bytes(path.read_bytes().replace(b"generation", b"generatiom"))
    with raises(StorageError, "encrypted"):
        journal_at(path, IDENTITY).poll()
    with raises(StorageError, "storage"):
        journal_at(path, AS_IT_STANDS).compact(grace=NOW)
    assert records_in(path, Scrambling()) == {"a": {"content": TEXT}}


def test_a_session_under_way_hears_that_its_journal_was_replaced_by_an_encrypted_one(
    path: Path, tmp_path: Path
) -> None:
    journal = journal_at(path, IDENTITY)
    write(journal, put("a", content=TEXT))
    other = tmp_path / "other" / "memories.yaml"
    write(journal_at(other, Scrambling()), put("a", content=TEXT))
    plain = path.read_bytes()
    other.replace(path)
    with raises(StorageError, "encrypted"):
        journal.poll()
    path.write_bytes(plain)
    assert journal.poll().entries == []
    assert journal.reader.rewritten == 0


@pytest.mark.parametrize("forgery", ["changed", "other id", "other number", "in plain text"])
def test_a_line_that_something_has_changed_counts_for_nothing_and_is_kept(path: Path, forgery: str) -> None:
    codec = Scrambling()
    write(journal_at(path, codec), put("a", x=1))
    write(journal_at(path, codec), put("b", x=2))
    first, second = lines_of(path)
    text = json.loads(first[4:])["data"]["encrypted"].encode()
    forged = {
        "changed": moved(first, text, text[:-8] + bytes([text[-8] ^ 1]) + text[-7:]),
        "other id": moved(second, b'"id": "b"', b'"id": "a"'),
        "other number": moved(second, b'"seq": 2', b'"seq": 5'),
        "in plain text": encode_changes(IDENTITY, 3, AT, (put("c", x=3),)),
    }[forgery]
    path.write_bytes(path.read_bytes() + forged if forgery == "in plain text" else _with(path, forged))
    journal = journal_at(path, codec)
    good = {change.id for entry in journal.poll().entries for change in entry.changes}
    assert [problem.raw for problem in journal.reader.problems] == [forged]
    journal.compact(grace=NOW)
    assert set(records_in(path, codec)) == good
    assert json.dumps(forged.decode())[1:-1].encode() in get_rejected_path(path).read_bytes()


def _with(path: Path, forged: bytes) -> bytes:
    header, first, second = path.read_bytes().splitlines(keepends=True)
    return header + (forged + second if b'"seq": 1,' in forged else first + forged)


def test_with_the_key_a_compaction_makes_one_line_of_a_record(path: Path) -> None:
    codec, clock = Scrambling(), FrozenClock()
    journal = journal_at(path, codec, clock)
    write(journal, put("a", content=TEXT, x=1))
    write(journal, patch("a", x=2))
    journal.compact(grace=NOW)
    assert len(lines_of(path)) == 1
    assert decode_header(header_of(path)).key == "first"
    assert TEXT.encode() not in path.read_bytes()
    assert records_in(path, codec) == {"a": {"content": TEXT, "x": 2}}


def test_without_the_key_a_compaction_drops_what_is_over_and_keeps_every_record(path: Path) -> None:
    codec = Scrambling()
    journal = journal_at(path, codec)
    touches = [Change("touch", "memory", "a")] * 3
    for change in [
        put("a", x=1),
        put("a", x=2),
        *touches,
        patch("a", y=3),
        put("b", x=1),
        Change("delete", "memory", "b"),
    ]:
        write(journal, change)
    before = records_in(path, codec)
    journal_at(path, AS_IT_STANDS).compact(grace=NOW)
    assert [(one.op, one.id, entry.seq) for entry in map(decode_entry, lines_of(path)) for one in entry.changes] == [
        ("put", "a", 2),
        ("touch", "a", 5),
        ("patch", "a", 6),
    ]
    assert records_in(path, codec) == before


def test_a_deletion_dropped_without_the_key_is_told_to_sessions_under_way(path: Path) -> None:
    codec = Scrambling()
    follower, writer = journal_at(path, codec), journal_at(path, codec)
    write(writer, put("a", x=1))
    follower.poll()
    write(writer, Change("delete", "memory", "a"))
    journal_at(path, AS_IT_STANDS).compact(grace=NOW)
    update = follower.poll()
    assert update.reset
    assert update.entries == []


def test_who_has_no_key_writes_nothing_to_an_encrypted_journal(path: Path) -> None:
    write(journal_at(path, Scrambling()), put("a", x=1))
    before = path.read_bytes()
    with raises(ReadOnlyError, "encrypted"):
        write(journal_at(path, AS_IT_STANDS), put("b", x=1))
    assert path.read_bytes() == before


def test_what_cannot_be_encoded_is_refused_as_ever(path: Path) -> None:
    journal = journal_at(path, Scrambling())
    with raises(ValidationError, "not_encodable"):
        write(journal, put("a", x=float("nan")))
    write(journal, put("a", x=1))
    assert records_in(path, Scrambling()) == {"a": {"x": 1}}


def test_words_that_must_go_are_taken_out_of_encrypted_lines(path: Path) -> None:
    codec = Scrambling()
    journal = journal_at(path, codec)
    write(journal, put("a", content=TEXT), put("b", content=TEXT))
    with journal.prepare_purge({"a"}, lambda text: text.replace("nine", "…")) as new:
        journal.put_in_place(new)
    assert records_in(path, codec) == {"b": {"content": "the harbour opens at …"}}
