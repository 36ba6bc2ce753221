"""A person saves scratchpad.yaml while several processes render it: each save is taken over, however close it comes."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from agent_memory.memory import MemoryService
from tests.concurrency.processes import running
from tests.concurrency.workers import OFFLINE, open_storage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAVES = 25


def by_renaming(pad: Path, text: str) -> None:
    """Save as editors do that write beside the file and rename."""
    beside = pad.parent.parent / "typed"
    beside.write_text(text)
    beside.replace(pad)


def in_place(pad: Path, text: str) -> None:
    """Save as editors do that write into the file itself, in two pieces."""
    with pad.open("w") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        file.write(text[len(text) // 2 :])


@pytest.mark.parametrize("save", [by_renaming, in_place])
async def test_no_save_is_lost_while_others_store(root: Path, save: Callable[[Path, str], None]) -> None:
    pad, typed = root / "bob" / "scratchpad.yaml", []
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(running("keep_storing", root, name)) for name in ("a", "b")]
        for other in others:
            assert other.hear() == {"begun": True}
        for number in range(SAVES):
            lines = pad.read_text().splitlines(keepends=True)
            body = [line for line in lines if not line.startswith("#") and line.strip() != "[]"]
            comments = [line for line in lines if line.startswith("#")]
            typed.append(f"typed by a person {number}")
            save(pad, "".join([*body, f"- content: {typed[-1]}\n", *comments[3:]]))
            await wait_until_taken_over(pad, typed[-1])
        for other in others:
            other.tell()
            assert other.finish()[0]["stored"] > 0
    service = MemoryService(open_storage(str(root)), OFFLINE)
    await service.scratchpad()
    known = {memory.content async for memory in service.storage.iter_all()}
    await service.close()
    assert [text for text in typed if text not in known] == []
    assert list(pad.parent.glob(".scratchpad.yaml.*")) == []


async def wait_until_taken_over(pad: Path, text: str) -> None:
    """Return once the journal has it: a person does not save over what they have just saved."""
    journal = pad.with_name("memories.yaml")
    deadline = time.monotonic() + 20
    while text.encode() not in journal.read_bytes():
        if time.monotonic() > deadline:
            return  # it is missed at the end, where that is said better
        time.sleep(0.005)  # noqa: ASYNC251 - nothing else runs here
