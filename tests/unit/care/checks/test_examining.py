"""What the doctor finds, one kind of trouble at a time. The home is sound but for what the test does to it."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import importlib.metadata
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks.codes import CODES, Severity
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.journal_survey import JournalReading, find_salvageable
from agent_memory.files.wording import format_size
from agent_memory.memory.status import ATTENTION, find_concerns
from agent_memory.models import MEMORY, SUSPECT, Link
from agent_memory.registry import RegisteredCheck
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from tests.new_kind import THING
from tests.rows import check_rows
from tests.support import NOON, FrozenClock, memory_of, resealed, sealed_line
from tests.unit.care.checks.homes import LIVE, make_circles, rewrite_json, snapshot, spoil_vectors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.care.checks.codes import Finding
    from agent_memory.models import Memory

    Found = Callable[[], dict[str, Finding]]

examine_module = importlib.import_module("agent_memory.care.checks.examination")
"""The package offers a function of this name, too."""


def test_a_sound_home_is_healthy(bob: Path, root: Path, found: Found) -> None:
    report = examine(root, now=NOON)
    assert report.healthy
    assert report.agents[0].memories == LIVE
    codes = found()
    assert {
        "journal", "lock", "scratchpad", "metadata", "index", "vectors", "audit", "sessions", "parts",
    } <= codes.keys()  # fmt: skip
    assert codes["journal"].sentence.startswith(f"{LIVE} memories (1 superseded), 1 forgotten")
    assert codes["journal"].size == (bob / "memories.yaml").stat().st_size


@pytest.mark.parametrize("lock", ["there", "missing"])
def test_looking_changes_nothing_not_even_a_time_and_makes_no_lock_file(
    bob: Path, root: Path, found: Found, lock: str
) -> None:
    if lock == "missing":
        (bob / ".lock").unlink()
    before = snapshot(root)
    codes = found()
    assert snapshot(root) == before
    assert lock == "there" or codes["lock_missing"].severity is Severity.NOTE


def test_a_home_that_is_not_there_is_healthy_and_one_that_is_a_file_is_not(root: Path) -> None:
    report = examine(root, now=NOON)
    assert report.healthy
    assert "home_missing" in {finding.code for finding in report.findings}
    assert not root.exists()
    root.write_text("x")
    assert not examine(root, now=NOON).healthy


# -- the journal ----------------------------------------------------------------------------------------------------


def test_damaged_lines_are_named_by_number(bob: Path, found: Found) -> None:
    journal = bob / "memories.yaml"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines.insert(3, b"junk\n")
    journal.write_bytes(b"".join(lines))
    finding = found()["journal_lines"]
    assert finding.severity is Severity.PROBLEM
    assert finding.details == ("line 4: it does not begin with '--- '",)
    assert finding.size == len(b"junk\n")


async def test_a_damaged_line_of_many_memories_says_how_many(root: Path, found: Found, bob: Path) -> None:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    await storage.store_many([memory_of(f"imported {number}") for number in range(7)])
    await storage.close()
    journal = bob / "memories.yaml"
    journal.write_bytes(journal.read_bytes().replace(b"imported 3", b"imported 4"))
    assert found()["journal_lines"].sentence.startswith("1 line of memories.yaml, on 7 records, cannot be read")


def test_a_torn_end_is_told_from_one_that_lacks_its_line_end_and_is_no_trouble_while_somebody_writes(
    bob: Path, found: Found
) -> None:
    journal = bob / "memories.yaml"
    content = journal.read_bytes()
    journal.write_bytes(content[:-1])
    assert "journal_unfinished" in found()
    journal.write_bytes(content[:-20])
    assert "journal_tail" in found()
    with (bob / ".lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        codes = found()
    assert "journal_tail" not in codes
    assert "lock_held" in codes


@pytest.mark.parametrize("header", [b"", b"--- {broken\n"])
def test_a_header_that_is_missing_or_damaged_costs_no_memory(
    bob: Path, root: Path, found: Found, header: bytes
) -> None:
    journal = bob / "memories.yaml"
    journal.write_bytes(header + b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    codes = found()
    assert "journal_header" in codes
    assert "journal_lines" not in codes, "the header is told once"
    assert examine(root, now=NOON).agents[0].memories == LIVE


def test_a_newer_journal_is_said_to_be_read_only(bob: Path, found: Found) -> None:
    journal = bob / "memories.yaml"
    journal.write_bytes(resealed(journal.read_bytes().replace(b'"min_reader": 2', b'"min_reader": 3')))
    assert "Upgrade" in found()["journal_newer"].advice


def test_lines_in_another_order_are_told_from_numbers_that_occur_twice(bob: Path, found: Found) -> None:
    journal = bob / "memories.yaml"
    header, *lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([header, *lines, lines[1]]))
    assert "(1 twice, 1 backwards)" in found()["journal_order"].sentence
    journal.write_bytes(b"".join([header, *reversed(lines)]))
    codes = found()
    assert codes["journal_backwards"].severity is Severity.WARNING
    assert "journal_order" not in codes


def test_circles_of_memories_and_damaged_vectors_are_found(bob: Path, found: Found) -> None:
    assert not {"journal_circle", "vectors_spoilt"} & found().keys()
    make_circles(bob / "memories.yaml")
    assert sorted(found()["journal_circle"].details) == [
        "mem-000000000005 replaces mem-000000000006",
        "mem-000000000006 replaces mem-000000000005",
        "mem-000000000007 replaces mem-000000000007",
    ]
    spoil_vectors(bob / "embeddings.sqlite3")
    assert "2 vectors are damaged" in found()["vectors_spoilt"].sentence


def test_a_last_line_without_its_end_does_not_make_an_index_ahead(bob: Path, found: Found) -> None:
    journal = bob / "memories.yaml"
    state = next((bob / "memories.db").glob("*/state.json"))
    rewrite_json(state, seq=JournalReading(journal, "bob").file.reader.last_seq)
    journal.write_bytes(journal.read_bytes()[:-1])
    codes = found()
    assert "journal_unfinished" in codes
    assert "index_ahead" not in codes


def test_an_entry_that_is_no_memory_is_told_from_a_change_that_spoils_one(bob: Path, found: Found) -> None:
    journal = bob / "memories.yaml"
    at = '"at": "2026-03-01T12:00:00Z", "kind": "memory"'
    with journal.open("a") as lines:
        lines.write(
            sealed_line(f'--- {{"seq": 90, {at}, "op": "put", "id": "mem-0000000000aa", "data": {{"content": ""}}}}\n')
        )
        lines.write(
            sealed_line(f'--- {{"seq": 91, {at}, "op": "patch", "id": "mem-000000000005", "data": {{"content": 5}}}}\n')
        )
    codes = found()
    assert codes["journal_records"].details[0].startswith("mem-0000000000aa")
    assert codes["journal_changes"].details[0].startswith("mem-000000000005")


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_lost_journal_is_told_from_one_that_was_never_begun(bob: Path, root: Path, found: Found, how: str) -> None:
    (bob / "memories.yaml").unlink()
    if how == "empty":
        (bob / "memories.yaml").touch()
    finding = found()["journal_missing"]
    assert "hold none of their text" in finding.sentence
    assert "scratchpad.yaml" in finding.sentence
    (root / "new").mkdir(mode=0o700)
    assert "journal_new" in {each.code for each in examine(root, ["new"], now=NOON).agents[0].findings}


def test_an_empty_scratchpad_without_a_journal_is_not_a_loss(root: Path) -> None:
    (root / "new").mkdir(mode=0o700, parents=True)
    (root / "new" / "scratchpad.yaml").write_text("# What new sees.\n[]\n# rendered c5da69cef45516b3\n")
    codes = {finding.code for finding in examine(root, ["new"], now=NOON).agents[0].findings}
    assert "journal_new" in codes
    assert "journal_missing" not in codes


def test_a_journal_that_is_a_link_a_folder_or_a_pipe_is_a_problem(bob: Path, found: Found) -> None:
    journal = bob / "memories.yaml"
    journal.rename(bob / "elsewhere")
    journal.symlink_to("elsewhere")
    assert "a symbolic link" in found()["journal_unreadable"].sentence
    journal.unlink()
    journal.mkdir()
    assert "a folder" in found()["journal_unreadable"].sentence
    journal.rmdir()
    os.mkfifo(journal)
    assert "no regular file" in found()["journal_unreadable"].sentence


def test_what_a_compaction_would_free_is_told(bob: Path, root: Path) -> None:
    findings = examine(root, now=NOON.replace(year=NOON.year + 1)).agents[0].findings
    assert "A compaction would free" in next(each.sentence for each in findings if each.code == "journal")


# -- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "memories (Maria's conflicted copy 2026-01-28).yaml",
        "memories (In Konflikt stehende Kopie von maria 2026-01-28).yaml",
        "memories.sync-conflict-20260128-120000-ABCDEFG.yaml",
        "memories-DESKTOP-4711.yaml",
        "memories 2.yaml",
        "memories (1).yaml",
    ],
)
def test_memories_of_a_conflict_copy_are_counted_and_never_merged(bob: Path, found: Found, name: str) -> None:
    content = (bob / "memories.yaml").read_bytes()
    (bob / name).write_bytes(content)
    assert "conflict_copies_known" in found()
    line = content.splitlines(keepends=True)[1].replace(b"mem-000000000000", b"mem-00000000beef")
    (bob / name).write_bytes(content + resealed(line))
    finding = found()["conflict_copies"]
    assert "1 memory that the journal has not" in finding.sentence
    assert "--salvage" in finding.advice
    assert (bob / "memories.yaml").read_bytes() == content


def test_what_was_forgotten_here_is_not_missing_from_here(bob: Path, found: Found) -> None:
    lines = (bob / "memories.yaml").read_bytes().splitlines(keepends=True)
    before_forgetting = b"".join(line for line in lines if b'"delete"' not in line)
    (bob / "memories 2.yaml").write_bytes(before_forgetting)
    assert "conflict_copies_known" in found()


def test_copies_of_ours_are_no_conflict(bob: Path, found: Found) -> None:
    for name in ("rewritten-0123abcd.yaml", "yaml.before-repair-20260301T120000", "yaml.bak"):
        shutil.copyfile(bob / "memories.yaml", bob / f"memories.{name}")
    codes = found()
    assert {"journal_rewritten", "journal_copies"} <= codes.keys()
    assert not {"conflict_copies", "conflict_copies_known"} & codes.keys()


@pytest.mark.parametrize(("copies", "advice"), [(1, "Delete it when"), (2, "Delete them when")])
def test_the_advice_about_copies_of_the_journal_counts_them(bob: Path, found: Found, copies: int, advice: str) -> None:
    for name in ("bak", "old")[:copies]:
        shutil.copyfile(bob / "memories.yaml", bob / f"memories.yaml.{name}")
    assert found()["journal_copies"].advice.startswith(advice)


def test_the_engine_is_missed_only_where_an_agent_would_gain_by_it(
    bob: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = importlib.metadata.version

    def without_engine(name: str) -> str:
        if name == "qdrant-edge-py":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_engine)

    def missed(threshold: int) -> list[str]:
        report = examine(root, now=NOON, settings=ServiceSettings(migration_threshold=threshold))
        return [each.sentence for each in report.findings if each.code == "parts_missing"]

    assert missed(threshold=2 * LIVE + 1) == []
    assert [sentence.split(";")[0] for sentence in missed(threshold=2 * LIVE)] == ["Not installed: qdrant-edge-py"]


def test_what_a_session_saved_from_another_program_is_offered(bob: Path, found: Found) -> None:
    saved = bob / "memories.lost-0123abcd.yaml"
    saved.write_text('--- {"id": "mem-00000000beef", "content": "Gone", "category": "note"}\n')
    assert "import" in found()["lost"].advice
    saved.write_text('--- {"id": "mem-000000000004", "content": "Fact number 4 ✓"}\n')
    assert "lost_known" in found()


async def test_nothing_is_amiss_while_a_session_writes(bob: Path, root: Path) -> None:
    storage = FileStorage("bob", root, clock=FrozenClock())

    async def write() -> None:
        for number in range(60):
            await storage.store(memory_of(f"Something new {number}", id=f"mem-{number:011x}f"))
            if number % 20 == 0:
                await storage.compact()

    writing = asyncio.create_task(write())
    while not writing.done():
        report = await asyncio.to_thread(examine, root, now=NOON)
        assert report.healthy, report
    await writing
    await storage.close()


# -- the table ------------------------------------------------------------------------------------------------------


@check_rows(
    ("size", "words"), [(0, "0 bytes"), (1, "1 byte"), (1234, "1.2 kB"), (12_345_678, "12 MB"), (3 * 10**9, "3.0 GB")]
)
def test_sizes_are_said_as_people_say_them(size: int, words: str) -> None:
    assert format_size(size) == words


def test_metadata_nested_beyond_every_stack_is_broken_and_no_more(bob: Path, found: Found) -> None:
    (bob / "metadata.json").write_text("[" * 100_000)
    next((bob / "memories.db").glob("*/state.json")).write_text("[" * 100_000)
    codes = found()
    assert "metadata_broken" in codes
    assert "not_examined" not in codes


def test_a_kind_says_what_is_wrong_with_its_records(bob: Path, root: Path) -> None:
    strict = replace(MEMORY, checks=lambda memory: ["it is pinned"] if memory.pinned else [])
    findings = examine(root, now=NOON, kinds=(strict,)).agents[0].findings
    (finding,) = (finding for finding in findings if finding.code == "journal_rules")
    assert finding.details == ("mem-000000000003: it is pinned",)


def test_the_journal_of_another_kind_is_examined_like_the_first(bob: Path, root: Path) -> None:
    thing = replace(MEMORY, name="thing", prefix="thg-", journal="things.yaml")
    line = '--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "thing", "id": "thg-0", "data": {}}\n'
    (bob / "things.yaml").write_text(f"{line}junk\n")
    (bob / "things.yaml").chmod(0o600)
    agent = examine(root, now=NOON, kinds=(MEMORY, thing)).agents[0]
    codes = {finding.code: finding.sentence for finding in agent.findings if "things.yaml" in finding.sentence}
    assert codes["journal_lines"] == "1 line of things.yaml cannot be read; all others are used."
    assert "its header, is missing" in codes["journal_header"]
    assert agent.memories == LIVE


def test_a_record_that_any_journal_of_the_agent_has_is_not_salvaged(bob: Path, root: Path) -> None:
    line = '--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "thing", "id": "%s", "data": %s}\n'
    lines = [line % (f"thi-00000000000{letter}", '{"said": "Maria", "agent_id": "bob"}') for letter in "ab"]
    (bob / THING.journal).write_text(lines[0])
    (bob / "copy.yaml").write_text("".join(lines))
    found = find_salvageable(bob / "copy.yaml", folder_of("bob", root), (MEMORY, THING))
    assert [record.id for record in found] == ["thi-00000000000b"]


def test_every_code_says_what_it_means_and_a_status_tells_of_those_that_want_attention() -> None:
    assert all(entry.meaning and entry.area for entry in CODES.values())
    severities = [CODES[code].severity for code in ATTENTION]
    assert severities == sorted(severities, reverse=True)
    assert min(severities) is Severity.WARNING


def test_examine_hidden_pair_counted_until_replaced(root: Path, found: Found) -> None:
    texts = ["Olga leads the desk.", "The desk is led by Omar now.", "The port is 8080.", "The port is 8081."]
    lead, led, port, other_port = map(memory_of, texts)
    led.links.append(Link(rel=SUSPECT, id=lead.id))
    other_port.links.append(Link(rel=SUSPECT, id=port.id))

    async def store(*memories: Memory) -> None:
        storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
        await storage.store_many([*memories])
        await storage.close()

    asyncio.run(store(lead, led, port, other_port))
    assert found()["conflicts_hidden"].sentence.startswith("1 undecided pair is hidden")
    asyncio.run(store(memory_of("Ina leads the desk.", supersedes=lead.id)))
    assert "conflicts_hidden" not in found()


def test_doctor_reports_each_concern_of_status(bob: Path, root: Path, found: Found) -> None:
    bob.chmod(0o755)
    (bob / "metadata.json").write_text("{")
    (bob / "memories.rejected.yaml").mkdir()
    codes = {concern.code for concern in find_concerns(folder_of("bob", root), NOON)}
    assert {"permissions_open", "metadata_broken", "rejected_unusable"} <= codes <= found().keys()


def test_check_of_an_absent_package_is_reported(bob: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = RegisteredCheck("memories.yaml", "agent_memory.no_such_package:check")
    monkeypatch.setattr(examine_module, "CHECKS", {"things": absent})
    findings = examine(root, now=NOON).agents[0].findings
    (finding,) = (finding for finding in findings if finding.code == "not_examined")
    assert "agent_memory.no_such_package is absent" in finding.sentence
    assert finding.advice == "Reinstall this package completely."
