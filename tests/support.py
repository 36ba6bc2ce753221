"""Helpers that tests import: a frozen clock, errors with their code, memories and sessions in one line. No fixture."""

from __future__ import annotations

import base64
import json
import re
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import hypothesis
import pytest

from agent_memory.journal import Change, Journal
from agent_memory.journal.format import add_checksum
from agent_memory.models import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amplifier_core import ModuleCoordinator

    from agent_memory.errors import AgentMemoryError
    from agent_memory.journal import FieldLocation
    from agent_memory.storage import FileStorage

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FrozenClock:
    """A clock for injection: tells the same moment until `advance` is called."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        """Move by a `timedelta`, also backwards, and return the new present."""
        self.now += timedelta(**by)
        return self.now


def scale_examples(examples: int) -> int:
    """Return the number of random examples that a test tries in this run.

    `make coverage` tries all `examples`, `make test` a fifth of them.
    """
    return max(2, examples * hypothesis.settings().max_examples // 50)


def read_files(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield each file below `root` with its content, sorted by path.

    Files that are deleted meanwhile are skipped: a store in the background renames its temporary files.
    """
    for path in sorted(root.rglob("*")):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


class Scrambling:
    """A codec of journals: no cipher, yet bound to its place, of another text each time, and no word can be read."""

    def __init__(self, key: str = "first") -> None:
        self.key = key
        self._nonces = count()

    def encode(self, where: FieldLocation, fields: bytes) -> str:
        whole = json.dumps([self.key, *where, next(self._nonces), fields.decode()]).encode()
        return base64.b64encode(bytes(byte ^ 0x5A for byte in whole)).decode()

    def decode(self, where: FieldLocation, text: str) -> bytes:
        whole = json.loads(bytes(byte ^ 0x5A for byte in base64.b64decode(text, validate=True)))
        if whole[:-2] != [self.key, *where]:
            raise ValueError(f"not of {where}")
        return str(whole[-1]).encode()


@contextmanager
def raises(kind: type[AgentMemoryError], code: str, **options: Any) -> Iterator[pytest.ExceptionInfo[AgentMemoryError]]:
    """Expect an error of this kind with this code; `options` are those of `pytest.raises`."""
    with pytest.raises(kind, **options) as caught:
        yield caught
    assert caught.value.code == code


def memory_of(content: str, *, agent_id: str = "bob", **fields: Any) -> Memory:
    """Return a memory of bob's, stored at noon unless told otherwise."""
    return Memory(agent_id=agent_id, content=content, **{"timestamp": NOON, **fields})


def header_of(journal: Path) -> bytes:
    """Return the first line of a journal file, which a compaction writes anew."""
    return journal.read_bytes().split(b"\n", 1)[0]


def put_unchecked(storage: FileStorage, memories: Iterable[Memory]) -> None:
    """Write memories into a storage's journal as they are, as another version or another program could."""
    with Journal(storage.folder.journal, {"memory"}).locked() as writer:
        writer.append([Change("put", "memory", memory.id, memory.to_record()) for memory in memories])


def lines_of(journal: Path) -> list[bytes]:
    """Return the entries of a journal file, raw, without its header."""
    return journal.read_bytes().splitlines(keepends=True)[1:]


def coordinator_of(
    session_id: str = "root-1",
    *,
    parent_id: str | None = None,
    config: dict[str, Any] | None = None,
    is_resumed: bool = False,
) -> ModuleCoordinator:
    """Return a real coordinator of the host's kernel, for a session with this id and this mount plan."""
    from amplifier_core import ModuleCoordinator  # most tests need no host

    session = SimpleNamespace(
        session_id=session_id, parent_id=parent_id, config={} if config is None else config, is_resumed=is_resumed
    )
    return ModuleCoordinator(session, AsyncMock(), AsyncMock())


def mount_tool(coordinator: Any, name: str, package: str) -> None:
    """Mount a tool whose class is of a package."""
    tool = type("Tool", (), {"__module__": f"{package}.tool", "name": name})()
    coordinator.mount_points["tools"][name] = tool


FILE_TOOLS = "amplifier_module_tool_filesystem"
SHELL = "amplifier_module_tool_bash"


def plan(**capabilities: Any) -> dict[str, Any]:
    """Return a mount plan whose `session.capabilities` are these."""
    return {"session": {"orchestrator": "loop-x", "context": "context-x", "capabilities": capabilities}}


def resealed(content: bytes) -> bytes:
    """Return lines of a journal that were changed by a test with the checksums that they should have now."""
    return b"".join(add_checksum(re.sub(rb', "crc": "[0-9a-f]{8}"}$', b"}", line)) for line in content.splitlines(True))


def sealed_line(line: str) -> str:
    """Return a line of a journal that a test wrote by hand with its checksum."""
    return add_checksum(line.encode()).decode()
