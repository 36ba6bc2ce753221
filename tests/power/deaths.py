"""Scenarios in which another process died first, and left something unfinished or unsynced."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from agent_memory.journal.format import Header
from agent_memory.memory.caller import NOBODY
from agent_memory.models import MEMORY
from tests.power.scenarios import FOLDER, LONG, ROOT, Bob, service_of, write_foreign
from tests.support import resealed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.power.scenarios import Ack, Scenario


async def after_a_torn_write(base: Path, ack: Ack) -> None:
    """Go on where another process died in the middle of a line."""
    bob = Bob(base, ack)
    await bob.store("whole")
    write_foreign(bob.journal, b'--- {"seq": 2, "at": "2026-03-0')
    await bob.store("after the torn line")
    await bob.done("mend", durable=(bob.rejected,))
    write_foreign(bob.folder.parents[2] / bob.rejected, b"--- {torn, t")
    write_foreign(bob.journal, LONG.encode())
    again = Bob(base, ack, bob.clock)
    await again.store("after another")
    await again.done("mend", durable=(bob.rejected,))
    await again.close()
    await bob.close()


async def after_a_line_without_its_end(base: Path, ack: Ack) -> None:
    """Go on where another process died before the last byte of a line."""
    bob = Bob(base, ack)
    await bob.store("whole")
    write_foreign(bob.journal, bob.entry("unfinished", 2).rstrip(b"\n"))
    await bob.records.store(bob.memory("after it"))
    await bob.done("store", atomic=False)
    await bob.close()


async def in_folders_nobody_synced(base: Path, ack: Ack) -> None:
    """Store where another process has just made the folders, and died."""
    for name in (".amplifier", ROOT, FOLDER):
        os.mkdir(base / name)  # noqa: PTH102 - as plain as can be
    bob = Bob(base, ack)
    await bob.store("tea")
    await bob.close()


async def in_a_journal_nobody_named(base: Path, ack: Ack) -> None:
    """Store into a journal whose maker died between syncing the file and syncing its name."""
    bob = Bob(base, ack)
    os.makedirs(bob.folder)  # noqa: PTH103 - as above
    write_foreign(bob.journal, Header.fresh(0).encode() + bob.entry("never acknowledged", 1), sync=True)
    await bob.records.store(bob.memory("into a nameless file"))
    await bob.done("store", atomic=False)
    bob.clock.advance(days=1)
    await bob.store("and once more")
    await bob.close()


async def in_a_compacted_journal_nobody_named(base: Path, ack: Ack) -> None:
    """Store after a compaction whose process died between the rename and the sync of the folder."""
    bob = Bob(base, ack)
    await bob.store("tea")
    journal = bob.journal
    fresh = journal.with_name(f".{journal.name}.0badc0de.tmp")
    header = journal.read_bytes().splitlines(keepends=True)
    header[0] = resealed(header[0].replace(b'"generation": "', b'"generation": "c'))
    write_foreign(fresh, b"".join(header), sync=True)
    os.replace(fresh, journal)  # noqa: PTH105 - as above
    await bob.store("into the new file")
    await bob.close()


async def what_a_dead_process_wrote(base: Path, ack: Ack) -> None:
    """Rely upon a line that another process wrote and died before syncing."""
    bob = Bob(base, ack)
    await bob.store("whole")
    for number, act in enumerate(("store", "repeat", "update", "import"), start=2):
        line = bob.entry(f"unsynced {act}", number)
        write_foreign(bob.journal, line)
        memory_id = json.loads(line[4:])["id"]
        if act == "store":
            await bob.records.store(bob.memory(f"unsynced {act}"), unique=True)
        elif act == "update":
            await bob.records.update(memory_id, {bob.kind.text: f"unsynced {act}"})
        else:
            known = await bob.records.get(memory_id)
            assert known is not None
            if act == "repeat":
                await bob.records.store(known)
            elif bob.kind is not MEMORY:
                await bob.records.store_many([known])
            else:
                await service_of(bob).writer.import_memories([known], lambda _: None, NOBODY, trusted=True)
        await bob.done(act)
    await bob.close()


AFTER_A_DEATH: tuple[Scenario, ...] = (
    after_a_torn_write,
    after_a_line_without_its_end,
    in_folders_nobody_synced,
    in_a_journal_nobody_named,
    in_a_compacted_journal_nobody_named,
    what_a_dead_process_wrote,
)
