"""The process that holds a shard for an agent: `python -m agent_memory.engine.host FOLDER NAMESPACE`.

Reads requests from its standard input, answers on its standard output, one at a time, and ends when its input does: it
never outlives the process it works for. Knows no journal; what is written and when is the client's business.
"""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.engine import wire
from agent_memory.engine.points import Point, Where
from agent_memory.errors import StorageError
from agent_memory.files.names import HOLDER_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.engine.shard import Shard


class Host:
    """Answers requests about one open shard.

    Args:
        shard: The shard.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._owner = dict(shard.owners())  # point -> memory
        self._points: dict[str, set[str]] = {}  # memory -> points
        for point, memory in self._owner.items():
            self._points.setdefault(memory, set()).add(point)

    def greeting(self) -> tuple[dict[str, Any], bytes]:
        """Return what the client hears first: every memory, and how many points those have that have several.

        As plain lines: of 100,000 memories these are split in 5 ms, and JSON is parsed in 40, which stops a process.
        """
        several = {memory: len(points) for memory, points in self._points.items() if len(points) > 1}
        return {"several": several}, "\n".join(self._points).encode()

    def answer(self, head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Do what `head["do"]` says.

        Raises:
            StorageError: The engine failed.
        """
        match head["do"]:
            case "nearest":
                return self._nearest(head, body)
            case "upsert":
                return self._upsert([Point.from_json(each) for each in head["points"]], body)
            case "delete":
                return self._delete(head["ids"])
            case "vectors":
                return self._vectors(head["ids"])
            case "flush":
                self._shard.flush()
                return {}, b""
        raise StorageError(f"The engine's process knows no request {head['do']!r}.", code="engine")

    def close(self) -> None:
        """Flush and let go of the shard."""
        self._shard.close()

    def _nearest(self, head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        (vector,) = wire.numbers(body, len(body) // 4)
        where = Where.from_json(head.get("where", {}))
        found = self._shard.nearest(vector, head["limit"], floor=head.get("floor"), where=where)
        best: dict[str, float] = {}
        for point, cosine in found:  # best first: a memory counts by its best piece
            best.setdefault(self._owner[point], cosine)
        return {"ids": list(best), "points": len(found)}, wire.floats(list(best.values()))

    def _upsert(self, points: list[Point], body: bytes) -> tuple[dict[str, Any], bytes]:
        width = len(body) // 4 // len(points)
        self._shard.upsert(points, wire.numbers(body, width))
        written: dict[str, set[str]] = {}
        for point in points:
            written.setdefault(point.memory_id, set()).add(self._shard.id_of(point.memory_id, point.piece))
        self._drop(old for memory, now in written.items() for old in self._points.get(memory, set()) - now)
        self._points |= written
        self._owner |= {point: memory for memory, now in written.items() for point in now}
        return {}, b""

    def _delete(self, memories: list[str]) -> tuple[dict[str, Any], bytes]:
        self._drop([point for memory in memories for point in self._points.pop(memory, ())])
        return {}, b""

    def _drop(self, points: Iterable[str]) -> None:
        gone = list(points)
        if gone:
            self._shard.delete(gone)
            for point in gone:
                self._owner.pop(point, None)

    def _vectors(self, memories: list[str]) -> tuple[dict[str, Any], bytes]:
        first = {memory: self._shard.id_of(memory, 0) for memory in memories}
        found = self._shard.vectors(list(first.values()))
        known = {memory: found[point] for memory, point in first.items() if point in found}
        return {"ids": list(known)}, b"".join(wire.floats(vector) for vector in known.values())


def main() -> None:
    """Hold the shard named on the command line until standard input ends."""
    os.umask(0o077)  # the engine gives its files the rights it likes
    folder, namespace = Path(sys.argv[1]), uuid.UUID(sys.argv[2])
    requests = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # whatever the engine prints must not get between our messages
    with contextlib.suppress(BrokenPipeError, EOFError):
        _hold(folder, namespace, requests, answers)


def _hold(folder: Path, namespace: uuid.UUID, requests: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    from filelock import FileLock, Timeout  # not needed where this module is only imported

    try:
        lock = FileLock(folder.parent / HOLDER_LOCK, timeout=0, mode=0o600)
        lock.acquire()
    except Timeout:
        answers.send_bytes(wire.pack({"failed": "Another process holds the index.", "code": "busy"}))
        return
    except OSError as error:
        answers.send_bytes(wire.pack({"failed": f"The index cannot be locked: {error}.", "code": "engine"}))
        return
    try:
        from agent_memory.engine.shard import Shard  # loads the engine

        host = Host(Shard.open(folder, namespace))
    except StorageError as error:
        answers.send_bytes(wire.pack({"failed": error.message, "code": "engine"}))
        return
    answers.send_bytes(wire.pack(*host.greeting()))
    try:
        _serve(host, requests, answers)
    finally:
        try:
            host.close()
        except StorageError:  # what was not flushed is written again by whoever comes next
            sys.exit(1)


def _serve(host: Host, requests: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    while True:
        head, body = wire.unpack(requests.recv_bytes())
        try:
            reply, rest = host.answer(head, body)
        except StorageError as error:
            reply, rest = {"failed": error.message, "code": "engine"}, b""
        answers.send_bytes(wire.pack({**reply, "n": head["n"]}, rest))


if __name__ == "__main__":
    main()
