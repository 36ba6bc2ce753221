r"""All entry points read a text alike: the same normal form, redaction and bounds, or a difference that has a name.

New texts (agent tool, command line, Python client, capture, ingest): `\r\n` becomes `\n`, outer white space goes.
Standard input of the command line: `\r` alone becomes `\n` too, as Python reads text.
Records that come back (import, storage): the text stays as it is.
Ingest keeps a longer text in a file of its own instead of refusing it. Capture begins a sentence with a capital.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.errors import AgentMemoryError
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.client import Memory as Client
from agent_memory.models import Memory
from agent_memory.models.memory import MAX_CONTENT_CHARS
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from amplifier_module_hooks_memory_capture import mount as mount_capture
from amplifier_module_tool_memory_semantic import mount as mount_tools
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Write = Callable[[Path, str], Coroutine[Any, Any, bool]]

TOKEN = "gh" + "p_aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"
DOCUMENT_CHARS = 8_000
"""Longer documents are records that hold their beginning; the whole text is a file of its own."""
LONGEST = "a" * (MAX_CONTENT_CHARS - 4) + " end"
PIECES = st.sampled_from(
    [
        *("the ledger", "Ann", "cafe\u0301", "café", "\uff46\uff55", "ﬁ", "日本語", "😀", "10⁵ mW"),
        *(" ", "  ", "\t", "\n", "\r\n", "\r", "\u2028", "\u00a0", "\u200b", "\u202e", "\x1b[31m", "\x07", "\ufeff"),
        *("\0", f"token {TOKEN}", TOKEN, "password: Mango#fest77", "a" * (MAX_CONTENT_CHARS - 5)),
    ]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
WORDS = st.sampled_from(["Ann", "ships", "the", "café", "日本", TOKEN, "at", "noon"])


def read_settings(root: Path) -> dict[str, str]:
    return {"agent_id": "bob", "storage_root": str(root), "embedder": "none"}


async def write_by_tool(root: Path, text: str) -> bool:
    host = coordinator_of()
    close = await mount_tools(host, read_settings(root))
    result = await host.get("tools")["memory_store"].execute({"content": text})
    await close()
    return bool(result.success)


async def write_by_client(root: Path, text: str) -> bool:
    try:
        async with Client("bob", root=root, embedder="none") as client:
            await client.add(text)
    except AgentMemoryError:
        return False
    return True


async def write_by_command(root: Path, text: str) -> bool:
    words = ["store", "-", "--root", str(root), "-a", "bob"]
    return (await asyncio.to_thread(CliRunner().invoke, build(), words, text.encode())).exit_code == 0


async def write_by_import(root: Path, text: str) -> bool:
    file = root.with_suffix(".jsonl")
    file.write_text(json.dumps({"content": text}) + "\n")
    words = ["import", str(file), "--root", str(root), "-a", "bob"]
    return (await asyncio.to_thread(CliRunner().invoke, build(), words)).exit_code == 0


async def write_by_storage(root: Path, text: str) -> bool:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    try:
        await storage.store(Memory(agent_id="bob", content=text))
    except AgentMemoryError:
        return False
    finally:
        await storage.close()
    return True


RESTORED: tuple[Write, ...] = (write_by_import, write_by_storage)


async def list_contents(root: Path) -> list[str]:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    contents = [memory.content async for memory in storage.iter_all()]
    await storage.close()
    return contents


async def write_by(write: Write, folder: Path, text: str) -> list[str]:
    """Write a text to a new memory; return the contents stored, none if it was refused."""
    root = folder / write.__name__
    is_stored = await write(root, text)
    contents = await list_contents(root) if (root / "bob").exists() else []
    assert bool(contents) == is_stored
    return contents


async def ingest(root: Path, text: str) -> str:
    """Ingest a text as a document; return it whole, as it is kept."""
    knowledge = Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    file = root.with_suffix(".md")
    file.write_text(text, encoding="utf-8", newline="")
    words = ["ingest", str(file), "--root", str(root), "-a", "bob"]
    await asyncio.to_thread(CliRunner().invoke, build(), words)
    resources = await knowledge.resources.valid()
    await knowledge.close()
    return resources[0].content if resources else ""


async def capture(root: Path, text: str) -> list[str]:
    """Say a text to a session that captures; return what was kept."""
    host = coordinator_of()
    close = await mount_capture(host, read_settings(root))
    await host.hooks.emit("prompt:submit", {"prompt": text, "session_id": "root-1"})
    await host.hooks.emit("orchestrator:complete", {"status": "success"})
    await host.hooks.emit("session:end", {})
    await close()
    return await list_contents(root) if (root / "bob").exists() else []


def normalize_text(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


@settings(max_examples=10)
@given(text=TEXTS)
def test_entry_points_any_text_store_the_same(text: str) -> None:
    async def compare(folder: Path) -> None:
        expected = await write_by(write_by_client, folder, text)
        assert expected == [normalize_text(content) for content in expected]
        assert await write_by(write_by_tool, folder, text) == expected
        piped = await write_by(write_by_command, folder, text)
        assert piped == [content.replace("\r", "\n") for content in expected]
        for write in RESTORED:
            contents = await write_by(write, folder, text)
            if len(text) <= MAX_CONTENT_CHARS:  # outer white space counts where it stays
                assert [normalize_text(content) for content in contents] == expected, write.__name__
            if expected == [normalize_text(text)] and contents:
                assert contents == [text], write.__name__
        if expected and "\ufeff" not in text and len(text) < DOCUMENT_CHARS:  # a file may begin with that mark
            assert await ingest(folder / "ingest", text) == expected[0]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder)))


@settings(max_examples=10)
@given(words=st.lists(WORDS, min_size=3, max_size=8))
def test_capture_of_a_sentence_stores_what_the_client_stores(words: list[str]) -> None:
    sentence = f"We {' '.join(words)}"

    async def compare(folder: Path) -> None:
        expected = await write_by(write_by_client, folder, sentence)
        captured = await capture(folder / "capture", f"Remember that {sentence}")
        assert captured in ([], expected)  # what is worth keeping is its choice
        assert TOKEN not in "".join(expected)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder)))


async def test_capture_of_a_plain_sentence_keeps_it(tmp_path: Path) -> None:
    assert await capture(tmp_path, "Remember that we ship the ledger at noon.") == ["We ship the ledger at noon."]


def test_entry_points_refuse_one_character_too_many(tmp_path: Path) -> None:
    async def compare() -> None:
        for write in (write_by_client, write_by_tool, write_by_command, *RESTORED):
            assert await write_by(write, tmp_path / "longest", LONGEST) == [LONGEST], write.__name__
            assert await write_by(write, tmp_path / "longer", f"{LONGEST}s") == [], write.__name__

    for name in ("longest", "longer"):
        (tmp_path / name).mkdir()
    asyncio.run(compare())
