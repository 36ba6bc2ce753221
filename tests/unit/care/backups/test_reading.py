"""Reading a backup that may be damaged, foreign, newer, or made to do harm."""

from __future__ import annotations

import stat
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.backups import backup_reader
from agent_memory.care.backups.backup_reader import LineTally, iter_lines, verify_backup
from agent_memory.errors import StorageError, ValidationError
from tests.support import raises, sealed_line
from tests.unit.care.backups.conftest import rewritten

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.care.backups.backup_writer import Backup


def nothing(_: object) -> None:
    """Change nothing."""


def test_a_changed_letter_is_found_and_its_line_named(made: Backup) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["memories.yaml"] = members["memories.yaml"].replace(b"Ledger 2", b"Ledger 7")

    (problem,) = verify_backup(rewritten(made.path, change)).problems
    assert problem == "memories.yaml has another checksum than the manifest says: line 4 is damaged"


def test_every_flipped_byte_is_found(made: Backup, tmp_path: Path) -> None:
    whole = made.path.read_bytes()
    found = 0
    place = tmp_path / "flipped.zip"
    for position in range(0, len(whole), 7):
        place.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            verified = verify_backup(place)
        except (StorageError, ValidationError):
            found += 1
            continue
        # What neither names nor holds anything of ours: times, versions, the text for people.
        assert verified.problems or verified.manifest == made.manifest
        found += bool(verified.problems)
    assert found > len(whole) // 14


@pytest.mark.parametrize("length", [0, 1, 30, 500, -40, -1])
def test_a_part_of_a_backup_is_none(made: Backup, length: int) -> None:
    place = made.path.with_name("part.zip")
    place.write_bytes(made.path.read_bytes()[:length])
    with raises(ValidationError, "not_a_backup"):
        verify_backup(place)


def test_a_member_that_is_missing_is_named(made: Backup) -> None:
    (problem,) = verify_backup(rewritten(made.path, lambda members: members.pop("memories.yaml"))).problems
    assert "memories.yaml is missing" in problem


def test_counts_that_are_not_so_are_found(made: Backup) -> None:
    def lie(manifest: dict[str, Any]) -> None:
        manifest["journals"][0]["records"] = {"memory": 400}

    assert verify_backup(rewritten(made.path, nothing, lie)).problems == (
        "memories.yaml has other counts than the manifest says",
    )


def test_a_newer_one_says_so_and_stays(made: Backup) -> None:
    newer = rewritten(made.path, nothing, lambda manifest: manifest.update(agent_memory_backup=3, made_by="9.0"))
    with raises(StorageError, "backup_newer", match="newer version"):
        verify_backup(newer)
    assert newer.exists()


@pytest.mark.parametrize(
    "name",
    ["../eve/memories.yaml", "/etc/passwd", "blobs/../../x", "topics/../x.md", "blobs/short", "topics/a/b.md", "..",
     "scratchpad.YAML", "embeddings.sqlite3", "memories.db/x", ".lock", "metadata.json", "Memories.yaml", "a b.yaml"],
)  # fmt: skip
@pytest.mark.parametrize("list_name", ["journals", "files"])
def test_a_name_that_no_backup_has_is_refused(made: Backup, name: str, list_name: str) -> None:
    def add(manifest: dict[str, Any]) -> None:
        more = {} if list_name == "files" else {"generation": "", "last_seq": 0, "lines": 0}
        manifest[list_name].append({"name": name, "size": 1, "sha256": "0" * 64, **more})

    with raises(ValidationError, "not_a_backup"):
        verify_backup(rewritten(made.path, lambda members: members.update({name: b"x"}), add))


def test_a_member_that_the_manifest_does_not_name_is_refused(made: Backup) -> None:
    with raises(ValidationError, "not_a_backup", match="does not name"):
        verify_backup(rewritten(made.path, lambda members: members.update({"../x": b"x"})))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda said: said.clear(), "manifest"),
        (lambda said: said.update(agent_id="../eve"), "manifest"),
        (lambda said: said.update(agent_id=7), "manifest"),
        (lambda said: said.update(made_at="yesterday"), "manifest"),
        (lambda said: said.update(made_at=None), "manifest"),
        (lambda said: said.update(journals="x"), "manifest"),
        (lambda said: said.update(journals=[[]]), "manifest"),
        (lambda said: said.update(files=[{"name": 1, "size": 1, "sha256": "0" * 64}]), "manifest"),
        (lambda said: said.update(files=said["journals"]), "manifest"),
        (lambda said: said["journals"].append(said["journals"][0]), "twice"),
        (lambda said: said["journals"][0].update(size=-1), "numbers"),
        (lambda said: said["journals"][0].update(last_seq=2**60), "numbers"),
        (lambda said: said["journals"][0].update(size=True), "numbers"),
        (lambda said: said["journals"][0].update(sha256=None), "manifest"),
        (lambda said: said["journals"][0].update(records=[]), "form"),
        (lambda said: said["journals"][0].update(records={"memory": "many"}), "numbers"),
    ],
)
def test_a_manifest_that_is_none_is_refused(made: Backup, change: Any, why: str) -> None:
    with raises(ValidationError, "not_a_backup", match=why):
        verify_backup(rewritten(made.path, nothing, change))


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b"null", b"{}", b"[" * 100_000, b"\xff", b'{"a": 1e999}'])
def test_what_is_no_manifest_is_refused(made: Backup, content: bytes) -> None:
    with raises(ValidationError, "not_a_backup"):
        verify_backup(rewritten(made.path, lambda members: members.update({"manifest.json": content})))


def test_more_than_the_manifest_says_is_not_read(made: Backup) -> None:
    """A hundred megabytes of zeros take a hundred kilobytes in an archive."""
    place = rewritten(made.path, lambda members: members.update({"memories.yaml": bytes(100 << 20)}))
    assert place.stat().st_size < 200_000
    (problem,) = verify_backup(place).problems
    assert "another size" in problem


def test_a_line_without_an_end_is_not_kept_in_memory(made: Backup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_reader, "LONGEST", 1 << 20)

    def say(manifest: dict[str, Any]) -> None:
        manifest["journals"][0]["size"] = 8 << 20

    place = rewritten(made.path, lambda members: members.update({"memories.yaml": bytes(8 << 20)}), say)
    (problem,) = verify_backup(place).problems
    assert "has no end" in problem


def test_links_folders_and_overlaps_are_refused(made: Backup, tmp_path: Path) -> None:
    place = tmp_path / "link.zip"
    for mode in (stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO):
        with zipfile.ZipFile(made.path) as source, zipfile.ZipFile(place, "w") as target:
            for member in source.infolist():
                copy = zipfile.ZipInfo(member.filename)
                copy.external_attr = (mode | 0o777) << 16 if member.filename == "memories.yaml" else 0
                target.writestr(copy, source.read(member))
        with raises(ValidationError, "not_a_backup", match="not a file"):
            verify_backup(place)


def test_a_name_that_is_there_twice_is_refused(made: Backup, tmp_path: Path) -> None:
    place = tmp_path / "twice.zip"
    place.write_bytes(made.path.read_bytes())
    with zipfile.ZipFile(place, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("memories.yaml", b"x")
    with raises(ValidationError, "not_a_backup", match="twice"):
        verify_backup(place)


def test_a_part_of_one_that_has_its_name_still_is_called_damaged(made: Backup) -> None:
    made.path.write_bytes(made.path.read_bytes()[:-30])
    with raises(StorageError, "backup_damaged"):
        verify_backup(made.path)


@pytest.mark.parametrize("what", ["missing", "folder", "text", "zip"])
def test_what_is_no_backup_is_none(tmp_path: Path, what: str) -> None:
    place = tmp_path / "some.zip"
    if what == "folder":
        place.mkdir()
    elif what == "text":
        place.write_text("hello")
    elif what == "zip":
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("photo.jpg", b"x")
    with raises(ValidationError, "no_file" if what == "missing" else "not_a_backup"):
        verify_backup(place)


def test_a_tally_counts_the_same_however_it_is_cut(made: Backup) -> None:
    with zipfile.ZipFile(made.path) as archive:
        content = archive.read("memories.yaml")
    for size in (1, 3, 100, 10_000):
        counted = LineTally()
        for line in iter_lines(content[start : start + size] for start in range(0, len(content), size)):
            counted.add(line)
        assert (counted.lines, counted.last_seq, counted.records, counted.damaged) == (5, 4, {"memory": 4}, [])


def test_lines_of_every_form_are_counted_as_the_journal_reads_them() -> None:
    at = '"at": "2026-03-01T12:00:00Z"'
    one, other = (f'{{"op": "put", "kind": "{kind}", "id": "{kind[:3]}-00000000000b"}}' for kind in ("memory", "other"))
    lines = [
        '--- {"journal": "agent-memory", "format": 2, "min_reader": 2, "generation": "x", "last_seq": 0}',
        f'--- {{"seq": 1, {at}, "op": "put", "kind": "memory", "id": "mem-00000000000a", "data": {{}}}}',
        f'--- {{"seq": 2, {at}, "op": "batch", "entries": [{one}, {other}]}}',
        f'--- {{"seq": 3, {at}, "op": "delete", "kind": "memory", "id": "mem-00000000000a"}}',
        f'--- {{{at}, "seq": 4, "kind": "memory", "op": "put", "id": "mem-00000000000d"}}',
        f'--- {{"seq": 5, {at}, "op": "unheard", "kind": "memory", "id": "mem-00000000000e"}}',
    ]
    content = b"".join(sealed_line(line + "\n").encode() for line in lines)
    damaged = sealed_line(lines[1] + "\n").encode().replace(b"000a", b"000f")
    counted = LineTally()
    for line in (content + damaged + b"no line\n").splitlines(keepends=True):
        counted.add(line)
    assert (counted.lines, counted.last_seq, counted.damaged) == (8, 5, [7, 8])
    assert counted.ids == {"memory": {"mem-00000000000b", "mem-00000000000d"}, "other": {"oth-00000000000b"}}
