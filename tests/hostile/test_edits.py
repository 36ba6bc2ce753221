"""A journal that somebody edits, damages or cuts short while sessions use it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from agent_memory.journal.format import add_checksum, encode_line
from agent_memory.journal.salvage import get_rejected_path
from tests.concurrency.processes import environment
from tests.hostile.attacks import attack
from tests.hostile.trouble import open_storage, reopened
from tests.support import lines_of, memory_of, resealed

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


async def test_damaged_lines_are_reported_survive_writes_and_are_set_aside_once(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("first"))
    with storage.folder.journal.open("ab") as file:
        file.write(b"--- {broken\n\x80\x81 not text\n")
    await storage.store(memory_of("last"))
    health = await storage.health()
    assert (health["status"], health["problems"]) == ("damaged", 2)
    assert health["first_problems"][0].startswith("line 3: ")
    assert b"--- {broken\n\x80\x81 not text\n" in storage.folder.journal.read_bytes()
    await storage.compact()
    await storage.compact()
    assert await storage.health() == {"status": "ok"}
    kept = list(yaml.safe_load_all(get_rejected_path(storage.folder.journal).read_text(encoding="utf-8")))
    assert len(kept) == 2
    assert await reopened(root, clock) == ["first", "last"]


@attack("record-that-breaks-the-model")
async def test_a_record_that_breaks_the_data_model_is_reported_and_set_aside(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("first"))
    bad = {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "mem-0123456789ab"}
    with storage.folder.journal.open("ab") as file:
        file.write(add_checksum(encode_line({**bad, "data": {"content": ""}})))
        file.write(add_checksum(encode_line({**bad, "seq": 3, "id": "not-an-id", "data": {"content": "text"}})))
    health = await storage.health()
    assert health["problems"] == 2
    assert any("mem-0123456789ab" in problem for problem in health["first_problems"])
    await storage.compact()
    assert await storage.health() == {"status": "ok"}
    assert await reopened(root, clock) == ["first"]


@attack("patch-that-breaks-a-memory")
async def test_a_memory_that_a_foreign_patch_broke_is_shown_as_it_was_also_after_a_compaction(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("good"))
    broken = {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "patch", "kind": "memory", "id": memory_id}
    with storage.folder.journal.open("ab") as file:
        file.write(add_checksum(encode_line({**broken, "data": {"content": ""}})))
    clock.advance(days=60)
    await storage.compact()
    health = await storage.health()
    assert (health["status"], health["problems"]) == ("damaged", 1)
    assert await reopened(root, clock) == ["good"]
    await storage.update(memory_id, {"tags": ["mended"]})
    assert await storage.health() == {"status": "ok"}
    again = open_storage(root, clock)
    mended = await again.get(memory_id)
    await again.close()
    assert (mended.content, mended.tags) == ("good", ["mended"])


@pytest.mark.parametrize("same_inode", [True, False])
async def test_a_journal_that_an_editor_saved_is_noticed_copied_and_reported(
    storage: FileStorage, root: Path, clock: FrozenClock, same_inode: bool
) -> None:
    for text in ("peppermint tea", "black coffee"):
        await storage.store(memory_of(text))
    await storage.count()  # nothing is left to do behind the stores, so nobody looks while the editor saves
    journal = storage.folder.journal
    edited = resealed(journal.read_bytes().replace(b"black coffee", b"white coffee"))
    if same_inode:
        journal.write_bytes(edited)
    else:
        journal.with_name("saved").write_bytes(edited)
        journal.with_name("saved").replace(journal)
    assert [m.content async for m in storage.iter_all()] == ["peppermint tea", "white coffee"]
    assert list(await storage.search("black")) == []
    health = await storage.health()
    assert any("rewritten" in problem for problem in health["first_problems"])
    assert [copy.read_bytes() for copy in storage.folder.path.glob("*rewritten*")] == [edited]
    await storage.store(memory_of("milk"))
    assert await reopened(root, clock) == ["peppermint tea", "white coffee", "milk"]


async def test_an_editor_that_dropped_lines_gets_no_number_given_twice(storage: FileStorage) -> None:
    for text in ("one", "two", "three"):
        await storage.store(memory_of(text))
    journal = storage.folder.journal
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    await storage.store(memory_of("four"))
    assert [json.loads(line[4:])["seq"] for line in lines_of(journal)] == [1, 4]


@pytest.mark.parametrize("saving", ["in place", "by renaming", "with a backup"])
@pytest.mark.parametrize(
    ("edit", "left", "problems"),
    [
        ("remove the second line", ["first", "third"], 0),
        ("change a text", ["first", "third"], 1),
        ("change a text and its checksum", ["first", "SECOND", "third"], 0),
        ("append without a number", ["first", "second", "third"], 1),
        ("append a number that was given", ["first", "second", "third", "by hand"], 0),
        ("cut within the last line", ["first", "second"], 0),
        ("empty", [], 0),
        ("end lines as on Windows", ["first", "second", "third"], 0),
        ("begin with a byte order mark", ["first", "second", "third"], 1),
        ("indent with tabs", ["first", "second", "third"], 0),
        ("write what a person would write", ["first", "second", "third"], 3),
        ("save as Latin-1", ["first", "second", "third"], 1),
    ],
)
async def test_whatever_an_editor_saves_the_session_goes_on_and_nothing_it_knew_is_lost(
    storage: FileStorage, root: Path, clock: FrozenClock, saving: str, edit: str, left: list[str], problems: int
) -> None:
    for text in ("first", "second", "third"):
        await storage.store(memory_of(text))
    await storage.count()
    known = {memory.id: memory.content async for memory in storage.iter_all()}
    journal = storage.folder.journal
    save(journal, edited(journal.read_bytes(), edit), saving)
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == [*left, "after"]
    health = await storage.health()
    assert health.get("problems", 0) >= problems
    assert health["status"] == ("damaged" if problems or edit not in UNSUSPICIOUS else "ok")
    lost = set(known.values()) - set(left)
    saved = list(storage.folder.path.glob("memories.lost-*.yaml"))
    assert {item["content"] for path in saved for item in yaml.safe_load_all(path.read_text())} == lost
    if lost:
        assert any("agent-memory import" in note for note in health["notes"])
    seqs = [json.loads(line[4:])["seq"] for line in lines_of(journal) if b'"after"' in line]
    assert seqs == [4] or edit == "append a number that was given"


async def test_what_an_editor_removed_comes_back_with_an_import(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    stored = [await storage.store(memory_of(text, tags=["kept"])) for text in ("peppermint tea", "black coffee")]
    await storage.touch([stored[1]])
    before = await storage.get(stored[1])
    journal = storage.folder.journal
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    assert await storage.count() == 1
    (lost,) = storage.folder.path.glob("memories.lost-*.yaml")
    command = [
        sys.executable,
        "-m",
        "agent_memory.cli",
        "import",
        "--trusted",
        str(lost),
        "--root",
        str(root),
        "--agent",
        "bob",
    ]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, env=environment())
    assert await storage.get(stored[1]) == before


async def test_a_change_that_an_old_copy_undoes_is_written_down(storage: FileStorage) -> None:
    memory_id = await storage.store(memory_of("lives in Paris"))
    old = storage.folder.journal.read_bytes()
    await storage.update(memory_id, {"content": "lives in Berlin"})
    storage.folder.journal.write_bytes(old)
    assert [memory.content for memory in await storage.list_recent()] == ["lives in Paris"]
    (lost,) = storage.folder.path.glob("memories.lost-*.yaml")
    assert "lives in Berlin" in lost.read_text()


async def test_a_broken_scratchpad_of_windows_is_read_like_any_other(service: MemoryService, root: Path) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    pad = root / "bob" / "scratchpad.yaml"
    pad.write_bytes(pad.read_bytes().replace(b"\n", b"\r\n"))
    assert [entry.content for entry in (await service.scratchpad()).entries] == ["peppermint tea"]
    assert list(pad.parent.glob("scratchpad.broken*")) == []


UNSUSPICIOUS: Final = {"append without a number", "append a number that was given"}


def edited(content: bytes, edit: str) -> bytes:
    lines = content.splitlines(keepends=True)
    given = b'--- {"seq": 3, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "mem-0123456789ab", '
    return {
        "remove the second line": b"".join([*lines[:2], *lines[3:]]),
        "change a text": content.replace(b"second", b"SECOND"),
        "change a text and its checksum": resealed(content.replace(b"second", b"SECOND")),
        "append without a number": content + b'--- {"op": "put", "kind": "memory", "id": "mem-0123456789ab"}\n',
        "append a number that was given": content + add_checksum(given + b'"data": {"content": "by hand"}}'),
        "cut within the last line": content[:-20],
        "empty": b"",
        "end lines as on Windows": content.replace(b"\n", b"\r\n"),
        "begin with a byte order mark": b"\xef\xbb\xbf" + content,
        "indent with tabs": content.replace(b", ", b",\t"),
        "write what a person would write": content + b"- content: by hand\n  tags:\n    - a\n",
        "save as Latin-1": content + "caf\xe9\n".encode("latin-1"),
    }[edit]


def save(path: Path, content: bytes, saving: str) -> None:
    """Save as nano does, as vim does, or as an editor that keeps the old file beside it."""
    if saving == "in place":
        path.write_bytes(content)
        return
    path.with_name("4913").write_bytes(content)
    if saving == "with a backup":
        path.rename(path.with_name("memories.yaml~"))
    path.with_name("4913").rename(path)


async def test_a_change_in_place_is_seen_though_somebody_appended_since(root: Path, clock: FrozenClock) -> None:
    a, b = open_storage(root, clock), open_storage(root, clock)
    ids = [await a.store(memory_of(f"inplace memory number {number}")) for number in range(12)]
    await b.count()
    change_in_place(a.folder.journal, b'inplace memory number 1"', b"INPLACE")
    await b.health()
    await b.store(memory_of("appended by the other one"))
    for storage in (a, b):
        assert (await storage.get(ids[1])).content == "INPLACE memory number 1"  # type: ignore[union-attr]
        assert (await storage.health())["status"] == "damaged"
        await storage.close()


async def test_health_sees_a_change_that_left_size_and_date_as_they_were(storage: FileStorage) -> None:
    memory_id = await storage.store(memory_of("inplace memory"))
    await storage.count()  # behind what a store leaves to be done, which looks at the file too
    journal = storage.folder.journal
    before = journal.stat()
    change_in_place(journal, b"inplace", b"INPLACE")
    os.utime(journal, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (await storage.get(memory_id)).content == "inplace memory"  # type: ignore[union-attr]
    assert (await storage.health())["status"] == "damaged"
    assert (await storage.get(memory_id)).content == "INPLACE memory"  # type: ignore[union-attr]


async def test_a_copy_put_in_place_again_and_again_leaves_one_file_with_all_that_was_lost(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("in the copy"))
    older = storage.folder.journal.read_bytes()
    for number in range(5):
        memory_id = await storage.store(memory_of(f"lost {number % 3}"))
        await storage.touch([memory_id])
        (root / "copy").write_bytes(older)  # put in place at once: a background read sees one of the two
        (root / "copy").replace(storage.folder.journal)
        await storage.count()
    (lost,) = storage.folder.path.glob("memories.lost-*.yaml")
    assert lost.read_bytes().count(b"\n") == 5
    again = open_storage(root, clock)
    await again.count()
    await again.store(memory_of("in no copy"))
    await storage.close()
    await again.close()


def change_in_place(journal: Path, old: bytes, new: bytes) -> None:
    """Change a few bytes, and the checksum of their line, and leave the length alone."""
    content = journal.read_bytes()
    at = content.index(old)
    with journal.open("r+b") as file:
        file.write(resealed(content[:at] + new + content[at + len(new) :]))
