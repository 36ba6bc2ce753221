"""Files made from the journal may be lost, cut short, emptied or filled with rubbish: none of it reaches the truth."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_builder import build
from agent_memory.errors import ValidationError
from agent_memory.journal.reader import LineProblem
from agent_memory.journal.salvage import keep_rejected
from agent_memory.memories import MigratableStorage
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.memory.scratchpad_file import read_edits, render_file
from agent_memory.models import MEMORY
from tests.power.scenarios import OFFLINE, state_of
from tests.support import FrozenClock, memory_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EMBEDDER = HashEmbedder()
ENGINE_LOOKS = int(os.environ.get("POWER_ENGINE_LOOKS", "2"))
SEED = int(os.environ.get("POWER_SEED", "0"))
TEXTS = ["tea with milk", "coffee, black", "number17 water " * 30]


def lost(path: Path, _: random.Random) -> None:
    path.unlink()


def emptied(path: Path, _: random.Random) -> None:
    path.write_bytes(b"")


def cut_short(path: Path, choose: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: choose.randrange(len(content)) if content else 0])


def zeroed(path: Path, choose: random.Random) -> None:
    content = bytearray(path.read_bytes())
    sectors = range(0, len(content), 512)
    for at in choose.sample(sectors, (len(sectors) + 1) // 2):
        content[at : at + 512] = bytes(len(content[at : at + 512]))
    path.write_bytes(content)


def rubbish(path: Path, choose: random.Random) -> None:
    path.write_bytes(choose.randbytes(max(1, min(path.stat().st_size, 1 << 20))))


DAMAGES = (lost, emptied, cut_short, zeroed, rubbish)


async def lived(root: Path, clock: FrozenClock, *, migrated: bool) -> dict[str, Any]:
    """Make every file that there can be, and return the memories."""
    storage = MigratableStorage("bob", root, settings=OFFLINE, clock=clock, embedder=EMBEDDER, wanted=False)
    service = MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit), clock=clock)
    for text in TEXTS:
        await service.store({"content": text, "tags": ["drinks"]})
    await storage.prepare(None)
    await service.close()
    if migrated:
        build(storage.folder, MEMORY, EMBEDDER.identity, activate=True, report=lambda **_: None)
    return await state_of(storage)


async def look(root: Path, clock: FrozenClock, known: dict[str, Any], *, migrated: bool) -> None:
    """Open what is there and use all of it."""
    storage = MigratableStorage("bob", root, settings=OFFLINE, clock=clock, embedder=EMBEDDER, wanted=migrated)
    service = MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit), clock=clock)
    assert await state_of(storage) == known
    assert set((await service.scratchpad()).ids()) == set(known)
    assert await state_of(storage) == known, "a look at the scratchpad changed the truth"
    assert await storage.prepare(None)
    if migrated:
        assert await storage.caught_up(60)
    found = await storage.search("milk tea", 3)
    assert (found.mode, found[0].memory.content) == ("hybrid", TEXTS[0])
    await service.store({"content": "stored afterwards"})
    await service.settle()
    assert "stored afterwards" in storage.folder.scratchpad.read_text(encoding="utf-8")
    await service.close()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name", ["scratchpad.yaml", "metadata.json", "embeddings.sqlite3", "events.jsonl", ".lock", "everything"]
)
async def test_a_derived_file_that_is_damaged_is_made_anew_or_done_without(
    name: str, damage: Callable[[Path, random.Random], None], root: Path, clock: FrozenClock
) -> None:
    known = await lived(root, clock, migrated=False)
    choose = random.Random(f"{name} {SEED}")
    for path in (root / "bob").iterdir():
        if path.name == name or (name == "everything" and path.name != "memories.yaml"):
            damage(path, choose)
    await look(root, clock, known, migrated=False)


async def test_an_index_that_is_damaged_is_built_anew(tmp_path: Path, clock: FrozenClock) -> None:
    known = await lived(tmp_path / "whole", clock, migrated=True)
    choose = random.Random(SEED)
    for number in range(ENGINE_LOOKS):
        root = tmp_path / f"damaged {number}"
        shutil.copytree(tmp_path / "whole", root)
        files = [path for path in (root / "bob" / "memories.db").rglob("*") if path.is_file()]
        for path in choose.sample(files, choose.choice([1, 3, len(files)])):
            choose.choice(DAMAGES)(path, choose)
        await look(root, clock, known, migrated=True)
        shutil.rmtree(root)


@pytest.mark.parametrize("footer", [True, False])
def test_a_scratchpad_cut_short_at_any_byte_changes_no_text(footer: bool) -> None:
    texts = ["plain", "two\nlines", f"long {'words ' * 60}", "quoted: 'yes'", "last of all, cut short somewhere"]
    memories = [memory_of(text, tags=["one", "two"], pinned=number == 4) for number, text in enumerate(texts)]
    whole = render_file(memories, "bob").encode()
    items = {item["id"]: item for item in yaml.safe_load(whole)}
    taken = 0
    for cut in range(len(whole)):
        text = whole[:cut].decode("utf-8", "surrogateescape") + ("" if footer else "\n")
        try:
            edits = read_edits(text)
        except ValidationError:
            continue
        taken += 1
        assert edits.added == []
        assert edits.removed == []
        for memory_id, change in edits.changed.items():
            same = {"tags": items[memory_id].get("tags", []), "pinned": items[memory_id].get("pinned", False)}
            assert change == {key: items[memory_id].get(key, same.get(key)) for key in change}, f"cut at {cut}"
    assert taken, "every cut was refused: somebody who deletes the last line keeps nothing"


def test_a_rejected_file_whose_last_document_is_torn_stays_readable_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "memories.rejected.yaml"
    path.write_bytes(b'--- {"at": "2026-03-01T12:00:00Z", "rea')
    keep_rejected(path, [LineProblem(0, "torn", b"the bytes")], "2026-03-02T12:00:00Z")
    last = path.read_bytes().splitlines()[-1]
    assert yaml.safe_load(last)["line"] == "the bytes"
