"""Files of ours that somebody put something else into: what is read of them, and what comes of it."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import LocalEmbedder
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.encryption import AgentBlobs
from agent_memory.errors import AgentMemoryError, EmbeddingError, StorageError
from agent_memory.files.layout import AgentFolder
from agent_memory.memories import FileStorage, MigratableStorage
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from agent_memory.workspace import Workspace
from tests.hostile.attacked import EVIL, RULE
from tests.hostile.attacks import attack, tried

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

OFF = ServiceSettings(embedder="none")


@attack("blob-with-other-words")
def test_a_long_text_that_was_exchanged_is_not_read(tmp_path: Path) -> None:
    blobs = AgentBlobs(AgentFolder(tmp_path))
    with blobs.keeping(["tea " * 3_000]) as names:
        (name,) = names
    (tmp_path / "blobs" / name).write_text(EVIL)
    with pytest.raises(StorageError):
        blobs.read(name)


@pytest.mark.parametrize("name", [tried("blob-of-a-path", "../memories.yaml"), tried("blob-of-a-device", "/dev/zero")])
def test_a_record_that_names_a_path_for_its_text_reads_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "memories.yaml").write_text(EVIL)
    (tmp_path / "blobs").mkdir()
    with pytest.raises(AgentMemoryError):
        AgentBlobs(AgentFolder(tmp_path)).read(name)


LINES: list[Any] = [
    tried(
        "journal-line-without-checksum", b'--- {"seq": 9, "op": "put", "kind": "memory", "id": "mem-00000000000a"}\n'
    ),
    tried("journal-line-of-python", b"--- !!python/object/apply:os.system ['touch OWNED']\n"),
    tried("journal-line-of-zeros", bytes(100_000) + b"\n"),
    tried("journal-line-of-brackets", b"--- " + b"[" * 100_000 + b"\n"),
    tried("journal-line-of-aliases", b"--- {a: &a [x], b: [*a, *a]}\n"),
]


@pytest.mark.parametrize("line", LINES)
async def test_a_line_that_is_none_of_ours_costs_itself_alone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = FileStorage("bob", root, settings=OFF)
    await storage.store(Memory(agent_id="bob", content=RULE))
    await storage.close()
    with (root / "bob" / "memories.yaml").open("ab") as journal:
        journal.write(line)
    storage = FileStorage("bob", root, settings=OFF)
    await storage.store(Memory(agent_id="bob", content="Uses tea"))
    assert [memory.content async for memory in storage.iter_all()] == [RULE, "Uses tea"]
    await storage.close()
    assert not (tmp_path / "OWNED").exists()


PADS: list[Any] = [
    tried("merge-keys-in-the-scratchpad", "- &m0 {a: b}\n"
          + "".join(f"- &m{n} {{<<: [{','.join([f'*m{n - 1}'] * 8)}]}}\n" for n in range(1, 12))),
    tried("python-tag-in-the-scratchpad", "- content: !!python/object/apply:os.system ['touch OWNED']\n"),
    tried("deep-scratchpad", "[" * 100_000),
    tried("endless-scratchpad", "- content: " + "x" * 3_000_000 + "\n"),
]  # fmt: skip


@pytest.mark.parametrize("text", PADS)
async def test_a_scratchpad_that_is_a_bomb_costs_no_session(
    cli: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("store", RULE)
    (root / "bob" / "scratchpad.yaml").write_text(text)
    assert RULE in cli("list", "--scratchpad").stdout
    assert [each["content"] for each in json.loads(cli("list", "--json").stdout)["memories"]] == [RULE]
    assert not (tmp_path / "OWNED").exists()


# -- databases and indexes --------------------------------------------------------------------------------------------


def trigger(path: Path) -> None:
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in tables:
            database.execute(f'CREATE TRIGGER "t{name}" AFTER INSERT ON "{name}" BEGIN DELETE FROM "{name}"; END')
    database.close()


def view(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE VIEW vectors AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"
        )
    database.close()


@pytest.mark.parametrize(
    "spoil",
    [
        tried("database-with-triggers", trigger),
        tried("database-with-an-endless-view", view),
        tried("database-of-rubbish", lambda path: path.write_bytes(b"SQLite format 3\0" + os.urandom(8_192))),
        tried("database-of-another-program", lambda path: path.write_bytes(b"x" * 8_192)),
    ],
)
async def test_a_cache_of_vectors_that_was_spoilt_costs_vectors_alone(
    root: Path, spoil: Callable[[Path], None]
) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(Memory(agent_id="bob", content=RULE))
    await storage.prepare(None)
    await storage.close()
    spoil(root / "bob" / "embeddings.sqlite3")
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.prepare(None)
    results = await storage.search("push to main review")
    assert [hit.memory.content for hit in results] == [RULE]
    await storage.close()


DECLARED = "workspace: w\ntables: {notes: {key: name, columns: {name: {type: text, required: true}, note: text}}}\n"


@attack("snapshot-that-unpacks-without-end")
def test_a_file_of_a_snapshot_that_was_exchanged_is_never_held_whole(tmp_path: Path) -> None:
    (tmp_path / "declared.yaml").write_text(DECLARED + "files: {texts: '*.md'}\n")
    workspace = Workspace.create(tmp_path / "w", tmp_path / "declared.yaml")
    (tmp_path / "w" / "a.md").write_text("tea")
    workspace.snapshots.make("first")
    name = hashlib.sha256(b"tea").hexdigest()
    (kept,) = (tmp_path / "w").rglob(name)
    kept.write_bytes(zlib.compress(bytes(400 << 20), 9))
    (tmp_path / "w" / "a.md").write_text("coffee")
    tracemalloc.start()
    with pytest.raises(StorageError) as refused:
        workspace.resume_from_snapshot("first")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    workspace.close()
    assert refused.value.code == "content_damaged"
    assert most < 250 << 20, "no more than a file of a workspace may have, and its copy"


@attack("snapshot-of-a-path")
def test_a_snapshot_writes_no_file_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "declared.yaml").write_text(DECLARED + "files: {texts: '*.md'}\n")
    workspace = Workspace.create(tmp_path / "w", tmp_path / "declared.yaml")
    (tmp_path / "w" / "a.md").write_text("tea")
    workspace.snapshots.make("first")
    workspace.close()
    database = next((tmp_path / "w").rglob("rows.db"))
    with sqlite3.connect(database) as opened:
        for (table,) in list(opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")):
            for _, column, kind, *_ in list(opened.execute(f'PRAGMA table_info("{table}")')):
                if kind == "TEXT":
                    opened.execute(f'UPDATE "{table}" SET "{column}" = replace("{column}", \'"a.md"\', \'"../b.md"\')')
    opened.close()
    workspace = Workspace.open(tmp_path / "w")
    with pytest.raises(AgentMemoryError):
        workspace.resume_from_snapshot("first")
    workspace.close()
    assert not (tmp_path / "b.md").exists()


@attack("snapshot-through-a-link")
def test_a_snapshot_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "declared.yaml").write_text(DECLARED + "files: {texts: 'texts/*.md'}\n")
    workspace = Workspace.create(tmp_path / "w", tmp_path / "declared.yaml")
    (tmp_path / "w" / "texts").mkdir(exist_ok=True)
    (tmp_path / "w" / "texts" / "a.md").write_text("tea")
    workspace.snapshots.make("first")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "w" / "texts" / "a.md").unlink()
    (tmp_path / "w" / "texts").rmdir()
    (tmp_path / "w" / "texts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AgentMemoryError):
        workspace.resume_from_snapshot("first")
    workspace.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []


BACKUPS: list[Any] = [
    tried("backup-of-a-path", "../../carol/memories.yaml"),
    tried("backup-of-an-absolute-path", "/tmp/evil-of-a-backup"),
    tried("backup-with-a-lock", ".lock"),
    tried("backup-with-an-index", "memories.db/x"),
]


@pytest.mark.parametrize("name", BACKUPS)
def test_a_backup_with_a_file_that_none_has_is_refused_whole(cli: Run, root: Path, tmp_path: Path, name: str) -> None:
    cli("store", RULE)
    cli("backup", "create")
    (made,) = (root / "_backups").glob("*.zip")
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(changed, "w") as target:
        for each in source.namelist():
            content = source.read(each)
            if each == "manifest.json":
                said = json.loads(content)
                said["files"].append({"name": name, "size": 1, "sha256": hashlib.sha256(b"x").hexdigest()})
                content = json.dumps(said).encode()
            target.writestr(each, content)
        target.writestr(name, b"x")
    cli("backup", "restore", str(changed), "--as", "dora", code=1)
    assert not (root / "dora").exists()
    assert not (root / "carol").exists()
    assert not Path("/tmp/evil-of-a-backup").exists()


@attack("backup-with-a-link")
def test_a_backup_with_a_link_is_refused_whole(cli: Run, root: Path, tmp_path: Path) -> None:
    cli("store", RULE)
    cli("backup", "create")
    (made,) = (root / "_backups").glob("*.zip")
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(made) as source, zipfile.ZipFile(changed, "w") as target:
        for each in source.infolist():
            copy = zipfile.ZipInfo(each.filename)
            copy.external_attr = 0o120777 << 16 if each.filename == "memories.yaml" else each.external_attr
            target.writestr(copy, b"/etc/passwd" if each.filename == "memories.yaml" else source.read(each))
    cli("backup", "restore", str(changed), "--as", "dora", code=1)
    assert not (root / "dora").exists()


@attack("model-with-other-weights")
def test_a_model_whose_weights_were_exchanged_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x" * 1_000)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EmbeddingError) as refused:
        LocalEmbedder(tmp_path, sha256="0" * 64).embed_query("x")
    assert refused.value.code == "wrong_weights"


@attack("model-that-is-none")
def test_a_model_that_is_none_costs_vectors_alone(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x" * 1_000)
    (tmp_path / "tokenizer.json").write_text('{"not": "a model"}')
    with pytest.raises(EmbeddingError):
        LocalEmbedder(tmp_path).embed_query("x")
