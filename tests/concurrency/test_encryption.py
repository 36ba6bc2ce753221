"""Files that are encrypted, and plain again, while other processes write: all that they were told is there."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import pytest

from agent_memory.care.privacy.file_encryption import decrypt, encrypt
from agent_memory.encryption.keys import forget_keys
from agent_memory.files.layout import folder_of
from tests.concurrency.processes import running
from tests.concurrency.workers import contents
from tests.support import read_files

if TYPE_CHECKING:
    from pathlib import Path

WRITERS: Final = 3
KEY: Final = "7d" * 32


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys()
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)


@pytest.mark.parametrize("ends_plain", [False, True])
async def test_what_writers_were_told_is_there_though_another_encrypts(root: Path, ends_plain: bool) -> None:
    said = []
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(running("write", root, f"writer-{n}", 30)) for n in range(WRITERS)]
        said += [writer.hear() for writer in writers]
        folder = folder_of("bob", root)
        encrypt(folder)
        if ends_plain:
            decrypt(folder)
        compactor = stack.enter_context(running("compact", root, 3))
        said += [message for writer in writers for message in writer.finish()]
        compactor.finish()
    acknowledged = {message["id"]: message["content"] for message in said}
    assert await contents(root) == {one: text for one, text in acknowledged.items() if text is not None}
    holding = [path.name for path, content in read_files(folder.path) if b"writer-" in content]
    assert ("memories.yaml" in holding) is ends_plain
    assert ends_plain or not holding


async def test_two_processes_write_to_one_encrypted_memory(root: Path) -> None:
    with running("store_one", root, "writer-0 begins") as first:
        first.finish()
    encrypt(folder_of("bob", root))
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(running("write", root, f"writer-{n}", 15)) for n in range(2)]
        said = [message for writer in writers for message in writer.finish()]
    acknowledged = {message["id"]: message["content"] for message in said}
    found = await contents(root)
    assert sorted(found.values()) == sorted([*filter(None, acknowledged.values()), "writer-0 begins"])
    assert not [path for path, content in read_files(root) if b"writer-" in content]
