"""Scenarios on a disk that refuses to sync. They need a recorder that can let a sync fail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from tests.power.checker import JOURNAL
from tests.power.recorder import Recorder
from tests.power.scenarios import FOLDER, LONG, Bob, write_foreign

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Memory
    from tests.power.events import State
    from tests.power.scenarios import Ack, Scenario

STORES = 5


def failing(path: str, turn: int) -> Scenario:
    """Return a scenario of stores and a compaction during which one sync of a file or folder fails, counted from 1."""

    async def scenario(base: Path, ack: Ack) -> None:
        assert isinstance(ack, Recorder)
        bob, syncs = Bob(base, ack), 0

        def fails(synced: str) -> bool:
            nonlocal syncs
            syncs += synced == path
            return synced == path and syncs == turn

        ack.fails = fails
        for number in range(STORES):
            memory = bob.memory(f"number {number} {LONG if number % 2 else ''}")
            if await _is_stored(bob, memory):
                await bob.done("store")
            else:
                await bob.done("refused", refused=_as_state(memory))
        await bob.storage.compact()
        await bob.done("compact")
        await bob.storage.close()

    scenario.__name__ = f"sync_{turn}_of_{path.rpartition('/')[2] or 'home'}_fails".replace(".", "_")
    return scenario


async def behind_a_dead_process(base: Path, ack: Ack) -> None:
    """Write behind a line nobody synced while the disk refuses, then rely upon that line."""
    assert isinstance(ack, Recorder)
    bob = Bob(base, ack)
    await bob.store("whole")
    line = bob.entry(f"unsynced {LONG}", 2)
    write_foreign(base / JOURNAL, line)
    ack.fails = lambda path: path == JOURNAL
    refused = bob.memory("refused")
    assert not await _is_stored(bob, refused)
    ack.fails = lambda _path: False
    known = await bob.storage.get(json.loads(line[4:])["id"])
    assert known is not None
    await bob.storage.store(known)
    await bob.done("repeat", refused=_as_state(refused))
    await bob.store("after it")
    await bob.storage.close()


async def compaction_nobody_named(base: Path, ack: Ack) -> None:
    """Go on after a compaction whose new file is in place and whose name could not be synced."""
    assert isinstance(ack, Recorder)
    bob = Bob(base, ack)
    for number in range(2):
        await bob.store(f"number {number}")
    ack.fails = lambda path: path == FOLDER
    try:
        await bob.storage.compact()
    except StorageError:
        ack.fails = lambda _path: False
    await bob.store("after it")
    await bob.storage.close()


async def _is_stored(bob: Bob, memory: Memory) -> bool:
    try:
        await bob.storage.store(memory)
    except StorageError:
        return False
    return True


def _as_state(memory: Memory) -> State:
    return {memory.id: memory.model_dump(mode="json")}


REFUSED: tuple[Scenario, ...] = (
    *(failing(JOURNAL, turn) for turn in (1, 2, 3)),
    *(failing(path, 1) for path in (FOLDER, ".amplifier", "")),
    behind_a_dead_process,
    compaction_nobody_named,
)
