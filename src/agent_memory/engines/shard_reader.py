"""The process that holds a shard for an agent: `python -m agent_memory.engines.shard_reader FOLDER`.

Reads requests from its standard input, answers on its standard output, one at a time, and ends when its input does: it
never outlives the process it works for. Writes nothing: a shard is as it was built.
"""

from __future__ import annotations

import contextlib
import os
import sys
from array import array
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.engines.shard_client import pack_message, unpack_message
from agent_memory.errors import BusyError, StorageError
from agent_memory.files.lock import index_lock
from agent_memory.files.names import HOLDER_LOCK
from agent_memory.files.processes import keep_to_itself

if TYPE_CHECKING:
    from agent_memory.engines.shard import Shard


class ShardReader:
    """Searches one open shard.

    Args:
        shard: The shard.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._owner = dict(shard.owners())  # point -> memory

    def greeting(self) -> tuple[dict[str, Any], bytes]:
        """Return what the client reads first: every memory, and how many points those have that have several.

        As plain lines: of 100,000 memories these are split in 5 ms, and JSON is parsed in 40, which stops a process.
        """
        points = Counter(self._owner.values())
        several = {memory: count for memory, count in points.items() if count > 1}
        return {"several": several}, "\n".join(points).encode()

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()

    def nearest(self, head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the memories nearest to the vector in `body`, at most `limit` points above `floor` that meet `where`.

        Raises:
            StorageError: The engine failed.
        """
        found = self._shard.nearest(array("f", body), head["limit"], floor=head["floor"], where=head["where"])
        best: dict[str, float] = {}
        for point, cosine in found:  # best first: a memory counts by its best piece
            best.setdefault(self._owner[point], cosine)
        return {"ids": list(best), "points": len(found)}, array("f", best.values()).tobytes()


def main() -> None:
    """Hold the shard named on the command line until standard input ends."""
    keep_to_itself()  # the engine gives its files the rights it likes
    requests = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # whatever the engine prints must not get between our messages
    with contextlib.suppress(BrokenPipeError, EOFError):
        _hold(Path(sys.argv[1]), requests, answers)


def _hold(folder: Path, requests: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    held = contextlib.ExitStack()
    try:
        held.enter_context(index_lock(folder.parent / HOLDER_LOCK, "hold"))
        from agent_memory.engines.shard import Shard  # loads the engine

        reader = ShardReader(Shard.open(folder))
    except BusyError:
        answers.send_bytes(_failure("Another process holds the index.", "busy"))
    except StorageError as error:
        answers.send_bytes(_failure(error.message))
    else:
        answers.send_bytes(pack_message(*reader.greeting()))
        try:
            _serve(reader, requests, answers)
        finally:
            with contextlib.suppress(StorageError):  # nothing was written that could be lost
                reader.close()


def _serve(reader: ShardReader, requests: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    while True:
        head, body = unpack_message(requests.recv_bytes())
        try:
            answers.send_bytes(pack_message(*reader.nearest(head, body)))
        except StorageError as error:
            answers.send_bytes(_failure(error.message))


def _failure(message: str, code: str = "engine") -> bytes:
    return pack_message({"failed": message, "code": code})


if __name__ == "__main__":
    main()
