"""Two versions of this package on one folder: the older one reads on, writes nothing it cannot, drops nothing."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from agent_memory.care.privacy.file_encryption import encrypt
from agent_memory.cli.app import build
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import ReadOnlyError, UnsupportedError
from agent_memory.files.layout import AgentFolder
from agent_memory.journal.agent_file import read_states, write_states
from agent_memory.journal.format import decode_line, encode_line
from agent_memory.memories import MigratableStorage
from agent_memory.settings.installation import build_upgrade_command
from tests.hostile.trouble import refusal, reopened
from tests.support import memory_of, raises, resealed

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


async def test_a_journal_of_a_newer_format_is_read_and_not_written(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("peppermint tea"))
    journal = storage.folder.journal
    first, _, rest = journal.read_bytes().partition(b"\n")
    journal.write_bytes(resealed(encode_line({**json.loads(first[4:]), "min_reader": 3, "generation": "later"})) + rest)
    before = journal.read_bytes()
    assert len(await storage.search("peppermint")) == 1
    for attempt in (storage.store(memory_of("coffee")), storage.compact()):
        with raises(ReadOnlyError, "newer_format") as refused:
            await attempt
        assert "upgrade" in refused.value.recovery.lower()
    assert journal.read_bytes() == before


FIXTURE = Path(__file__).parents[1] / "fixtures" / "088d4165" / "full" / "agents"
LATER = {"at": "2026-03-01T12:00:00Z"}


async def test_a_newer_format_is_told_by_status(service: MemoryService, root: Path, clock: FrozenClock) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    make_newer(root / "bob" / "memories.yaml")
    assert [hit.memory.content for hit in (await service.search("peppermint")).results] == ["peppermint tea"]
    health = (await service.status()).health
    assert health["status"] != "damaged"
    (note,) = health["notes"]
    assert note.startswith(
        "memories.yaml was written by a newer version of agent-memory (format 3; agent-memory 0.1.0 "
    )
    assert note.endswith(" format 2), so it is only read here.")
    assert (await refusal(service.store({"content": "coffee"})))["code"] == "newer_format"
    assert (await service.scratchpad()).entries[0].content == "peppermint tea"


async def test_a_session_notices_that_a_newer_version_took_over(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    """The other version compacts, as an upgrade does, while this session runs; then it is taken back."""
    await storage.store(memory_of("before"))
    journal = storage.folder.journal
    old = journal.read_bytes()
    make_newer(journal)
    assert (await refusal(storage.store(memory_of("refused"))))["code"] == "newer_format"
    journal.write_bytes(old)
    await storage.store(memory_of("after the downgrade"))
    assert await reopened(root, clock) == ["before", "after the downgrade"]


async def test_what_a_newer_version_wrote_survives_updates_and_compactions_of_this_one(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("tea"))
    journal = storage.folder.journal
    lines = [
        {"seq": 2, **LATER, "op": "patch", "kind": "memory", "id": memory_id, "data": {"mood": "calm"}},
        {"seq": 3, **LATER, "op": "weave", "kind": "memory", "id": memory_id, "data": {"into": "cloth"}},
        {"seq": 4, **LATER, "op": "put", "kind": "dream", "id": "dream-1", "data": {"of": "sheep"}},
    ]
    with journal.open("ab") as file:
        file.write(resealed(b"".join(map(encode_line, lines))))
    await storage.update(memory_id, {"content": "green tea"})
    clock.advance(days=60)
    await storage.compact()
    content = journal.read_text()
    for kept in ('"mood": "calm"', '"into": "cloth"', '"of": "sheep"'):
        assert kept in content
    assert (await storage.health())["status"] == "ok"
    assert await reopened(root, clock) == ["green tea"]


async def test_a_newer_description_of_the_folder_keeps_its_fields(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    note = {"schema": 2, "backend": "constellation", "stars": 7}
    storage.folder.metadata.write_text(json.dumps(note))
    again = MigratableStorage("bob", root, embedder=HashEmbedder())
    assert again.backend == "file"
    assert len(await again.search("fact")) == 1
    await again.migrate()
    after = json.loads(storage.folder.metadata.read_text())
    assert (after["schema"], after["stars"], after["backend"]) == (2, 7, "vector")
    await again.close()
    await storage.close()


async def test_vectors_of_a_newer_version_are_left_to_it_and_searches_go_by_meaning_all_the_same(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    await storage.prepare(None)
    await storage.close()
    with contextlib.closing(sqlite3.connect(storage.folder.vectors)) as database, database:
        database.execute("PRAGMA user_version = 7")
    before = storage.folder.vectors.read_bytes()
    again = MigratableStorage("bob", root, embedder=HashEmbedder())
    await again.prepare(None)
    assert (await again.search("fact")).mode == "hybrid"
    assert "newer version" in again.embedding_status()["problem"]
    await again.close()
    assert storage.folder.vectors.read_bytes() == before
    assert list(storage.folder.path.glob("*.broken")) == []


async def test_an_index_of_a_newer_version_is_built_anew(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    built = await storage.migrate()
    await storage.close()
    state = storage.folder.index / built.shard / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 9, "orbit": "low"}))
    again = MigratableStorage("bob", root, embedder=HashEmbedder())
    await again.prepare(None)
    assert await again.caught_up(30)
    assert (await again.search("fact")).mode == "hybrid"
    await again.close()


RECORDS = (
    {"op": "put", "kind": "dream", "id": "drm-00000000000a", "data": {"of": "sheep"}},
    {
        "op": "put",
        "kind": "memory",
        "id": "mem-00000000000c",
        "data": {"content": "Kate is in Oslo.", "mood": "calm"},
    },
    {"op": "weave", "kind": "memory", "id": "mem-00000000000c", "data": {"into": "cloth"}, "mood": "calm"},
)
READING = (
    ["list"],
    ["search", "Oslo"],
    ["history", "mem-00000000000c"],
    ["status"],
    ["export", "out.jsonl"],
    ["inbox"],
)
WRITING = (
    ["store", "A new fact."], ["forget", "mem-00000000000c", "--yes"], ["update", "mem-00000000000c", "--pin"],
    ["purge", "mem-00000000000c", "--yes"], ["archive", "compact"], ["encryption", "on", "--yes"],
    ["import", "in.jsonl"], ["ingest", "in.md"], ["archive", "add", "mem-00000000000c"],
)  # fmt: skip


@pytest.fixture
def newer(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of bob as a newer version would leave it: unknown formats, kinds, operations and fields."""
    shutil.copytree(FIXTURE, root)
    for journal in (root / "bob").glob("*.yaml"):
        if journal.read_bytes().startswith(b'--- {"journal":') and journal.name not in {"tasks.yaml", "purged.yaml"}:
            make_newer(journal, 9)
            last = max(json.loads(line[4:])["seq"] for line in journal.read_bytes().splitlines()[1:])
            lines = [{"seq": last + n, **LATER, **record} for n, record in enumerate(RECORDS, start=1)]
            with journal.open("ab") as file:
                file.write(resealed(b"".join(map(encode_line, lines))))
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    monkeypatch.setenv("AGENT_MEMORY_KEY", "fixture-only-passphrase")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"content": "Imported."}\n')
    (tmp_path / "in.md").write_text("# Harbour\n\nThe harbour opens at nine.\n")
    return root / "bob"


def read_journals(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.yaml") if path.name != "scratchpad.yaml"}


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_older_version_reads_what_it_knows_of_a_newer_journal(newer: Path, arguments: list[str]) -> None:
    before = read_journals(newer)
    result = CliRunner().invoke(build(), [*arguments, "-a", "bob"])
    assert result.exit_code == 0, result.output
    if arguments[0] in {"list", "search"}:
        assert "Kate is in Oslo." in result.stdout
    assert read_journals(newer) == before


@pytest.mark.parametrize("arguments", WRITING, ids=" ".join)
def test_older_version_refuses_to_write_and_names_both_versions(newer: Path, arguments: list[str]) -> None:
    before = read_journals(newer)
    result = CliRunner().invoke(build(), [*arguments, "-a", "bob"])
    assert result.exit_code == 1, result.output
    assert "(format 9; agent-memory 0.1.0 writes format 2)" in result.stderr
    assert build_upgrade_command() in " ".join(result.stderr.split())
    assert read_journals(newer) == before
    assert not (newer / "encryption.json").exists()


def test_agent_file_of_a_newer_version_keeps_its_fields(root: Path) -> None:
    shutil.copytree(FIXTURE, root)
    path = root / "bob" / "agent.yaml"
    value = decode_line(path.read_bytes())
    state = value["journals"]["memories.yaml"]
    value = {**value, "tide": "low", "journals": {**value["journals"], "memories.yaml": {**state, "tide": "high"}}}
    path.write_bytes(resealed(encode_line(value)))
    states = read_states(root / "bob")
    assert states is not None
    assert states.keys() == value["journals"].keys()
    write_states(root / "bob", states)
    assert decode_line(path.read_bytes())["tide"] == "low"


def test_encryption_of_a_journal_with_unknown_lines_begins_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FIXTURE, root)
    journal = root / "bob" / "memories.yaml"
    line = {"seq": 999, **LATER, "op": "weave", "kind": "memory", "id": "mem-00000000000c", "data": {}}
    with journal.open("ab") as file:
        file.write(resealed(encode_line(line)))
    monkeypatch.setenv("AGENT_MEMORY_KEY", "fixture-only-passphrase")
    with pytest.raises(UnsupportedError, match="Line 999"):
        encrypt(AgentFolder(root / "bob"))
    assert not (root / "bob" / "encryption.json").exists()


def make_newer(journal: Path, form: int = 3) -> None:
    """Do to the header what a version that this one must not write for would do."""
    first, _, rest = journal.read_bytes().partition(b"\n")
    header = {**json.loads(first[4:]), "format": form, "min_reader": form, "generation": "later"}
    last = max(json.loads(line[4:])["seq"] for line in rest.splitlines())
    journal.write_bytes(resealed(encode_line({**header, "last_seq": last})) + rest)
