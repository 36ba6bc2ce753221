"""Moving between backends, seen from the agent's process: start a build, follow its progress, go back.

All work is the child's (`index_builder`), so nothing here takes longer than reading a line. The journal is never
touched: what fails leaves the backend that was there before.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import estimate_embedding
from agent_memory.errors import BusyError, MigrationError, StorageError
from agent_memory.files.processes import child_environment, python_module
from agent_memory.store.protocols import Built, Estimate
from agent_memory.store.shards import Shards

if TYPE_CHECKING:
    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind
    from agent_memory.store.protocols import Progress

_SECONDS_START: Final = 1.0
_SECONDS_A_POINT: Final = 0.0002
_SECONDS_A_NODE: Final = 0.0016
"""Of a graph, which is built from 10,000 points on; measured at 100,000 on two busy cores."""
_GRAPH_FROM: Final = 10_000
_LEAST_ROOM: Final = 32 * 2**20
"""Bytes: with less on the disk, that is why a builder died. The engine asks for files of this size."""
_STUCK_SECONDS: Final = 20.0
"""Without a word; a builder that used no processor either in the second such time is ended."""
_TIMES: Final = slice(11, 15)
"""User and system time, own and of children, behind the name in /proc/PID/stat."""


def estimate(count: int, missing: int, characters: int, identity: EmbedderIdentity) -> Estimate:
    """Return what moving would take.

    Args:
        count: Memories.
        missing: Texts without a vector.
        characters: Characters of these texts, as far as they are known.
        identity: The embedder.
    """
    graph = _SECONDS_A_NODE * count if count >= _GRAPH_FROM else 0.0
    embedding, dollars = estimate_embedding(identity, missing, characters)
    seconds = _SECONDS_START + _SECONDS_A_POINT * count + graph + embedding
    return Estimate(count, round(seconds, 1), round(dollars, 4))


async def build_index(
    folder: AgentFolder,
    kind: Kind[Any],
    identity: EmbedderIdentity,
    *,
    activate: bool,
    batch: int = 100,
    progress: Progress | None = None,
) -> Built:
    """Build a shard in a child process and take it into use; cancelling kills the child.

    Args:
        folder: The agent's folder.
        kind: Of which records.
        identity: Whose vectors to take from the cache.
        activate: Make the vector backend the active one; otherwise only if it still is.
        batch: Texts whose vectors are moved together.
        progress: Called with the progress.

    Raises:
        BusyError: Another process is building.
        MigrationError: It failed; the backend is the one that was active before.
    """
    command = [
        *python_module("agent_memory.engines.index_builder"),
        str(folder.path),
        kind.place,
        json.dumps(asdict(identity)),
        str(batch),
    ]
    try:
        child = await asyncio.create_subprocess_exec(
            *command,
            *(["--activate"] if activate else []),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,
        )
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread to watch it with
        raise MigrationError(f"The process that builds the index could not be started: {error}.") from error
    try:
        last = await _listen(child, progress)
        await child.wait()
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    try:
        return _result(last, child.returncode, has_room=await asyncio.to_thread(_has_room, folder.path))
    except MigrationError:
        with contextlib.suppress(StorageError):  # what a killed child left may be what fills the disk
            await asyncio.to_thread(Shards(folder).sweep)
        raise


async def _listen(child: asyncio.subprocess.Process, progress: Progress | None) -> dict[str, Any]:
    assert child.stdout is not None
    last: dict[str, Any] = {}
    spent = ""
    while True:
        try:
            line = await asyncio.wait_for(child.stdout.readline(), _STUCK_SECONDS)
        except TimeoutError:
            before, spent = spent, _spent(child.pid)
            if spent and spent == before:
                child.kill()  # the engine waits for itself, as it does where it gets no memory for a thread
                return {}
            continue
        if not line:
            return last
        try:
            last = json.loads(line)
        except ValueError:
            continue  # killed in the middle of it
        if progress is not None and "done" in last:
            await progress(str(last["stage"]), int(last["done"]), int(last["total"]))


def _spent(pid: int) -> str:
    """Return how much of a processor a sleeping process has used; nothing where it works, or that cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    except OSError:
        return ""
    return " ".join(fields[_TIMES]) if fields[0] == "S" else ""


def _has_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path).free >= _LEAST_ROOM
    except OSError:
        return True  # it cannot be read


def _result(last: dict[str, Any], code: int | None, *, has_room: bool) -> Built:
    if last.get("stage") == "done":
        return Built(str(last["shard"]), int(last["memories"]), int(last["points"]))
    if last.get("stage") != "failed":
        how = f"was ended (signal {-code})" if code and code < 0 else f"ended (code {code})"
        if not has_room:  # memory that maps a file which cannot grow ends a process by SIGBUS, without a word
            raise MigrationError(
                f"The disk is full: the process that builds the index {how} before it was done.",
                recovery="Free some room, then try again; until then nothing changes.",
            )
        raise MigrationError(
            f"The process that builds the index {how} before it was done.",
            recovery="See whether the disk is full or memory short, then try again; until then nothing changes.",
        )
    if last["code"] == BusyError.default_code:
        raise BusyError("Another process is building this index.", recovery="Wait until it is done.")
    raise MigrationError(str(last["message"]), recovery=str(last["recovery"]))
