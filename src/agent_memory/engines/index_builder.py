"""Build of a vector index, in a process of its own.

`python -m agent_memory.engines.index_builder AGENT_FOLDER KIND IDENTITY BATCH [--activate]` is that process.
It has a low priority: loading and graph building hold the interpreter for seconds or
minutes. It reads the journal and the vector cache, writes into an unfinished folder, checks the result, renames it and
switches to it; killed at any moment it leaves either the old state or the new one. It reports its progress as JSON
lines on its standard output, and ends when that is closed. A record whose vector is not cached is left out; the process
that opens the index compares it. `build_index` starts that process from the agent's. The journal is never changed: a
failure leaves the earlier backend.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import EmbedderIdentity, VectorCache, estimate_embedding, text_hash
from agent_memory.engines.shard_process import build_payload
from agent_memory.errors import AgentMemoryError, BusyError, MigrationError, StorageError
from agent_memory.files.layout import AgentFolder
from agent_memory.files.processes import child_environment, keep_to_itself, python_module
from agent_memory.index import embedded_texts
from agent_memory.journal import Journal, JournalUpdate
from agent_memory.models import Kind
from agent_memory.store.protocols import Built, Estimate, Progress
from agent_memory.store.shards import Shards, ShardState
from agent_memory.store.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.engines.shard import Shard

_NICENESS: Final = 10
_MOST_AT_ONCE: Final = 300
"""Texts whose vectors are read together: below 400 the cache looks each one up, above it scans."""
_SPOT_CHECKS: Final = 32
_LEAST_COSINE: Final = 0.99
"""A point must find itself, or a twin; half precision takes less than .001 from a cosine of 1."""
_LEAST_RECALL: Final = 0.9
"""Share of the ten nearest, by exact search, that the graph must find over all spot checks; it finds .99 and more."""
_BUSY_CODE: Final = 3
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
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


def main(arguments: Sequence[str]) -> None:
    """Build the index of the command line.

    Exits with 0, 1 (failed) or 3 (another process is building).
    """
    place, name, embedder, batch, *flags = arguments
    folder, identity = AgentFolder(Path(place)), EmbedderIdentity.from_json(embedder)
    keep_to_itself()  # the engine gives its files the rights it likes
    os.nice(_NICENESS)
    _end_with_parent()
    report = _reporter()
    try:
        build(folder, Kind.at(name), identity, activate="--activate" in flags, report=report, batch=int(batch))
    except BrokenPipeError:
        os._exit(1)  # the agent has ended
    except AgentMemoryError as error:
        report(stage="failed", **error.as_dict())
        sys.exit(_BUSY_CODE if isinstance(error, BusyError) else 1)


def build(
    folder: AgentFolder,
    kind: Kind[Any],
    identity: EmbedderIdentity,
    *,
    activate: bool,
    report: Any,
    batch: int = 100,
) -> None:
    """Build and check a new shard, and switch to it.

    Args:
        folder: Folder of the agent.
        kind: Kind of the records.
        identity: Embedder of the vectors in the cache.
        activate: Make the vector backend the active one; otherwise only if it is already.
        report: Called with the fields of each message.
        batch: Texts whose vectors are moved together.

    Raises:
        BusyError: Another process is building.
        MigrationError: The new index failed its check.
        StorageError: No room, for instance; nothing has changed.
    """
    from agent_memory.engines.shard import Shard  # loads the engine, which a client must not

    shards = Shards(folder)
    with shards.building() as (name, unfinished):
        journal, state = Journal(folder.path / kind.journal, {kind.name}), State(kind, folder.agent_id)
        state.absorb(journal.poll())
        (generation, seq), total = journal.watermark, len(state.records)
        report(stage="load", done=0, total=total)
        shard = Shard.create(unfinished / "shard", identity.dimension)
        try:
            with contextlib.closing(VectorCache(folder.vectors)) as cache:
                written = _load(shard, state, min(batch, _MOST_AT_ONCE), cache, identity, report)
            state.absorb(JournalUpdate(reset=True))  # a graph takes the room
            report(stage="index", done=0, total=written)
            shard.flush()
            shard.optimize()
            report(stage="check", done=0, total=written)
            _check(shard, written)
        finally:
            with contextlib.suppress(AgentMemoryError):
                shard.close()
        report(stage="switch", done=written, total=written)
        shards.finish(name, unfinished, ShardState(str(identity), identity.dimension, generation, seq))
        if activate or shards.active()[0] == "vector":
            shards.switch("vector", name, str(identity))
        shards.remove_unused()
    report(stage="done", shard=name, memories=total, points=written)


def _load(
    shard: Shard,
    state: State[Any],
    at_once: int,
    cache: VectorCache,
    identity: EmbedderIdentity,
    report: Any,
) -> int:
    """Write records that have all their vectors; return the points."""
    written = done = 0
    total = len(state.records)
    for portion in _portions(state, at_once):
        hashes = {key for keys in portion.values() for key in keys}
        vectors_by_hash = cache.get_many(identity, hashes)
        payloads: list[dict[str, Any]] = []
        vectors: list[Vector] = []
        for record_id, keys in portion.items():
            if all(key in vectors_by_hash for key in keys):
                payloads += [build_payload(state.kind.document(state.records[record_id]))] * len(keys)
                vectors += [vectors_by_hash[key] for key in keys]
        if payloads:
            shard.upsert(written, payloads, [vector.tolist() for vector in vectors])
        written += len(payloads)
        done += len(portion)
        report(stage="load", done=done, total=total)
    return written


def _portions(state: State[Any], at_once: int) -> Iterator[dict[str, list[bytes]]]:
    """Yield records with the hashes of their pieces, in batches."""
    portion: dict[str, list[bytes]] = {}
    texts = 0
    for record_id, record in state.records.items():
        keys = list(dict.fromkeys(text_hash(text) for text in embedded_texts(state.kind.text_of(record))))
        portion[record_id] = keys
        texts += len(keys)
        if texts >= at_once:
            yield portion
            portion, texts = {}, 0
    if portion:
        yield portion


def _check(shard: Shard, written: int) -> None:
    """Compare counts, and search for vectors of the index.

    Raises:
        MigrationError: Points are missing, cannot be found, or the graph finds too few.
    """
    count = shard.count()
    if count != written:
        raise MigrationError(f"The new index has {count} points instead of {written}; it was discarded.")
    hits = wanted = 0
    sample = random.Random(0).sample(range(written), min(_SPOT_CHECKS, written))  # noqa: S311 - no secret
    for vector in shard.vectors(sample).values():
        near = shard.nearest(vector, 10)
        if not near or near[0][1] < _LEAST_COSINE:
            raise MigrationError("A search in the new index did not find a memory that is in it; it was discarded.")
        exact = shard.nearest(vector, 10, exact=True)
        hits += sum(score >= exact[-1][1] for _, score in near)  # twins are as good as each other
        wanted += len(exact)
    if hits < _LEAST_RECALL * wanted:
        raise MigrationError(f"The new index finds {hits} of {wanted} nearest memories only; it was discarded.")


def _end_with_parent() -> None:
    """End this process with its parent, if the system can (Linux).

    Elsewhere the next report fails; but building a graph reports nothing for minutes, and an engine short of memory may
    deadlock, holding the lock.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _reporter() -> Any:
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the engine prints is not a report

    def report(**fields: Any) -> None:
        reports.write(json.dumps(fields) + "\n")
        reports.flush()

    return report


def estimate(count: int, missing: int, characters: int, identity: EmbedderIdentity) -> Estimate:
    """Estimate a migration.

    Args:
        count: Number of memories.
        missing: Number of texts without a vector.
        characters: Number of characters of these texts.
        identity: Identity of the embedder.
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
    """Build a shard in a child process and switch to it.

    Cancelling kills the child.

    Args:
        folder: Folder of the agent.
        kind: Kind of the records.
        identity: Embedder of the vectors in the cache.
        activate: Make the vector backend the active one; otherwise only if it is already.
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
        identity.to_json(),
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
        last = await _follow(child, progress)
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


async def _follow(child: asyncio.subprocess.Process, progress: Progress | None) -> dict[str, Any]:
    assert child.stdout is not None
    last: dict[str, Any] = {}
    spent = ""
    while True:
        try:
            line = await asyncio.wait_for(child.stdout.readline(), _STUCK_SECONDS)
        except TimeoutError:
            before, spent = spent, _get_cpu_time(child.pid)
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


def _get_cpu_time(pid: int) -> str:
    """Return the processor time of a sleeping process.

    Empty if it is running or cannot be read.
    """
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
                recovery="Free some space, then try again; until then nothing changes.",
            )
        raise MigrationError(
            f"The process that builds the index {how} before it was done.",
            recovery="Check whether the disk or the RAM is full, then try again; until then nothing changes.",
        )
    if last["code"] == BusyError.default_code:
        raise BusyError("Another process is building this index.", recovery="Wait until it is done.")
    raise MigrationError(str(last["message"]), recovery=str(last["recovery"]))


if __name__ == "__main__":
    main(sys.argv[1:])
